//! Pods as processes, on the machine that runs the tests: as root, and once more as a user who is not.
//!
//! A program of its own (`harness = false`): it runs itself again as shims and as containers.

mod faults;
mod fixture;
mod images;
mod life;
mod limits;
#[path = "../skip/mod.rs"]
mod skip;
mod streams;
mod view;

use fixture::Fixture;
use libtest_mimic::{Arguments, Failed, Trial};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;
use windlass_clock::Clock;

/// Who nobody is, on every Linux.
const NOBODY: u32 = 65534;
/// Tells the second run that it is one.
const AGAIN: &str = "WINDLASS_TEST_AS_NOBODY";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = windlass_node::run_hidden_subcommand(arguments.clone()) {
        return code;
    }
    if arguments.first().is_some_and(|first| first == view::KEYS) {
        println!("{}", view::keys());
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = skip::reason(&[]) {
        eprintln!("{reason}");
        return ExitCode::SUCCESS;
    }
    let mut trials =
        [life::tests(), faults::tests(), view::tests(), streams::tests(), limits::tests(), images::tests()]
            .concat()
            .into_iter()
            .map(trial)
            .collect::<Vec<_>>();
    if fixture::is_root() && std::env::var_os(AGAIN).is_none() {
        trials.push(Trial::test("all of it as a user who is not root", as_nobody));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test: its name, and a body that is given a fixture of its own.
pub type Test = (&'static str, fn(Fixture) -> futures::future::BoxFuture<'static, anyhow::Result<()>>);

fn trial((name, body): Test) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ended = runtime.block_on(async {
            let fixture = Fixture::new()?;
            let ended = Clock::real().timeout(Duration::from_secs(150), body(fixture.clone())).await;
            let cleaned = fixture.clean().await;
            ended.map_err(anyhow::Error::from).flatten().and(cleaned)
        });
        ended.map_err(|error| Failed::from(format!("{error:?}")))
    })
}

fn as_nobody() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
    // The standard library gives up the further groups of root together with the user.
    let output = Command::new(std::env::current_exe()?)
        .args(["--test-threads", "2"])
        .env(AGAIN, "1")
        .env("TMPDIR", folder.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        errors.lines().filter(|line| line.starts_with("skipped")).for_each(|line| eprintln!("{line}"));
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors;
    Err(Failed::from(said))
}
