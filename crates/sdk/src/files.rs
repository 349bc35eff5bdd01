//! Generated files on disk: written when they differ, or only compared.

use std::io;
use std::path::{Path, PathBuf};

/// A file that follows from something, below a folder that is chosen later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path below the folder.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

impl File {
    /// A file.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// How a file on disk compares with what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is what it should be.
    Same,
    /// It is absent.
    Absent,
    /// It is something else.
    Different,
}

/// A file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct FileError {
    path: String,
    source: io::Error,
}

impl FileError {
    fn at(path: &Path, source: io::Error) -> Self {
        Self { path: path.display().to_string(), source }
    }
}

/// How each file compares with what is in the folder.
///
/// # Errors
/// When one is there and cannot be read.
pub fn compare(folder: &Path, files: &[File]) -> Result<Vec<State>, FileError> {
    files.iter().map(|file| state(&folder.join(&file.path), file)).collect()
}

fn state(path: &Path, file: &File) -> Result<State, FileError> {
    match std::fs::read(path) {
        Ok(there) if there == file.text.as_bytes() => Ok(State::Same),
        Ok(_) => Ok(State::Different),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Absent),
        Err(error) => Err(FileError::at(path, error)),
    }
}

/// Writes what differs, each file whole or not at all; says what each was before.
///
/// # Errors
/// When one cannot be written.
pub fn write(folder: &Path, files: &[File]) -> Result<Vec<State>, FileError> {
    let before = compare(folder, files)?;
    for (file, _) in files.iter().zip(&before).filter(|(_, state)| **state != State::Same) {
        let path = folder.join(&file.path);
        put(&path, &file.text).map_err(|error| FileError::at(&path, error))?;
    }
    Ok(before)
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let beside = path.with_extension("partial");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let files = [File::new("a/one", "1"), File::new("two", "2")];
        assert_eq!(write(folder.path(), &files)?, [State::Absent, State::Absent]);
        std::fs::write(folder.path().join("two"), "other")?;
        assert_eq!(compare(folder.path(), &files)?, [State::Same, State::Different]);
        assert_eq!(write(folder.path(), &files)?, [State::Same, State::Different]);
        assert_eq!(compare(folder.path(), &files)?, [State::Same, State::Same]);
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 2, "nothing else is left");
        Ok(())
    }

    #[test]
    fn what_cannot_be_read_is_named() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("one"))?;
        let error = compare(folder.path(), &[File::new("one", "1")]).unwrap_err();
        assert!(error.to_string().contains("one: "), "{error}");
        Ok(())
    }
}
