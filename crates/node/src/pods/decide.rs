//! What a node does about a pod: the steps that are valid now, what to report, and when to look again. Pure.

mod again;
mod ending;
mod ephemeral;

use super::known::{Known, Run, Sandbox, Volumes};
use super::life::{Act, Life};
use super::policy::{Restarts, is_sidecar};
use super::statuses::{ended_with, initializing, status};
use super::stopping::{Next, Stop};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, HostIP, Pod, PodIP, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_cluster::node::conditions::{self, Phase};

/// The reason that a pod has that had to go.
pub(crate) const EVICTED: &str = "Evicted";
/// So long it has to end then.
const AT_ONCE: SignedDuration = SignedDuration::from_secs(1);

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make the volumes.
    Prepare,
    /// Make the pod's namespaces.
    Launch,
    /// Look for a container's image.
    Find(String),
    /// Start a container, for the so-manieth time.
    Start(String, u32),
    /// Begin to stop a container.
    Stop(String, Stop, String),
    /// A deletion was hastened: a container has no longer than until then.
    Hasten(String, Timestamp),
    /// Run its hook before it is asked to end.
    PreStop(String),
    /// Ask it to end.
    Ask(String),
    /// End it.
    Kill(String),
    /// End the pod's namespaces and all in them.
    End,
    /// Give back what it had on the disk.
    Reclaim,
    /// Take the pod away: nothing of it is left here.
    Remove,
}

/// Something to tell people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What a pod comes to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) steps: Vec<Step>,
    /// What is to be reported, if it is news.
    pub(crate) status: Option<PodStatus>,
    pub(crate) told: Vec<Told>,
    /// When something falls due without anybody's doing.
    pub(crate) wake: Option<Timestamp>,
}

/// What to do about a pod.
pub(crate) fn decide(pod: &Pod, known: &Known, now: Timestamp) -> Decision {
    let Some(spec) = &pod.spec else { return Decision::default() };
    let old = pod.status.clone().unwrap_or_default();
    let stamp = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut turn = Turn { pod, spec, known, now, decision: Decision::default() };
    let mut new = old.clone();
    new.start_time.get_or_insert(Time(stamp));
    if !known.host_ip.is_empty() {
        new.host_ip = Some(known.host_ip.clone());
        new.host_ips = Some(vec![HostIP { ip: known.host_ip.clone() }]);
    }
    if let Some(address) = &known.pod_ip {
        new.pod_ip = Some(address.clone());
        new.pod_ips = Some(vec![PodIP { ip: address.clone() }]);
    }
    new.qos_class.get_or_insert_with(|| super::qos::class(spec).to_owned());
    let deadline = turn.deadline(&new);
    let going = pod.metadata.deletion_timestamp.as_ref().map(|at| at.0);
    let ended = matches!(old.phase.as_deref(), Some("Succeeded" | "Failed"));
    let phase = match (going, &known.evicted, deadline) {
        (None, ..) if ended => turn.has_ended(&mut new),
        (None, Some(evicted), _) => turn.is_evicted(&mut new, evicted),
        (None, None, Some(deadline)) if deadline <= now => turn.exceeds_its_deadline(&mut new),
        (None, None, deadline) => {
            turn.wake_at(deadline);
            turn.goes_on(&mut new)
        }
        (Some(going), ..) => turn.goes(&mut new, going, ended),
    };
    let phase = if ended { Phase::named(old.phase.as_deref()) } else { phase };
    new.phase = Some(phase.text().to_owned());
    new.observed_generation = pod.metadata.generation;
    let alive = known.sandbox == Sandbox::Alive && !phase.has_ended();
    conditions::write(pod, &mut new, phase, alive, stamp);
    turn.decision.status = (new != old).then_some(new);
    turn.decision
}

struct Turn<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    known: &'a Known,
    now: Timestamp,
    decision: Decision,
}

