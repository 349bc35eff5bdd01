//! `windlass cluster reset`: empty a cluster that is kept in a folder.

use super::{detach, down, record};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The data folder of the cluster
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let folder = &options.data_dir;
    if !folder.is_dir() {
        bail!("no folder {} exists", folder.display());
    }
    let found = record::at(folder)?;
    if let Some(found) = &found {
        if !found.record.detached {
            bail!("the cluster on {} runs in another terminal; stop it first", folder.display());
        }
        down::stop(found)?;
    }
    empty(folder)?;
    println!("emptied {}", folder.display());
    match found {
        Some(found) => detach::start(&found.record.arguments),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Removes what was stored, while no cluster runs on it.
fn empty(folder: &Path) -> anyhow::Result<()> {
    let _home = super::data_dir::DataDir::at(folder)?;
    // A cluster that was killed left its pods running.
    super::process_nodes::end_left(folder);
    windlass_apiserver::Api::forget_stored(folder)
        .with_context(|| format!("cannot empty {}", folder.display()))
}
