//! A whole node on the embedded API: real programs run as pods, by this program running itself again.

mod ground;
mod images;
mod lives;
mod places;
#[path = "../skip/mod.rs"]
mod skip;

use futures::FutureExt;
use libtest_mimic::{Arguments, Failed, Trial};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = windlass_node::hidden(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(reason) = skip::reason(&["busybox", "memcached"]) {
        eprintln!("{reason}");
        return ExitCode::SUCCESS;
    }
    let all = lives::ALL.iter().chain(places::ALL).chain(images::ALL);
    let trials = all.map(|(name, test)| Trial::test(*name, || run(*test))).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn run(test: ground::Test) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime
        .block_on(async {
            let ground = ground::Ground::start().await?;
            // A test that panics leaves nothing running either.
            let outcome = AssertUnwindSafe(test(&ground)).catch_unwind().await;
            let ended = ground.end().await;
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(ended)
        })
        .map_err(|error| format!("{error:?}").into())
}
