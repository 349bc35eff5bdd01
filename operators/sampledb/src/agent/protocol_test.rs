//! Who acknowledges and who is elected, together: a model of servers lives through random histories, and whatever was acknowledged
//! is there after every election.

use super::synchronous::{self, Change};
use crate::api::v1alpha1::{Durability, SampleDBInstanceStatus};
use crate::election::{self, Decision};
use crate::leadership::{Holder, Leadership, Synchronous};
use crate::lsn::Lsn;
use crate::timelines::Timelines;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

const INSTANCES: usize = 3;

/// One instance's data.
#[derive(Debug, Clone)]
struct Copy {
    clone: String,
    flushed: u64,
    timelines: Timelines,
    connected: bool,
}

#[derive(Debug)]
struct Servers {
    copies: Vec<Copy>,
    primary: usize,
    lease: Leadership,
    effective: Synchronous,
    since: u64,
    acknowledged: u64,
    clones: u32,
}

impl Servers {
    fn new() -> Self {
        let copy = |number: usize| Copy {
            clone: format!("c{number}"),
            flushed: 0,
            timelines: Timelines::only(1),
            connected: false,
        };
        let mut lease = Leadership::first("db-0", 1);
        lease.system_identifier = Some("7".to_owned());
        let mut servers = Self {
            copies: (0..INSTANCES).map(copy).collect(),
            primary: 0,
            lease,
            effective: Synchronous { quorum: 1, clones: BTreeSet::new() },
            since: 0,
            acknowledged: 0,
            clones: 3,
        };
        servers.take();
        servers
    }

    fn take(&mut self) {
        self.lease.holder = Some(Holder {
            instance: format!("db-{}", self.primary),
            clone: Some(self.copies[self.primary].clone.clone()),
            pod_uid: None,
            run: Some("run".to_owned()),
        });
    }

    fn another_copy(&mut self, index: usize) {
        self.copies[index].clone = format!("c{}", self.clones);
        self.clones += 1;
    }

    fn live(&mut self, dice: &mut Dice) {
        let (head, timelines) =
            (self.copies[self.primary].flushed, self.copies[self.primary].timelines.clone());
        let index = usize::try_from(dice.below(INSTANCES as u64)).unwrap();
        if index == self.primary {
            self.copies[index].flushed += 1;
            return;
        }
        match dice.below(12) {
            0 => self.copies[index].connected = false,
            1..=3 => {
                let copy = &mut self.copies[index];
                (copy.connected, copy.timelines) = (true, timelines);
            }
            4 if dice.one_of(4) => {
                // It has to be copied anew, as a step of the agent decides it.
                let clone = self.copies[index].clone.clone();
                if self.lease.synchronous.clones.contains(&clone) {
                    self.lease = self.lease.left_by(&clone).unwrap_or_else(|| self.lease.clone());
                } else {
                    self.another_copy(index);
                    let copy = &mut self.copies[index];
                    (copy.flushed, copy.connected, copy.timelines) = (dice.below(head + 1), false, timelines);
                }
            }
            _ if self.copies[index].connected => {
                let more = dice.below(3);
                self.copies[index].flushed = head.min(self.copies[index].flushed + more);
            }
            _ => {}
        }
        // What the server acknowledges.
        let counted =
            self.copies.iter().filter(|copy| copy.connected && self.effective.clones.contains(&copy.clone));
        self.acknowledged = self.acknowledged.max(counted.map(|copy| copy.flushed).max().unwrap_or(0));
    }

    fn keep_up(&mut self) {
        let connected: Vec<&Copy> = self.copies.iter().filter(|copy| copy.connected).collect();
        let leaving = &self.lease.leaving;
        let there = connected.iter().map(|copy| copy.clone.clone());
        let situation = synchronous::Situation {
            durability: Durability::Required,
            instances: 3,
            recorded: &self.lease.synchronous.clone(),
            effective: &self.effective.clone(),
            present: &there.filter(|clone| !leaving.contains(clone)).collect(),
            leaving: &leaving.clone(),
            flushed: &connected
                .iter()
                .map(|copy| (copy.clone.clone(), Lsn(copy.flushed)))
                .collect::<BTreeMap<_, _>>(),
            since: Lsn(self.since),
        };
        match synchronous::decide(&situation) {
            Change::None | Change::CatchUp(_) => {}
            Change::Record(set) => {
                self.lease = self.lease.recorded_by("run", &self.lease.synchronous, &set).unwrap();
            }
            Change::Apply(set) => {
                self.effective = set;
                self.since = self.copies[self.primary].flushed;
            }
        }
    }

