//! The session keyring of a container's program.

use crate::stderr_log::log;
use keyutils::Keyring;

/// Gives this process a session keyring of its own: it had that of whoever started the node, with its keys.
pub fn renew() {
    if let Err(error) = Keyring::join_anonymous_session() {
        // The user has as many keys as may be, or the kernel has none: no reason not to run.
        log(format!("a container has no session keyring of its own: {error}"));
    }
}
