//! Log lines of the processes in the background: the shims and the network process.

use std::io::Write;

/// Writes a line to standard error, which is a file in the node's directory. Where the disk is full it is lost: `eprintln!` would
/// panic, and the exit of a container would never be reported.
pub(crate) fn log(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
