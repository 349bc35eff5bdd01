//! What the log asks of a disk, and the real one: a directory that one process holds at a time.

use super::OpenError;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// One directory of plain files. Nothing is durable before it was synced: a file's contents by the file's own sync, its
/// name by the directory's.
pub(super) trait Disk: Send + Sync + Debug {
    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// A file to be read from its start.
    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;
    /// A new, empty file.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// A file that is there, to be written.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of whatever had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns when all names are durable.
    fn sync_names(&self) -> io::Result<()>;
    /// What to call a file in a message.
    fn place(&self, name: &str) -> PathBuf;
}

/// A file that is being written.
pub(super) trait DiskFile: Send + Debug {
    /// Writes all of `bytes` at `offset`, or fails having written any part of them.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts or extends it.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Returns when its contents are durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the machine, held until this is dropped.
#[derive(Debug)]
pub(super) struct RealDisk {
    directory: PathBuf,
    /// Whether to wait for the disk.
    fsync: bool,
    /// The lock goes when this is closed, however the process ends.
    _lock: File,
}

const LOCK: &str = "lock";

impl RealDisk {
    /// Makes the directory if it is missing, and takes it for this process alone.
    pub(super) fn open(directory: &Path, fsync: bool) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Disk { file: directory.to_owned(), source };
        make_directory(directory).map_err(failed)?;
        let lock = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(directory.join(LOCK))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory: directory.to_owned(), fsync, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { directory: directory.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn file(&self, file: File) -> Box<dyn DiskFile> {
        if self.fsync { Box::new(file) } else { Box::new(NotSynced(file)) }
    }
}

/// Makes it with its parents, and makes their names durable as well.
fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_directory(parent)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        made => made?,
    }
    sync_directory(parent.unwrap_or(Path::new(".")))
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Elsewhere a directory cannot be opened as a file, and names are durable with what they name.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Objects hold secrets: nobody else may read them.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

impl Disk for RealDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            // What has another kind of name is not ours.
            names.extend(file?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(self.place(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = private(options.write(true).create(true).truncate(true)).open(self.place(name))?;
        Ok(self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(OpenOptions::new().write(true).open(self.place(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.place(from), self.place(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.place(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        if self.fsync { sync_directory(&self.directory) } else { Ok(()) }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl DiskFile for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file whose writer does not wait for the disk.
#[derive(Debug)]
struct NotSynced(File);

impl DiskFile for NotSynced {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        DiskFile::write_at(&mut self.0, offset, bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
