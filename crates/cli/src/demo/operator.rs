//! The Memcached operator inside of this binary: whoever runs it under the operator's name runs the operator. So the demo needs
//! neither a checkout nor a second program, and the operator is a process like any other.

use crate::signals::end_with_parent;
use std::path::Path;
use std::process::ExitCode;
use windlass::Manager;

/// The operator's name, and that of the link to this program.
pub(super) const NAME: &str = "memcached-operator";

/// Runs the operator, if that is what this process was started as.
pub(crate) fn hidden() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    if Path::new(&name).file_name()? != NAME {
        return None;
    }
    end_with_parent();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        runtime.block_on(async {
            let manager = Manager::from_env().map_err(|error| error.to_string())?;
            memcached_operator::operator(manager).run().await.map_err(|error| error.to_string())
        })
    });
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    })
}
