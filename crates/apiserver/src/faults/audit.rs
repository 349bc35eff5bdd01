//! The record of writes, seen from the API's side: who asked for which change, and what came of it.

use super::RequestInfo;
use parking_lot::Mutex;
use std::collections::VecDeque;
use windlass_clock::{Clock, Timestamp};

/// One request that was to change something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the request")]
pub struct Record {
    /// When it was answered.
    pub at: Timestamp,
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub user: String,
    pub user_agent: String,
    pub dry_run: bool,
    /// The HTTP status of the answer, whether it arrived or not; 0 if the request was lost before it took effect.
    pub code: u16,
}

impl Record {
    /// Was it granted, and not only tried out?
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code) && !self.dry_run
    }
}

/// The writes that were asked for: all of them counted, the last ones kept.
#[derive(Debug)]
pub struct Audit {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    total: u64,
    records: VecDeque<Record>,
}

/// How many records are kept.
const KEPT: usize = 16_384;

impl Audit {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    pub(super) fn record(&self, request: &RequestInfo<'_>, code: u16) {
        if !request.writes() || request.is_of_the_cluster() {
            return;
        }
        let record = Record {
            at: self.clock.now(),
            verb: request.verb.to_owned(),
            resource: request.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            user: request.user.to_owned(),
            user_agent: request.user_agent.to_owned(),
            dry_run: request.dry_run,
            code,
        };
        let mut state = self.state.lock();
        state.total += 1;
        if state.records.len() == KEPT {
            state.records.pop_front();
        }
        state.records.push_back(record);
    }

    /// How many writes were asked for since the beginning.
    pub fn total(&self) -> u64 {
        self.state.lock().total
    }

    /// The writes that were asked for after the first `total`, as far as they are kept: take [`Audit::total`] before,
    /// and see what came since.
    pub fn since(&self, total: u64) -> Vec<Record> {
        let state = self.state.lock();
        let wanted = usize::try_from(state.total.saturating_sub(total)).unwrap_or(usize::MAX);
        state.records.iter().skip(state.records.len().saturating_sub(wanted)).cloned().collect()
    }

    /// How many of the writes that are kept are so.
    pub fn count(&self, so: impl Fn(&Record) -> bool) -> usize {
        self.state.lock().records.iter().filter(|record| so(record)).count()
    }
}
