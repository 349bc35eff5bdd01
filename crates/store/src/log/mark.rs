//! How far the log was acknowledged, kept beside it: a log whose end was cut off or removed does not pass for a shorter one.
//!
//! The file has two slots, each in a sector of its own. One is written after each batch, without waiting for the disk, and
//! synced within a second; then it is the other one's turn. So one slot is always whole. The log is synced before the mark is
//! written, and the mark is never ahead of it. After a loss of power it may be behind, by what was acknowledged in that second.

use super::OpenError;
use super::checksum::checksum;
use super::disk::{Disk, DiskFile};
use parking_lot::{Condvar, Mutex};
use std::io::{self, Read};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The file's name, and that under which it is made.
pub(super) const FILE: &str = "acknowledged";
const UNFINISHED: &str = "acknowledged.new";

const MAGIC: &[u8; 8] = b"WINDMARK";
const SLOT: usize = 20;
const SLOTS: [u64; 2] = [0, 512];

/// How long after it was written it is synced.
const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// What is in the file: the revision that was acknowledged; none if there is no such file.
pub(super) fn read(disk: &dyn Disk) -> Result<Option<u64>, OpenError> {
    let failed = |source| OpenError::Disk { file: disk.place(FILE), source };
    if !disk.names().map_err(failed)?.iter().any(|name| name == FILE) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let file = disk.read(FILE).map_err(failed)?;
    file.take(SLOTS[1] + SLOT as u64).read_to_end(&mut bytes).map_err(failed)?;
    match newest(&bytes) {
        Some((_, revision)) => Ok(Some(revision)),
        None => Err(OpenError::Damaged {
            file: disk.place(FILE),
            offset: 0,
            why: "it does not say how far the log was acknowledged".to_owned(),
        }),
    }
}

/// The slot with the newest revision, and that revision.
fn newest(bytes: &[u8]) -> Option<(usize, u64)> {
    let revisions = SLOTS.iter().enumerate().filter_map(|(slot, at)| {
        let bytes = bytes.get(usize::try_from(*at).ok()?..)?.get(..SLOT)?;
        let revision = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
        (bytes == encoded(revision)).then_some((slot, revision))
    });
    revisions.max_by_key(|(_, revision)| *revision)
}

fn encoded(revision: u64) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&revision.to_le_bytes());
    let sum = checksum(0, &bytes[..16]);
    bytes[16..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The file, while the log is written.
#[derive(Debug)]
pub(super) struct Mark {
    disk: Arc<dyn Disk>,
    /// None if it is not there, or did not work: it is made anew then.
    open: Option<Open>,
    /// Said once, until it is over.
    failing: bool,
}

#[derive(Debug)]
struct Open {
    file: Box<dyn DiskFile>,
    /// The slot that is written; the other one is durable.
    slot: usize,
    unsynced: bool,
}

impl Mark {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        let open = Open::existing(&*disk);
        Self { disk, open, failing: false }
    }

    /// Everything up to this revision is durable, and will be acknowledged.
    pub(super) fn advance(&mut self, revision: u64) {
        let written = match &mut self.open {
            Some(open) => open.write(revision),
            None => Open::make(&*self.disk, revision).map(|made| self.open = Some(made)),
        };
        self.tell(written);
    }

    pub(super) fn sync(&mut self) {
        if let Some(open) = &mut self.open {
            let synced = open.sync();
            self.tell(synced);
        }
    }

    fn needs_sync(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.unsynced)
    }

    /// Changes are durable without it, so they are not refused.
    fn tell(&mut self, done: io::Result<()>) {
        if let Err(error) = &done
            && !self.failing
        {
            tracing::warn!(%error, "the store cannot write down how far it has acknowledged changes");
        }
        self.failing = done.is_err();
    }
}

impl Open {
    /// The file as another process left it, made durable.
    fn existing(disk: &dyn Disk) -> Option<Self> {
        let mut bytes = Vec::new();
        disk.read(FILE).ok()?.read_to_end(&mut bytes).ok()?;
        let (newest, revision) = newest(&bytes)?;
        let mut file = disk.open(FILE).ok()?;
        // Written once more, since the system may take for written what a failed sync has lost.
        file.write_at(SLOTS[newest], &encoded(revision)).ok()?;
        file.sync().ok()?;
        Some(Self { file, slot: 1 - newest, unsynced: false })
    }

    fn make(disk: &dyn Disk, revision: u64) -> io::Result<Self> {
        let mut file = disk.create(UNFINISHED)?;
        for at in SLOTS {
            file.write_at(at, &encoded(revision))?;
        }
        file.sync()?;
        disk.rename(UNFINISHED, FILE)?;
        disk.sync_names()?;
        Ok(Self { file, slot: 0, unsynced: false })
    }

    fn write(&mut self, revision: u64) -> io::Result<()> {
        self.unsynced = true;
        self.file.write_at(SLOTS[self.slot], &encoded(revision))
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.file.sync()?;
            self.unsynced = false;
            self.slot = 1 - self.slot;
        }
        Ok(())
    }
}

/// The mark as the writer and the thread that syncs it share it.
#[derive(Debug)]
pub(super) struct SharedMark {
    state: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Debug)]
struct Shared {
    mark: Mark,
    stopped: bool,
}

impl SharedMark {
    pub(super) fn new(mark: Mark) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(Shared { mark, stopped: false }), changed: Condvar::new() })
    }

    pub(super) fn advance(&self, revision: u64) {
        let mut state = self.state.lock();
        let waits = !state.mark.needs_sync();
        state.mark.advance(revision);
        if waits {
            self.changed.notify_one();
        }
    }

    #[cfg(test)]
    pub(super) fn sync(&self) {
        self.state.lock().mark.sync();
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            while !state.stopped && !state.mark.needs_sync() {
                self.changed.wait(&mut state);
            }
            if !state.stopped {
                self.changed.wait_for(&mut state, SYNC_WITHIN);
            }
            state.mark.sync();
            if state.stopped {
                return;
            }
        }
    }
}

/// The thread that syncs the mark. Dropping it syncs it a last time.
#[derive(Debug)]
pub(super) struct MarkThread {
    shared: Arc<SharedMark>,
    thread: Option<JoinHandle<()>>,
}

impl MarkThread {
    pub(super) fn start(shared: Arc<SharedMark>) -> io::Result<Self> {
        let running = shared.clone();
        let thread = Builder::new().name("store-mark".to_owned()).spawn(move || running.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Drop for MarkThread {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
