//! What a node makes of a pod: the status that it has by now, whether it is gone, and when to look again. Pure: all that is
//! remembered is in the pod's own status.

use super::conditions::{self, Phase, exit_code, is_initialized};
use super::containers::{Asked, KILLED, Restarts, STOPPED, Told, end, later, since, waiting};
use super::script::{Script, is_sidecar};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, HostIP, Pod, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What a pod comes to.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// What is to be reported, if it is news.
    pub(super) status: Option<PodStatus>,
    /// Whether nothing of it runs any more, so that it can go.
    pub(super) gone: bool,
    /// When something falls due without anybody's doing.
    pub(super) wake: Option<Timestamp>,
    /// What there is to tell.
    pub(super) told: Vec<Told>,
    /// Whether its containers were just asked to stop.
    pub(super) stops: bool,
}

/// Where a pod is.
pub(super) struct Place<'a> {
    pub(super) host: &'a str,
    /// An address for a pod that has none; asked once at most.
    pub(super) address: &'a dyn Fn() -> Option<String>,
}

pub(super) fn decide(pod: &Pod, script: &Script, place: &Place<'_>, now: Timestamp) -> Step {
    let Some(spec) = &pod.spec else { return Step::default() };
    let meta = &pod.metadata;
    let going = meta.deletion_timestamp.as_ref().map(|at| at.0);
    if going.is_some() && meta.deletion_grace_period_seconds == Some(0) {
        // Nothing is left of it here: what holds it is for others to take away.
        return Step::default();
    }
    let old = pod.status.clone().unwrap_or_default();
    if matches!(old.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return Step { gone: going.is_some(), ..Step::default() };
    }
    let mut life = Life { pod, spec, script, now, stamp: whole_seconds(now), step: Step::default() };
    let mut status = old.clone();
    let sandbox = match (going, life.deadline(&old)) {
        (Some(going), _) => life.goes(&mut status, going),
        (None, Some(deadline)) if deadline <= now => life.exceeds_its_deadline(&mut status),
        (None, deadline) => {
            let sandbox = life.goes_on(&mut status, place);
            life.wake_at(deadline);
            sandbox
        }
    };
    if let Some((phase, sandbox)) = sandbox {
        status.phase = Some(phase.text().to_owned());
        status.observed_generation = meta.generation;
        conditions::write(pod, &mut status, phase, sandbox, life.stamp);
        if phase.has_ended() {
            life.step.wake = None;
        }
        life.step.status = (status != old).then_some(status);
    }
    life.step
}

fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

struct Life<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    script: &'a Script,
    now: Timestamp,
    /// Now, as it is written.
    stamp: Timestamp,
    step: Step,
}

