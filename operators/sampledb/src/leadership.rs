//! Who may take writes: what a database's Lease says.
//!
//! The Lease is the one object that decides it, and all of it changes by compare-and-swap. Its usual fields are for people and
//! for tools that know Leases; everything that the protocol needs is in one annotation.

use crate::lsn::Lsn;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass::clock::Timestamp;

/// The annotation of the Lease.
pub const ANNOTATION: &str = "db.windlass.dev/leadership";

/// What a Lease says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leadership {
    /// Rises whenever the right to be primary is taken from an instance. It is the Lease's `leaseTransitions`.
    #[serde(skip)]
    pub epoch: i32,
    /// Who may be primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Who could be, before this epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Holder>,
    /// Whether the previous holder's server has certainly stopped.
    #[serde(default)]
    pub previous_stopped: bool,
    /// Which copies of the data have what was acknowledged.
    #[serde(default)]
    pub synchronous: Synchronous,
    /// Copies of these that are about to be replaced: the primary stops counting on them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub leaving: BTreeSet<String>,
    /// Of the data: any other is of another database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// Where the holder's data ended when it was elected: whoever has more has to give it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Position>,
    /// The instance that the holder should hand over to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switchover_to: Option<String>,
    /// Whether the holder is late: it loses the Lease unless it renews it now. Its renewal takes this away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// An instance that may be primary, and which run of its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The instance.
    pub instance: String,
    /// Its copy of the data; none before there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<String>,
    /// The pod of the agent that took the Lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// The agent's run that took the Lease; none until it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// The copies of the data of which `quorum` have every acknowledged commit, beside the primary's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronous {
    /// How many have it; with 0, commits are acknowledged by the primary alone.
    pub quorum: usize,
    /// Of these.
    pub clones: BTreeSet<String>,
}

/// Where data ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The timeline.
    pub timeline: u32,
    /// How far it is written.
    pub flushed: Lsn,
}

impl Synchronous {
    /// What is safe to promise while one set becomes the other: whoever could have acknowledged counts.
    pub fn during(&self, next: &Self) -> Self {
        let clones = self.clones.union(&next.clones).cloned().collect();
        Self { quorum: self.quorum.min(next.quorum), clones }
    }

    /// How many answers of these clones make sure that one has everything acknowledged; none do if the primary alone
    /// acknowledges.
    pub fn needed(&self) -> Option<usize> {
        (self.quorum > 0).then(|| (self.clones.len() + 1).saturating_sub(self.quorum).max(1))
    }
}

/// The Lease is not as the operator or an agent writes it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the annotation {ANNOTATION} of Lease {lease} cannot be read: {why}")]
pub struct InvalidLease {
    lease: String,
    why: String,
}

