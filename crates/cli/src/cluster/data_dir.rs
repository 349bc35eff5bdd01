//! The folder of a running cluster: one that the user named and that stays, or one that goes with the process.

use anyhow::{Context, bail};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How folders that go with their process are named.
const PREFIX: &str = "windlass-cluster-";

/// Held locked while a cluster runs.
pub(crate) const LOCK: &str = "lock";

/// A folder that no other cluster uses while this one does.
#[derive(Debug)]
pub(crate) struct DataDir {
    folder: PathBuf,
    /// What is removed when this value is dropped: this folder, or the first of those above it that were made for it.
    made: Option<PathBuf>,
    /// Released by the system however the process ends.
    _lock: File,
}

impl DataDir {
    /// The user's folder, made if it is not there. Until [`DataDir::keep`], a folder that was made goes again: a start that
    /// fails leaves nothing.
    pub(crate) fn at(folder: &Path) -> anyhow::Result<Self> {
        let missing = first_missing(folder);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        // What others see of it does not depend on where this process stands.
        let folder = folder.canonicalize().with_context(|| format!("cannot look at {}", folder.display()))?;
        make_private(&folder)?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.with_context(|| format!("cannot write to {}", folder.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder, made: missing, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                bail!(
                    "a cluster already runs on {}; stop it first, or choose another folder",
                    folder.display()
                )
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    /// A new folder that goes when this value is dropped; what killed processes left goes too.
    pub(crate) fn temporary() -> anyhow::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).permissions(fs::Permissions::from_mode(0o700));
        let made = builder.tempdir_in(above_temporary());
        let made = made.context("cannot make a temporary folder; name one with --data-dir")?;
        // It gets its name when it is locked: one without a lock is one that is being made.
        let unlocked = made.path().join("lock.new");
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked);
        let lock = lock.with_context(|| format!("cannot write to {}", made.path().display()))?;
        lock.try_lock().with_context(|| format!("cannot lock {}", unlocked.display()))?;
        fs::rename(&unlocked, made.path().join(LOCK)).context("cannot rename the lock")?;
        let folder = made.keep();
        let home = Self { made: Some(folder.clone()), folder, _lock: lock };
        home.sweep();
        Ok(home)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder is not to be removed.
    pub(crate) fn keep(&mut self) {
        self.made = None;
    }

    /// Removes the temporary folders beside this one that nobody holds.
    fn sweep(&self) {
        for folder in temporary_folders().into_iter().filter(|folder| *folder != self.folder) {
            let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
            if lock.try_lock().is_ok() {
                super::process_nodes::end_left(&folder);
                let _ = windlass_node::file_tree::remove(&folder);
            }
        }
    }
}

/// Where temporary folders are.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is made there but by tempfile; this is where others are looked for"
)]
fn above_temporary() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(above) if above.is_dir() => above,
        _ => std::env::temp_dir(),
    }
}

/// The temporary folders of this user's clusters, whether they run or not.
pub(crate) fn temporary_folders() -> Vec<PathBuf> {
    let user = nix::unistd::geteuid().as_raw();
    let entries = fs::read_dir(above_temporary()).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user)
    });
    ours.map(|entry| entry.path()).collect()
}

/// Whether a folder is that of a cluster without a folder of the user's, whether it is there or not.
pub(crate) fn is_temporary(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX)) && folder.parent() == Some(&above_temporary())
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if let Some(made) = &self.made
            && let Err(error) = windlass_node::file_tree::remove(made)
        {
            tracing::warn!(%error, folder = %made.display(), "a folder stays behind");
        }
    }
}

/// Keeps others out of a folder that will hold keys: one that was there already may be open to them.
fn make_private(folder: &Path) -> anyhow::Result<()> {
    let found = fs::metadata(folder).with_context(|| format!("cannot look at {}", folder.display()))?;
    let user = nix::unistd::geteuid().as_raw();
    if found.uid() != user {
        let owner = found.uid();
        bail!(
            "{} belongs to another user (uid {owner}), who could read the cluster's keys; choose another folder",
            folder.display()
        );
    }
    let mode = found.mode() & 0o777;
    if mode == 0o700 {
        return Ok(());
    }
    let holds_something_else =
        mode & 0o077 != 0 && !folder.join(LOCK).exists() && fs::read_dir(folder)?.next().is_some();
    if holds_something_else {
        bail!(
            "{} is not empty, is no cluster's, and others may enter it (mode {mode:04o}); choose another folder, or `chmod 700` it",
            folder.display()
        );
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        .with_context(|| format!("cannot keep others out of {}", folder.display()))?;
    tracing::warn!("{} had mode {mode:04o}; it is 0700 now, since it holds keys", folder.display());
    Ok(())
}

/// The highest folder on the way to `folder` that is not there.
fn first_missing(folder: &Path) -> Option<PathBuf> {
    let missing = folder.ancestors().filter(|above| !above.as_os_str().is_empty());
    missing.take_while(|above| !above.exists()).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_closed_to_others_or_refused() {
        let above = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let loose = |name: &str| {
            let folder = above.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
            folder
        };
        let empty = loose("empty");
        drop(DataDir::at(&empty).unwrap());
        assert_eq!(mode(&empty), 0o700);
        fs::set_permissions(&empty, fs::Permissions::from_mode(0o770)).unwrap();
        drop(DataDir::at(&empty).unwrap());
        assert_eq!(mode(&empty), 0o700, "one that a cluster had");
        let home = loose("home");
        fs::write(home.join("letters"), "").unwrap();
        let refused = DataDir::at(&home).unwrap_err().to_string();
        assert!(refused.contains("choose another folder, or `chmod 700` it"), "{refused}");
        assert_eq!((mode(&home), home.join(LOCK).exists()), (0o755, false));
    }

    #[test]
    fn a_folder_is_one_clusters_at_a_time() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("data");
        let mut first = DataDir::at(&folder).unwrap();
        let refused = DataDir::at(&folder).unwrap_err().to_string();
        assert!(refused.contains("a cluster already runs on"), "{refused}");
        first.keep();
        drop(first);
        drop(DataDir::at(&folder).unwrap());
        assert!(folder.exists(), "a folder that was there stays");
    }

    #[test]
    fn a_start_that_fails_leaves_no_folder() {
        let above = tempfile::tempdir().unwrap();
        drop(DataDir::at(&above.path().join("a/b")).unwrap());
        assert!(above.path().exists() && !above.path().join("a").exists());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_runs_is_not() {
        let first = DataDir::temporary().unwrap();
        let above = first.folder().parent().unwrap();
        let left = tempfile::Builder::new().prefix(PREFIX).tempdir_in(above).unwrap();
        fs::write(left.path().join(LOCK), "").unwrap();
        let second = DataDir::temporary().unwrap();
        assert!(first.folder().exists() && !left.path().exists());
        let gone = second.folder().to_owned();
        drop(second);
        assert!(!gone.exists());
    }
}
