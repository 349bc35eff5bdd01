//! How a container is stopped: its preStop hook, then its stop signal, then SIGKILL. Pure.

use super::backoff::later;
use super::pod_state::Hook;
use jiff::{SignedDuration, Timestamp};

/// The least time between the stop signal and SIGKILL, after a preStop hook.
const MIN_AFTER_HOOK: SignedDuration = SignedDuration::from_secs(2);
/// SIGKILL is sent again after this time: the process may have been in between two programs.
const KILL_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// A stop in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    /// From when the grace period counts.
    pub(crate) requested: Timestamp,
    /// The grace period.
    pub(crate) grace: SignedDuration,
    /// The progress of the preStop hook, if there is one.
    pub(crate) hook: Option<Hook>,
    /// When the stop signal was sent.
    pub(crate) signaled: Option<Timestamp>,
    /// When SIGKILL was sent.
    pub(crate) killed: Option<Timestamp>,
    /// Whether it is restarted, whatever the policy says.
    pub(crate) restart: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopStep {
    PreStopHook,
    Terminate,
    Kill,
    Wait(Timestamp),
}

impl Stop {
    pub(crate) fn new(requested: Timestamp, grace: SignedDuration, hook: bool) -> Self {
        Self {
            requested,
            grace,
            hook: hook.then_some(Hook::None),
            signaled: None,
            killed: None,
            restart: false,
        }
    }

    pub(crate) fn next(&self, now: Timestamp) -> StopStep {
        let deadline = later(self.requested, self.grace);
        if let Some(killed) = self.killed {
            let due = later(killed, KILL_INTERVAL);
            return if now >= due { StopStep::Kill } else { StopStep::Wait(due) };
        }
        let hooked = self.hook.is_some();
        match (self.signaled, self.hook) {
            (None, _) if self.grace.is_zero() => StopStep::Kill,
            (None, Some(Hook::None)) => StopStep::PreStopHook,
            (None, Some(Hook::Running)) if now < deadline => StopStep::Wait(deadline),
            (None, _) => StopStep::Terminate,
            (Some(signaled), _) => {
                let due = if hooked { deadline.max(later(signaled, MIN_AFTER_HOOK)) } else { deadline };
                if now >= due { StopStep::Kill } else { StopStep::Wait(due) }
            }
        }
    }

    /// Shortens the grace period, so that it ends at this time.
    pub(crate) fn shorten(&mut self, deadline: Timestamp) {
        let left = deadline.duration_since(self.requested).max(SignedDuration::ZERO);
        self.grace = self.grace.min(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    #[test]
    fn the_stop_signal_comes_before_sigkill() {
        let mut stop = Stop::new(at(0), SignedDuration::from_secs(30), false);
        assert_eq!(stop.next(at(0)), StopStep::Terminate);
        stop.signaled = Some(at(0));
        assert_eq!(stop.next(at(1)), StopStep::Wait(at(30)));
        assert_eq!(stop.next(at(30)), StopStep::Kill);
        stop.killed = Some(at(30));
        assert_eq!(stop.next(at(30)), StopStep::Wait(at(31)));
        assert_eq!(stop.next(at(31)), StopStep::Kill, "as often as it takes");
    }

    #[test]
    fn the_pre_stop_hook_is_part_of_the_grace_period() {
        let mut stop = Stop::new(at(0), SignedDuration::from_secs(10), true);
        assert_eq!(stop.next(at(0)), StopStep::PreStopHook);
        stop.hook = Some(Hook::Running);
        assert_eq!(stop.next(at(5)), StopStep::Wait(at(10)));
        assert_eq!(stop.next(at(10)), StopStep::Terminate, "it took too long");
        stop.signaled = Some(at(10));
        assert_eq!(stop.next(at(10)), StopStep::Wait(at(12)), "and something is left for the container");
        stop.signaled = None;
        stop.hook = Some(Hook::Failed);
        assert_eq!(stop.next(at(3)), StopStep::Terminate);
    }

    #[test]
    fn without_grace_nobody_is_asked_and_a_deletion_can_be_hastened() {
        assert_eq!(Stop::new(at(0), SignedDuration::ZERO, true).next(at(0)), StopStep::Kill);
        let mut stop = Stop::new(at(0), SignedDuration::from_secs(300), false);
        stop.signaled = Some(at(0));
        stop.shorten(at(20));
        assert_eq!(stop.next(at(20)), StopStep::Kill);
    }
}
