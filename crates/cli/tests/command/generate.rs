//! `windlass generate`, given a program that describes itself.

use super::process::windlass;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A program that answers `describe` with this.
fn operator(folder: &Path, most: u32) -> PathBuf {
    let schema = json!({
        "type": "object", "properties": { "spec": {
            "type": "object", "required": ["size"],
            "properties": { "size": { "type": "integer", "maximum": most } },
        } },
    });
    let definition = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    let answer = json!({
        "name": "thing-operator", "namespaces": [], "definitions": [definition],
        "rules": [{ "apiGroups": ["example.com"], "resources": ["things"], "verbs": ["list", "watch"] }],
        "electionRules": [],
    });
    let program = folder.join("operator");
    fs::write(&program, format!("#!/bin/sh\n[ \"$1\" = describe ] && cat <<'END'\n{answer}\nEND\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn generate(folder: &Path, more: &[&str]) -> Output {
    let program = folder.join("operator");
    windlass(&["generate", "--operator", program.to_str().unwrap()])
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn manifests_are_written_once_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    operator(folder.path(), 9);
    let said = generate(folder.path(), &["--check"]);
    assert!(!said.status.success(), "nothing is there yet");
    let said = generate(folder.path(), &["--image", "registry.example.com/thing:1"]);
    assert!(said.status.success(), "{said:?}");
    let definition = fs::read_to_string(folder.path().join("config/crd/example.com_things.yaml")).unwrap();
    let definition: Value = serde_saphyr::from_str(&definition).unwrap();
    assert_eq!(definition["spec"]["names"]["kind"], "Thing");
    let deployment = fs::read_to_string(folder.path().join("config/manager/deployment.yaml")).unwrap();
    assert!(deployment.contains("registry.example.com/thing:1"), "{deployment}");
    let again = generate(folder.path(), &["--check", "--image", "registry.example.com/thing:1"]);
    assert!(again.status.success(), "{again:?}");
}

#[test]
fn programs_are_told_as_json() {
    let folder = tempfile::tempdir().unwrap();
    operator(folder.path(), 9);
    let told = |more: &[&str]| {
        let said = generate(folder.path(), more);
        let told: Value = serde_json::from_slice(&said.stdout).unwrap();
        (told, said.status.code())
    };
    let (missing, code) = told(&["--check", "--output", "json"]);
    assert_eq!(
        (missing["upToDate"].as_bool(), missing["written"].as_bool(), code),
        (Some(false), Some(false), Some(1))
    );
    let path = "config/crd/example.com_things.yaml";
    let was = |told: &Value| {
        let file = told["files"].as_array().unwrap().iter().find(|file| file["path"] == path).unwrap();
        file["was"].as_str().unwrap().to_owned()
    };
    assert_eq!(was(&missing), "missing");
    assert!(!folder.path().join("config").exists(), "a check writes nothing");
    let (written, code) = told(&["-o", "json"]);
    assert_eq!((written["written"].as_bool(), code), (Some(true), Some(0)));
    fs::write(folder.path().join(path), "changed: by hand\n").unwrap();
    let (changed, code) = told(&["--check", "--force", "-o", "json"]);
    assert_eq!((was(&changed).as_str(), code), ("outOfDate", Some(1)));
}

#[test]
fn ctrl_c_before_it_writes_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("operator");
    fs::write(&program, "#!/bin/sh\n: > asked\nexec sleep 600\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new("env");
    let asked = windlass(&["generate", "--operator", program.to_str().unwrap()]);
    command.arg("--default-signal=INT").arg(asked.get_program()).args(asked.get_args());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.current_dir(folder.path()).spawn().unwrap();
    while !folder.path().join("asked").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was told to");
        std::thread::yield_now();
    }
    // As a terminal sends it: to all of the group.
    let group = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(!folder.path().join("config").exists());
}

#[test]
fn a_change_that_breaks_what_is_stored_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    operator(folder.path(), 9);
    assert!(generate(folder.path(), &[]).status.success());
    operator(folder.path(), 5);
    let said = generate(folder.path(), &[]);
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(!said.status.success() && text.contains("spec.size: maximum is now 5"), "{text}");
    let definition = || fs::read_to_string(folder.path().join("config/crd/example.com_things.yaml")).unwrap();
    assert!(definition().contains("maximum: 9"));
    assert!(generate(folder.path(), &["--force"]).status.success());
    assert!(definition().contains("maximum: 5"));
}

#[test]
fn an_answer_that_is_none_is_told() {
    let said = windlass(&["generate", "--operator", "/bin/echo"]).output().unwrap();
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(!said.status.success() && text.contains("`describe` is not understood"), "{text}");
}
