//! Scaffolding: the files of new projects, APIs and controllers.
//!
//! Everything here is decided purely, from the command and the files that exist, to a list of files with the mode in which each
//! is written ([`WriteMode`]). The tool maintains `PROJECT` and `src/generated.rs`; into files that an author owns it inserts at most
//! one line, at an exact place. [`outcome`] says what may be written, and [`crate::files`] writes it.
//!
//! What the tool must be able to change later is in the one generated module, which only lists what is elsewhere: there is
//! nothing to merge and no marker to keep. Code is text with names filled in (`controllers.rs`, `typed_kinds.rs`,
//! `json_kinds.rs`), formatted by rustfmt on the way to disk, since how it is wrapped depends on how long the names are.

mod api_types;
mod code_names;
mod commands;
mod controllers;
mod create_webhook;
mod generated_module;
mod insert;
mod json_kinds;
pub mod outcome;
mod owned;
mod plural;
mod project;
mod project_files;
mod test_files;
mod typed_kinds;
mod valid_names;
mod webhooks;

pub use commands::{Edit, Init, NewController, NewKind, create_api, create_controller, edit, init};
pub use create_webhook::{NewWebhook, create_webhook};
pub use plural::plural;
pub use project::{Kind, License, PATH as PROJECT, Project};
pub use project_files::Source;
pub use valid_names::{
    concern as check_controller_name, domain as check_domain, group as check_group, kind as check_kind,
};
pub use valid_names::{plural as check_plural, project as check_project_name, version as check_version};
pub use webhooks::WebhookSort;

use crate::files::File;
use std::path::Path;

/// The built-in kinds that a controller can own from the start.
pub fn ownable() -> Vec<&'static str> {
    owned::built_in().collect()
}

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteMode {
    /// Written where there is none; the author owns it from then on.
    CreateOnly,
    /// Owned by the tool, which overwrites it.
    Regenerate,
    /// Owned by the author, and gets this one line.
    InsertLine(String),
}

/// A file, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// All of it.
    pub file: File,
    /// How.
    pub mode: WriteMode,
}

/// What a command comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The files, `PROJECT` last: until it is written, the command can be given again.
    pub files: Vec<PlannedFile>,
    /// What a person has to know or do.
    pub advice: Vec<String>,
    /// Whether all of it was made before: what differs since is a person's work.
    pub again: bool,
}

impl Change {
    fn push(&mut self, mode: WriteMode, path: impl Into<std::path::PathBuf>, text: impl Into<String>) {
        self.files.push(PlannedFile { file: File::new(path, text), mode });
    }

    /// The text of a file as it will be.
    fn planned(&mut self, path: &str) -> Option<&mut PlannedFile> {
        self.files.iter_mut().find(|planned| planned.file.path == Path::new(path))
    }
}

/// The text of a file as it is, by its path below the project's folder.
pub type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why nothing is generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaffoldError {
    /// An invalid name.
    #[error("invalid {what} {name:?}: {why}")]
    InvalidName {
        /// What it would name.
        what: &'static str,
        /// The name.
        name: String,
        /// What would do instead.
        why: String,
    },
    /// An invalid file.
    #[error("{path} is invalid: {why}. Fix it by hand, or restore it from version control")]
    InvalidFile {
        /// Which one.
        path: String,
        /// What is wrong, and where.
        why: String,
    },
    /// There is no project here.
    #[error(
        "this folder has no PROJECT file; `windlass init` creates one, or change to the project's folder"
    )]
    NoProject,
    /// It conflicts with the project.
    #[error("{0}")]
    Conflict(String),
}

impl ScaffoldError {
    fn name(what: &'static str, name: &str, why: &str) -> Self {
        Self::InvalidName { what, name: name.to_owned(), why: why.to_owned() }
    }
}
