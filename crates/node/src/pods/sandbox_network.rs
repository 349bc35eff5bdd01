//! Which network a pod's sandbox was attached to, as the pod's directory says.

use std::io;
use std::path::Path;

/// The name of the file.
const FILE: &str = "network";

/// The network that a sandbox is attached to; none where it is on the host's.
pub(crate) fn read(folder: &Path) -> Option<String> {
    std::fs::read_to_string(folder.join(FILE)).ok()
}

/// Writes it down before the sandbox is attached.
pub(crate) fn write(folder: &Path, instance: Option<&str>) -> io::Result<()> {
    match instance {
        Some(instance) => std::fs::write(folder.join(FILE), instance),
        None => match std::fs::remove_file(folder.join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
}
