//! `windlass doctor`: the toolchain, the cluster of the current context, and what one may do there.

use crate::process::{Cluster, windlass};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What it finds, as JSON, and its exit code.
fn told(command: &mut Command) -> (Value, Option<i32>) {
    let said = command.output().unwrap();
    let told = serde_json::from_slice(&said.stdout);
    (told.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&said.stderr))), said.status.code())
}

fn about<'a>(told: &'a Value, what: &str) -> &'a Value {
    let all = told["findings"].as_array().unwrap();
    all.iter().find(|one| one["about"] == what).unwrap_or_else(|| panic!("nothing about {what}: {told:#}"))
}

fn doctor(kubeconfig: &Path) -> Command {
    let mut command = windlass(&["doctor", "-o", "json"]);
    command.env("KUBECONFIG", kubeconfig).env_remove("CARGO");
    command
}

/// The kubeconfig of a cluster as somebody without credentials has it.
pub(crate) fn of_nobody(cluster: &Cluster, folder: &Path) -> std::path::PathBuf {
    let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let mut file: Value = serde_saphyr::from_str(&text).unwrap();
    file["users"][0]["user"] = serde_json::json!({});
    let path = folder.join("nobody");
    fs::write(&path, file.to_string()).unwrap();
    path
}

#[test]
fn the_cluster_and_what_one_may_do_there_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path(), &[]);
    let (said, _) = told(&mut doctor(&cluster.kubeconfig()));
    let found = about(&said, "cluster");
    assert_eq!(found["level"], "ok", "{said:#}");
    assert!(found["found"].as_str().unwrap().contains(cluster.server()), "{said:#}");
    assert_eq!(about(&said, "permissions")["level"], "ok", "{said:#}");

    let (said, _) = told(&mut doctor(&of_nobody(&cluster, folder.path())));
    let found = about(&said, "permissions");
    assert_eq!(found["level"], "warning", "{said:#}");
    assert!(
        found["found"].as_str().unwrap().contains("patch customresourcedefinitions (install)"),
        "{said:#}"
    );
    assert!(found["remedy"].is_string());
}

#[test]
fn a_cluster_that_is_not_reached_is_a_warning_with_a_way_out() {
    let (said, _) = told(&mut doctor(Path::new("/nowhere")));
    let found = about(&said, "cluster");
    assert_eq!(found["level"], "warning", "{said:#}");
    assert!(found["remedy"].as_str().unwrap().contains("windlass cluster up"), "{said:#}");
}

#[test]
fn a_toolchain_that_is_too_old_or_missing_fails() {
    let folder = tempfile::tempdir().unwrap();
    for program in ["cargo", "rustc"] {
        let path = folder.path().join(program);
        fs::write(&path, format!("#!/bin/sh\necho {program} 1.60.0\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (said, code) = told(doctor(Path::new("/nowhere")).env("PATH", folder.path()));
    assert_eq!((said["canBuild"].as_bool(), code), (Some(false), Some(1)), "{said:#}");
    assert_eq!(about(&said, "rustc")["remedy"], "rustup update stable");
    assert_eq!(about(&said, "C linker")["level"], "problem");
    assert_eq!(about(&said, "kubectl")["level"], "warning", "one can do without");
    let said =
        doctor(Path::new("/nowhere")).env("PATH", folder.path()).arg("--output=text").output().unwrap();
    assert!(!said.status.success());
}
