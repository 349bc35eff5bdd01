//! Which copies of the data acknowledge commits, decided purely.
//!
//! What the Lease records is what a failover counts on. So it is changed before the server counts on more, and after the server
//! counts on less: at every moment the record covers whoever could acknowledge. And whoever is recorded alone has everything that
//! was acknowledged before: one of those that stay has caught up before another is recorded no more.

use crate::api::v1alpha1::Durability;
use crate::leadership::Synchronous;
use crate::lsn::Lsn;
use std::collections::{BTreeMap, BTreeSet};

/// The next step towards the set that should acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is as it should be.
    None,
    /// Write this into the Lease.
    Record(Synchronous),
    /// Configure the server so, and make sure that it took effect.
    Apply(Synchronous),
    /// Wait until one of these has what was acknowledged before.
    CatchUp(Synchronous),
}

/// What is known when it is decided.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// What an acknowledged commit means.
    pub durability: Durability,
    /// How many instances there should be.
    pub instances: i32,
    /// What the Lease records.
    pub recorded: &'a Synchronous,
    /// What the server may go by.
    pub effective: &'a Synchronous,
    /// The copies that are connected, or were until a moment ago, and do not leave.
    pub present: &'a BTreeSet<String>,
    /// Copies that are about to be replaced.
    pub leaving: &'a BTreeSet<String>,
    /// Up to where the copies that are connected have the data.
    pub flushed: &'a BTreeMap<String, Lsn>,
    /// Up to where the primary had it when it began to go by [`Situation::effective`]: others may have acknowledged what is before.
    pub since: Lsn,
}

/// Decides the next step.
pub fn decide(situation: &Situation<'_>) -> Change {
    let wanted = wanted(situation);
    let settled = *situation.effective == wanted;
    let record = if settled { wanted.clone() } else { situation.effective.during(&wanted) };
    if *situation.recorded != record {
        return if may_be_recorded(situation, &record) {
            Change::Record(record)
        } else {
            Change::CatchUp(record)
        };
    }
    if settled { Change::None } else { Change::Apply(wanted) }
}

/// Whether one of a set has everything that was acknowledged until now, or it does not promise so.
fn may_be_recorded(situation: &Situation<'_>, next: &Synchronous) -> bool {
    // By these nobody is elected without the primary's own copy, or it is said that commits may be lost.
    if next.quorum == 0 || next.clones.is_empty() {
        return true;
    }
    let recorded = situation.recorded;
    let has_one = recorded.quorum > 0 && !recorded.clones.is_empty();
    let has_everything =
        |clone: &String| situation.flushed.get(clone).is_some_and(|flushed| *flushed >= situation.since);
    (has_one && recorded.clones.is_subset(&next.clones)) || next.clones.iter().any(has_everything)
}

fn wanted(situation: &Situation<'_>) -> Synchronous {
    let present = situation.present.clone();
    if !present.is_empty() {
        return Synchronous { quorum: 1, clones: present };
    }
    if situation.instances > 1 && situation.durability == Durability::Required {
        // Commits wait until one of them is back.
        let clones = situation.recorded.clones.difference(situation.leaving).cloned().collect();
        return Synchronous { quorum: 1, clones };
    }
    Synchronous::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(quorum: usize, clones: &[&str]) -> Synchronous {
        Synchronous { quorum, clones: names(clones) }
    }

    fn names(clones: &[&str]) -> BTreeSet<String> {
        clones.iter().map(|&clone| clone.to_owned()).collect()
    }

    /// Every step on the way, until nothing is left to do.
    fn steps(durability: Durability, instances: i32, from: &Synchronous, present: &[&str]) -> Vec<Change> {
        let (mut recorded, mut effective) = (from.clone(), from.clone());
        let present = names(present);
        let mut steps = Vec::new();
        loop {
            let recorded_now = recorded.clone();
            let now = Situation {
                durability,
                instances,
                recorded: &recorded_now,
                effective: &effective,
                present: &present,
                leaving: &BTreeSet::new(),
                flushed: &present.iter().map(|clone| (clone.clone(), Lsn(7))).collect(),
                since: Lsn(7),
            };
            match decide(&now) {
                Change::None => return steps,
                Change::CatchUp(set) => panic!("{set:?} has everything"),
                Change::Record(set) => {
                    steps.push(Change::Record(set.clone()));
                    recorded = set;
                }
                Change::Apply(set) => {
                    // Whoever the server goes by is recorded.
                    assert!(set.clones.is_subset(&recorded.clones) && recorded.quorum <= set.quorum);
                    steps.push(Change::Apply(set.clone()));
                    effective = set;
                }
            }
            assert!(steps.len() < 9, "{steps:?}");
        }
    }

    #[test]
    fn a_new_replica_is_recorded_before_it_counts() {
        let found = steps(Durability::Required, 3, &set(1, &["a"]), &["a", "b"]);
        assert_eq!(found, [Change::Record(set(1, &["a", "b"])), Change::Apply(set(1, &["a", "b"]))]);
    }

    #[test]
    fn one_that_left_counts_no_more_before_that_is_recorded() {
        let found = steps(Durability::Required, 3, &set(1, &["a", "b"]), &["a"]);
        assert_eq!(found, [Change::Apply(set(1, &["a"])), Change::Record(set(1, &["a"]))]);
    }

    #[test]
    fn one_that_takes_the_place_of_another_is_recorded_beside_it_first() {
        let found = steps(Durability::Required, 2, &set(1, &["a"]), &["b"]);
        let both = set(1, &["a", "b"]);
        assert_eq!(
            found,
            [Change::Record(both), Change::Apply(set(1, &["b"])), Change::Record(set(1, &["b"]))]
        );
    }

    #[test]
    fn required_waits_for_the_last_one_and_preferred_does_not() {
        assert!(steps(Durability::Required, 2, &set(1, &["a"]), &[]).is_empty());
        let found = steps(Durability::Preferred, 2, &set(1, &["a"]), &[]);
        assert_eq!(
            found,
            [Change::Record(set(0, &["a"])), Change::Apply(set(0, &[])), Change::Record(set(0, &[]))]
        );
    }

    #[test]
    fn a_single_instance_acknowledges_by_itself() {
        assert!(steps(Durability::Required, 1, &set(0, &[]), &[]).is_empty());
        assert!(!steps(Durability::Required, 1, &set(1, &["a"]), &[]).is_empty());
    }
}