impl Leadership {
    /// What it says.
    ///
    /// # Errors
    /// When its annotation is missing, or was changed by somebody else.
    pub fn of(lease: &Lease) -> Result<Self, InvalidLease> {
        let annotations = lease.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(ANNOTATION)).map_or("", String::as_str);
        let read: Result<Self, _> = serde_json::from_str(text);
        let mut leadership = read.map_err(|error| InvalidLease {
            lease: lease.metadata.name.clone().unwrap_or_default(),
            why: error.to_string(),
        })?;
        leadership.epoch = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
        Ok(leadership)
    }

    /// Writes it into a Lease.
    pub fn write(&self, lease: &mut Lease) {
        let spec = lease.spec.get_or_insert_default();
        spec.lease_transitions = Some(self.epoch);
        spec.holder_identity = self.holder.as_ref().map(|holder| holder.instance.clone());
        let text = serde_json::to_string(self).expect("strings, numbers and sets of them are JSON");
        lease.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), text);
    }

    /// The first: this instance is to make the database.
    pub fn first(instance: &str, quorum: usize) -> Self {
        Self {
            epoch: 1,
            holder: Some(Holder { instance: instance.to_owned(), ..Holder::default() }),
            synchronous: Synchronous { quorum, clones: BTreeSet::new() },
            ..Self::default()
        }
    }

    /// The next epoch, in which nobody may be primary yet.
    #[must_use]
    pub fn vacated(&self, stopped: bool) -> Self {
        let mut next = self.clone();
        next.epoch = self.epoch.saturating_add(1);
        if let Some(holder) = next.holder.take() {
            // One that was elected and never took the Lease wrote nothing: what it was elected from still stands.
            if holder.run.is_some() {
                next.previous = Some(holder);
            }
        }
        next.previous_stopped = stopped;
        next.late = false;
        next
    }

    /// With an instance's data in the place of all that was there: whatever others have is of another database, or older, from now on.
    #[must_use]
    pub fn with_data_of(&self, instance: &str, clone: &str, identifier: &str, quorum: usize) -> Self {
        let holder =
            Holder { instance: instance.to_owned(), clone: Some(clone.to_owned()), ..Holder::default() };
        Self {
            epoch: self.epoch.saturating_add(1),
            holder: Some(holder.clone()),
            // If it does not take the Lease in time, it can still be elected: its data has everything.
            previous: Some(holder),
            previous_stopped: true,
            synchronous: Synchronous { quorum, clones: BTreeSet::new() },
            system_identifier: Some(identifier.to_owned()),
            ..Self::default()
        }
    }

    /// The Lease taken by a run of an agent, if it was given to its instance and its copy of the data. Before there is any data, it
    /// is the instance's whatever copy it has.
    pub fn taken_by(&self, taker: &Holder) -> Option<Self> {
        let holder = self.holder.as_ref().filter(|holder| holder.instance == taker.instance)?;
        let its_own = self.system_identifier.is_none() || holder.clone == taker.clone;
        its_own.then(|| Self { holder: Some(taker.clone()), ..self.clone() })
    }

    /// The Lease given back by a run of an agent whose server does not run, if it is its own: it took it, or its instance has lost
    /// its data. Before the database is made nobody else could take over.
    pub fn released_by(&self, instance: &str, run: &str, has_data: bool) -> Option<Self> {
        let of_instance = self.holder.as_ref().is_some_and(|holder| holder.instance == instance);
        let its_own = of_instance && (self.is_held_by_run(run) || !has_data);
        // Without data this is another pod than the one that took it: that one may still run elsewhere.
        (its_own && self.system_identifier.is_some()).then(|| self.vacated(has_data))
    }

    /// With the request of one of the copies that acknowledge commits to be counted on no more.
    pub fn left_by(&self, clone: &str) -> Option<Self> {
        let mut next = self.clone();
        (self.synchronous.clones.contains(clone) && next.leaving.insert(clone.to_owned())).then_some(next)
    }

    /// With another set that acknowledges commits, recorded by the run that holds it if nobody changed the set `before`.
    pub fn recorded_by(&self, run: &str, before: &Synchronous, set: &Synchronous) -> Option<Self> {
        let mut next = self.clone();
        next.synchronous = set.clone();
        next.leaving.retain(|clone| set.clones.contains(clone));
        (self.is_held_by_run(run) && self.synchronous == *before).then_some(next)
    }

    /// Whether this run of an agent holds it.
    pub fn is_held_by_run(&self, run: &str) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.run.as_deref() == Some(run))
    }

    /// Whether this copy of an instance's data is the primary's.
    pub fn is_held_by(&self, instance: &str, clone: &str) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|holder| holder.instance == instance && holder.clone.as_deref() == Some(clone))
    }
}

/// A moment as Leases have it.
pub fn micro_time(at: Timestamp) -> MicroTime {
    MicroTime(at)
}

/// How long a holder that does not renew it keeps it.
pub fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(10);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(10).max(1))
}

