//! `windlass edit`: changes the settings in `PROJECT`.

use crate::scaffold::{Licence, ProjectFolder};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_sdk::scaffold::{Edit, edit};

#[derive(Debug, Args)]
#[group(required = true, multiple = true, id = "settings", args = ["multigroup", "license"])]
pub(crate) struct Options {
    /// Whether new APIs go into a folder of their group, to have several groups
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    multigroup: Option<bool>,
    /// The license of new files
    #[arg(long, value_enum)]
    license: Option<Licence>,
    /// The project's folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

impl Options {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let asked = Edit { multigroup: self.multigroup, license: self.license.map(Into::into) };
        ProjectFolder::new(&self.folder, false).change(|read| edit(&asked, read))
    }
}
