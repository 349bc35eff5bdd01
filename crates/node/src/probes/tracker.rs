//! Counts the attempts of a probe against its thresholds. Pure.

use k8s_openapi::api::core::v1::{Container, Probe};
use std::time::Duration;

/// The kind of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Startup,
    Readiness,
    Liveness,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Startup, Self::Readiness, Self::Liveness];

    /// Its name in events.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }

    /// The container's probe of this kind.
    pub(crate) fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
        }
    }
}

/// What the attempts of a probe add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No threshold was reached yet.
    Unknown,
    /// `successThreshold` was reached.
    Success,
    /// `failureThreshold` was reached.
    Failure,
}

/// Counts the attempts of one probe of one container attempt.
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

    /// From the container's start to the first attempt.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// From one attempt to the next.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// How long an attempt may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Counts an attempt. Returns the verdict, if it changed.
    pub(crate) fn attempt(&mut self, success: bool) -> Option<Verdict> {
        self.in_a_row = if self.last == Some(success) { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = Some(success);
        let enough = self.in_a_row >= if success { self.successes } else { self.failures };
        let verdict = if success { Verdict::Success } else { Verdict::Failure };
        if !enough || self.verdict == verdict {
            return None;
        }
        self.verdict = verdict;
        Some(verdict)
    }

    /// Whether the probe has nothing more to find out about this container attempt.
    pub(crate) fn is_over(&self) -> bool {
        match self.kind {
            Kind::Startup => self.verdict != Verdict::Unknown,
            Kind::Liveness => self.verdict == Verdict::Failure,
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
    fn consecutive_attempts_reach_the_thresholds() {
        let mut ready = tracker(Kind::Readiness, json!({"failureThreshold": 2, "successThreshold": 2}));
        let said: Vec<_> = [true, true, true, false, true, false, false, true, true]
            .into_iter()
            .map(|good| ready.attempt(good))
            .collect();
        use Verdict::{Failure, Success};
        assert_eq!(said, [None, Some(Success), None, None, None, None, Some(Failure), None, Some(Success)]);
        assert!(!ready.is_over());
    }

    #[test]
    fn startup_and_liveness_probes_end_with_their_verdict() {
        let mut started = tracker(Kind::Startup, json!({"failureThreshold": 3}));
        assert_eq!((started.attempt(false), started.attempt(false), started.is_over()), (None, None, false));
        assert_eq!((started.attempt(true), started.is_over()), (Some(Verdict::Success), true));
        let mut lives = tracker(Kind::Liveness, json!({}));
        let bad: Vec<_> = (0..3).map(|_| lives.attempt(false)).collect();
        assert_eq!((bad, lives.is_over()), (vec![None, None, Some(Verdict::Failure)], true));
    }

    #[test]
    fn the_defaults_are_those_of_kubernetes() {
        let t = tracker(Kind::Liveness, json!({"initialDelaySeconds": 5}));
        assert_eq!((t.delay().as_secs(), t.period().as_secs(), t.timeout().as_secs()), (5, 10, 1));
    }
}
