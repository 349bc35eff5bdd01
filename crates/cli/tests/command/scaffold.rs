//! `windlass init`, `create`, `edit` and `completion`, as a person at a terminal and a script meet them.

use super::process::windlass;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    windlass(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

fn shop(folder: &Path) {
    let said = run(folder, &["init", "--domain", "example.com", "--name", "shop-operator"]);
    assert!(said.status.success(), "{}", err(&said));
}

const BASKET: [&str; 8] = ["create", "api", "--group", "shop", "--version", "v1", "--kind", "Basket"];

#[test]
fn a_project_grows_by_commands_that_say_what_they_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &["init", "--domain", "example.com", "--name", "shop-operator"]);
    assert!(out(&said).contains("wrote     Cargo.toml\n"), "{}{}", out(&said), err(&said));
    let manifest = fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
    // It runs from the checkout that it was built from, and so depends on it.
    assert!(manifest.contains("windlass = { path = "), "{manifest}");
    assert!(folder.path().join("Cargo.lock").is_file(), "with the versions that this was tested with");
    let mut api = BASKET.to_vec();
    api.extend(["--owns", "Deployment,Service"]);
    let said = run(folder.path(), &api);
    assert!(said.status.success(), "{}", err(&said));
    for line in [
        "inserted  pub mod v1; into src/api/mod.rs\n",
        "wrote     src/controller/basket_access.rs\n",
        "updated   src/generated.rs\n",
        "updated   PROJECT\n",
    ] {
        assert!(out(&said).contains(line), "{}", out(&said));
    }
    let again = run(folder.path(), &api);
    assert!(out(&again).contains("nothing was written"), "{}", out(&again));
    let said = run(folder.path(), &["create", "controller", "--kind", "Basket", "--name", "expiry"]);
    assert!(
        out(&said).contains("wrote     src/controller/basket_expiry.rs\n"),
        "{}{}",
        out(&said),
        err(&said)
    );
    let said = run(folder.path(), &["edit", "--multigroup"]);
    assert!(out(&said).contains("updated   PROJECT\n"), "{}{}", out(&said), err(&said));
    assert!(fs::read_to_string(folder.path().join("PROJECT")).unwrap().contains("multigroup: true\n"));
}

#[test]
fn init_says_where_the_library_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &["init", "--domain", "example.com", "--name", "shop-operator"]);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let using = format!("using     windlass from {}, the checkout that", checkout.display());
    assert!(out(&said).contains(&using), "{}", out(&said));
    // Outside of the checkout, all that the project depends on is found.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    let tree = cargo.args(["tree", "--offline", "--depth", "1"]).current_dir(folder.path()).output().unwrap();
    assert!(out(&tree).contains("windlass-testing v"), "{}{}", out(&tree), err(&tree));

    let folder = tempfile::tempdir().unwrap();
    let url = "https://example.com/windlass.git";
    let said = run(
        folder.path(),
        &["init", "--domain", "example.com", "--name", "shop-operator", "--windlass", url],
    );
    assert!(
        out(&said).contains(&format!("using     windlass from the git repository {url}")),
        "{}",
        out(&said)
    );
    let manifest = fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
    assert!(manifest.contains(&format!("windlass = {{ git = \"{url}\" }}\n")), "{manifest}");
}

#[test]
fn a_folder_that_is_no_checkout_is_not_depended_on() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().to_str().unwrap();
    let said =
        run(folder.path(), &["init", "--domain", "example.com", "--name", "shop", "--windlass", wrong]);
    assert_eq!(said.status.code(), Some(1));
    assert!(err(&said).contains("is no checkout of windlass"), "{}", err(&said));
    assert!(is_empty(folder.path()));
}

#[test]
fn bad_names_are_refused_in_a_sentence_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, part) in [
        (vec!["init", "--domain", "Example", "--name", "shop"], 2, "domain"),
        (vec!["init", "--domain", "example.com", "--name", "My Shop"], 2, "project name"),
        (vec!["init", "--name", "shop"], 2, "--domain"),
        (vec!["edit", "--multigroup"], 1, "windlass init"),
        (vec!["edit"], 2, "--multigroup"),
        (BASKET.to_vec(), 1, "windlass init"),
    ] {
        let said = run(folder.path(), &arguments);
        assert_eq!(said.status.code(), Some(code), "{arguments:?}: {}", err(&said));
        assert!(err(&said).starts_with("error: ") && err(&said).contains(part), "{}", err(&said));
        assert!(is_empty(folder.path()));
    }
    shop(folder.path());
    let before = fs::read_to_string(folder.path().join("PROJECT")).unwrap();
    for (kind, part) in [("Self", "longer"), ("basket", "CamelCase"), ("Basket List", "CamelCase")] {
        let said =
            run(folder.path(), &["create", "api", "--group", "shop", "--version", "v1", "--kind", kind]);
        assert_eq!(said.status.code(), Some(2), "{}", err(&said));
        assert!(err(&said).contains(part), "{}", err(&said));
    }
    assert_eq!(fs::read_to_string(folder.path().join("PROJECT")).unwrap(), before);
    assert!(!folder.path().join("src/api/v1").exists());
}

