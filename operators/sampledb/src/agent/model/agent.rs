//! One agent around a model of its server.

use super::servers::{Server, Servers};
use crate::agent::kubernetes::{ApiError, Kubernetes};
use crate::agent::next::{self, Step, View};
use crate::agent::synchronous::{self, Change};
use crate::api::v1alpha1::{Durability, Role, SampleDBInstance, SampleDBInstanceStatus};
use crate::leadership::{self, Holder, Leadership};
use crate::lsn::Lsn;
use crate::settings::{Settings, renewal_period, trusted_for};
use k8s_openapi::api::coordination::v1::Lease;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use windlass::clock::{Clock, Moment};

/// How often it looks, whatever happens.
const TICK: Duration = Duration::from_millis(250);
/// The identifier of the database.
const IDENTIFIER: &str = "7";
/// The parameter of the model that only a restart changes.
const NEEDS_RESTART: &str = "shared_buffers";

/// The steps of all agents, in order: whose, and which. One that is repeated is there once.
pub(super) type Steps = Arc<Mutex<Vec<(String, String)>>>;

/// One run of an agent.
pub(super) struct Agent {
    settings: Settings,
    clock: Clock,
    kubernetes: Kubernetes,
    servers: Servers,
    steps: Steps,
    run: String,
    lease: watch::Receiver<Option<Arc<Lease>>>,
    instance: watch::Receiver<Option<Arc<SampleDBInstance>>>,
    restarted: Option<String>,
    /// Where the data was when the server began to go by its set.
    since: Lsn,
    renewed: Option<Moment>,
    trusted: Option<Moment>,
    reported: Option<SampleDBInstanceStatus>,
}

impl Agent {
    pub(super) fn new(
        settings: Settings,
        kubernetes: Kubernetes,
        clock: Clock,
        servers: Servers,
        run: String,
        steps: Steps,
    ) -> Self {
        let (lease, instance) = (kubernetes.watch_lease(), kubernetes.watch_instance());
        Self {
            settings,
            clock,
            kubernetes,
            servers,
            steps,
            run,
            lease,
            instance,
            restarted: None,
            since: Lsn(0),
            renewed: None,
            trusted: None,
            reported: None,
        }
    }

    /// Works until it is told to end; then the server is stopped, and the Lease given back.
    pub(super) async fn work(mut self, mut end: watch::Receiver<bool>) {
        while !*end.borrow_and_update() {
            // What fails is tried again.
            let _ = self.turn().await;
            tokio::select! {
                _ = end.changed() => {}
                _ = self.lease.changed() => {}
                _ = self.instance.changed() => {}
                () = self.clock.sleep(TICK) => {}
            }
        }
        self.stop();
        let has_data = self.servers.with(&self.settings.instance, |machine| machine.data.is_some());
        let _ = self.kubernetes.release_lease(&self.settings.instance, &self.run, has_data).await;
    }

    async fn turn(&mut self) -> Result<(), ApiError> {
        let lease = self.lease.borrow_and_update().clone();
        let instance = self.instance.borrow_and_update().clone();
        let leadership = lease.as_ref().and_then(|lease| Leadership::of(lease).ok());
        if let (Some(lease), Some(leadership)) = (&lease, &leadership) {
            self.keep_lease(lease, leadership, instance.as_deref()).await;
        }
        let name = self.settings.instance.clone();
        let state = self.servers.state(&name);
        let machine = self.servers.with(&name, |machine| machine.clone());
        let data = machine.data.as_ref().map(|data| next::Data {
            system_identifier: IDENTIFIER.to_owned(),
            standby: data.standby,
            timelines: data.timelines.clone(),
            floors: BTreeMap::new(),
        });
        let view = View {
            instance: &name,
            run: &self.run,
            clone: &machine.clone,
            leadership: leadership.as_ref(),
            spec: instance.as_ref().map(|instance| &instance.spec),
            data,
            server: state.map_or(next::Server::Stopped, next::Server::Running),
            epoch: machine.epoch,
            followed: machine.followed,
            settled: true,
            crashes: 0,
            cut_off: false,
            rewound: false,
            restarted: self.restarted.as_deref(),
            superseded: None,
        };
        let step = next::decide(&view);
        self.note(&step);
        let message = match self.carry_out(step, leadership.as_ref(), instance.as_deref()).await {
            Ok(message) => message,
            Err(error) => error.to_string(),
        };
        self.report(&message, leadership.as_ref(), instance.as_deref()).await
    }

