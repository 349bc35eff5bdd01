//! `windlass edit`: other settings for what a project will get.

use crate::scaffold::{Ground, Licence};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_sdk::scaffold::{Edit, edit};

#[derive(Debug, Args)]
#[group(required = true, multiple = true, id = "settings", args = ["multigroup", "license"])]
pub(crate) struct Options {
    /// Whether new kinds go into a folder of their group, so that there can be several groups
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    multigroup: Option<bool>,
    /// The licence of new files
    #[arg(long, value_enum)]
    license: Option<Licence>,
    /// The project's folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

impl Options {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let asked = Edit { multigroup: self.multigroup, license: self.license.map(Into::into) };
        Ground::new(&self.folder, false).change(|read| edit(&asked, read))
    }
}