/// Whether two versions of a Lease differ in more than their renewal.
pub fn differs(one: &Lease, other: &Lease) -> bool {
    let without_renewal = |lease: &Lease| {
        let spec = lease.spec.clone().map(|spec| LeaseSpec { renew_time: None, ..spec });
        (spec, lease.metadata.annotations.clone(), lease.metadata.deletion_timestamp.clone())
    };
    without_renewal(one) != without_renewal(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(quorum: usize, clones: &[&str]) -> Synchronous {
        Synchronous { quorum, clones: clones.iter().map(|&clone| clone.to_owned()).collect() }
    }

    #[test]
    fn a_lease_says_what_was_written() {
        let mut leadership = Leadership::first("db-0", 1).vacated(true);
        leadership.synchronous = set(1, &["a", "b"]);
        leadership.fork = Some(Position { timeline: 3, flushed: Lsn(77) });
        let mut lease = Lease::default();
        leadership.write(&mut lease);
        assert_eq!(Leadership::of(&lease).unwrap(), leadership);
        assert_eq!(lease.spec.as_ref().unwrap().lease_transitions, Some(2));
        assert!(Leadership::of(&Lease::default()).is_err());
    }

    #[test]
    fn a_renewal_makes_no_difference() {
        let mut lease = Lease::default();
        Leadership::first("db-0", 1).write(&mut lease);
        let mut renewed = lease.clone();
        renewed.spec.as_mut().unwrap().renew_time = Some(micro_time(Timestamp::UNIX_EPOCH));
        assert!(!differs(&lease, &renewed));
        Leadership::first("db-1", 1).write(&mut renewed);
        assert!(differs(&lease, &renewed));
    }

    #[test]
    fn enough_answers_always_meet_an_acknowledgement() {
        assert_eq!(set(1, &["a"]).needed(), Some(1));
        assert_eq!(set(1, &["a", "b"]).needed(), Some(2));
        assert_eq!(set(2, &["a", "b", "c"]).needed(), Some(2));
        assert_eq!(set(1, &[]).needed(), Some(1));
        assert_eq!(set(0, &["a"]).needed(), None);
    }

    #[test]
    fn while_a_set_changes_both_count() {
        assert_eq!(set(1, &["a", "b"]).during(&set(1, &["b", "c"])), set(1, &["a", "b", "c"]));
        assert_eq!(set(1, &["a"]).during(&set(0, &[])), set(0, &["a"]));
    }

    fn holder(instance: &str, clone: &str, run: Option<&str>) -> Holder {
        Holder {
            instance: instance.to_owned(),
            clone: Some(clone.to_owned()),
            run: run.map(str::to_owned),
            pod_uid: None,
        }
    }

    #[test]
    fn the_lease_is_taken_by_the_copy_that_it_was_given_to() {
        let first = Leadership::first("db-0", 1);
        assert!(first.taken_by(&holder("db-0", "any", Some("r"))).unwrap().is_held_by_run("r"));
        assert!(first.taken_by(&holder("db-1", "any", Some("r"))).is_none());
        let made = Leadership {
            holder: Some(holder("db-0", "a", None)),
            system_identifier: Some("7".to_owned()),
            ..first
        };
        assert!(made.taken_by(&holder("db-0", "a", Some("r"))).is_some());
        assert!(made.taken_by(&holder("db-0", "another", Some("r"))).is_none());
        assert!(Leadership::default().taken_by(&holder("db-0", "a", Some("r"))).is_none());
    }

    #[test]
    fn the_lease_is_given_back_by_whoever_took_it_or_lost_its_data() {
        let held = Leadership {
            epoch: 3,
            holder: Some(holder("db-0", "a", Some("r"))),
            system_identifier: Some("7".to_owned()),
            ..Leadership::default()
        };
        let released = held.released_by("db-0", "r", true).unwrap();
        assert_eq!((released.epoch, released.holder, released.previous_stopped), (4, None, true));
        assert!(held.released_by("db-0", "another", true).is_none());
        assert!(held.released_by("db-1", "another", false).is_none());
        // The pod before may still run.
        assert!(!held.released_by("db-0", "another", false).unwrap().previous_stopped);
        let unmade = Leadership { system_identifier: None, ..held };
        assert!(unmade.released_by("db-0", "r", true).is_none());
    }

    #[test]
    fn one_that_acknowledges_asks_to_leave_until_it_is_recorded_no_more() {
        let held = Leadership {
            holder: Some(holder("db-0", "a", Some("r"))),
            synchronous: set(1, &["b", "c"]),
            ..Leadership::default()
        };
        let leaving = held.left_by("b").unwrap();
        assert!(leaving.left_by("b").is_none() && leaving.left_by("another").is_none());
        assert!(leaving.recorded_by("r", &set(1, &["b"]), &set(1, &["c"])).is_none());
        assert!(leaving.recorded_by("another", &leaving.synchronous, &set(1, &["c"])).is_none());
        let left = leaving.recorded_by("r", &leaving.synchronous, &set(1, &["c"])).unwrap();
        assert_eq!((left.synchronous, left.leaving.is_empty()), (set(1, &["c"]), true));
    }

    #[test]
    fn one_who_never_took_the_lease_is_no_previous_holder() {
        let mut leadership = Leadership::first("db-0", 1);
        leadership.holder = Some(holder("db-0", "c", Some("r")));
        let mut vacant = leadership.vacated(true);
        assert_eq!(vacant.previous.as_ref().unwrap().instance, "db-0");
        vacant.holder = Some(holder("db-1", "c", None));
        assert_eq!(vacant.vacated(true).previous.unwrap().instance, "db-0");
    }
}
