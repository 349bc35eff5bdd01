//! A whole node on the embedded API: real programs run as pods, by this program running itself again.

mod ground;
mod lives;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = windlass_node::hidden(std::env::args_os().skip(1)) {
        return code;
    }
    let trials = lives::ALL.iter().map(|(name, test)| Trial::test(*name, || run(*test))).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn run(test: ground::Test) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime
        .block_on(async {
            let ground = ground::Ground::start().await?;
            let outcome = test(&ground).await;
            let ended = ground.end().await;
            outcome.and(ended)
        })
        .map_err(|error| format!("{error:?}").into())
}
