//! From what is on the disk to what was acknowledged: the newest snapshot, and the log from there on.

use super::bytes::Reader;
use super::disk::Disk;
use super::file::{BadStart, Role, START, Start, UNFINISHED};
use super::record::{self, Names, Record};
use super::segment::{self, Scan, Tail};
use super::{OpenError, mark, snapshot};
use crate::Options;
use crate::state::State;
use std::io::Read;
use std::ops::Range;
use windlass_clock::Clock;

/// More changes than anyone makes; what comes after it can still be counted.
const LARGEST_REVISION: u64 = u64::MAX >> 1;

/// A store as it was, and where its log goes on.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) state: State,
    /// The number of the next segment.
    pub(super) next: u64,
    /// How much of the log had to be read.
    pub(super) log_bytes: u64,
    pub(super) snapshot_bytes: u64,
    /// What was acknowledged is not all there, which is accepted.
    pub(super) lost: bool,
}

/// Reads everything, cuts a torn end, and makes sure that what was read is durable before anyone sees it.
pub(super) fn recover(disk: &dyn Disk, options: Options, clock: Clock) -> Result<Recovered, OpenError> {
    let found = disk.names().map_err(|source| OpenError::Disk { file: disk.place(""), source })?;
    let numbers = |role: Role| {
        let mut numbers: Vec<u64> = found.iter().filter_map(|name| role.number(name)).collect();
        numbers.sort_unstable();
        numbers
    };
    let (mut segments, snapshots) = (numbers(Role::Segment), numbers(Role::Snapshot));
    let base = snapshots.last().copied();
    let next = segments.last().map_or(1, |last| last.saturating_add(1)).max(base.unwrap_or(1));
    segments.retain(|number| *number >= base.unwrap_or(0));
    let acknowledged = mark::read(disk)?.unwrap_or(0);
    let accepts_loss = options.accept_data_loss;
    let state = State::new(options, clock, 1);
    let mut replay = Replay { disk, state, names: Names::default(), at: 1, acknowledged, accepts_loss };
    let (mut needs, mut snapshot_bytes) = (1, 0);
    if let Some(number) = base {
        let mut resources = replay.state.resources.write();
        let taken = snapshot::read(disk, number, &mut replay.names, |record| {
            if let Record::Put(entry) = record {
                let key = entry.key().clone();
                resources.resource(&key.resource).restore(&key.path(), Some(entry));
            }
        })?;
        (replay.at, needs, snapshot_bytes) = (taken.revision, taken.needs, taken.size);
        if replay.at > LARGEST_REVISION {
            let why = format!("revision {} cannot have been reached", replay.at);
            return Err(OpenError::Damaged {
                file: disk.place(&Role::Snapshot.name(number)),
                offset: 0,
                why,
            });
        }
    }
    let log_bytes = replay.segments(&segments)?;
    if replay.at >= needs {
        replay.reaches_what_was_acknowledged()?;
    }
    let Replay { state, mut at, .. } = replay;
    if at < needs {
        return Err(OpenError::Damaged {
            file: disk.place(&Role::Segment.name(segments.last().copied().unwrap_or(next))),
            offset: 0,
            why: format!("the log ends at revision {at}, and the snapshot needs it up to {needs}"),
        });
    }
    let lost = at < acknowledged;
    if lost {
        tracing::warn!(
            "the changes from revision {} to {acknowledged} are lost, which is accepted; revisions go on from there",
            at + 1
        );
        at = acknowledged;
    }
    remove_leftovers(disk, base.unwrap_or(0), &found);
    {
        let mut resources = state.resources.write();
        resources.revision = at;
        resources.compacted = at;
        resources.by_resource.values_mut().for_each(|objects| objects.compacted = at);
        state.published.store(at, std::sync::atomic::Ordering::Release);
    }
    Ok(Recovered { state, next, log_bytes, snapshot_bytes, lost })
}

/// What an earlier process did not come to remove.
fn remove_leftovers(disk: &dyn Disk, base: u64, found: &[String]) {
    let mut removed = snapshot::remove_replaced(disk, base);
    if removed.is_ok() && found.iter().any(|name| name == UNFINISHED) {
        removed = disk.remove(UNFINISHED);
    }
    if let Err(error) = removed {
        tracing::warn!(%error, "a file that the store no longer needs could not be removed");
    }
}

struct Replay<'a> {
    disk: &'a dyn Disk,
    state: State,
    names: Names,
    /// The revision that was reached.
    at: u64,
    /// The revision that was acknowledged.
    acknowledged: u64,
    accepts_loss: bool,
}

