//! The files of one log, from the oldest on.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An open file of a log, told from others whatever its name is by now.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) id: Id,
}

/// Device and inode.
pub(super) type Id = (u64, u64);

/// Opens a file; none if it is not there.
pub(super) fn open(path: &Path) -> io::Result<Option<Opened>> {
    match File::open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            Ok(Some(Opened { file, id: (metadata.dev(), metadata.ino()) }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Which file has that name now.
pub(super) fn id(path: &Path) -> Option<Id> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// All files of the log that are there, opened, from the oldest on. Opened at once, so that a rotation meanwhile takes
/// none away.
pub(super) fn all(path: &Path) -> io::Result<Vec<Opened>> {
    let mut opened = Vec::new();
    // The newest first: if it is rotated while this goes on, it is met again below, and not missed.
    let newest = open(path)?;
    for rotated in rotated(path)? {
        opened.extend(
            open(&rotated)?.filter(|found| newest.as_ref().is_none_or(|newest| newest.id != found.id)),
        );
    }
    opened.extend(newest);
    Ok(opened)
}

fn rotated(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{name}.");
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_rotated = entry.file_name().to_str().is_some_and(|name| {
            // What is compressed, or about to be, is not read.
            name.starts_with(&prefix) && !name.ends_with(".gz") && !name.ends_with(".tmp")
        });
        if is_rotated {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
