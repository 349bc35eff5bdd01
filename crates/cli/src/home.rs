//! The folder of a running cluster: it goes with the process.

use anyhow::Context;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How folders that go with their process are named.
const PREFIX: &str = "windlass-cluster-";

/// Held locked while a cluster runs.
const LOCK: &str = "lock";

/// A folder that no other cluster uses.
#[derive(Debug)]
pub(crate) struct Home {
    folder: PathBuf,
    /// Released by the system however the process ends.
    _lock: File,
}

impl Home {
    /// A new folder that goes when this value is dropped; what killed processes left goes too.
    pub(crate) fn temporary() -> anyhow::Result<Self> {
        let above = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
            Some(above) if above.is_dir() => Some(above),
            _ => None,
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).permissions(fs::Permissions::from_mode(0o700));
        let made = match &above {
            Some(above) => builder.tempdir_in(above),
            None => builder.tempdir(),
        };
        let made = made.context("cannot make a temporary folder")?;
        // It gets its name when it is locked: one without a lock is one that is being made.
        let unlocked = made.path().join("lock.new");
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked);
        let lock = lock.with_context(|| format!("cannot write to {}", made.path().display()))?;
        lock.try_lock().with_context(|| format!("cannot lock {}", unlocked.display()))?;
        fs::rename(&unlocked, made.path().join(LOCK)).context("cannot rename the lock")?;
        let home = Self { folder: made.keep(), _lock: lock };
        home.sweep();
        Ok(home)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the temporary folders beside this one that nobody holds.
    fn sweep(&self) {
        let (Some(above), Ok(own)) = (self.folder.parent(), fs::metadata(&self.folder)) else { return };
        for entry in fs::read_dir(above).into_iter().flatten().flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
                && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own.uid());
            if !ours || entry.path() == self.folder {
                continue;
            }
            let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
            if lock.try_lock().is_ok() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "a temporary folder stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_runs_is_not() {
        let first = Home::temporary().unwrap();
        let above = first.folder().parent().unwrap();
        let left = tempfile::Builder::new().prefix(PREFIX).tempdir_in(above).unwrap();
        fs::write(left.path().join(LOCK), "").unwrap();
        let second = Home::temporary().unwrap();
        assert!(first.folder().exists() && !left.path().exists());
        let gone = second.folder().to_owned();
        drop(second);
        assert!(!gone.exists());
    }
}