    /// The primary ends, perhaps with its data. Some instances answer, or all.
    fn fail_over(&mut self, dice: &mut Dice) -> bool {
        let destroyed = dice.one_of(2);
        let before = self.primary;
        if destroyed {
            self.another_copy(before);
            self.copies[before].flushed = 0;
        }
        self.lease = self.lease.vacated(true);
        let epoch = self.lease.epoch;
        let names: Vec<String> = (0..INSTANCES).map(|index| format!("db-{index}")).collect();
        let all: Vec<(usize, SampleDBInstanceStatus)> = self
            .copies
            .iter()
            .enumerate()
            .filter(|(index, _)| !(destroyed && *index == before))
            .map(|(index, copy)| {
                let status = SampleDBInstanceStatus {
                    clone: Some(copy.clone.clone()),
                    system_identifier: Some("7".to_owned()),
                    epoch,
                    timeline: copy.timelines.at(Lsn(copy.flushed)),
                    flushed: Some(Lsn(copy.flushed)),
                    ..Default::default()
                };
                (index, status)
            })
            .collect();
        let some: Vec<usize> = all.iter().map(|(index, _)| *index).filter(|_| dice.one_of(2)).collect();
        let everyone: Vec<usize> = all.iter().map(|(index, _)| *index).collect();
        for answering in [some, everyone] {
            let reports = all.iter().filter(|(index, _)| answering.contains(index));
            let situation = election::Situation {
                leadership: &self.lease.clone(),
                unchanged_for: Duration::ZERO,
                lease_duration: Duration::from_secs(10),
                end_is_reported: true,
                durability: Durability::Required,
                reports: reports.map(|(index, status)| (names[*index].as_str(), status)).collect(),
                barred: BTreeSet::new(),
                draining: BTreeSet::new(),
            };
            if let Decision::Elect { leadership, instance, may_lose } = election::decide(&situation) {
                assert!(!may_lose);
                self.elect(leadership, names.iter().position(|name| *name == instance).unwrap());
                return true;
            }
        }
        // Only where the data of one that may have acknowledged alone is gone too.
        assert!(destroyed, "everyone has answered, and nobody is elected: {self:?}");
        let lost = self.lease.synchronous.clones.is_empty();
        assert!(lost, "the copies that acknowledge are there, and nobody is elected: {self:?}");
        false
    }

    fn elect(&mut self, leadership: Leadership, next: usize) {
        let fork = leadership.fork.unwrap().flushed.0;
        assert!(
            fork >= self.acknowledged,
            "{} was acknowledged, {fork} is there: {self:?}",
            self.acknowledged
        );
        self.lease = leadership;
        self.primary = next;
        self.take();
        let promoted = &mut self.copies[next];
        promoted.timelines = promoted.timelines.promoted_at(Lsn(fork));
        // What a promotion writes.
        promoted.flushed += 1;
        self.effective = self.lease.synchronous.clone();
        self.since = fork;
        for index in 0..INSTANCES {
            self.copies[index].connected = false;
            if index != next && self.copies[index].flushed > fork {
                self.copies[index].flushed = fork;
                self.another_copy(index);
            }
        }
    }
}

#[test]
fn whatever_was_acknowledged_is_there_after_every_election() {
    let mut elections = 0;
    for seed in 1..=3000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut servers = Servers::new();
        for _ in 0..400 {
            match dice.below(8) {
                0..=4 => servers.live(&mut dice),
                5 | 6 => servers.keep_up(),
                _ if dice.one_of(8) => {
                    if !servers.fail_over(&mut dice) {
                        break;
                    }
                    elections += 1;
                }
                _ => {}
            }
        }
    }
    assert!(elections > 5_000, "{elections}");
}
