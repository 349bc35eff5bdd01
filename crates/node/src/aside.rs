//! What processes in the background say about themselves.

use std::io::Write;

/// Says something on the error output, which is a file in the node's folder. Where the disk has no room it is lost: `eprintln!` would
/// panic there, and a container's end would never be told.
pub(crate) fn aside(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
