//! A whole node on the embedded API: real programs run as pods, by this program running itself again.
//!
//! As root all of it runs twice: as root, and as an ordinary user.

mod added;
mod fixture;
mod images;
mod left;
mod lives;
mod places;
mod reach;
mod sharing;
mod shortage;
#[path = "../skip/mod.rs"]
mod skip;

use fixture::Wants;
use futures::FutureExt;
use libtest_mimic::{Arguments, Failed, Trial};
use std::os::unix::process::CommandExt;
use std::panic::AssertUnwindSafe;
use std::process::{Command, ExitCode};

/// Set where this program runs as an ordinary user because root started it so.
const AGAIN: &str = "WINDLASS_TEST_AS_USER";
/// `nobody` of every Linux.
const NOBODY: u32 = 65534;

fn main() -> ExitCode {
    if let Some(code) = windlass_node::run_hidden_subcommand(std::env::args_os().skip(1)) {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(reach::ASKS) => return reach::ask(),
        Some(left::HOST) => return left::host(&arguments[1..]),
        Some(left::SCENARIO) => return left::scenario(),
        _ => {}
    }
    if let Some(reason) = skip::reason(&["busybox", "memcached"]) {
        eprintln!("{reason}");
        return ExitCode::SUCCESS;
    }
    let all = lives::ALL.iter().chain(places::ALL).chain(images::ALL).chain(added::ALL).chain(sharing::ALL);
    let usual = all.map(|(name, test)| Trial::test(*name, || run(Wants::default(), *test)));
    let wanting = shortage::ALL.iter().chain(reach::ALL).map(|(name, wants, test)| {
        // A disk of one's own is for root alone to make.
        let lacking = wants().disk.is_some() && !nix::unistd::geteuid().is_root();
        Trial::test(*name, || run(wants(), *test)).with_ignored_flag(lacking)
    });
    let mut trials: Vec<Trial> = usual.chain(wanting).collect();
    trials.push(Trial::test("nothing_is_left_behind_whoever_is_killed", left::test));
    if nix::unistd::geteuid().is_root() && std::env::var_os(AGAIN).is_none() {
        trials.push(Trial::test("as_an_ordinary_user", as_an_ordinary_user));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Everything once more.
fn as_an_ordinary_user() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
    let output = Command::new(std::env::current_exe()?)
        .arg("--test-threads=2")
        .env(AGAIN, "1")
        .env("TMPDIR", folder.path())
        .current_dir("/")
        .gid(NOBODY)
        .uid(NOBODY)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        errors.lines().filter(|line| line.starts_with("skipped")).for_each(|line| eprintln!("{line}"));
        return Ok(());
    }
    Err(format!("{}\n{errors}", String::from_utf8_lossy(&output.stdout)).into())
}

fn run(wants: Wants, test: fixture::Test) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime
        .block_on(async {
            let fixture = fixture::Fixture::start(wants).await?;
            // A test that panics leaves nothing running either.
            let outcome = AssertUnwindSafe(test(&fixture)).catch_unwind().await;
            let ended = fixture.end().await;
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(ended)
        })
        .map_err(|error| format!("{error:?}").into())
}
