//! The durable form of the store: a log of changes that is synced before they are seen, and snapshots that shorten it.
//!
//! A directory holds numbered segments of the log (`….log`), the newest snapshot (`….snapshot`), one that is being written
//! (`snapshot.new`) and a lock. Changes come in batches. A batch is one [frame] of the log: it is there whole or not at all,
//! and the next is not begun before it is synced. So whatever a crash leaves, only the last frame can be torn; a frame
//! behind a damaged one shows that the damage came later, and is not cut but refused.
//!
//! After a failed write nobody can say what reached the disk. The segment is given up, and the next one says from which
//! revision on earlier segments do not count. Until it does, a crash may still bring to light the change whose writer was
//! told that it failed; it can do so whole or not at all.
//!
//! A file says how far changes were acknowledged ([mark]): a log that does not reach as far is refused.
//!
//! A snapshot is written beside all this, a few objects at a time, and takes its name when it is durable; then the segments
//! before it are removed.

mod bytes;
mod checksum;
mod disk;
mod file;
mod frame;
mod mark;
mod record;
mod recover;
mod segment;
#[cfg(test)]
mod simulated;
mod snapshot;
#[cfg(test)]
mod tests;
mod writer;
mod writer_thread;

pub(super) use writer_thread::WriterThread;

use super::state::State;
use super::{Change, Key, Options};
use disk::{Disk, RealDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_clock::Clock;
use writer::Writer;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it, or another store of this one.
    #[error("{} is in use by another process; stop that one, or choose another directory", .directory.display())]
    InUse {
        /// The store's directory.
        directory: PathBuf,
    },
    /// What was acknowledged cannot be read back. Nothing was changed.
    #[error(
        "{} is damaged at byte {offset}: {why}; restore the directory from a copy, or start with an empty one",
        .file.display()
    )]
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// Where the damage starts.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// The end of what was acknowledged is missing. Nothing was changed.
    #[error(
        "{} ends at revision {reached}, but revision {acknowledged} was acknowledged: the last {} changes are missing; restore the \
         directory from a copy, or accept that they are lost (windlass cluster up --accept-data-loss)",
        .directory.display(), acknowledged - reached
    )]
    Lost {
        /// The store's directory.
        directory: PathBuf,
        /// The last revision that is there.
        reached: u64,
        /// The last one that was acknowledged.
        acknowledged: u64,
    },
    /// Written by a version that does it otherwise.
    #[error("{} has form {format}, which this version does not read; use the version that wrote it", .file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// Its form's number.
        format: u32,
    },
    /// The disk failed.
    #[error("{} cannot be used", .file.display())]
    Disk {
        /// The file, or the directory.
        file: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
}

/// How much is done at once.
#[derive(Debug, Clone)]
struct Limits {
    /// A batch takes no more changes than this.
    batch: usize,
    /// The number of bytes from which on a batch takes nothing more.
    batch_bytes: usize,
    /// A segment grows in steps of this.
    growth: u64,
    /// A segment of this size is followed by a new one.
    segment: u64,
    /// A snapshot is written when the log has grown by this, and by as much as the last one's size.
    snapshot: u64,
    /// The number of objects of a snapshot that are looked up under one lock.
    snapshot_step: usize,
    /// A frame of a snapshot ends at this size.
    snapshot_frame: usize,
    /// The number of bytes of a snapshot that are written between two syncs.
    snapshot_sync: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch: 1024,
            batch_bytes: 4 << 20,
            growth: 1 << 20,
            segment: 32 << 20,
            snapshot: 32 << 20,
            snapshot_step: 1024,
            snapshot_frame: 256 << 10,
            snapshot_sync: 4 << 20,
        }
    }
}

/// The store in a directory: what it holds, and its writer.
pub(super) fn open(
    directory: &Path,
    options: Options,
    clock: Clock,
) -> Result<(Arc<State>, WriterThread), OpenError> {
    let disk = Arc::new(RealDisk::open(directory, options.fsync)?);
    start(writer(disk, options, clock, Limits::default())?, directory)
}

fn writer(disk: Arc<dyn Disk>, options: Options, clock: Clock, limits: Limits) -> Result<Writer, OpenError> {
    let fsync = options.fsync;
    let recovered = recover::recover(&*disk, options, clock)?;
    let lost = recovered.lost;
    let mut writer = Writer::new(disk.clone(), recovered, limits);
    if lost {
        // Revisions go on behind those that are lost. A snapshot that says so closes the gap in the log.
        let failed = |source| OpenError::Disk { file: disk.place(""), source };
        let mut snapshot = writer.begin_snapshot().map_err(failed)?;
        while !snapshot.step().map_err(failed)? {}
        writer.finished_snapshot(snapshot.size());
    }
    if fsync {
        writer.keep_mark();
    }
    Ok(writer)
}

fn start(writer: Writer, directory: &Path) -> Result<(Arc<State>, WriterThread), OpenError> {
    let state = writer.state().clone();
    let writing = WriterThread::start(writer)
        .map_err(|source| OpenError::Disk { file: directory.to_owned(), source })?;
    Ok((state, writing))
}

impl Change {
    fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. } | Self::Update { key, .. } | Self::Delete { key, .. } => key,
        }
    }

    /// About how many bytes it takes in the log.
    fn size(&self) -> usize {
        const OVERHEAD: usize = 64;
        match self {
            Self::Create { body, .. } | Self::Update { body, .. } => OVERHEAD + body.size(),
            Self::Delete { .. } => OVERHEAD,
        }
    }
}
