//! All objects in one file, so that the log before it can go.
//!
//! It is written in pieces while changes go on: an object may be in it as it was at any revision from the snapshot's own to
//! the one at its end. The log from the snapshot's revision on, replayed over it at least up to that end, brings all of
//! them to the same point.

use super::bytes::Reader;
use super::disk::{Disk, DiskFile};
use super::file::{BadStart, Role, START, Start, UNFINISHED};
use super::frame::{self, HEADER};
use super::record::{self, Names, Record};
use super::{Limits, OpenError};
use crate::key::Revision;
use crate::state::State;
use std::io::{self, Read};
use std::ops::Bound;
use std::sync::Arc;

/// The number of the last frame, which says how many objects there are and which revision the log must reach.
const LAST: u64 = u64::MAX;

/// A snapshot that is being written.
#[derive(Debug)]
pub(super) struct Snapshot {
    disk: Arc<dyn Disk>,
    state: Arc<State>,
    limits: Limits,
    file: Box<dyn DiskFile>,
    start: Start,
    /// The resources still to be written, and how far the last of them is.
    resources: Vec<Arc<str>>,
    after: Bound<Arc<str>>,
    frame: Vec<u8>,
    in_frame: u32,
    frames: u64,
    objects: u64,
    offset: u64,
    synced: u64,
}

impl Snapshot {
    /// Begins one. The log's segments from `number` on hold everything after `revision`.
    pub(super) fn begin(
        disk: Arc<dyn Disk>,
        state: Arc<State>,
        limits: Limits,
        number: u64,
        revision: u64,
    ) -> io::Result<Self> {
        let mut file = disk.create(UNFINISHED)?;
        let start = Start { role: Role::Snapshot, number, revision };
        file.write_at(0, &start.to_bytes())?;
        let resources = state.resources.read().by_resource.keys().cloned().collect();
        Ok(Self {
            disk,
            state,
            limits,
            file,
            start,
            resources,
            after: Bound::Unbounded,
            frame: frame::start(),
            in_frame: 0,
            frames: 0,
            objects: 0,
            offset: START as u64,
            synced: 0,
        })
    }

    /// Writes a few objects, with the lock held only to find them; `true` once the snapshot is whole, durable and in
    /// place, and what it replaces is gone.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        let Some(resource) = self.resources.last() else { return self.finish().map(|()| true) };
        let (entries, last) = {
            let resources = self.state.resources.read();
            let range = (self.after.as_ref().map(|path| &**path), Bound::Unbounded);
            match resources.by_resource.get(resource) {
                Some(objects) => objects.scan(range, Revision(u64::MAX), self.limits.snapshot_step),
                None => (Vec::new(), None),
            }
        };
        for entry in entries {
            record::append_entry(&mut self.frame, &entry);
            self.in_frame += 1;
            self.objects += 1;
            if self.frame.len() >= self.limits.snapshot_frame {
                self.write_frame(self.frames)?;
            }
        }
        match last {
            Some(path) => self.after = Bound::Excluded(path),
            None => {
                self.resources.pop();
                self.after = Bound::Unbounded;
            }
        }
        Ok(false)
    }

    fn write_frame(&mut self, number: u64) -> io::Result<()> {
        frame::seal(&mut self.frame, self.start.number, number, self.in_frame);
        self.file.write_at(self.offset, &self.frame)?;
        self.offset += self.frame.len() as u64;
        self.frame.truncate(HEADER);
        self.in_frame = 0;
        self.frames += 1;
        // In small portions: a sync of the log must not wait behind all of it.
        if self.offset - self.synced >= self.limits.snapshot_sync {
            self.file.sync()?;
            self.synced = self.offset;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.in_frame > 0 {
            self.write_frame(self.frames)?;
        }
        self.frame.extend_from_slice(&self.objects.to_le_bytes());
        self.frame.extend_from_slice(&self.state.revision().to_le_bytes());
        self.write_frame(LAST)?;
        self.file.sync()?;
        self.disk.rename(UNFINISHED, &Role::Snapshot.name(self.start.number))?;
        self.disk.sync_names()?;
        remove_replaced(&*self.disk, self.start.number)
    }

    /// How many bytes were written.
    pub(super) fn size(&self) -> u64 {
        self.offset
    }

    /// Removes what there is of it.
    pub(super) fn abandon(self) {
        // It is in nobody's way: the next one is written over it, and opening the store removes it.
        let _ = self.disk.remove(UNFINISHED);
    }
}

/// Removes the snapshots and segments that the snapshot of this number stands for.
pub(super) fn remove_replaced(disk: &dyn Disk, number: u64) -> io::Result<()> {
    let replaced = |name: &str| {
        let number_of = |role: Role| role.number(name);
        number_of(Role::Segment).or_else(|| number_of(Role::Snapshot)).is_some_and(|other| other < number)
    };
    disk.names()?.iter().filter(|name| replaced(name)).try_for_each(|name| disk.remove(name))
}

/// What a snapshot says beside its objects.
#[derive(Debug)]
pub(super) struct Taken {
    /// Everything after this revision is in the log.
    pub(super) revision: u64,
    /// The log must reach this revision.
    pub(super) needs: u64,
    pub(super) size: u64,
}

/// Reads a snapshot, and gives each object to `put`.
pub(super) fn read(
    disk: &dyn Disk,
    number: u64,
    names: &mut Names,
    mut put: impl FnMut(Record),
) -> Result<Taken, OpenError> {
    let name = Role::Snapshot.name(number);
    let failed = |source| OpenError::Disk { file: disk.place(&name), source };
    let damaged = |offset: u64| OpenError::Damaged {
        file: disk.place(&name),
        offset,
        why: "the snapshot is not as it was written".to_owned(),
    };
    let mut file = disk.read(&name).map_err(failed)?;
    let mut buffer = Vec::new();
    let mut take = |count: usize, buffer: &mut Vec<u8>| {
        buffer.clear();
        // Grows as it is read: a length that makes no sense takes no memory.
        (&mut file).take(count as u64).read_to_end(buffer).map_err(failed)
    };
    take(START, &mut buffer)?;
    let start = Start::read(&buffer, Role::Snapshot, number).map_err(|bad| match bad {
        BadStart::Format(format) => OpenError::Format { file: disk.place(&name), format },
        BadStart::Damaged => damaged(0),
    })?;
    let (mut offset, mut frames, mut objects) = (START as u64, 0, 0_u64);
    loop {
        take(HEADER, &mut buffer)?;
        let header = frame::header(&buffer, number).ok_or_else(|| damaged(offset))?;
        let length = usize::try_from(header.length).map_err(|_| damaged(offset))?;
        take(length, &mut buffer)?;
        if !header.fits(&buffer, number) {
            return Err(damaged(offset));
        }
        let mut reader = Reader(&buffer);
        offset += (HEADER + length) as u64;
        if header.number == LAST {
            let (Some(count), Some(needs)) = (reader.u64(), reader.u64()) else {
                return Err(damaged(offset));
            };
            if count != objects {
                return Err(damaged(offset));
            }
            return Ok(Taken { revision: start.revision, needs, size: offset });
        }
        if header.number != frames {
            return Err(damaged(offset));
        }
        for _ in 0..header.count {
            put(record::read(&mut reader, names).ok_or_else(|| damaged(offset))?);
        }
        objects += u64::from(header.count);
        frames += 1;
    }
}
