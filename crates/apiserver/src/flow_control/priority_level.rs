//! A priority level: how many requests run at a time, and how many wait.

use http::HeaderValue;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_clock::Clock;

/// How long a request waits at most: a quarter of the time that it may take.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// A priority level.
pub(super) struct PriorityLevel {
    pub(super) name: String,
    pub(super) uid: HeaderValue,
    limits: Option<Limits>,
    pub(super) executing: Arc<AtomicUsize>,
}

/// What a level may use.
struct Limits {
    shares: u64,
    /// How many may wait.
    queue: usize,
    seats: u64,
    free: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// Nobody waits at this level.
    ConcurrencyLimit,
    /// Too many wait already.
    QueueFull,
    /// It waited too long.
    TimeOut,
}

/// The right to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    _permit: Option<OwnedSemaphorePermit>,
    _executing: Counted,
}

/// Counts while it is there.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Deserialize)]
struct Object {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    limited: Option<Limited>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Limited {
    nominal_concurrency_shares: Option<u64>,
    limit_response: LimitResponse,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LimitResponse {
    queuing: Option<Queuing>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Queuing {
    queues: usize,
    queue_length_limit: usize,
}

impl PriorityLevel {
    /// From its JSON; none if that says nothing. It has no seats yet.
    pub(super) fn read(name: &str, uid: &str, json: &[u8]) -> Option<Self> {
        let Object { spec } = serde_json::from_slice(json).ok()?;
        let limits = spec.limited.map(|limited| {
            let queuing = limited.limit_response.queuing.unwrap_or_default();
            Limits {
                shares: limited.nominal_concurrency_shares.unwrap_or(30),
                queue: queuing.queues.saturating_mul(queuing.queue_length_limit),
                seats: 0,
                free: Arc::new(Semaphore::new(0)),
                waiting: Arc::default(),
            }
        });
        let uid = HeaderValue::from_str(uid).ok()?;
        Some(Self { name: name.to_owned(), uid, limits, executing: Arc::default() })
    }

    /// Its part of all seats, as a number to be compared with those of others.
    pub(super) fn shares(&self) -> u64 {
        self.limits.as_ref().map_or(0, |limits| limits.shares)
    }

    /// How many run at a time; none if as many as there are.
    pub(super) fn seats(&self) -> Option<u64> {
        self.limits.as_ref().map(|limits| limits.seats)
    }

    pub(super) fn waiting(&self) -> usize {
        self.limits.as_ref().map_or(0, |limits| limits.waiting.load(Ordering::Relaxed))
    }

    /// The same level with another number of seats. Those who sit stay, and are not counted among them.
    pub(super) fn with_seats(&self, seats: u64) -> Self {
        let limits = self.limits.as_ref().map(|limits| {
            let same = limits.seats == seats;
            let permits =
                usize::try_from(seats).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
            Limits {
                shares: limits.shares,
                queue: limits.queue,
                seats,
                free: if same { limits.free.clone() } else { Arc::new(Semaphore::new(permits)) },
                waiting: limits.waiting.clone(),
            }
        });
        Self { name: self.name.clone(), uid: self.uid.clone(), limits, executing: self.executing.clone() }
    }

    /// Waits until a request may run.
    pub(super) async fn seat(&self) -> Result<Seat, Rejected> {
        let permit = match &self.limits {
            None => None,
            Some(limits) => Some(limits.permit().await?),
        };
        Ok(Seat { _permit: permit, _executing: Counted::new(&self.executing) })
    }
}

impl Limits {
    async fn permit(&self) -> Result<OwnedSemaphorePermit, Rejected> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(permit);
        }
        if self.queue == 0 {
            return Err(Rejected::ConcurrencyLimit);
        }
        let waiting = Counted::new(&self.waiting);
        if self.waiting.load(Ordering::Relaxed) > self.queue {
            return Err(Rejected::QueueFull);
        }
        // Clients wait by the time of the world, whatever time the API itself lives by.
        let permit = Clock::real().timeout(LONGEST_WAIT, self.free.clone().acquire_owned()).await;
        drop(waiting);
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Rejected::TimeOut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn level(response: serde_json::Value) -> PriorityLevel {
        let limited = json!({"nominalConcurrencyShares": 1, "limitResponse": response});
        let object = json!({"spec": {"type": "Limited", "limited": limited}});
        PriorityLevel::read("l", "u", object.to_string().as_bytes()).unwrap().with_seats(1)
    }

    #[tokio::test]
    async fn who_finds_no_seat_is_turned_away_or_waits_for_one() {
        let rejecting = level(json!({"type": "Reject"}));
        let seat = rejecting.seat().await.unwrap();
        assert_eq!(rejecting.seat().await.err(), Some(Rejected::ConcurrencyLimit));
        drop(seat);
        assert!(rejecting.seat().await.is_ok());

        let queuing = level(json!({"type": "Queue", "queuing": {"queues": 1, "queueLengthLimit": 1}}));
        let seat = queuing.seat().await.unwrap();
        let mut second = Box::pin(queuing.seat());
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(queuing.seat().await.err(), Some(Rejected::QueueFull));
        assert_eq!((queuing.waiting(), queuing.executing.load(Ordering::Relaxed)), (1, 1));
        drop(seat);
        let seat = second.await.unwrap();
        assert_eq!((queuing.waiting(), queuing.executing.load(Ordering::Relaxed)), (0, 1));
        drop(seat);
        assert_eq!(queuing.executing.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn who_leaves_while_waiting_no_longer_counts() {
        let queuing = level(json!({"type": "Queue", "queuing": {"queues": 1, "queueLengthLimit": 1}}));
        let _seat = queuing.seat().await.unwrap();
        let mut second = Box::pin(queuing.seat());
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        assert_eq!(queuing.waiting(), 0);
    }

    #[tokio::test]
    async fn a_level_without_limits_turns_nobody_away() {
        let object = json!({"spec": {"type": "Exempt"}}).to_string();
        let exempt = PriorityLevel::read("l", "u", object.as_bytes()).unwrap().with_seats(0);
        let seats = futures::future::join_all((0..1000).map(|_| exempt.seat())).await;
        assert!(seats.iter().all(Result::is_ok));
        assert_eq!(exempt.executing.load(Ordering::Relaxed), 1000);
    }
}