    fn note(&self, step: &Step) {
        if let Step::Nothing(_) = step {
            return;
        }
        let noted = (self.settings.instance.clone(), format!("{step:?}"));
        let mut steps = self.steps.lock();
        if steps.iter().rfind(|(instance, _)| *instance == noted.0) != Some(&noted) {
            steps.push(noted);
        }
    }

    /// Renews the Lease, and ends a server that may not write any more: what the real agent's renewal and watchdog do.
    async fn keep_lease(
        &mut self,
        lease: &Lease,
        leadership: &Leadership,
        instance: Option<&SampleDBInstance>,
    ) {
        let now = self.clock.moment();
        if !leadership.is_held_by_run(&self.run) {
            (self.renewed, self.trusted) = (None, None);
            return;
        }
        let duration = leadership::duration(lease);
        let trusted = *self.trusted.get_or_insert(now + trusted_for(duration));
        if self.renewed.is_none_or(|at| now.since(at) >= renewal_period(duration)) {
            match self.kubernetes.renew_lease(&self.run).await {
                Ok(true) => (self.renewed, self.trusted) = (Some(now), Some(now + trusted_for(duration))),
                Ok(false) => {}
                Err(_) => {
                    let required = instance.is_some_and(|one| one.spec.durability == Durability::Required);
                    let set = &leadership.synchronous;
                    let replicas = self.servers.replicas(&self.settings.instance);
                    let counted =
                        replicas.iter().filter(|one| one.counts && set.clones.contains(&one.clone)).count();
                    if required && set.quorum > 0 && counted >= set.quorum {
                        self.trusted = Some(now + renewal_period(duration) * 3);
                    }
                }
            }
        }
        let alone = instance.is_some_and(|one| one.spec.instances <= 1);
        if now > trusted && self.trusted == Some(trusted) && !alone {
            self.stop();
        }
    }

    fn stop(&self) {
        self.servers.with(&self.settings.instance, |machine| machine.server = None);
    }

    async fn carry_out(
        &mut self,
        step: Step,
        leadership: Option<&Leadership>,
        instance: Option<&SampleDBInstance>,
    ) -> Result<String, ApiError> {
        let Some(leadership) = leadership else { return Ok(String::new()) };
        let name = self.settings.instance.clone();
        let clone = self.servers.with(&name, |machine| machine.clone.clone());
        match step {
            Step::Nothing(message) => {
                if message.is_empty() && self.servers.state(&name).is_some_and(|state| !state.in_recovery) {
                    self.keep_up_primary(leadership, instance).await?;
                }
                return Ok(message);
            }
            Step::Take => {
                let taker = Holder {
                    instance: name,
                    clone: Some(clone),
                    pod_uid: Some(self.settings.pod_uid.clone()),
                    run: Some(self.run.clone()),
                };
                self.kubernetes.take_lease(&taker).await?;
            }
            Step::Initialize | Step::Restore => self.servers.initialize(&name),
            Step::RecordIdentifier => drop(self.kubernetes.record_identifier(&self.run, IDENTIFIER).await?),
            Step::Clone(from) | Step::Rewind(from) => drop(self.servers.copy(&name, &from, leadership.epoch)),
            Step::RecordEpoch => self.servers.with(&name, |machine| machine.epoch = leadership.epoch),
            Step::RecordFollowed => self.servers.with(&name, |machine| machine.followed = leadership.epoch),
            Step::BecomeStandby => self.servers.with(&name, |machine| {
                machine.data.iter_mut().for_each(|data| data.standby = true);
            }),
            Step::Start { follow } => {
                let server = Server {
                    follow,
                    effective: leadership.synchronous.clone(),
                    parameters: instance.map(|one| one.spec.parameters.clone()).unwrap_or_default(),
                };
                self.restarted = instance.and_then(|one| one.spec.restart.clone());
                self.since = self.servers.with(&name, |machine| {
                    machine.server = Some(server);
                    machine.data.as_ref().map(super::servers::Data::flushed).unwrap_or_default()
                });
            }
            Step::Follow(follow) => self.servers.with(&name, |machine| {
                machine.server.iter_mut().for_each(|server| server.follow.clone_from(&follow));
            }),
            Step::Stop(_) | Step::Kill => self.stop(),
            Step::Promote => {
                let set = leadership.synchronous.clone();
                let as_expected = |now: &Leadership| now.is_held_by_run(&self.run) && now.synchronous == set;
                if self.kubernetes.renew_lease_if(as_expected).await? {
                    self.since = self.servers.with(&name, |machine| {
                        machine.server.iter_mut().for_each(|server| server.effective = set.clone());
                        machine.data.as_ref().map(super::servers::Data::flushed).unwrap_or_default()
                    });
                    self.servers.promote(&name);
                }
            }
            Step::Leave => drop(self.kubernetes.leave_lease(&clone).await?),
            Step::Release(_) | Step::HandOver(_) => {
                self.stop();
                let has_data = self.servers.with(&name, |machine| machine.data.is_some());
                self.kubernetes.release_lease(&name, &self.run, has_data).await?;
            }
            Step::Restart(token) => {
                self.stop();
                self.restarted = Some(token);
            }
        }
        Ok("it starts".to_owned())
    }