impl Life<'_> {
    fn wake_at(&mut self, at: Option<Timestamp>) {
        self.step.wake = self.step.wake.into_iter().chain(at).min();
    }

    /// When it has run for too long.
    fn deadline(&self, status: &PodStatus) -> Option<Timestamp> {
        let seconds = u64::try_from(self.spec.active_deadline_seconds?).unwrap_or(0);
        let began = since(status.start_time.as_ref(), self.now);
        Some(later(began, std::time::Duration::from_secs(seconds)))
    }

    /// The pod starts, runs, or ends by itself. Answers its phase, and whether it has a place to run in.
    fn goes_on(&mut self, status: &mut PodStatus, place: &Place<'_>) -> Option<(Phase, bool)> {
        let began = status.start_time.get_or_insert(Time(self.stamp)).0;
        status.host_ip = Some(place.host.to_owned());
        status.host_ips = Some(vec![HostIP { ip: place.host.to_owned() }]);
        let sandbox = match self.script.start_after.map(|after| later(began, after)) {
            Some(due) if due <= self.now => true,
            due => {
                self.wake_at(due);
                false
            }
        };
        if sandbox && status.pod_ip.is_none() {
            let shared = self.spec.host_network == Some(true);
            status.pod_ip = if shared { Some(place.host.to_owned()) } else { (place.address)() };
            status.pod_ips = status.pod_ip.clone().map(|ip| vec![PodIP { ip }]);
        }
        let since = self.script.start_after.map_or(began, |after| later(began, after));
        let initialized = self.initialize(status, sandbox, since);
        self.run(status, sandbox && initialized, since);
        let main = status.container_statuses.as_deref().unwrap_or_default();
        let init = status.init_container_statuses.as_deref().unwrap_or_default();
        let phase = conditions::phase(self.spec, init, main, false);
        if phase.has_ended() {
            self.end_sidecars(status);
        }
        // What has ended has no place to run in any more.
        Some((phase, sandbox && !phase.has_ended()))
    }

    /// Lets the containers that initialize live, one after the other. Answers whether all are done.
    fn initialize(&mut self, status: &mut PodStatus, may_start: bool, since: Timestamp) -> bool {
        let spec = self.spec;
        let before = status.init_container_statuses.take().unwrap_or_default();
        let mut all = Vec::with_capacity(before.len());
        let mut done = true;
        for (container, play) in spec.init_containers.iter().flatten().zip(&self.script.init) {
            let last = before.iter().find(|status| status.name == container.name);
            if !(may_start && done) {
                done = false;
                all.push(last.cloned().unwrap_or_else(|| waiting(container, "PodInitializing")));
                continue;
            }
            let restarts = match Restarts::of(spec.restart_policy.as_deref()) {
                _ if is_sidecar(container) => Restarts::Always,
                Restarts::Never => Restarts::Never,
                _ => Restarts::OnFailure,
            };
            let mut became = self.live(container, play, restarts, last, since);
            done = is_initialized(container, Some(&became));
            // One that did its part counts as ready.
            became.ready |= exit_code(&became) == Some(0);
            all.push(became);
        }
        status.init_container_statuses = (!all.is_empty()).then_some(all);
        done
    }

    fn run(&mut self, status: &mut PodStatus, may_start: bool, since: Timestamp) {
        let spec = self.spec;
        let before = status.container_statuses.take().unwrap_or_default();
        let restarts = Restarts::of(spec.restart_policy.as_deref());
        let reason = match spec.init_containers.as_deref() {
            None | Some([]) => "ContainerCreating",
            Some(_) => "PodInitializing",
        };
        let mut all = Vec::with_capacity(spec.containers.len());
        for (container, play) in spec.containers.iter().zip(&self.script.main) {
            let last = before.iter().find(|status| status.name == container.name);
            all.push(match may_start {
                true => self.live(container, play, restarts, last, since),
                false => last.cloned().unwrap_or_else(|| waiting(container, reason)),
            });
        }
        status.container_statuses = Some(all);
    }

    fn live(
        &mut self,
        container: &k8s_openapi::api::core::v1::Container,
        play: &super::script::Play,
        restarts: Restarts,
        last: Option<&ContainerStatus>,
        since: Timestamp,
    ) -> ContainerStatus {
        let meta = &self.pod.metadata;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let pod = format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid));
        let uid = text(&meta.uid);
        let (now, stamp) = (self.now, self.stamp);
        let asked = Asked { container, play, restarts, pod: &pod, uid: &uid, since, now, stamp };
        let became = asked.live(last);
        self.wake_at(became.wake);
        self.step.told.extend(became.told);
        became.status
    }

    /// Its containers are asked to stop, and get the time that they were given.
    fn goes(&mut self, status: &mut PodStatus, deadline: Timestamp) -> Option<(Phase, bool)> {
        let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let grace = std::time::Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let takes = self.script.stop_after.unwrap_or(std::time::Duration::MAX);
        let asked = deadline.checked_sub(grace).unwrap_or(deadline);
        let due = later(asked, takes.min(grace));
        let running = self.containers(status).any(runs);
        if running && due > self.now {
            self.wake_at(Some(due));
            self.step.stops = true;
            return None;
        }
        self.step.gone = true;
        self.step.stops = running;
        let code = if takes > grace { KILLED } else { STOPPED };
        Some((self.end_all(status, code), false))
    }

    fn exceeds_its_deadline(&mut self, status: &mut PodStatus) -> Option<(Phase, bool)> {
        status.reason = Some("DeadlineExceeded".to_owned());
        status.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
        self.end_all(status, STOPPED);
        Some((Phase::Failed, false))
    }

    fn containers<'s>(&self, status: &'s PodStatus) -> impl Iterator<Item = &'s ContainerStatus> + use<'s> {
        let main = status.container_statuses.iter().flatten();
        status.init_container_statuses.iter().flatten().chain(main)
    }

    /// Ends what runs and what waits to. Answers the phase that this leaves.
    fn end_all(&mut self, status: &mut PodStatus, code: i32) -> Phase {
        let stamp = self.stamp;
        let all = |statuses: &mut Option<Vec<ContainerStatus>>| {
            statuses.iter_mut().flatten().for_each(|status| finish(status, code, stamp));
        };
        all(&mut status.init_container_statuses);
        all(&mut status.container_statuses);
        let none = Vec::new();
        let main = status.container_statuses.as_ref().unwrap_or(&none);
        let init = status.init_container_statuses.as_ref().unwrap_or(&none);
        conditions::phase(self.spec, init, main, true)
    }

    /// When the others have ended, what went on beside them ends too.
    fn end_sidecars(&self, status: &mut PodStatus) {
        let stamp = self.stamp;
        let running = status.init_container_statuses.iter_mut().flatten().filter(|status| runs(status));
        running.for_each(|status| finish(status, 0, stamp));
    }
}

