//! What many looks at a container come to: thresholds, and when to look next. Pure.

use k8s_openapi::api::core::v1::{Container, Probe};
use std::time::Duration;

/// What a probe asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Has it started?
    Startup,
    /// Can it serve?
    Readiness,
    /// Does it live?
    Liveness,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Startup, Self::Readiness, Self::Liveness];

    /// As events name it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }

    /// The probe of this kind that a container has.
    pub(crate) fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
        }
    }
}

/// What is known of a container by a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing yet.
    Unknown,
    /// Enough looks in a row were good.
    Good,
    /// Enough looks in a row were bad.
    Bad,
}

/// Counts the looks of one probe at one run of a container.
#[derive(Debug, Clone)]
pub(crate) struct Tracker {
    kind: Kind,
    failures: u32,
    successes: u32,
    period: Duration,
    delay: Duration,
    timeout: Duration,
    verdict: Verdict,
    last: Option<bool>,
    in_a_row: u32,
}

impl Tracker {
    pub(crate) fn new(kind: Kind, probe: &Probe) -> Self {
        let at_least = |value: Option<i32>, least: u32, default: u32| {
            value.map_or(default, |value| u32::try_from(value).unwrap_or(0).max(least))
        };
        let seconds = |value: u32| Duration::from_secs(value.into());
        Self {
            kind,
            failures: at_least(probe.failure_threshold, 1, 3),
            successes: at_least(probe.success_threshold, 1, 1),
            period: seconds(at_least(probe.period_seconds, 1, 10)),
            delay: seconds(at_least(probe.initial_delay_seconds, 0, 0)),
            timeout: seconds(at_least(probe.timeout_seconds, 1, 1)),
            verdict: Verdict::Unknown,
            last: None,
            in_a_row: 0,
        }
    }

    /// From the container's start until the first look.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// From one look to the next.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// How long one look may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Counts one look. Answers what is known now, if that is news.
    pub(crate) fn looked(&mut self, good: bool) -> Option<Verdict> {
        self.in_a_row = if self.last == Some(good) { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = Some(good);
        let enough = self.in_a_row >= if good { self.successes } else { self.failures };
        let verdict = if good { Verdict::Good } else { Verdict::Bad };
        if !enough || self.verdict == verdict {
            return None;
        }
        self.verdict = verdict;
        Some(verdict)
    }

    /// Whether nothing more is to be found out about this run of the container.
    pub(crate) fn is_over(&self) -> bool {
        match self.kind {
            Kind::Startup => self.verdict != Verdict::Unknown,
            Kind::Liveness => self.verdict == Verdict::Bad,
            Kind::Readiness => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tracker(kind: Kind, probe: Value) -> Tracker {
        Tracker::new(kind, &serde_json::from_value(probe).unwrap())
    }

    #[test]
    fn it_takes_as_many_looks_as_it_says() {
        let mut ready = tracker(Kind::Readiness, json!({"failureThreshold": 2, "successThreshold": 2}));
        let said: Vec<_> = [true, true, true, false, true, false, false, true, true]
            .into_iter()
            .map(|good| ready.looked(good))
            .collect();
        use Verdict::{Bad, Good};
        assert_eq!(said, [None, Some(Good), None, None, None, None, Some(Bad), None, Some(Good)]);
        assert!(!ready.is_over());
    }

    #[test]
    fn a_start_is_found_out_once_and_a_death_too() {
        let mut started = tracker(Kind::Startup, json!({"failureThreshold": 3}));
        assert_eq!((started.looked(false), started.looked(false), started.is_over()), (None, None, false));
        assert_eq!((started.looked(true), started.is_over()), (Some(Verdict::Good), true));
        let mut lives = tracker(Kind::Liveness, json!({}));
        let bad: Vec<_> = (0..3).map(|_| lives.looked(false)).collect();
        assert_eq!((bad, lives.is_over()), (vec![None, None, Some(Verdict::Bad)], true));
    }

    #[test]
    fn what_is_not_said_is_as_everywhere() {
        let t = tracker(Kind::Liveness, json!({"initialDelaySeconds": 5}));
        assert_eq!((t.delay().as_secs(), t.period().as_secs(), t.timeout().as_secs()), (5, 10, 1));
    }
}