#[test]
fn a_damaged_project_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let path = folder.path().join("PROJECT");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("license: apache2", "license: gpl")).unwrap();
    let said = run(folder.path(), &BASKET);
    assert_eq!(said.status.code(), Some(1));
    assert!(err(&said).contains("PROJECT is invalid") && err(&said).contains("line 5"), "{}", err(&said));
    fs::write(&path, b"\xff\xfe").unwrap();
    let said = run(folder.path(), &BASKET);
    assert_eq!(said.status.code(), Some(1));
    assert!(err(&said).contains("PROJECT"), "{}", err(&said));
}

#[test]
fn what_is_there_is_overwritten_only_when_told_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Makefile"), "mine:\n\techo mine\n").unwrap();
    let init = ["init", "--domain", "example.com", "--name", "shop-operator"];
    let said = run(folder.path(), &init);
    assert_eq!(said.status.code(), Some(1));
    assert!(err(&said).contains("Makefile") && err(&said).contains("--force"), "{}", err(&said));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else was written");
    let said = run(folder.path(), &[&init[..], &["--force"]].concat());
    assert!(said.status.success(), "{}", err(&said));
    assert!(
        out(&said).contains("overwrote Makefile\n") && out(&said).contains("- mine:\n"),
        "{}",
        out(&said)
    );
}

#[test]
fn changes_that_are_not_committed_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let git = |arguments: &[&str]| {
        let named = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        let mut git = Command::new("git");
        git.args(named)
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .is_ok_and(|done| done.status.success())
    };
    if !git(&["init"]) {
        return eprintln!("skipped: git is not installed");
    }
    assert!(git(&["add", "."]) && git(&["commit", "-m", "begin"]));
    let said = run(folder.path(), &BASKET);
    assert!(!err(&said).contains("warning"), "all is committed: {}", err(&said));
    let said = run(folder.path(), &["create", "controller", "--kind", "Basket", "--name", "expiry"]);
    assert!(said.status.success() && err(&said).contains("not committed"), "{}", err(&said));
}

/// A command with a terminal, and the other side of it.
fn at_terminal(folder: &Path, arguments: &[&str]) -> (Child, File) {
    let other_side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&other_side).unwrap();
    unlockpt(&other_side).unwrap();
    let name = ptsname(&other_side, Vec::new()).unwrap();
    let terminal = || fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    // Whoever runs these tests in the background may have Ctrl-C ignored.
    let windlass = windlass(arguments);
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(windlass.get_program()).args(windlass.get_args());
    command.current_dir(folder).stdin(terminal()).stdout(terminal()).stderr(terminal());
    (command.spawn().unwrap(), File::from(other_side))
}

/// Reads until a question is asked; all that was shown.
fn until(terminal: &mut File, question: &str) -> String {
    let mut shown = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&shown).contains(question) {
        match terminal.read(&mut byte) {
            Ok(1) => shown.push(byte[0]),
            _ => panic!("it ended: {}", String::from_utf8_lossy(&shown)),
        }
    }
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn what_is_missing_is_asked_for_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, mut terminal) = at_terminal(folder.path(), &["init", "--name", "shop-operator"]);
    until(&mut terminal, "Which domain");
    terminal.write_all(b"example\n").unwrap();
    until(&mut terminal, "a group needs a dot");
    until(&mut terminal, "Which domain");
    terminal.write_all(b"example.com\n").unwrap();
    until(&mut terminal, "next: windlass create api");
    assert!(child.wait().unwrap().success());
    let project = fs::read_to_string(folder.path().join("PROJECT")).unwrap();
    assert!(project.contains("domain: example.com\n"), "{project}");
}

#[test]
fn an_interrupted_question_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, mut terminal) = at_terminal(folder.path(), &["init", "--domain", "example.com"]);
    until(&mut terminal, "What is the project called");
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert!(is_empty(folder.path()));
}

#[test]
fn shells_complete_its_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let said = windlass(&["completion", shell]).output().unwrap();
        assert!(said.status.success());
        for word in ["create", "multigroup", "completion"] {
            assert!(out(&said).contains(word), "{shell}: {word}");
        }
    }
    let script = windlass(&["completion", "bash"]).output().unwrap().stdout;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(bash.wait().unwrap().success(), "bash reads it");
    assert_eq!(windlass(&["completion", "csh"]).output().unwrap().status.code(), Some(2));
}
