//! Servers as logs of rows.

use crate::agent::sql::{Connected, State};
use crate::leadership::Synchronous;
use crate::lsn::Lsn;
use crate::timelines::Timelines;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row, and the timeline that it was written on.
type Entry = (u32, u64);

/// The data of one instance.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    pub(super) standby: bool,
    pub(super) timelines: Timelines,
    log: Vec<Entry>,
}

impl Data {
    pub(super) fn flushed(&self) -> Lsn {
        Lsn(self.log.len() as u64)
    }
}

/// A server that runs.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) follow: Option<String>,
    pub(super) effective: Synchronous,
    /// The parameters that it was started with.
    pub(super) parameters: BTreeMap<String, String>,
}

/// What is on the volume of an instance, and its server.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    pub(super) clone: String,
    pub(super) data: Option<Data>,
    pub(super) epoch: i32,
    pub(super) followed: i32,
    pub(super) server: Option<Server>,
}

impl Machine {
    fn is_primary(&self) -> bool {
        self.server.is_some() && self.data.as_ref().is_some_and(|data| !data.standby)
    }
}

#[derive(Debug, Default)]
struct Inner {
    machines: BTreeMap<String, Machine>,
    clones: u32,
    rows: u64,
    /// The rows whose writers were told that they are committed.
    acknowledged: BTreeSet<u64>,
}

/// All servers of a database.
#[derive(Debug, Clone, Default)]
pub(super) struct Servers(Arc<Mutex<Inner>>);

impl Servers {
    /// Changes, or reads, the machine of an instance.
    pub(super) fn with<T>(&self, instance: &str, act: impl FnOnce(&mut Machine) -> T) -> T {
        let mut inner = self.0.lock();
        if !inner.machines.contains_key(instance) {
            inner.clones += 1;
            let clone = format!("clone-{}", inner.clones);
            inner.machines.insert(instance.to_owned(), Machine { clone, ..Machine::default() });
        }
        act(inner.machines.get_mut(instance).expect("it was just inserted"))
    }

    /// Another identity for the data of an instance.
    fn renew_clone(inner: &mut Inner, instance: &str) {
        inner.clones += 1;
        let clone = format!("clone-{}", inner.clones);
        if let Some(machine) = inner.machines.get_mut(instance) {
            machine.clone = clone;
        }
    }

    /// Replicas receive what their primaries have.
    fn replicate(inner: &mut Inner) {
        let primaries: BTreeMap<String, Data> = inner
            .machines
            .iter()
            .filter(|(_, machine)| machine.is_primary())
            .filter_map(|(name, machine)| Some((name.clone(), machine.data.clone()?)))
            .collect();
        for machine in inner.machines.values_mut() {
            let (Some(server), Some(data)) = (&machine.server, &mut machine.data) else { continue };
            let Some(source) = server.follow.as_ref().and_then(|name| primaries.get(name)) else { continue };
            if data.standby && source.log.starts_with(&data.log) {
                data.log.clone_from(&source.log);
                data.timelines.clone_from(&source.timelines);
            }
        }
    }

    fn streams(inner: &Inner, instance: &str) -> bool {
        let Some(machine) = inner.machines.get(instance) else { return false };
        let follow = machine.server.as_ref().and_then(|server| server.follow.as_ref());
        let source = follow.and_then(|name| inner.machines.get(name)).filter(|source| source.is_primary());
        let log = |machine: &Machine| machine.data.as_ref().map(|data| data.log.clone()).unwrap_or_default();
        source.is_some_and(|source| log(source).starts_with(&log(machine)))
    }

    /// How the server of an instance is, if it runs.
    pub(super) fn state(&self, instance: &str) -> Option<State> {
        let mut inner = self.0.lock();
        Self::replicate(&mut inner);
        let streams = Self::streams(&inner, instance);
        let machine = inner.machines.get(instance)?;
        let (server, data) = (machine.server.as_ref()?, machine.data.as_ref()?);
        Some(State {
            in_recovery: data.standby,
            receives: data.standby && server.follow.is_some(),
            streams: data.standby && streams,
            replayed: true,
            flushed: data.flushed(),
            version: "15".to_owned(),
        })
    }

