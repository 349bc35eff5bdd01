//! Failover, decided purely: whether the holder of the Lease is lost, and who follows it.
//!
//! 1. A holder is lost when the end of its container is reported, or when it has not renewed the Lease for its whole duration by
//!    the operator's own clock. Its agent stops the server before that. Some time before, the Lease says that it is late: an API server
//!    that was away and is back has then answered the operator, and the holder had its chance to renew.
//! 2. The Lease is vacated: a new epoch, in which nobody is primary. Replicas record the epoch, take no more data of an earlier
//!    one, and answer where their data ends.
//! 3. When enough of those that acknowledged commits have answered, one of them has everything that was acknowledged: the one
//!    whose data reaches furthest. It becomes the holder.

use crate::api::v1alpha1::{Durability, SampleDBInstanceStatus};
use crate::leadership::{Holder, Leadership, Position, Synchronous};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an election waits for an instance that it would rather have, or for more answers where none are enough.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What is known when it is decided.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// What the Lease says.
    pub leadership: &'a Leadership,
    /// For how long it has not changed.
    pub unchanged_for: Duration,
    /// How long a holder that does not renew it keeps it.
    pub lease_duration: Duration,
    /// Whether the end of the holder's container, or of the previous holder's if there is none, is reported.
    pub end_is_reported: bool,
    /// What an acknowledged commit means.
    pub durability: Durability,
    /// What the agents report, by the names of their instances.
    pub reports: Vec<(&'a str, &'a SampleDBInstanceStatus)>,
    /// Instances that may not become primary.
    pub barred: BTreeSet<&'a str>,
    /// Instances that are about to end, of which none becomes primary if another has as much.
    pub draining: BTreeSet<&'a str>,
}

/// What to do about the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The holder keeps it. If nothing changes, decide again after this time.
    Keep(Duration),
    /// The holder is late: it is warned.
    Warn(Leadership),
    /// It is taken from the holder.
    Vacate {
        /// The Lease.
        leadership: Leadership,
        /// Why.
        why: Lost,
    },
    /// There is no holder, and somebody must be waited for.
    Wait {
        /// What for.
        why: String,
        /// Decide again after this time, whatever happens.
        again: Option<Duration>,
    },
    /// Somebody becomes the holder.
    Elect {
        /// The Lease.
        leadership: Leadership,
        /// Who.
        instance: String,
        /// Whether commits may have been acknowledged that the new primary does not have.
        may_lose: bool,
    },
}

/// Why a holder lost the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The end of its container is reported.
    Ended,
    /// It did not renew the Lease.
    Expired,
}

/// Decides about a Lease.
pub fn decide(situation: &Situation<'_>) -> Decision {
    match &situation.leadership.holder {
        Some(holder) => watch_over(situation, holder),
        None => elect(situation),
    }
}

fn watch_over(situation: &Situation<'_>, holder: &Holder) -> Decision {
    let leadership = situation.leadership;
    // The warning is a change, from which the rest of the time counts.
    let grace = situation.lease_duration * 2 / 5;
    let limit = if leadership.late { grace } else { situation.lease_duration.saturating_sub(grace) };
    let left = limit.saturating_sub(situation.unchanged_for);
    let successors = situation.reports.iter().any(|(name, report)| {
        *name != holder.instance && report.clone.is_some() && !situation.barred.contains(name)
    });
    // Without data there is nothing to take over; without others nobody could.
    if leadership.system_identifier.is_none() || !successors {
        return Decision::Keep(situation.lease_duration);
    }
    if holder.run.is_some() && situation.end_is_reported {
        return Decision::Vacate { leadership: leadership.vacated(true), why: Lost::Ended };
    }
    if left.is_zero() && !leadership.late {
        return Decision::Warn(Leadership { late: true, ..leadership.clone() });
    }
    if left.is_zero() {
        return Decision::Vacate { leadership: leadership.vacated(true), why: Lost::Expired };
    }
    Decision::Keep(left)
}

