//! The limit on open files, which connections count against.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// As many as the system lets us: each connection is one, and the usual start is no more than a thousand.
pub(crate) fn raise_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