    /// Who acknowledges commits.
    async fn keep_up_primary(
        &mut self,
        leadership: &Leadership,
        instance: Option<&SampleDBInstance>,
    ) -> Result<(), ApiError> {
        let (Some(instance), name) = (instance, self.settings.instance.clone()) else { return Ok(()) };
        let replicas = self.servers.replicas(&name);
        let effective = self
            .servers
            .with(&name, |machine| machine.server.as_ref().map(|server| server.effective.clone()));
        let Some(effective) = effective else { return Ok(()) };
        let present = replicas.iter().map(|one| one.clone.clone());
        let situation = synchronous::Situation {
            durability: instance.spec.durability,
            instances: instance.spec.instances,
            recorded: &leadership.synchronous,
            effective: &effective,
            present: &present.filter(|clone| !leadership.leaving.contains(clone)).collect(),
            leaving: &leadership.leaving,
            flushed: &replicas.iter().map(|one| (one.clone.clone(), one.flushed)).collect(),
            since: self.since,
        };
        match synchronous::decide(&situation) {
            Change::None | Change::CatchUp(_) => {}
            Change::Record(set) => {
                self.kubernetes.record_synchronous(&self.run, &leadership.synchronous, &set).await?;
            }
            Change::Apply(set) => {
                self.since = self.servers.with(&name, |machine| {
                    machine.server.iter_mut().for_each(|server| server.effective.clone_from(&set));
                    machine.data.as_ref().map(super::servers::Data::flushed).unwrap_or_default()
                });
            }
        }
        Ok(())
    }

    async fn report(
        &mut self,
        message: &str,
        leadership: Option<&Leadership>,
        instance: Option<&SampleDBInstance>,
    ) -> Result<(), ApiError> {
        let name = &self.settings.instance;
        let (state, machine) = (self.servers.state(name), self.servers.with(name, |machine| machine.clone()));
        let (role, ready) = match &state {
            Some(state) if state.in_recovery => (Role::Replica, state.streams),
            Some(_) => (Role::Primary, true),
            None => (Role::Stopped, false),
        };
        let vacant = leadership.is_some_and(|leadership| leadership.holder.is_none());
        let receives = state.as_ref().is_some_and(|state| state.receives || !state.in_recovery);
        let wanted = instance.and_then(|one| one.spec.parameters.get(NEEDS_RESTART));
        let given = machine.server.as_ref().map(|server| server.parameters.get(NEEDS_RESTART));
        let status = SampleDBInstanceStatus {
            role,
            ready,
            pod_uid: Some(self.settings.pod_uid.clone()),
            clone: machine.data.as_ref().map(|_| machine.clone.clone()),
            system_identifier: machine.data.as_ref().map(|_| IDENTIFIER.to_owned()),
            epoch: machine.epoch,
            timeline: machine.data.as_ref().map_or(0, |data| data.timelines.at(data.flushed())),
            flushed: state.as_ref().filter(|_| vacant && !receives).map(|state| state.flushed),
            version: state.map(|state| state.version),
            observed_generation: instance.and_then(|one| one.metadata.generation),
            pending_restart: given
                .filter(|given| *given != wanted)
                .map(|_| vec![NEEDS_RESTART.to_owned()])
                .unwrap_or_default(),
            restarted: self.restarted.clone(),
            tls: Some(true),
            closed: Some(instance.is_some_and(|one| one.spec.closed)),
            volume_full: false,
            message: message.to_owned(),
            upgrade: None,
        };
        if self.reported.as_ref() != Some(&status) {
            self.kubernetes.report(&status).await?;
            self.reported = Some(status);
        }
        Ok(())
    }
}