/// One that can be elected.
struct Candidate<'a> {
    instance: &'a str,
    clone: &'a str,
    at: Position,
}

fn elect(situation: &Situation<'_>) -> Decision {
    let leadership = situation.leadership;
    let age = situation.unchanged_for;
    let stopped = leadership.previous_stopped
        || situation.end_is_reported
        || age >= situation.lease_duration
        || leadership.previous.is_none();
    if !stopped {
        let why = "the previous primary may still run".to_owned();
        return Decision::Wait { why, again: Some(situation.lease_duration.saturating_sub(age)) };
    }
    let answers: Vec<Candidate<'_>> =
        situation.reports.iter().filter_map(|(name, report)| answer(leadership, name, report)).collect();
    let previous = leadership.previous.as_ref().and_then(|holder| holder.clone.as_deref());
    let synchronous = &leadership.synchronous;
    let has_everything = |one: &&Candidate<'_>| previous == Some(one.clone);
    let counts = |one: &&Candidate<'_>| has_everything(one) || synchronous.clones.contains(one.clone);
    let voters = answers.iter().filter(|one| synchronous.clones.contains(one.clone)).count();
    let enough = answers.iter().any(|one| has_everything(&one))
        || synchronous.needed().is_some_and(|needed| voters >= needed);
    let may_be = |one: &&Candidate<'_>| !situation.barred.contains(one.instance);
    let candidates: Vec<&Candidate<'_>> = match enough {
        true => answers.iter().filter(counts).filter(may_be).collect(),
        // The primary alone acknowledged: whoever is there is as good as it gets.
        false if synchronous.quorum == 0 && age >= PATIENCE => answers.iter().filter(may_be).collect(),
        false => {
            let again = (synchronous.quorum == 0).then(|| PATIENCE.saturating_sub(age));
            return Decision::Wait { why: awaited(situation, voters), again };
        }
    };
    let preferred = leadership.switchover_to.as_deref();
    let best = candidates.iter().map(|one| one.at).max();
    let best: Vec<&Candidate<'_>> =
        candidates.into_iter().filter(|candidate| Some(candidate.at) == best).collect();
    let rank = |one: &&&Candidate<'_>| {
        (preferred != Some(one.instance), situation.draining.contains(one.instance), one.instance.to_owned())
    };
    let Some(first) = best.iter().min_by_key(rank) else {
        let why = "no instance may become primary".to_owned();
        return Decision::Wait { why, again: None };
    };
    if preferred.is_some_and(|name| name != first.instance) && age < PATIENCE {
        let why = format!("{} is to become primary", preferred.unwrap_or_default());
        return Decision::Wait { why, again: Some(PATIENCE - age) };
    }
    // Those that have everything too: of any other it is not known that it has what was acknowledged. The primary records one
    // when it has caught up.
    let others: BTreeSet<String> = answers
        .iter()
        .filter(|one| one.instance != first.instance && one.at == first.at)
        .map(|one| one.clone.to_owned())
        .collect();
    let quorum = usize::from(situation.durability == Durability::Required || !others.is_empty());
    let mut next = leadership.clone();
    next.holder = Some(Holder {
        instance: first.instance.to_owned(),
        clone: Some(first.clone.to_owned()),
        ..Holder::default()
    });
    next.synchronous = Synchronous { quorum, clones: others };
    next.leaving.clear();
    next.fork = Some(first.at);
    next.switchover_to = None;
    Decision::Elect { leadership: next, instance: first.instance.to_owned(), may_lose: !enough }
}

/// Where an instance's data ends, if it answered for this epoch.
fn answer<'a>(
    leadership: &Leadership,
    instance: &'a str,
    report: &'a SampleDBInstanceStatus,
) -> Option<Candidate<'a>> {
    let of_this_database =
        leadership.system_identifier.is_some() && report.system_identifier == leadership.system_identifier;
    let flushed = report.flushed.filter(|_| of_this_database && report.epoch == leadership.epoch)?;
    let at = Position { timeline: report.timeline, flushed };
    Some(Candidate { instance, clone: report.clone.as_deref()?, at })
}

