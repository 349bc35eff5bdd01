//! Files and directories that outlive a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file that is there whole or not at all, and outlives a crash.
///
/// # Errors
/// Of the file system.
pub fn write_durably(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let parent = path.parent().ok_or_else(|| io::Error::other("a file is in a directory"))?;
    let beside = path.with_extension("new");
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_directory(parent)
}

/// Has what is in a directory outlive a crash.
///
/// # Errors
/// Of the file system.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes a directory with all that is in it, if it is there.
///
/// # Errors
/// Of the file system.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
