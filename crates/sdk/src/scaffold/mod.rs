//! New projects, kinds and controllers: which files they come to.
//!
//! Everything here is decided purely, from what is asked for and what is there, to a list of files with the way in which each
//! is written ([`Way`]). What the tool keeps is in `PROJECT` and `src/generated.rs`; into files of a person's only a line is
//! put, at an exact place. [`place`] says what of it may be written, and [`crate::files`] writes it.

mod changes;
mod controllers;
mod insert;
mod kinds;
mod made;
mod names;
mod naming;
mod owned;
pub mod place;
mod plural;
mod project;
mod registry;
mod top;
mod trials;
mod types;

pub use changes::{Edit, Init, NewController, NewKind, create_api, create_controller, edit, init};
pub use names::{
    concern as check_controller_name, domain as check_domain, group as check_group, kind as check_kind,
};
pub use names::{plural as check_plural, project as check_project_name, version as check_version};
pub use plural::plural;
pub use project::{Kind, License, PATH as PROJECT, Project};
pub use top::Source;

use crate::files::File;
use std::path::Path;

/// The built-in kinds that a controller can own from the start.
pub fn ownable() -> Vec<&'static str> {
    owned::built_in().collect()
}

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// It belongs to a person from then on: it is written where there is none.
    New,
    /// It belongs to the tool, which writes it anew.
    Ours,
    /// It belongs to a person, and gets this one line.
    Line(String),
}

/// A file, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// All of it.
    pub file: File,
    /// How.
    pub way: Way,
}

/// What a command comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The files, `PROJECT` last: until it is written, the command can be given again.
    pub files: Vec<Planned>,
    /// What a person has to know or do.
    pub advice: Vec<String>,
    /// Whether all of it was made before: what differs since is a person's work.
    pub again: bool,
}

impl Change {
    fn push(&mut self, way: Way, path: impl Into<std::path::PathBuf>, text: impl Into<String>) {
        self.files.push(Planned { file: File::new(path, text), way });
    }

    /// The text of a file as it will be.
    fn planned(&mut self, path: &str) -> Option<&mut Planned> {
        self.files.iter_mut().find(|planned| planned.file.path == Path::new(path))
    }
}

/// The text of a file as it is, by its path below the project's folder.
pub type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why nothing is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A name that cannot be.
    #[error("{what} {name:?} cannot be: {why}")]
    Name {
        /// What it would name.
        what: &'static str,
        /// The name.
        name: String,
        /// What would do instead.
        why: String,
    },
    /// A file that is not what it should be.
    #[error("{path} is damaged: {why}. Mend it by hand, or take it from version control")]
    Damaged {
        /// Which one.
        path: String,
        /// What is wrong, and where.
        why: String,
    },
    /// There is no project here.
    #[error("there is no PROJECT in this folder; `windlass init` makes one, or go to the folder that has it")]
    NoProject,
    /// It does not fit to what is there.
    #[error("{0}")]
    Unfit(String),
}

impl Refused {
    fn name(what: &'static str, name: &str, why: &str) -> Self {
        Self::Name { what, name: name.to_owned(), why: why.to_owned() }
    }
}
