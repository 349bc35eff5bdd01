//! The programs inside of this binary: whoever runs it under the name of an operator runs that operator, and under the name of
//! SampleDB's agent the agent. So the demo needs neither a checkout nor a second program, and each is a process like any other.

use crate::signals::end_with_parent;
use sampledb_operator::{DEFAULT_IMAGE, agent};
use std::path::Path;
use std::process::ExitCode;
use windlass::Manager;

/// The names of the programs, and of the links to this one.
pub(super) const MEMCACHED: &str = "memcached-operator";
pub(super) const SAMPLEDB: &str = "sampledb-operator";
pub(super) const AGENT: &str = "sampledb-agent";

/// Runs the program that this process was started as, if it is one of these.
pub(crate) fn hidden() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    match Path::new(&name).file_name()?.to_str()? {
        MEMCACHED => Some(run(memcached_operator::operator)),
        SAMPLEDB => Some(run(|manager| sampledb_operator::operator(manager, DEFAULT_IMAGE))),
        // It runs in a pod, which ends it.
        AGENT => Some(agent::main()),
        _ => None,
    }
}

fn run(operator: impl FnOnce(Manager) -> Manager) -> ExitCode {
    end_with_parent();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        runtime.block_on(async {
            let manager = Manager::from_env().map_err(|error| error.to_string())?;
            operator(manager).run().await.map_err(|error| error.to_string())
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
