//! The node's network with real namespaces: this program is the network process, and the pods, by running itself again.
//!
//! As root all of it runs twice: as root, and as an ordinary user.

mod basics;
mod fixture;
mod latency;
mod pod;
mod services;
#[path = "../skip/mod.rs"]
mod skip;

use libtest_mimic::{Arguments, Failed, Trial};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Set where this program runs as an ordinary user because root started it so.
const AS_USER: &str = "WINDLASS_TEST_AS_USER";
/// `nobody` of every Linux.
const NOBODY: u32 = 65534;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = windlass_node::run_hidden_subcommand(arguments.clone()) {
        return code;
    }
    if arguments.first().is_some_and(|first| first == "pod") {
        return pod::main(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == basics::EXAMINE) {
        return basics::examine();
    }
    if let Some(reason) = skip::reason(&[]) {
        eprintln!("{reason}");
        return ExitCode::SUCCESS;
    }
    let mut trials = basics::trials();
    trials.extend(services::trials());
    trials.extend(latency::trials());
    if nix::unistd::geteuid().is_root() && std::env::var_os(AS_USER).is_none() {
        trials.push(Trial::test("as_an_ordinary_user", as_an_ordinary_user));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Everything once more.
fn as_an_ordinary_user() -> Result<(), Failed> {
    let ended = Command::new(std::env::current_exe()?)
        .arg("--test-threads=2")
        .env(AS_USER, "1")
        .current_dir("/")
        .gid(NOBODY)
        .uid(NOBODY)
        .output()?;
    let errors = String::from_utf8_lossy(&ended.stderr);
    if ended.status.success() {
        errors.lines().filter(|line| line.starts_with("skipped")).for_each(|line| eprintln!("{line}"));
        return Ok(());
    }
    Err(format!("{}\n{errors}", String::from_utf8_lossy(&ended.stdout)).into())
}
