//! The record of a running cluster in its folder, by which other commands find it.
//!
//! A running cluster writes `cluster.json` into its folder and holds the folder's lock. The record counts only while the
//! lock is held, so that what a killed cluster left behind is not mistaken for a running one.

use super::data_dir::{self, LOCK};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Its name in the folder.
const FILE: &str = "cluster.json";

/// A cluster that runs. True as long as the folder's lock is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) pid: i32,
    pub(crate) server: String,
    pub(crate) kubeconfig: PathBuf,
    /// When it was ready.
    pub(crate) since: String,
    /// Whether it gave its terminal back.
    pub(crate) detached: bool,
    /// Whether its folder stays.
    pub(crate) kept: bool,
    /// What the command was told, to start the same again.
    pub(crate) arguments: Vec<String>,
}

/// A cluster that runs, and where.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) folder: PathBuf,
    pub(crate) record: Record,
}

impl Record {
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        let cannot = || format!("cannot write {}", path.display());
        let mut file = tempfile::Builder::new()
            .prefix(".cluster-")
            .permissions(fs::Permissions::from_mode(0o600))
            .tempfile_in(folder)
            .with_context(cannot)?;
        serde_json::to_writer_pretty(&mut file, self).with_context(cannot)?;
        file.persist(&path).with_context(cannot)?;
        Ok(())
    }

    /// Nobody is to find it any more.
    pub(crate) fn remove(folder: &Path) {
        // It counts only while the lock is held.
        let _ = fs::remove_file(folder.join(FILE));
    }
}

/// The cluster that runs on a folder, if one does.
pub(crate) fn at(folder: &Path) -> anyhow::Result<Option<Found>> {
    let Ok(folder) = folder.canonicalize() else { return Ok(None) };
    if !is_held(&folder) {
        return Ok(None);
    }
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("the cluster on {} is just starting or ending; try again", folder.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let record = serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
    Ok(Some(Found { folder, record }))
}

/// Whether a cluster holds this folder.
pub(crate) fn is_held(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

/// This user's clusters that run without a folder of the user's.
pub(crate) fn temporary() -> Vec<Found> {
    let mut found: Vec<Found> =
        data_dir::temporary_folders().into_iter().filter_map(|folder| at(&folder).ok().flatten()).collect();
    found.sort_by(|a, b| a.record.since.cmp(&b.record.since));
    found
}
