//! A part of the log: written frame by frame, each durable before the next is begun; and read as far as it is whole.

use super::disk::{Disk, DiskFile};
use super::file::{Role, START, Start};
use super::frame::{self, HEADER, Header};
use std::io;

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Segment {
    file: Box<dyn DiskFile>,
    number: u64,
    /// Everything before this is durable.
    end: u64,
    /// How far the file reaches. What lies behind the end is zero: overwriting is much cheaper to sync than growing.
    allocated: u64,
    growth: u64,
}

impl Segment {
    /// A new one, durable with its name. From now on, whatever earlier segments hold of `first` and later does not count.
    pub(super) fn create(disk: &dyn Disk, number: u64, first: u64, growth: u64) -> io::Result<Self> {
        let name = Role::Segment.name(number);
        let make = || {
            let mut file = disk.create(&name)?;
            let mut start = Start { role: Role::Segment, number, revision: first }.to_bytes().to_vec();
            start.resize(START.max(usize::try_from(growth).unwrap_or(START)), 0);
            file.write_at(0, &start)?;
            file.sync()?;
            disk.sync_names()?;
            Ok(Self { file, number, end: START as u64, allocated: start.len() as u64, growth })
        };
        make().inspect_err(|_| {
            // Nothing was written to it; the next one takes its place whether this succeeds or not.
            let _ = disk.remove(&name);
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes it holds.
    pub(super) fn size(&self) -> u64 {
        self.end
    }

    /// Returns when the frame is durable. After a failure the segment must be given up: nobody can say what of it reached
    /// the disk, and a later sync would not either.
    pub(super) fn append(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let length = frame.len();
        let end = self.end + length as u64;
        if end > self.allocated {
            let growth = self.growth.max(1);
            let allocated = end.div_ceil(growth) * growth;
            frame.resize(length + usize::try_from(allocated - end).unwrap_or(0), 0);
            self.allocated = allocated;
        }
        self.file.write_at(self.end, frame)?;
        frame.truncate(length);
        self.file.sync()?;
        self.end = end;
        Ok(())
    }

    /// Takes back what may have been written after the end, as far as the disk lets it.
    pub(super) fn give_up(mut self) {
        let cut = self.file.set_len(self.end).and_then(|()| self.file.sync());
        if let Err(error) = cut {
            tracing::debug!(%error, segment = self.number, "the end of a segment of the log could not be cut");
        }
    }
}

/// A segment that was read.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    /// Its frames with their offsets, in order.
    pub(super) frames: Vec<(usize, Header, &'a [u8])>,
    /// Where what is whole ends.
    pub(super) end: usize,
    pub(super) tail: Tail,
}

/// What comes after the last whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or only what was set aside for more.
    Clean,
    /// Something that was not written to its end.
    Torn,
    /// Something damaged, and after it a frame: that was begun only when all before it was durable.
    Followed,
}

/// Reads a segment.
pub(super) fn scan(bytes: &[u8], number: u64) -> Scan<'_> {
    let mut frames = Vec::new();
    let mut end = 0;
    if Start::read(bytes, Role::Segment, number).is_ok() {
        end = START;
        while let Some((header, payload)) = frame::read(&bytes[end..], number) {
            frames.push((end, header, payload));
            end += HEADER + payload.len();
        }
    }
    // The damaged frame's own header may be whole; only one after it tells of a later frame.
    let rest = &bytes[end..];
    let tail = if rest.iter().all(|byte| *byte == 0) {
        Tail::Clean
    } else if frame::find_header(rest.get(1..).unwrap_or_default(), number).is_some() {
        Tail::Followed
    } else {
        Tail::Torn
    };
    Scan { frames, end, tail }
}
