//! How a container is stopped: its hook, then the signal that asks it, then the one that does not ask. Pure.

use super::backoff::later;
use super::known::Hook;
use jiff::{SignedDuration, Timestamp};

/// After a hook that took all its time, so much is left for the container itself.
const AT_LEAST: SignedDuration = SignedDuration::from_secs(2);
/// A signal that was sent and changed nothing is sent again after so long: the process may have been between two programs.
const AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// A stop under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    /// When it begins to count.
    pub(crate) asked: Timestamp,
    /// How long the container has.
    pub(crate) grace: SignedDuration,
    /// Whether there is a hook, and how far it is.
    pub(crate) hook: Option<Hook>,
    /// When it was asked to end.
    pub(crate) told: Option<Timestamp>,
    /// When it was killed.
    pub(crate) killed: Option<Timestamp>,
    /// Whether it is started again whatever the policy says.
    pub(crate) again: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Hook,
    Ask,
    Kill,
    Wait(Timestamp),
}

impl Stop {
    pub(crate) fn new(asked: Timestamp, grace: SignedDuration, hook: bool) -> Self {
        Self { asked, grace, hook: hook.then_some(Hook::None), told: None, killed: None, again: false }
    }

    pub(crate) fn next(&self, now: Timestamp) -> Next {
        let deadline = later(self.asked, self.grace);
        if let Some(killed) = self.killed {
            let due = later(killed, AGAIN);
            return if now >= due { Next::Kill } else { Next::Wait(due) };
        }
        let hooked = self.hook.is_some();
        match (self.told, self.hook) {
            (None, _) if self.grace.is_zero() => Next::Kill,
            (None, Some(Hook::None)) => Next::Hook,
            (None, Some(Hook::Running)) if now < deadline => Next::Wait(deadline),
            (None, _) => Next::Ask,
            (Some(told), _) => {
                let due = if hooked { deadline.max(later(told, AT_LEAST)) } else { deadline };
                if now >= due { Next::Kill } else { Next::Wait(due) }
            }
        }
    }

    /// It has no longer than until then: a deletion was hastened.
    pub(crate) fn hasten(&mut self, deadline: Timestamp) {
        let left = deadline.duration_since(self.asked).max(SignedDuration::ZERO);
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
    fn it_is_asked_and_then_killed() {
        let mut stop = Stop::new(at(0), SignedDuration::from_secs(30), false);
        assert_eq!(stop.next(at(0)), Next::Ask);
        stop.told = Some(at(0));
        assert_eq!(stop.next(at(1)), Next::Wait(at(30)));
        assert_eq!(stop.next(at(30)), Next::Kill);
        stop.killed = Some(at(30));
        assert_eq!(stop.next(at(30)), Next::Wait(at(31)));
        assert_eq!(stop.next(at(31)), Next::Kill, "as often as it takes");
    }

    #[test]
    fn a_hook_comes_first_and_takes_of_the_grace() {
        let mut stop = Stop::new(at(0), SignedDuration::from_secs(10), true);
        assert_eq!(stop.next(at(0)), Next::Hook);
        stop.hook = Some(Hook::Running);
        assert_eq!(stop.next(at(5)), Next::Wait(at(10)));
        assert_eq!(stop.next(at(10)), Next::Ask, "it took too long");
        stop.told = Some(at(10));
        assert_eq!(stop.next(at(10)), Next::Wait(at(12)), "and something is left for the container");
        stop.told = None;
        stop.hook = Some(Hook::Failed);
        assert_eq!(stop.next(at(3)), Next::Ask);
    }

    #[test]
    fn without_grace_nobody_is_asked_and_a_deletion_can_be_hastened() {
        assert_eq!(Stop::new(at(0), SignedDuration::ZERO, true).next(at(0)), Next::Kill);
        let mut stop = Stop::new(at(0), SignedDuration::from_secs(300), false);
        stop.told = Some(at(0));
        stop.hasten(at(20));
        assert_eq!(stop.next(at(20)), Next::Kill);
    }
}
