//! Generated files on disk: written when they differ, or only compared.

use crate::signals::BlockedSignals;
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

/// Writes what differs, all of it or nothing; says what each was before. A signal that would end the program waits for it.
///
/// # Errors
/// When one cannot be written: then none is.
pub fn write(folder: &Path, files: &[File]) -> Result<Vec<State>, FileError> {
    let before = compare(folder, files)?;
    let differs = files.iter().zip(&before).filter(|(_, state)| **state != State::Same);
    let paths: Vec<(PathBuf, &str)> =
        differs.map(|(file, _)| (folder.join(&file.path), file.text.as_str())).collect();
    let _quiet = BlockedSignals::now();
    let mut done = Done::default();
    match paths.iter().try_for_each(|(path, text)| done.stage(path, text)).and_then(|()| done.commit()) {
        Ok(()) => Ok(before),
        Err(error) => {
            done.undo();
            Err(error)
        }
    }
}

/// What was done so far, so that it can be undone.
#[derive(Default)]
struct Done {
    /// Folders that were not there.
    folders: Vec<PathBuf>,
    /// Files beside those that they are to become.
    staged: Vec<(PathBuf, PathBuf)>,
    /// Files that are in place, and what was there.
    placed: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Done {
    fn stage(&mut self, path: &Path, text: &str) -> Result<(), FileError> {
        let at = |error| FileError::at(path, error);
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir(folder).map_err(at)?;
            self.folders.push(folder.to_owned());
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".partial");
        self.staged.push((beside.clone().into(), path.to_owned()));
        std::fs::write(&beside, text).map_err(at)
    }

    fn commit(&mut self) -> Result<(), FileError> {
        for (beside, path) in &self.staged {
            let there = match std::fs::read(path) {
                Ok(there) => Some(there),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(FileError::at(path, error)),
            };
            std::fs::rename(beside, path).map_err(|error| FileError::at(path, error))?;
            self.placed.push((path.clone(), there));
        }
        Ok(())
    }

    /// As far as it can be: what made the writing fail may stand in the way of this too.
    fn undo(self) {
        for (path, there) in self.placed {
            match there {
                Some(text) => std::fs::write(path, text).ok(),
                None => std::fs::remove_file(path).ok(),
            };
        }
        for (beside, _) in self.staged {
            std::fs::remove_file(beside).ok();
        }
        for folder in self.folders.into_iter().rev() {
            std::fs::remove_dir(folder).ok();
        }
    }
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
    fn when_one_cannot_be_written_none_is() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("old"), "before")?;
        std::fs::write(folder.path().join("file"), "no folder")?;
        let files = [File::new("old", "after"), File::new("new/deep/one", "1"), File::new("other", "x")];
        // What is to be a folder is a file.
        let mut wrong = files.to_vec();
        wrong.push(File::new("file/below", "2"));
        assert!(write(folder.path(), &wrong).is_err());
        // What is to be a file becomes a folder after it was looked at: only putting it in place fails.
        let mut done = Done::default();
        for file in &files {
            done.stage(&folder.path().join(&file.path), &file.text)?;
        }
        std::fs::create_dir(folder.path().join("other"))?;
        let error = done.commit().unwrap_err();
        assert!(error.to_string().contains("other"), "{error}");
        done.undo();
        std::fs::remove_dir(folder.path().join("other"))?;
        assert_eq!(std::fs::read_to_string(folder.path().join("old"))?, "before");
        let mut left: Vec<_> = std::fs::read_dir(folder.path())?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<_>>()?;
        left.sort();
        assert_eq!(left, ["file", "old"]);
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
