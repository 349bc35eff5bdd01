//! The private folder of a running reference, and the removal of those that a killed process left.

use super::StartError;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tempfile::TempDir;

const PREFIX: &str = "windlass-reference-";

/// A folder that only we can read, gone when dropped.
#[derive(Debug)]
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn make() -> Result<Self, StartError> {
        sweep();
        // The owner's id in the name lets a later run tell a folder that is in use from one that was left behind.
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir()
            .map_err(StartError::io("make a folder for the reference"))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that only we can read.
    pub(crate) fn write_private(&self, name: &str, text: &str) -> Result<(), StartError> {
        write_private(&self.path().join(name), text)
    }
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), StartError> {
    let written = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(StartError::io(format!("write {}", path.display())))
}

/// Removes the folders of processes that no longer live. Best effort: a folder that stays does no harm.
#[expect(clippy::disallowed_methods, reason = "it looks for what tempfile made in earlier processes")]
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split('-').next());
        if let Some(owner) = owner
            && Path::new("/proc/self").exists()
            && !Path::new("/proc").join(owner).exists()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
