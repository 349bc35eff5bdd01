//! What of a change may be written to a folder, given what is there: nothing of a person's is overwritten unless they say so.

use super::{Change, Planned, Read, Way};
use crate::files::File;
use std::path::PathBuf;

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is new.
    Made,
    /// It is the tool's, and written anew.
    Updated,
    /// It gets a line.
    Inserted(String),
    /// It was a person's, with this text, and they said that it may go.
    Overwritten(String),
    /// It is a person's by now, and stays.
    Kept,
    /// It is as it would be written.
    Same,
}

/// A file, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// All of it, as it would be.
    pub file: File,
    /// What becomes of it.
    pub fate: Fate,
}

impl Placed {
    /// Whether it is written.
    pub fn is_written(&self) -> bool {
        !matches!(self.fate, Fate::Kept | Fate::Same)
    }
}

/// Files that are there, and are not what would be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("these files are there and differ from what would be made: {}", named(.0))]
pub struct InTheWay(pub Vec<PathBuf>);

fn named(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

/// What becomes of each file.
///
/// # Errors
/// When a new one would overwrite a person's, and that is not `forced`.
pub fn place(change: Change, read: Read<'_>, forced: bool) -> Result<Vec<Placed>, InTheWay> {
    let mut in_the_way = Vec::new();
    let mut placed = Vec::new();
    for Planned { file, way } in change.files {
        let there = file.path.to_str().and_then(read);
        let fate = match (there, way) {
            (None, _) => Fate::Made,
            (Some(there), _) if there == file.text => Fate::Same,
            (Some(_), Way::Ours) => Fate::Updated,
            (Some(_), Way::Line(line)) => Fate::Inserted(line),
            (Some(there), Way::New) if forced => Fate::Overwritten(there),
            (Some(_), Way::New) if change.again => Fate::Kept,
            (Some(_), Way::New) => {
                in_the_way.push(file.path);
                continue;
            }
        };
        placed.push(Placed { file, fate });
    }
    match in_the_way.is_empty() {
        true => Ok(placed),
        false => Err(InTheWay(in_the_way)),
    }
}
