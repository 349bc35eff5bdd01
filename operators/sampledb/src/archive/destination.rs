//! Where an archive keeps its backups.
//!
//! What is taken has another name until it is whole and verified: what is found under a backup's own name is a backup.

use super::tar_stream;
use super::{Info, Location};
use crate::durable_files::{remove, sync_directory, write_durably};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where backups are kept. Object storage would be another.
pub(crate) trait Destination: Send + Sync + 'static {
    /// What is known of a backup that is whole.
    fn find(&self, at: &Location) -> io::Result<Option<Info>>;

    /// An empty directory that a backup is taken into; what an earlier attempt left is gone.
    fn begin(&self, at: &Location) -> io::Result<PathBuf>;

    /// What was taken there is whole, and is a backup from now on.
    fn publish(&self, at: &Location, info: &Info) -> io::Result<()>;

    /// What was taken there is not wanted.
    fn abandon(&self, at: &Location) -> io::Result<()>;

    /// Writes the files of a backup as a tar archive.
    fn read(&self, at: &Location, to: Box<dyn io::Write + Send>) -> io::Result<()>;

    /// Deletes a backup, if it is there.
    fn remove(&self, at: &Location) -> io::Result<()>;
}

/// The directory of a backup's files, beside what is known of it.
const DATA: &str = "data";
const INFO: &str = "info.json";
const UNFINISHED: &str = ".unfinished";

/// A directory on a volume.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    root: PathBuf,
}

impl Volume {
    /// The volume at a path, without what earlier attempts left.
    pub(crate) fn at(root: &Path) -> io::Result<Self> {
        for database in fs::read_dir(root)? {
            let database = database?.path();
            if !database.is_dir() || database.file_name().is_some_and(|name| name == "lost+found") {
                continue;
            }
            for backup in fs::read_dir(&database)? {
                let backup = backup?;
                if backup.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                    remove(&backup.path())?;
                }
            }
        }
        Ok(Self { root: root.to_owned() })
    }

    fn place(&self, at: &Location) -> PathBuf {
        self.root.join(&at.database).join(&at.backup)
    }

    fn unfinished(&self, at: &Location) -> PathBuf {
        self.root.join(&at.database).join(format!("{UNFINISHED}-{}", at.backup))
    }
}

impl Destination for Volume {
    fn find(&self, at: &Location) -> io::Result<Option<Info>> {
        match fs::read(self.place(at).join(INFO)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn begin(&self, at: &Location) -> io::Result<PathBuf> {
        self.abandon(at)?;
        let data = self.unfinished(at).join(DATA);
        fs::DirBuilder::new().mode(0o700).recursive(true).create(&data)?;
        Ok(data)
    }

    fn publish(&self, at: &Location, info: &Info) -> io::Result<()> {
        let (from, to) = (self.unfinished(at), self.place(at));
        write_durably(&from.join(INFO), &serde_json::to_vec_pretty(info)?, 0o600)?;
        fs::rename(&from, &to)?;
        sync_directory(&self.root.join(&at.database))?;
        sync_directory(&self.root)
    }

    fn abandon(&self, at: &Location) -> io::Result<()> {
        remove(&self.unfinished(at))
    }

    fn read(&self, at: &Location, to: Box<dyn io::Write + Send>) -> io::Result<()> {
        tar_stream::write(&self.place(at).join(DATA), to)
    }

    fn remove(&self, at: &Location) -> io::Result<()> {
        // Its name first, so that half of it is never taken for a backup.
        let (place, unfinished) = (self.place(at), self.unfinished(at));
        remove(&unfinished)?;
        match fs::rename(&place, &unfinished) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => remove(&unfinished),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::WalRange;
    use crate::lsn::Lsn;

    fn info() -> Info {
        let wal = WalRange { begin: Lsn(1), end: Lsn(2), timeline: 1 };
        Info { size_bytes: 5, duration_seconds: 1, wal, system_identifier: "7".to_owned(), version: None }
    }

    #[test]
    fn a_backup_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path()).unwrap();
        let at: Location = "uid/nightly.1".parse().unwrap();
        let place = volume.begin(&at).unwrap();
        fs::write(place.join("PG_VERSION"), "15").unwrap();
        assert_eq!(volume.find(&at).unwrap(), None);
        // The archive was killed: what it had begun is gone.
        let volume = Volume::at(folder.path()).unwrap();
        assert!(!place.exists());
        fs::write(volume.begin(&at).unwrap().join("PG_VERSION"), "15").unwrap();
        volume.publish(&at, &info()).unwrap();
        let volume = Volume::at(folder.path()).unwrap();
        assert_eq!(volume.find(&at).unwrap(), Some(info()));
        volume.remove(&at).unwrap();
        volume.remove(&at).unwrap();
        assert_eq!(volume.find(&at).unwrap(), None);
        assert_eq!(fs::read_dir(folder.path().join("uid")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_read_is_what_was_taken() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path()).unwrap();
        let at: Location = "uid/nightly.1".parse().unwrap();
        let data = volume.begin(&at).unwrap();
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::create_dir(data.join("pg_notify")).unwrap();
        fs::write(data.join("base/1/1234"), vec![7; 100_000]).unwrap();
        volume.publish(&at, &info()).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        volume.read(&at, Box::new(file.try_clone().unwrap())).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let to = tempfile::tempdir().unwrap();
        tar_stream::unpack(file, to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("base/1/1234")).unwrap(), vec![7; 100_000]);
        assert!(to.path().join("pg_notify").is_dir());
    }
}