impl Replay<'_> {
    /// Takes over what all segments hold; returns how many bytes that was.
    fn segments(&mut self, numbers: &[u64]) -> Result<u64, OpenError> {
        // A segment that was begun in earnest says from which revision on those before it do not count.
        let mut begun = Vec::new();
        for number in numbers {
            match self.start(*number)? {
                Some(start) => begun.push(start),
                None => self.must_be_empty(*number)?,
            }
        }
        let mut bytes = 0;
        for (index, start) in begun.iter().enumerate() {
            bytes += self.segment(start, begun.get(index + 1))?;
        }
        Ok(bytes)
    }

    fn failed(&self, number: u64) -> impl Fn(std::io::Error) -> OpenError {
        let file = self.disk.place(&Role::Segment.name(number));
        move |source| OpenError::Disk { file: file.clone(), source }
    }

    fn damaged(&self, number: u64, offset: usize, why: impl Into<String>) -> OpenError {
        let file = self.disk.place(&Role::Segment.name(number));
        OpenError::Damaged { file, offset: offset as u64, why: why.into() }
    }

    /// Is everything there, or is it accepted that it is not?
    fn reaches_what_was_acknowledged(&self) -> Result<(), OpenError> {
        if self.at >= self.acknowledged || self.accepts_loss {
            return Ok(());
        }
        let (directory, reached) = (self.disk.place(""), self.at);
        Err(OpenError::Lost { directory, reached, acknowledged: self.acknowledged })
    }

    /// A segment's start; nothing if it was never whole.
    fn start(&self, number: u64) -> Result<Option<Start>, OpenError> {
        let mut bytes = Vec::new();
        let file = self.disk.read(&Role::Segment.name(number)).map_err(self.failed(number))?;
        file.take(START as u64).read_to_end(&mut bytes).map_err(self.failed(number))?;
        match Start::read(&bytes, Role::Segment, number) {
            Ok(start) => Ok(Some(start)),
            Err(BadStart::Damaged) => Ok(None),
            Err(BadStart::Format(format)) => {
                Err(OpenError::Format { file: self.disk.place(&Role::Segment.name(number)), format })
            }
        }
    }

    fn read(&self, number: u64) -> Result<Vec<u8>, OpenError> {
        let mut bytes = Vec::new();
        let mut file = self.disk.read(&Role::Segment.name(number)).map_err(self.failed(number))?;
        file.read_to_end(&mut bytes).map_err(self.failed(number))?;
        Ok(bytes)
    }

    /// A segment without a start was interrupted while it was made. Nothing is written to it before its start is durable.
    fn must_be_empty(&self, number: u64) -> Result<(), OpenError> {
        let bytes = self.read(number)?;
        if segment::scan(&bytes, number).tail == Tail::Followed {
            return Err(self.damaged(number, 0, "the start of the file is not as it was written"));
        }
        // What cannot be removed is found again next time, and is as empty then.
        let _ = self.disk.remove(&Role::Segment.name(number));
        Ok(())
    }

    fn segment(&mut self, start: &Start, next: Option<&Start>) -> Result<u64, OpenError> {
        let number = start.number;
        let bytes = self.read(number)?;
        let Scan { frames, mut end, tail, .. } = segment::scan(&bytes, number);
        let superseded = next.map_or(u64::MAX, |next| next.revision);
        if start.revision > self.at.saturating_add(1) {
            let why = format!("revisions {} to {} are missing before it", self.at + 1, start.revision - 1);
            return Err(self.damaged(number, START, why));
        }
        let mut last_frame = end;
        for (offset, header, payload) in frames {
            if header.number >= superseded {
                end = offset;
                break;
            }
            last_frame = offset;
            if header.number != self.at + 1 {
                let why = format!("revision {} stands where {} should", header.number, self.at + 1);
                return Err(self.damaged(number, offset, why));
            }
            let taken = self.records(payload, header.count);
            taken.ok_or_else(|| self.damaged(number, offset, "a record makes no sense"))?;
        }
        match next {
            // What follows is accounted for: whatever is behind the end failed, and its writer was told so.
            Some(next) if next.revision == self.at + 1 => {}
            Some(next) => {
                let why = format!(
                    "revisions {} to {} cannot be read",
                    self.at + 1,
                    next.revision.saturating_sub(1)
                );
                return Err(self.damaged(number, end, why));
            }
            None => self.last(number, &bytes, last_frame..end, tail)?,
        }
        Ok(end as u64)
    }

    fn records(&mut self, payload: &[u8], count: u32) -> Option<()> {
        let mut reader = Reader(payload);
        let mut resources = self.state.resources.write();
        for _ in 0..count {
            let (key, revision, entry) = match record::read(&mut reader, &mut self.names)? {
                Record::Put(entry) => (entry.key().clone(), entry.revision(), Some(entry)),
                Record::Delete(key, revision) => (key, revision, None),
            };
            resources.resource(&key.resource).restore(&key.path(), entry);
            self.at = self.at.checked_add(1).filter(|at| *at == revision.0)?;
        }
        Some(())
    }

    /// Cuts what is not whole off the newest segment, and makes the rest durable. The process that wrote the last frame may
    /// have ended before it synced it, or after that failed: then the system takes what it shows us for written, and only
    /// writing it once more makes it so.
    fn last(&self, number: u64, bytes: &[u8], frame: Range<usize>, tail: Tail) -> Result<(), OpenError> {
        let end = frame.end;
        match tail {
            Tail::Followed => {
                return Err(self.damaged(
                    number,
                    end,
                    "what is here is damaged, and more of the log follows",
                ));
            }
            Tail::Torn => {
                tracing::warn!(
                    file = %self.disk.place(&Role::Segment.name(number)).display(),
                    offset = end,
                    bytes = bytes.len() - end,
                    "the log of the store ends in a change that was not written to its end; it is cut there"
                );
            }
            Tail::Clean => {}
        }
        // Before anything is changed.
        self.reaches_what_was_acknowledged()?;
        let cut = move || {
            let mut file = self.disk.open(&Role::Segment.name(number))?;
            file.write_at(frame.start as u64, &bytes[frame])?;
            file.set_len(end as u64)?;
            file.sync()?;
            self.disk.sync_names()
        };
        cut().map_err(self.failed(number))
    }
}