    /// The replicas that are connected to a primary.
    pub(super) fn replicas(&self, primary: &str) -> Vec<Connected> {
        let mut inner = self.0.lock();
        Self::replicate(&mut inner);
        let effective = inner.machines.get(primary).and_then(|machine| machine.server.as_ref());
        let Some(effective) = effective.map(|server| server.effective.clone()) else { return Vec::new() };
        let follows = |machine: &Machine| {
            machine.server.as_ref().is_some_and(|server| server.follow.as_deref() == Some(primary))
        };
        let replicas =
            inner.machines.iter().filter(|(name, machine)| follows(machine) && Self::streams(&inner, name));
        replicas
            .filter_map(|(_, machine)| {
                Some(Connected {
                    clone: machine.clone.clone(),
                    streams: true,
                    counts: effective.clones.contains(&machine.clone),
                    flushed: machine.data.as_ref()?.flushed(),
                })
            })
            .collect()
    }

    /// Copies the data of a primary, or takes away what it has not. Answers whether there is one.
    pub(super) fn copy(&self, instance: &str, from: &str, epoch: i32) -> bool {
        let mut inner = self.0.lock();
        let source = inner.machines.get(from).filter(|machine| machine.is_primary());
        let Some(source) = source.and_then(|machine| machine.data.clone()) else { return false };
        Self::renew_clone(&mut inner, instance);
        let Some(machine) = inner.machines.get_mut(instance) else { return false };
        machine.server = None;
        let common = machine.data.as_ref().map_or(source.log.len(), |own| {
            own.log.iter().zip(&source.log).take_while(|(one, other)| one == other).count()
        });
        let log = source.log[..common].to_vec();
        machine.data = Some(Data { standby: true, timelines: source.timelines, log });
        machine.epoch = machine.epoch.max(epoch);
        machine.followed = epoch;
        true
    }

    pub(super) fn initialize(&self, instance: &str) {
        self.with(instance, |machine| {
            machine.data = Some(Data { timelines: Timelines::only(1), ..Data::default() });
        });
    }

    pub(super) fn promote(&self, instance: &str) {
        self.with(instance, |machine| {
            let Some(data) = &mut machine.data else { return };
            data.standby = false;
            data.timelines = data.timelines.promoted_at(data.flushed());
            // What a promotion writes.
            data.log.push((data.timelines.last(), 0));
        });
    }

    /// Writes a row to whichever server takes it. Answers whether it is acknowledged.
    pub(super) fn commit(&self) -> bool {
        let mut inner = self.0.lock();
        let primaries: Vec<String> = inner
            .machines
            .iter()
            .filter(|(_, machine)| machine.is_primary())
            .map(|(name, _)| name.clone())
            .collect();
        let mut acknowledged = false;
        for primary in primaries {
            inner.rows += 1;
            let row = inner.rows;
            let machine = inner.machines.get_mut(&primary).expect("it is one of them");
            let Some(data) = &mut machine.data else { continue };
            data.log.push((data.timelines.last(), row));
            let end = data.flushed();
            let Some(set) = machine.server.as_ref().map(|server| server.effective.clone()) else { continue };
            Self::replicate(&mut inner);
            let has_it = |(name, machine): &(&String, &Machine)| {
                set.clones.contains(&machine.clone)
                    && Self::streams(&inner, name)
                    && machine.data.as_ref().is_some_and(|data| data.flushed() == end)
            };
            if inner.machines.iter().filter(has_it).count() >= set.quorum {
                inner.acknowledged.insert(row);
                acknowledged = true;
            }
        }
        acknowledged
    }

    /// The acknowledged rows that no primary has, and how many were acknowledged.
    pub(super) fn lost(&self) -> (Vec<u64>, usize) {
        let inner = self.0.lock();
        let primaries = inner.machines.values().filter(|machine| machine.is_primary());
        let there: BTreeSet<u64> = primaries
            .filter_map(|machine| machine.data.as_ref())
            .flat_map(|data| &data.log)
            .map(|(_, row)| *row)
            .collect();
        (inner.acknowledged.difference(&there).copied().collect(), inner.acknowledged.len())
    }
}
