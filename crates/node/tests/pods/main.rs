//! Real programs as pods: the same manifests on the embedded cluster and on the reference, with our node joined to each.

mod behaviours;
mod fixture;
mod place;
#[path = "../skip/mod.rs"]
mod skip;

use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::Suite;

fn main() -> ExitCode {
    if let Some(code) = windlass_node::run_hidden_subcommand(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(why) = skip::reason(&[]) {
        eprintln!("{why}");
        return ExitCode::SUCCESS;
    }
    let suite = Suite::on([fixture::embedded(), fixture::reference()]).limit(Duration::from_secs(300));
    behaviours::all(suite).run()
}
