//! The data directory, and what an agent keeps beside it.
//!
//! What is made takes another name first and is renamed when it is whole: a directory `pgdata` is always a complete one.

use crate::durable_files::{remove, sync_directory, write_durably};
use crate::timelines::Timelines;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// The places on a volume.
#[derive(Debug, Clone)]
pub struct Volume {
    root: PathBuf,
}

impl Volume {
    /// The volume at a path.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.root.join("pgdata")
    }

    /// Where one is made.
    pub fn unfinished(&self) -> PathBuf {
        self.root.join("pgdata.unfinished")
    }

    /// Where data of the next version is made.
    pub fn upgrading(&self) -> PathBuf {
        self.root.join("pgdata.upgrading")
    }

    /// Data of the next version that is whole.
    fn upgraded(&self) -> PathBuf {
        self.root.join("pgdata.upgraded")
    }

    /// The data of the version before.
    pub fn before(&self) -> PathBuf {
        self.root.join("pgdata.before")
    }

    fn clone_file(&self) -> PathBuf {
        self.root.join("clone")
    }

    /// The data directory's password file for libpq.
    pub fn passfile(&self) -> PathBuf {
        self.root.join("passfile")
    }

    /// The directory of the server's certificate.
    pub fn tls(&self) -> PathBuf {
        self.root.join("tls")
    }

    /// Whether there is a data directory.
    pub fn has_data(&self) -> bool {
        self.data().join("PG_VERSION").is_file()
    }

    /// Whether its server would start as a standby.
    pub fn is_standby(&self) -> bool {
        self.data().join("standby.signal").is_file()
    }

    /// Makes its server start as a standby.
    ///
    /// # Errors
    /// Of the file system.
    pub fn make_standby(&self) -> io::Result<()> {
        write_durably(&self.data().join("standby.signal"), b"", 0o600)
    }

    /// Identifies this copy of the data; made up when there is none.
    ///
    /// # Errors
    /// Of the file system, or of its randomness.
    pub fn clone_id(&self) -> io::Result<String> {
        match fs::read_to_string(self.clone_file()) {
            Ok(text) if is_clone_id(text.trim()) => Ok(text.trim().to_owned()),
            Ok(_) => self.renew_clone_id(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.renew_clone_id(),
            Err(error) => Err(error),
        }
    }

    /// Another identity: the data was replaced, or some of it taken away.
    ///
    /// # Errors
    /// Of the file system, or of its randomness.
    pub fn renew_clone_id(&self) -> io::Result<String> {
        let id = random_id()?;
        write_durably(&self.clone_file(), id.as_bytes(), 0o600)?;
        Ok(id)
    }

    /// Another identity, for the data that an attempt at an upgrade put into its place: the same however often that is done.
    ///
    /// # Errors
    /// Of the file system, or of its randomness.
    pub fn clone_id_of_attempt(&self, attempt: i32) -> io::Result<String> {
        let file = self.root.join("upgrade-attempt");
        let kept = match fs::read_to_string(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            kept => kept.unwrap_or_default(),
        };
        let id = match kept.trim().split_once(' ') {
            Some((of, id)) if of.parse() == Ok(attempt) && is_clone_id(id) => id.to_owned(),
            _ => random_id()?,
        };
        write_durably(&file, format!("{attempt} {id}").as_bytes(), 0o600)?;
        write_durably(&self.clone_file(), id.as_bytes(), 0o600)?;
        Ok(id)
    }

    /// Keeps others who would change the data from doing so, until this is dropped; none if somebody else does.
    ///
    /// # Errors
    /// Of the file system.
    pub fn lock(&self) -> io::Result<Option<fs::File>> {
        let file =
            fs::File::options().create(true).append(true).mode(0o600).open(self.root.join("upgrade-lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// How large the volume is, in bytes.
    ///
    /// # Errors
    /// Of the file system.
    pub fn capacity(&self) -> io::Result<u64> {
        let file_system = nix::sys::statvfs::statvfs(&self.root)?;
        Ok(file_system.blocks().saturating_mul(file_system.fragment_size()))
    }

    /// How much room is left, in bytes.
    ///
    /// # Errors
    /// Of the file system.
    pub fn room(&self) -> io::Result<u64> {
        let file_system = nix::sys::statvfs::statvfs(&self.root)?;
        Ok(file_system.blocks_available().saturating_mul(file_system.fragment_size()))
    }

    /// A number that is kept beside the data; 0 if there is none.
    ///
    /// # Errors
    /// Of the file system, or when somebody wrote something else there.
    pub fn number(&self, name: Number) -> io::Result<i32> {
        match fs::read_to_string(self.root.join(name.file())) {
            Ok(text) => text.trim().parse().map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Keeps a number, durably.
    ///
    /// # Errors
    /// Of the file system.
    pub fn keep(&self, name: Number, value: i32) -> io::Result<()> {
        write_durably(&self.root.join(name.file()), value.to_string().as_bytes(), 0o600)
    }

    /// An empty place for a new data directory.
    ///
    /// # Errors
    /// Of the file system.
    pub fn begin(&self) -> io::Result<PathBuf> {
        let unfinished = self.unfinished();
        remove(&unfinished)?;
        fs::DirBuilder::new().mode(0o700).create(&unfinished)?;
        Ok(unfinished)
    }

    /// The new data directory is whole.
    ///
    /// # Errors
    /// Of the file system.
    pub fn finish(&self) -> io::Result<()> {
        sync_directory(&self.unfinished())?;
        fs::rename(self.unfinished(), self.data())?;
        sync_directory(&self.root)
    }

    /// Takes the data away: first its name, so that half of it is never taken for data.
    ///
    /// # Errors
    /// Of the file system.
    pub fn discard(&self) -> io::Result<()> {
        let unfinished = self.unfinished();
        remove(&unfinished)?;
        if self.data().exists() {
            fs::rename(self.data(), &unfinished)?;
            sync_directory(&self.root)?;
            remove(&unfinished)?;
        }
        Ok(())
    }

    /// The major version of the data.
    ///
    /// # Errors
    /// Of the file system, as when there is none.
    pub fn major(&self) -> io::Result<String> {
        fs::read_to_string(self.data().join("PG_VERSION")).map(|text| text.trim().to_owned())
    }

    /// An empty place for data of the next version.
    ///
    /// # Errors
    /// Of the file system.
    pub fn begin_upgrade(&self) -> io::Result<PathBuf> {
        let upgrading = self.upgrading();
        remove(&upgrading)?;
        fs::DirBuilder::new().mode(0o700).create(&upgrading)?;
        Ok(upgrading)
    }

    /// The data of the next version is whole.
    ///
    /// # Errors
    /// Of the file system.
    pub fn keep_upgraded(&self) -> io::Result<()> {
        sync_directory(&self.upgrading())?;
        remove(&self.upgraded())?;
        fs::rename(self.upgrading(), self.upgraded())?;
        sync_directory(&self.root)
    }

    /// Puts data of the next version that is whole into its place, and keeps that of the last. It can be killed and repeated.
    ///
    /// # Errors
    /// Of the file system.
    pub fn swap(&self) -> io::Result<()> {
        if !self.upgraded().exists() {
            return Ok(());
        }
        if self.data().exists() {
            remove(&self.before())?;
            fs::rename(self.data(), self.before())?;
            sync_directory(&self.root)?;
        }
        fs::rename(self.upgraded(), self.data())?;
        sync_directory(&self.root)
    }

    /// Puts the data of the last version back, if it is not in its place, and takes away what was made of the next. It can be killed
    /// and repeated.
    ///
    /// # Errors
    /// Of the file system.
    pub fn swap_back(&self) -> io::Result<()> {
        remove(&self.unfinished())?;
        if self.before().exists() {
            if self.data().exists() {
                fs::rename(self.data(), self.unfinished())?;
                sync_directory(&self.root)?;
            }
            fs::rename(self.before(), self.data())?;
            sync_directory(&self.root)?;
        }
        for left in [self.unfinished(), self.upgrading(), self.upgraded()] {
            remove(&left)?;
        }
        Ok(())
    }

    /// The timelines of the data; `checkpoint` is that of its last checkpoint.
    ///
    /// # Errors
    /// Of the file system.
    pub fn timelines(&self, checkpoint: u32) -> io::Result<Timelines> {
        let mut latest = Timelines::only(checkpoint);
        for entry in fs::read_dir(self.data().join("pg_wal"))? {
            let entry = entry?;
            let name = entry.file_name();
            let history = name.to_str().and_then(|name| name.strip_suffix(".history"));
            let timeline = history.and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0);
            if timeline >= latest.last() {
                latest = Timelines::of_history(timeline, &fs::read_to_string(entry.path())?);
            }
        }
        Ok(latest)
    }
}

/// Numbers that are kept beside the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// The highest epoch of the Lease that was seen: no data is taken of an earlier one.
    Epoch,
    /// The epoch whose primary the data follows.
    Followed,
}

impl Number {
    fn file(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::Followed => "followed",
        }
    }
}

/// Whether a text is such an identity.
pub fn is_clone_id(text: &str) -> bool {
    text.len() == 17 && text.starts_with('c') && text[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An identity that nothing else has. It is a word in SQL.
///
/// # Errors
/// When the system gives no randomness.
pub fn random_id() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("c{:016x}", u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsn::Lsn;

    #[test]
    fn a_copy_of_the_data_keeps_its_identity_until_it_is_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path());
        let id = volume.clone_id().unwrap();
        assert!(is_clone_id(&id), "{id}");
        assert_eq!(Volume::at(folder.path()).clone_id().unwrap(), id);
        assert_ne!(volume.renew_clone_id().unwrap(), id);
        fs::write(folder.path().join("clone"), "half").unwrap();
        assert!(is_clone_id(&volume.clone_id().unwrap()));
    }

    #[test]
    fn an_attempt_at_an_upgrade_gives_one_identity_and_one_at_a_time_works() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path());
        let (before, first) = (volume.clone_id().unwrap(), volume.clone_id_of_attempt(7).unwrap());
        assert_ne!(before, first);
        assert_eq!(volume.clone_id_of_attempt(7).unwrap(), first);
        assert_eq!(volume.clone_id().unwrap(), first);
        assert_ne!(volume.clone_id_of_attempt(8).unwrap(), first);
        let lock = volume.lock().unwrap();
        assert!(lock.is_some() && volume.lock().unwrap().is_none());
        drop(lock);
        assert!(volume.lock().unwrap().is_some());
    }

    #[test]
    fn numbers_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path());
        assert_eq!(volume.number(Number::Epoch).unwrap(), 0);
        volume.keep(Number::Epoch, 7).unwrap();
        assert_eq!(volume.number(Number::Epoch).unwrap(), 7);
        assert_eq!(volume.number(Number::Followed).unwrap(), 0);
    }

    /// A volume with data of these versions in its places.
    fn with(places: &[(&str, &str)]) -> (tempfile::TempDir, Volume) {
        let folder = tempfile::tempdir().unwrap();
        for (place, version) in places {
            fs::create_dir(folder.path().join(place)).unwrap();
            fs::write(folder.path().join(place).join("PG_VERSION"), format!("{version}\n")).unwrap();
        }
        let volume = Volume::at(folder.path());
        (folder, volume)
    }

    #[test]
    fn an_upgrade_that_is_killed_between_two_steps_goes_on_and_has_a_way_back() {
        let killed_at: [&[(&str, &str)]; 4] = [
            &[("pgdata", "16"), ("pgdata.upgraded", "18")],
            // An upgrade long ago left its own.
            &[("pgdata", "16"), ("pgdata.upgraded", "18"), ("pgdata.before", "15")],
            &[("pgdata.before", "16"), ("pgdata.upgraded", "18")],
            &[("pgdata", "18"), ("pgdata.before", "16")],
        ];
        for places in killed_at {
            let (_folder, volume) = with(places);
            volume.swap().unwrap();
            assert_eq!(volume.major().unwrap(), "18");
            assert!(volume.before().exists() && !volume.upgraded().exists());
        }
        let killed_at: [&[(&str, &str)]; 4] = [
            &[("pgdata", "16"), ("pgdata.upgrading", "18")],
            &[("pgdata", "16"), ("pgdata.upgraded", "18")],
            &[("pgdata", "18"), ("pgdata.before", "16")],
            &[("pgdata.unfinished", "18"), ("pgdata.before", "16")],
        ];
        for places in killed_at {
            let (folder, volume) = with(places);
            volume.swap_back().unwrap();
            assert_eq!(volume.major().unwrap(), "16");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{places:?}");
        }
    }

    #[test]
    fn data_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::at(folder.path());
        fs::write(volume.begin().unwrap().join("PG_VERSION"), "15").unwrap();
        assert!(!volume.has_data());
        volume.finish().unwrap();
        assert!(volume.has_data() && !volume.is_standby());
        volume.make_standby().unwrap();
        assert!(volume.is_standby());
        fs::create_dir(volume.data().join("pg_wal")).unwrap();
        assert_eq!(volume.timelines(3).unwrap(), Timelines::only(3));
        fs::write(volume.data().join("pg_wal/0000000A.history"), "1\t0/50\tx\n").unwrap();
        let timelines = volume.timelines(3).unwrap();
        assert_eq!((timelines.at(Lsn(0x50)), timelines.at(Lsn(0x51)), timelines.last()), (1, 10, 10));
        volume.discard().unwrap();
        assert!(!volume.has_data());
    }
}