fn awaited(situation: &Situation<'_>, voters: usize) -> String {
    let synchronous = &situation.leadership.synchronous;
    match synchronous.needed() {
        Some(needed) => format!(
            "{voters} of {} replicas that may have the last commit have answered, {needed} are needed",
            synchronous.clones.len()
        ),
        None => "replicas are asked how much they have".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsn::Lsn;

    const TEN: Duration = Duration::from_secs(10);

    fn holder(instance: &str, clone: &str) -> Holder {
        Holder {
            instance: instance.to_owned(),
            clone: Some(clone.to_owned()),
            pod_uid: None,
            run: Some("run".to_owned()),
        }
    }

    fn held() -> Leadership {
        Leadership {
            epoch: 4,
            holder: Some(holder("db-0", "a")),
            system_identifier: Some("7".to_owned()),
            synchronous: Synchronous { quorum: 1, clones: ["b".to_owned(), "c".to_owned()].into() },
            ..Leadership::default()
        }
    }

    fn report(clone: &str, epoch: i32, timeline: u32, flushed: u64) -> SampleDBInstanceStatus {
        SampleDBInstanceStatus {
            clone: Some(clone.to_owned()),
            system_identifier: Some("7".to_owned()),
            epoch,
            timeline,
            flushed: Some(Lsn(flushed)),
            ..Default::default()
        }
    }

    fn situation<'a>(
        leadership: &'a Leadership,
        reports: &'a [(&'a str, SampleDBInstanceStatus)],
    ) -> Situation<'a> {
        Situation {
            leadership,
            unchanged_for: Duration::from_secs(1),
            lease_duration: TEN,
            end_is_reported: false,
            durability: Durability::Required,
            reports: reports.iter().map(|(name, report)| (*name, report)).collect(),
            barred: BTreeSet::new(),
            draining: BTreeSet::new(),
        }
    }

    fn elected(decision: Decision) -> (String, bool) {
        match decision {
            Decision::Elect { instance, may_lose, .. } => (instance, may_lose),
            other => panic!("nobody is elected: {other:?}"),
        }
    }

    #[test]
    fn a_holder_is_lost_when_its_end_is_reported_or_its_lease_expires() {
        let (leadership, reports) = (held(), [("db-1", report("b", 4, 1, 0))]);
        let mut now = situation(&leadership, &reports);
        assert_eq!(decide(&now), Decision::Keep(Duration::from_secs(5)));
        now.end_is_reported = true;
        assert!(matches!(decide(&now), Decision::Vacate { why: Lost::Ended, .. }));
        now.end_is_reported = false;
        // However long it was: whoever was away is warned first.
        now.unchanged_for = TEN * 9;
        let Decision::Warn(late) = decide(&now) else { panic!() };
        let mut now = situation(&late, &reports);
        assert_eq!(decide(&now), Decision::Keep(Duration::from_secs(3)));
        now.unchanged_for = Duration::from_secs(4);
        let Decision::Vacate { leadership: next, why: Lost::Expired } = decide(&now) else { panic!() };
        assert_eq!((next.epoch, next.holder, next.previous), (5, None, Some(holder("db-0", "a"))));
    }

    #[test]
    fn a_single_instance_keeps_the_lease() {
        let (leadership, reports) = (held(), [("db-0", report("a", 4, 1, 0))]);
        let now =
            Situation { unchanged_for: TEN * 9, end_is_reported: true, ..situation(&leadership, &reports) };
        assert!(matches!(decide(&now), Decision::Keep(_)));
    }

    #[test]
    fn with_two_replicas_of_which_one_acknowledges_both_must_answer() {
        let leadership = held().vacated(true);
        let one = [("db-1", report("b", 5, 1, 10))];
        assert!(matches!(decide(&situation(&leadership, &one)), Decision::Wait { .. }));
        let late = [("db-1", report("b", 5, 1, 10)), ("db-2", report("c", 4, 1, 20))];
        assert!(matches!(decide(&situation(&leadership, &late)), Decision::Wait { .. }));
        let both = [("db-1", report("b", 5, 1, 10)), ("db-2", report("c", 5, 1, 20))];
        let Decision::Elect { leadership: next, instance, may_lose } = decide(&situation(&leadership, &both))
        else {
            panic!()
        };
        assert_eq!((instance.as_str(), may_lose), ("db-2", false));
        // The other has not everything yet.
        assert_eq!(next.synchronous, Synchronous { quorum: 1, clones: BTreeSet::new() });
        let equal = [("db-1", report("b", 5, 1, 20)), ("db-2", report("c", 5, 1, 20))];
        let Decision::Elect { leadership: beside, .. } = decide(&situation(&leadership, &equal)) else {
            panic!()
        };
        assert_eq!(beside.synchronous, Synchronous { quorum: 1, clones: ["c".to_owned()].into() });
        assert_eq!(next.fork, Some(Position { timeline: 1, flushed: Lsn(20) }));
        assert_eq!(next.epoch, 5);
    }

    #[test]
    fn the_later_timeline_wins_over_more_data() {
        let leadership = held().vacated(true);
        let both = [("db-1", report("b", 5, 2, 10)), ("db-2", report("c", 5, 1, 20))];
        assert_eq!(elected(decide(&situation(&leadership, &both))).0, "db-1");
    }

    #[test]
    fn the_previous_primary_has_everything() {
        let leadership = held().vacated(true);
        let back = [("db-0", report("a", 5, 1, 30))];
        assert_eq!(elected(decide(&situation(&leadership, &back))), ("db-0".to_owned(), false));
        // With another volume it has nothing.
        let empty = [("db-0", report("z", 5, 1, 30))];
        assert!(matches!(decide(&situation(&leadership, &empty)), Decision::Wait { .. }));
    }

    #[test]
    fn one_with_upgraded_data_that_was_late_to_take_the_lease_is_elected_all_the_same() {
        let given = held().with_data_of("db-0", "x", "8", 1);
        let old = [("db-1", report("b", 4, 1, 90))];
        let Decision::Warn(late) = decide(&Situation { unchanged_for: TEN, ..situation(&given, &old) })
        else {
            panic!()
        };
        let expired = Situation { unchanged_for: TEN, ..situation(&late, &old) };
        let Decision::Vacate { leadership, .. } = decide(&expired) else { panic!() };
        assert!(matches!(decide(&situation(&leadership, &old)), Decision::Wait { .. }));
        let mut upgraded = report("x", leadership.epoch, 1, 10);
        upgraded.system_identifier = Some("8".to_owned());
        let reports = [("db-0", upgraded), ("db-1", report("b", leadership.epoch, 1, 90))];
        assert_eq!(elected(decide(&situation(&leadership, &reports))), ("db-0".to_owned(), false));
    }

    #[test]
    fn clones_that_never_acknowledged_and_foreign_data_do_not_count() {
        let leadership = held().vacated(true);
        let mut foreign = report("b", 5, 1, 10);
        foreign.system_identifier = Some("8".to_owned());
        let reports = [("db-1", foreign), ("db-2", report("c", 5, 1, 20)), ("db-3", report("new", 5, 1, 90))];
        assert!(matches!(decide(&situation(&leadership, &reports)), Decision::Wait { .. }));
    }

    #[test]
    fn without_acknowledging_replicas_the_best_is_taken_after_a_while_and_it_is_said() {
        let mut leadership = held().vacated(true);
        leadership.synchronous = Synchronous::default();
        let reports = [("db-1", report("b", 5, 1, 10))];
        let mut now = situation(&leadership, &reports);
        assert!(matches!(decide(&now), Decision::Wait { again: Some(_), .. }));
        now.unchanged_for = PATIENCE;
        assert_eq!(elected(decide(&now)), ("db-1".to_owned(), true));
    }

    #[test]
    fn one_that_may_still_run_is_waited_out() {
        let leadership = held().vacated(false);
        let both = [("db-1", report("b", 5, 1, 10)), ("db-2", report("c", 5, 1, 20))];
        let mut now = situation(&leadership, &both);
        assert!(matches!(decide(&now), Decision::Wait { again: Some(_), .. }));
        now.unchanged_for = TEN;
        assert_eq!(elected(decide(&now)).0, "db-2");
    }

    #[test]
    fn a_switchover_prefers_its_target_and_does_not_wait_for_ever() {
        let mut leadership = held().vacated(true);
        leadership.switchover_to = Some("db-2".to_owned());
        let equal = [("db-1", report("b", 5, 1, 20)), ("db-2", report("c", 5, 1, 20))];
        assert_eq!(elected(decide(&situation(&leadership, &equal))).0, "db-2");
        let behind = [("db-1", report("b", 5, 1, 20)), ("db-2", report("c", 5, 1, 10))];
        let mut now = situation(&leadership, &behind);
        assert!(matches!(decide(&now), Decision::Wait { .. }));
        now.unchanged_for = PATIENCE;
        assert_eq!(elected(decide(&now)).0, "db-1");
    }

    #[test]
    fn one_that_is_about_to_end_is_elected_only_if_it_has_more() {
        let leadership = held().vacated(true);
        let elected_of = |first: u64| {
            let both = [("db-1", report("b", 5, 1, first)), ("db-2", report("c", 5, 1, 20))];
            let now = Situation { draining: ["db-1"].into(), ..situation(&leadership, &both) };
            elected(decide(&now)).0
        };
        assert_eq!((elected_of(20), elected_of(30)), ("db-2".to_owned(), "db-1".to_owned()));
    }

    #[test]
    fn with_required_durability_nothing_is_acknowledged_alone() {
        let mut leadership = held().vacated(true);
        leadership.synchronous = Synchronous { quorum: 1, clones: ["b".to_owned()].into() };
        let reports = [("db-1", report("b", 5, 1, 10))];
        let Decision::Elect { leadership: next, .. } = decide(&situation(&leadership, &reports)) else {
            panic!()
        };
        assert_eq!(next.synchronous, Synchronous { quorum: 1, clones: BTreeSet::new() });
    }

    /// Whatever commits were acknowledged under the recorded set, the elected instance has them: tried for all small cases.
    #[test]
    fn no_acknowledged_commit_is_ever_lost() {
        let names = ["db-1", "db-2", "db-3"];
        let clones = ["b", "c", "d"];
        for quorum in 1..=3_usize {
            for flushed in 0..64_u64 {
                let at = |index: usize| flushed >> (2 * index) & 3;
                // The last commit that `quorum` of them have.
                let mut sorted: Vec<u64> = (0..3).map(at).collect();
                sorted.sort_unstable();
                let acknowledged = sorted[3 - quorum];
                for answering in 0..8_u32 {
                    let mut leadership = held().vacated(true);
                    let set = clones.iter().map(|&clone| clone.to_owned()).collect();
                    leadership.synchronous = Synchronous { quorum, clones: set };
                    let reports: Vec<_> = (0..3)
                        .filter(|index| answering >> index & 1 == 1)
                        .map(|index| (names[index], report(clones[index], 5, 1, at(index))))
                        .collect();
                    if let Decision::Elect { leadership: next, .. } =
                        decide(&situation(&leadership, &reports))
                    {
                        assert!(next.fork.unwrap().flushed.0 >= acknowledged, "{quorum} {reports:?}");
                    }
                }
            }
        }
    }
}