impl Turn<'_> {
    fn wake_at(&mut self, at: Option<Timestamp>) {
        self.decision.wake = self.decision.wake.into_iter().chain(at).min();
    }

    fn run(&self, name: &str) -> Run {
        self.known.runs.get(name).cloned().unwrap_or_default()
    }

    fn init(&self) -> impl DoubleEndedIterator<Item = &Container> + use<'_> {
        self.spec.init_containers.iter().flatten()
    }

    /// When it has run for too long.
    fn deadline(&self, status: &PodStatus) -> Option<Timestamp> {
        let began = status.start_time.as_ref()?.0;
        began.checked_add(SignedDuration::from_secs(self.spec.active_deadline_seconds?)).ok()
    }

    /// How long containers have to stop, unless a deletion says otherwise.
    fn grace(&self) -> SignedDuration {
        SignedDuration::from_secs(self.spec.termination_grace_period_seconds.unwrap_or(30).max(0))
    }

    fn life<'l>(&'l self, container: &'l Container, run: &'l Run, restarts: Restarts<'l>) -> Life<'l> {
        Life { pod: self.pod, container, run, restarts, now: self.now, grace: self.grace() }
    }

    /// The pod starts, runs, or ends by itself. Answers its phase.
    fn goes_on(&mut self, new: &mut PodStatus) -> Phase {
        if self.main_are_over() {
            // Nothing is started any more, not even what goes on beside them.
            self.refresh(new);
            self.has_ended(new);
            return self.phase(new, true);
        }
        let may_start = self.ground();
        let (init_before, main_before) = (new.init_container_statuses.take(), new.container_statuses.take());
        let (init_before, main_before) = (init_before.unwrap_or_default(), main_before.unwrap_or_default());
        let first = if self.spec.init_containers.iter().flatten().next().is_some() {
            "PodInitializing"
        } else {
            "ContainerCreating"
        };
        // Whether those before it have done their part, one after the other.
        let mut done = may_start;
        let mut init = Vec::new();
        for container in self.spec.init_containers.iter().flatten() {
            let run = self.run(&container.name);
            let restarts = Restarts::initializing(self.spec, container);
            let lives = self.life(container, &run, restarts).decide(done, "PodInitializing");
            let done_before = done;
            let mut became =
                status(self.uid(), container, &run, lives.waits.clone(), find(&init_before, &container.name));
            // What it did in namespaces that are no more has to be done again.
            let current = run.current().is_some();
            initializing(container, &mut became);
            done = done
                && current
                && match is_sidecar(container) {
                    true => became.started == Some(true),
                    false => ended_with(&became) == Some(0),
                };
            // One that did its part is not started again.
            if done_before && (!done || is_sidecar(container)) {
                self.act(container, lives.act, &run);
                self.wake_at(lives.wake);
                self.tell(lives.told, find(&init_before, &container.name), &became);
            }
            init.push(became);
        }
        let mut main = Vec::new();
        for container in &self.spec.containers {
            let run = self.run(&container.name);
            let restarts = Restarts::of(self.spec, container);
            let lives = self.life(container, &run, restarts).decide(done, first);
            let became =
                status(self.uid(), container, &run, lives.waits.clone(), find(&main_before, &container.name));
            self.act(container, lives.act, &run);
            self.wake_at(lives.wake);
            self.tell(lives.told, find(&main_before, &container.name), &became);
            main.push(became);
        }
        self.looks_into_it(new, may_start, first);
        let phase = match conditions::phase(self.spec, &init, &main, false) {
            ended if ended.has_ended() && self.begins_anew() => Phase::Running,
            // By a policy or a rule of its own, where the pod's says otherwise.
            ended if ended.has_ended() && self.any_comes_back() => match done {
                true => Phase::Running,
                false => Phase::named(new.phase.as_deref()),
            },
            phase => phase,
        };
        if phase.has_ended() {
            // What was about to start is not started any more.
            self.decision.steps.retain(|step| !matches!(step, Step::Start(..) | Step::Find(_)));
        }
        new.init_container_statuses = (!init.is_empty()).then_some(init);
        new.container_statuses = Some(main);
        if !phase.has_ended() {
            return phase;
        }
        self.has_ended(new);
        match self.any_runs() {
            // Until what goes on beside the others has stopped, it has not ended.
            true => Phase::Running,
            false => phase,
        }
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    fn any_runs(&self) -> bool {
        self.known.runs.values().any(Run::is_running)
    }

    /// Sees to volumes and namespaces. Answers whether containers can be started.
    fn ground(&mut self) -> bool {
        match &self.known.volumes {
            Volumes::Ready => {}
            Volumes::Unknown => {
                self.decision.steps.push(Step::Prepare);
                return false;
            }
            Volumes::Failed { again } => {
                if *again <= self.now {
                    self.decision.steps.push(Step::Prepare);
                }
                self.wake_at(Some(*again));
                return false;
            }
        }
        match &self.known.sandbox {
            Sandbox::Alive => true,
            Sandbox::Failed { again, .. } if *again > self.now => {
                self.wake_at(Some(*again));
                false
            }
            Sandbox::Absent | Sandbox::Failed { .. } => {
                // Namespaces are made for those that are to run in them: not for what ended for good.
                if self.wants_to_run() {
                    self.decision.steps.push(Step::Launch);
                }
                false
            }
        }
    }

    fn act(&mut self, container: &Container, act: Act, run: &Run) {
        let name = container.name.clone();
        match act {
            Act::Nothing => {}
            Act::Find => self.decision.steps.push(Step::Find(name)),
            Act::Start => self.decision.steps.push(Step::Start(name, run.next_attempt())),
            Act::Stop(stop, message) => self.decision.steps.push(Step::Stop(name, stop, message)),
            Act::Stopping(next) => self.stop_on(&name, next),
        }
    }

    /// Tells what is news: what was reported already is not told again.
    fn tell(&mut self, told: Vec<Told>, before: Option<&ContainerStatus>, became: &ContainerStatus) {
        let reason = |status: &ContainerStatus| status.state.clone()?.waiting?.reason;
        if before.is_none_or(|before| {
            reason(before) != reason(became) || before.restart_count != became.restart_count
        }) {
            self.decision.told.extend(told);
        }
    }

    fn stop_on(&mut self, name: &str, next: Next) {
        let name = name.to_owned();
        match next {
            Next::Hook => self.decision.steps.push(Step::PreStop(name)),
            Next::Ask => self.decision.steps.push(Step::Ask(name)),
            Next::Kill => self.decision.steps.push(Step::Kill(name)),
            Next::Wait(until) => self.wake_at(Some(until)),
        }
    }

    fn phase(&self, new: &PodStatus, over: bool) -> Phase {
        let init = new.init_container_statuses.as_deref().unwrap_or_default();
        let main = new.container_statuses.as_deref().unwrap_or_default();
        let phase = conditions::phase(self.spec, init, main, over);
        // One that runs has not ended, whatever the others did.
        if phase.has_ended() && self.any_runs() { Phase::Running } else { phase }
    }
}

fn find<'s>(statuses: &'s [ContainerStatus], name: &str) -> Option<&'s ContainerStatus> {
    statuses.iter().find(|status| status.name == name)
}
