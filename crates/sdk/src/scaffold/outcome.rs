//! What becomes of each file of a change, given the files that exist: an author's file is overwritten only with `--force`.

use super::{Change, PlannedFile, Read, WriteMode};
use crate::files::File;
use std::path::PathBuf;

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is new.
    Created,
    /// The tool owns it, and overwrites it.
    Updated,
    /// It gets a line.
    Inserted(String),
    /// It was the author's, with this text, and `--force` overwrites it.
    Overwritten(String),
    /// The author has edited it, and it stays.
    Kept,
    /// It is as it would be written.
    Unchanged,
}

/// A file, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOutcome {
    /// All of it, as it would be.
    pub file: File,
    /// What becomes of it.
    pub outcome: Outcome,
}

impl FileOutcome {
    /// Whether it is written.
    pub fn is_written(&self) -> bool {
        !matches!(self.outcome, Outcome::Kept | Outcome::Unchanged)
    }
}

/// Files that are there, and are not what would be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("these files exist and differ from what would be generated: {}", named(.0))]
pub struct FilesExist(pub Vec<PathBuf>);

fn named(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

/// What becomes of each file.
///
/// # Errors
/// When a new one would overwrite a person's, and that is not `forced`.
pub fn resolve(change: Change, read: Read<'_>, forced: bool) -> Result<Vec<FileOutcome>, FilesExist> {
    let mut in_the_way = Vec::new();
    let mut placed = Vec::new();
    for PlannedFile { file, mode } in change.files {
        let there = file.path.to_str().and_then(read);
        let outcome = match (there, mode) {
            (None, _) => Outcome::Created,
            (Some(there), _) if there == file.text => Outcome::Unchanged,
            (Some(_), WriteMode::Regenerate) => Outcome::Updated,
            (Some(_), WriteMode::InsertLine(line)) => Outcome::Inserted(line),
            (Some(there), WriteMode::CreateOnly) if forced => Outcome::Overwritten(there),
            (Some(_), WriteMode::CreateOnly) if change.again => Outcome::Kept,
            (Some(_), WriteMode::CreateOnly) => {
                in_the_way.push(file.path);
                continue;
            }
        };
        placed.push(FileOutcome { file, outcome });
    }
    match in_the_way.is_empty() {
        true => Ok(placed),
        false => Err(FilesExist(in_the_way)),
    }
}
