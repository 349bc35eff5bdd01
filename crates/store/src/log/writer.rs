//! The one writer: judges changes in the order in which they come, makes a batch of them durable with one sync, and only
//! then lets them be seen.

use super::Limits;
use super::disk::Disk;
use super::frame;
use super::mark::{Mark, SharedMark};
use super::record;
use super::recover::Recovered;
use super::segment::Segment;
use super::snapshot::Snapshot;
use crate::entry::{Entry, Kind};
use crate::key::{Key, Revision};
use crate::state::{Decided, Decision, State, decide};
use crate::{Change, CommitError};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// What became of a change.
pub(super) type Outcome = Result<Arc<Entry>, CommitError>;

/// The log's writing end.
#[derive(Debug)]
pub(super) struct Writer {
    disk: Arc<dyn Disk>,
    state: Arc<State>,
    limits: Limits,
    /// Made when there is something to write, and given up after a failure.
    segment: Option<Segment>,
    /// The number of the next segment.
    next: u64,
    /// How much was written since the last snapshot was begun.
    log_bytes: u64,
    snapshot_bytes: u64,
    /// Says how far changes were acknowledged; none where nobody waits for the disk.
    mark: Option<Arc<SharedMark>>,
    /// Said once, until it is over.
    failing: bool,
}

impl Writer {
    pub(super) fn new(disk: Arc<dyn Disk>, recovered: Recovered, limits: Limits) -> Self {
        let Recovered { state, next, log_bytes, snapshot_bytes, .. } = recovered;
        let state = Arc::new(state);
        Self {
            disk,
            state,
            limits,
            segment: None,
            next,
            log_bytes,
            snapshot_bytes,
            mark: None,
            failing: false,
        }
    }

    /// Writes down from now on how far changes were acknowledged.
    pub(super) fn keep_mark(&mut self) {
        self.mark = Some(SharedMark::new(Mark::new(self.disk.clone())));
    }

    pub(super) fn mark(&self) -> Option<&Arc<SharedMark>> {
        self.mark.as_ref()
    }

    pub(super) fn state(&self) -> &Arc<State> {
        &self.state
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes a batch of changes, each judged on what those before it will have made. All of them are durable when this
    /// returns, or none, and then nothing has changed.
    pub(super) fn commit(&mut self, changes: Vec<Change>) -> Vec<Outcome> {
        let now = self.state.clock.moment();
        let mut batch = Batch::default();
        let before = self.state.revision();
        {
            let resources = self.state.resources.read();
            for change in changes {
                let key = change.key().clone();
                let found = batch.made.get(&key);
                let current = |key: &Key, path: &str| match found {
                    Some(made) => made.clone(),
                    None => resources.current(key, path),
                };
                let unsure = found.is_some();
                let revision = Revision(before + batch.decided.len() as u64 + 1);
                let decision = decide(change, revision, now, current);
                batch.add(key, decision, unsure);
            }
        }
        if batch.decided.is_empty() {
            return batch.outcomes(None);
        }
        let failure = self.append(before + 1, &batch.decided).err().map(Arc::new);
        self.tell(failure.as_deref());
        if failure.is_none() {
            if let Some(mark) = &self.mark {
                mark.advance(before + batch.decided.len() as u64);
            }
            let decided = std::mem::take(&mut batch.decided);
            self.state.publish(decided, now);
        }
        batch.outcomes(failure)
    }

    fn append(&mut self, first: u64, decided: &[Decided]) -> io::Result<()> {
        let mut bytes = frame::start();
        for change in decided {
            record::append_event(&mut bytes, &change.event);
        }
        let count = u32::try_from(decided.len()).map_err(io::Error::other)?;
        if self.segment.as_ref().is_some_and(|segment| segment.size() >= self.limits.segment) {
            self.segment = None;
        }
        let mut segment = match self.segment.take() {
            Some(segment) => segment,
            None => {
                let number = self.next;
                self.next = number.saturating_add(1);
                Segment::create(&*self.disk, number, first, self.limits.growth)?
            }
        };
        frame::seal(&mut bytes, segment.number(), first, count);
        match segment.append(&mut bytes) {
            Ok(()) => {
                self.log_bytes += bytes.len() as u64;
                self.segment = Some(segment);
                Ok(())
            }
            Err(error) => {
                segment.give_up();
                Err(error)
            }
        }
    }

    fn tell(&mut self, failure: Option<&io::Error>) {
        match failure {
            Some(error) if !self.failing => {
                tracing::error!(%error, "the store cannot write to its disk: changes are refused until it can");
            }
            None if self.failing => tracing::info!("the store can write to its disk again"),
            _ => {}
        }
        self.failing = failure.is_some();
        self.state.failing.store(self.failing, std::sync::atomic::Ordering::Relaxed);
    }

    /// Has enough been written for a snapshot to pay?
    pub(super) fn wants_snapshot(&self) -> bool {
        self.log_bytes >= self.limits.snapshot.max(self.snapshot_bytes)
    }

    /// Begins a snapshot of all that is visible now; what comes later goes into a new segment.
    pub(super) fn begin_snapshot(&mut self) -> io::Result<Snapshot> {
        // Whether it succeeds or not, the next one is due after as much again.
        self.log_bytes = 0;
        self.segment = None;
        let (disk, state) = (self.disk.clone(), self.state.clone());
        Snapshot::begin(disk, state, self.limits.clone(), self.next, self.state.revision())
    }

    /// A snapshot was finished, and is this large.
    pub(super) fn finished_snapshot(&mut self, size: u64) {
        self.snapshot_bytes = size;
    }
}

/// Changes that become durable together.
#[derive(Debug, Default)]
struct Batch {
    decided: Vec<Decided>,
    /// The objects as the batch leaves them.
    made: HashMap<Key, Option<Arc<Entry>>>,
    /// What to answer if the batch succeeds; and whether that depends on it.
    outcomes: Vec<(Outcome, bool)>,
}

impl Batch {
    fn add(&mut self, key: Key, decision: Result<Decision, CommitError>, unsure: bool) {
        let outcome = match decision {
            Ok(Decision::Changed(decided)) => {
                let entry = decided.event.entry.clone();
                let left = (decided.event.kind != Kind::Deleted).then(|| entry.clone());
                self.made.insert(key, left);
                self.decided.push(decided);
                (Ok(entry), true)
            }
            Ok(Decision::Unchanged(entry)) => (Ok(entry), unsure),
            Err(error) => (Err(error), unsure),
        };
        self.outcomes.push(outcome);
    }

    fn outcomes(self, failure: Option<Arc<io::Error>>) -> Vec<Outcome> {
        let answer = |(outcome, depends)| match &failure {
            Some(error) if depends => Err(CommitError::NotStored(error.clone())),
            _ => outcome,
        };
        self.outcomes.into_iter().map(answer).collect()
    }
}