fn runs(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Ends one container; one that had not started was never to be found.
fn finish(status: &mut ContainerStatus, code: i32, now: Timestamp) {
    let state = status.state.clone().unwrap_or_default();
    if let Some(running) = state.running {
        end(status, since(running.started_at.as_ref(), now), code, now);
    } else if state.terminated.is_none() {
        let unknown = ContainerStateTerminated {
            exit_code: KILLED,
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: Some("The container could not be located when the pod was terminated".to_owned()),
            ..ContainerStateTerminated::default()
        };
        status.state = Some(ContainerState { terminated: Some(unknown), ..ContainerState::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::PodStatus;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn pod(annotations: &[(&str, &str)], spec: Value) -> Pod {
        let mut whole = json!({"containers": [{"name": "main", "image": "i"}]});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let annotations: serde_json::Map<String, Value> = annotations
            .iter()
            .map(|(key, value)| (format!("{}{key}", super::super::script::PREFIX), json!(value)))
            .collect();
        let meta =
            json!({"name": "p", "namespace": "d", "uid": "u", "generation": 1, "annotations": annotations});
        serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap()
    }

    /// Lets a pod live until then, as often as there is news. Answers how many reports that took, and when it wakes.
    fn live(pod: &mut Pod, second: i64) -> (usize, Option<Timestamp>, bool) {
        let (script, _) = Script::of(pod, &[]);
        let address = || Some("10.128.0.1".to_owned());
        let place = Place { host: "10.127.0.1", address: &address };
        for reports in 0..10 {
            let step = decide(pod, &script, &place, at(second));
            match step.status {
                Some(status) => pod.status = Some(status),
                None => return (reports, step.wake, step.gone),
            }
            if step.gone {
                return (reports + 1, None, true);
            }
        }
        panic!("it never comes to rest: {:?}", pod.status);
    }

    fn phase(pod: &Pod) -> &str {
        pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    fn holds(pod: &Pod, of: &str) -> bool {
        let conditions = pod.status.as_ref().and_then(|status: &PodStatus| status.conditions.as_deref());
        conditions
            .unwrap_or_default()
            .iter()
            .any(|condition| condition.type_ == of && condition.status == "True")
    }

    #[test]
    fn without_delays_one_report_says_it_all() {
        let mut pod = pod(
            &[],
            json!({"initContainers": [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}]}),
        );
        assert_eq!(live(&mut pod, 0), (1, None, false));
        assert!(phase(&pod) == "Running" && holds(&pod, "Ready") && holds(&pod, "Initialized"));
        assert_eq!(live(&mut pod, 1000), (0, None, false), "nothing more happens");
    }

    #[test]
    fn each_delay_is_one_more_report() {
        let mut pod = pod(&[("start-after", "2s"), ("ready-after", "3s")], json!({}));
        assert_eq!(live(&mut pod, 0), (1, Some(at(2)), false));
        assert!(phase(&pod) == "Pending" && !holds(&pod, "PodReadyToStartContainers"));
        assert_eq!(live(&mut pod, 2), (1, Some(at(5)), false));
        assert!(phase(&pod) == "Running" && !holds(&pod, "Ready"));
        assert_eq!(live(&mut pod, 5), (1, None, false));
        assert!(holds(&pod, "Ready"));
    }

    #[test]
    fn containers_that_fail_to_initialize_keep_the_others_waiting_or_end_it() {
        for (policy, expected) in [("Never", "Failed"), ("OnFailure", "Pending")] {
            let spec = json!({"restartPolicy": policy, "initContainers": [{"name": "init"}]});
            let mut pod = pod(&[("exit-code.init", "1")], spec);
            live(&mut pod, 0);
            assert_eq!(phase(&pod), expected, "{policy}");
            assert!(!holds(&pod, "Initialized"));
        }
    }

    #[test]
    fn a_pod_that_is_deleted_ends_first_and_goes_then() {
        let mut pod = pod(&[("stop-after", "4s")], json!({}));
        live(&mut pod, 0);
        pod.metadata.deletion_timestamp = Some(Time(at(40)));
        pod.metadata.deletion_grace_period_seconds = Some(30);
        assert_eq!(live(&mut pod, 10), (0, Some(at(14)), false), "asked at 10, it takes until 14");
        assert_eq!(live(&mut pod, 14), (1, None, true));
        assert!(phase(&pod) == "Failed" && !holds(&pod, "Ready"));
        let code = pod.status.clone().and_then(|status| exit_code(&status.container_statuses?[0]));
        assert_eq!(code, Some(STOPPED));
        pod.metadata.deletion_grace_period_seconds = Some(0);
        assert_eq!(live(&mut pod, 15), (0, None, false), "what holds it is for others to take away");
    }

    #[test]
    fn grace_ends_what_does_not_stop_and_deadlines_what_runs_too_long() {
        let mut stubborn = pod(&[("stop-after", "never")], json!({}));
        live(&mut stubborn, 0);
        stubborn.metadata.deletion_timestamp = Some(Time(at(40)));
        stubborn.metadata.deletion_grace_period_seconds = Some(30);
        assert_eq!(live(&mut stubborn, 10).1, Some(at(40)));
        assert_eq!(live(&mut stubborn, 40), (1, None, true));
        let code = stubborn.status.clone().and_then(|status| exit_code(&status.container_statuses?[0]));
        assert_eq!(code, Some(KILLED));
        let mut long = pod(&[], json!({"activeDeadlineSeconds": 60, "restartPolicy": "Never"}));
        assert_eq!(live(&mut long, 0).1, Some(at(60)));
        live(&mut long, 60);
        assert_eq!(
            (phase(&long), long.status.clone().unwrap().reason.as_deref()),
            ("Failed", Some("DeadlineExceeded"))
        );
    }
}
