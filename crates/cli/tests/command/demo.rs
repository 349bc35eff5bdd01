//! `windlass demo`: its stages, and that nothing of it is left however it ends.

use crate::cleanup::processes_of;
use crate::process::windlass;
use crate::process_pods::cannot_run;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use windlass_clock::Clock;

/// The user whom every machine has for nobody.
const NOBODY: u32 = 65534;

/// A place for all that the demo makes; anybody may use it.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for folder in ["tmp", "run"] {
        fs::create_dir(place.path().join(folder)).unwrap();
        fs::set_permissions(place.path().join(folder), Permissions::from_mode(0o777)).unwrap();
    }
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    place
}

fn demo(place: &Path, arguments: &[&str]) -> Command {
    let mut command = windlass(&["demo"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("TMPDIR", place.join("tmp")).env("XDG_RUNTIME_DIR", place.join("run"));
    command
}

/// Runs it to its end, which must be good.
#[track_caller]
fn told(place: &Path, command: &mut Command) -> String {
    let said = command.output().unwrap();
    let (shown, wrong) = (String::from_utf8(said.stdout).unwrap(), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{shown}\n{wrong}");
    assert!(shown.contains("; 0 processes and 0 folders are left"), "{shown}");
    is_clean(place);
    shown
}

/// Neither a file nor a process is left, at most after a moment.
#[track_caller]
fn is_clean(place: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let clock = Clock::real();
    let left = || {
        let files = ["tmp", "run"].map(|folder| fs::read_dir(place.join(folder)).unwrap().flatten().count());
        (files, processes_of(place))
    };
    let gone = async {
        while left() != ([0, 0], Vec::new()) {
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = runtime.block_on(async { clock.timeout(Duration::from_secs(20), gone).await });
    assert_eq!(left(), ([0, 0], Vec::new()));
}

const PAGE: &str = include_str!("../../../../docs/demo.md");
/// How the first stage of the second story begins, which says so where that story is skipped.
const DATABASE: &str = "10. A database";

/// The titles of the stages that a text tells of, without their numbers.
fn stages(text: &str) -> Vec<&str> {
    let title = |line| {
        str::split_once(line, ". ").filter(|(number, _)| number.parse::<u8>().is_ok()).map(|(_, title)| title)
    };
    text.lines().filter_map(title).collect()
}

/// The titles of the page, up to where a run skipped the rest.
fn stages_of_page(shown: &str) -> Vec<&'static str> {
    let mut all = stages(PAGE);
    if shown.contains("   skipped") || shown.contains("   ! skipped") {
        let kept = DATABASE.split_once(' ').unwrap().1;
        let last = all.iter().position(|title| title.starts_with(kept)).unwrap();
        all.drain(last + 1..all.len() - 1);
    }
    all
}

#[test]
fn every_stage_is_told_and_written_down() {
    let place = place();
    let transcript = place.path().join("demo.md");
    let shown = told(place.path(), demo(place.path(), &["--transcript"]).arg(&transcript));
    assert_eq!(stages(&shown), stages_of_page(&shown), "`make demo-transcript` writes the page anew");
    if stages(&shown).len() == stages(PAGE).len() {
        no_row_is_lost(&shown);
    }
    assert_eq!(stages(&shown), stages(&fs::read_to_string(transcript).unwrap()));
    assert!(!shown.contains('\x1b'), "no colours in a pipe");
}

/// It counted rows, in plain lines, and found as many as were acknowledged.
#[track_caller]
fn no_row_is_lost(shown: &str) {
    let counts: Vec<u64> = shown
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" rows are acknowledged")?.parse().ok())
        .collect();
    assert!(counts.len() > 1 && counts.is_sorted() && counts.first() < counts.last(), "{counts:?}");
    let found =
        shown.lines().find_map(|line| line.trim().strip_prefix("acknowledged ")?.split_once(", found "));
    let (acknowledged, found) = found.unwrap();
    assert_eq!(acknowledged, found);
    assert!(acknowledged.parse::<u64>().unwrap() >= *counts.last().unwrap(), "{shown}");
    assert!(!shown.contains('\r'), "nothing is written in its place in a pipe");
}

#[test]
fn where_pods_cannot_run_it_says_so_and_goes_on() {
    let place = place();
    let shown = told(place.path(), &mut demo(place.path(), &["--simulate"]));
    assert!(shown.contains("Servers are simulated here"), "{shown}");
    assert!(shown.contains("   skipped: a simulated server keeps no rows"), "{shown}");
    assert_eq!(stages(&shown), stages_of_page(&shown));
}

#[test]
fn an_ordinary_user_sees_the_same() {
    let place = place();
    let as_nobody = |mut command: Command| {
        command.uid(NOBODY).gid(NOBODY);
        command
    };
    let may = nix::unistd::geteuid().is_root()
        && as_nobody(windlass(&["version"])).output().is_ok_and(|said| said.status.success());
    if !may {
        println!("skipped: only root can be somebody else, and others must be able to reach the program");
        return;
    }
    let shown = told(place.path(), &mut as_nobody(demo(place.path(), &[])));
    assert!(shown.contains("without root") || shown.contains("simulated"), "{shown}");
}

/// Starts it and reads until a line begins so.
fn until(place: &Path, arguments: &[&str], beginning: &str) -> (Child, BufReader<impl Read + use<>>) {
    let mut child = demo(place, arguments).stderr(Stdio::inherit()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(beginning) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before {beginning:?}");
    }
    (child, lines)
}

/// Runs it until a line begins so, and ends it with Ctrl-C.
#[track_caller]
fn interrupted(arguments: &[&str], beginning: &str, code: i32) {
    let place = place();
    let (mut child, mut lines) = until(place.path(), arguments, beginning);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{rest}");
    is_clean(place.path());
}

#[test]
fn ctrl_c_in_the_middle_or_at_the_end_leaves_nothing() {
    interrupted(&[], "5. ", 130);
    interrupted(&["--keep", "--simulate"], "11. It stays up", 0);
}

#[test]
fn ctrl_c_while_rows_are_written_leaves_nothing() {
    let needed = ["memcached", "/usr/lib/postgresql/15/bin/postgres"];
    match needed.into_iter().find_map(cannot_run) {
        Some(why) => println!("{why}"),
        None => interrupted(&[], "12. The primary is killed", 130),
    }
}

#[test]
fn killed_it_takes_its_processes_along() {
    let place = place();
    let (mut child, _) = until(place.path(), &[], "6. ");
    child.kill().unwrap();
    child.wait().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let clock = Clock::real();
    let ended = async {
        while !processes_of(place.path()).is_empty() {
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = runtime.block_on(async { clock.timeout(Duration::from_secs(20), ended).await });
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
    let left = fs::read_dir(place.path().join("run")).unwrap().flatten().map(|entry| entry.file_name());
    // Where its operator said that it runs; the next one that starts removes that.
    let left: Vec<_> = left.filter(|name| name != "windlass").collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new(), "the cluster's folder goes too");
}
