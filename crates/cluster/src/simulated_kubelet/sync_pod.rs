//! What becomes of a pod by now: its status, whether it can be deleted, and when to sync it again. Pure: all state is in the
//! pod's own status.

use super::behavior::{ContainerBehavior, PodBehavior};
use super::sync_container::{
    ContainerEvent, ContainerSync, SIGKILL, SIGTERM, later, since, terminate, waiting,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, HostIP, Pod, PodIP, PodSpec,
    PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::Duration;
use windlass_component_helpers::pod_conditions::{self, Phase, exit_code, is_initialized};
use windlass_component_helpers::restart_policy::{RestartPolicy, is_sidecar};

/// The result of syncing a pod.
#[derive(Debug, Default)]
pub(super) struct SyncedPod {
    /// The status to be patched, if it changed.
    pub(super) status: Option<PodStatus>,
    /// Whether the pod is being deleted and all its containers have terminated.
    pub(super) delete: bool,
    /// When the pod has to be synced next, if nothing changes before.
    pub(super) requeue_at: Option<Timestamp>,
    /// The Events to be recorded.
    pub(super) events: Vec<ContainerEvent>,
    /// Whether its containers were just asked to terminate.
    pub(super) killing: bool,
}

/// The IPs of a pod.
pub(super) struct Ips<'a> {
    pub(super) host: &'a str,
    /// Allocates a pod IP; called once at most.
    pub(super) allocate: &'a dyn Fn() -> Option<String>,
}

pub(super) fn sync_pod(pod: &Pod, behavior: &PodBehavior, ips: &Ips<'_>, now: Timestamp) -> SyncedPod {
    let Some(spec) = &pod.spec else { return SyncedPod::default() };
    let meta = &pod.metadata;
    let deadline = meta.deletion_timestamp.as_ref().map(|at| at.0);
    if deadline.is_some() && meta.deletion_grace_period_seconds == Some(0) {
        // Nothing is left to do here: its finalizers are for others to remove.
        return SyncedPod::default();
    }
    let old = pod.status.clone().unwrap_or_default();
    if matches!(old.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return SyncedPod { delete: deadline.is_some(), ..SyncedPod::default() };
    }
    let mut sync =
        PodSync { pod, spec, behavior, now, stamp: whole_seconds(now), synced: SyncedPod::default() };
    let mut status = old.clone();
    let sandbox = match (deadline, sync.active_deadline(&old)) {
        (Some(deadline), _) => sync.sync_terminating(&mut status, deadline),
        (None, Some(active)) if active <= now => sync.deadline_exceeded(&mut status),
        (None, active) => {
            let sandbox = sync.sync(&mut status, ips);
            sync.requeue_at(active);
            sandbox
        }
    };
    if let Some((phase, sandbox)) = sandbox {
        status.phase = Some(phase.as_str().to_owned());
        status.observed_generation = meta.generation;
        pod_conditions::set_conditions(pod, &mut status, phase, sandbox, sync.stamp);
        if phase.is_terminal() {
            sync.synced.requeue_at = None;
        }
        sync.synced.status = (status != old).then_some(status);
    }
    sync.synced
}

fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

struct PodSync<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    behavior: &'a PodBehavior,
    now: Timestamp,
    /// Now, in the whole seconds of the API.
    stamp: Timestamp,
    synced: SyncedPod,
}

impl PodSync<'_> {
    fn requeue_at(&mut self, at: Option<Timestamp>) {
        self.synced.requeue_at = self.synced.requeue_at.into_iter().chain(at).min();
    }

    /// The end of `activeDeadlineSeconds`.
    fn active_deadline(&self, status: &PodStatus) -> Option<Timestamp> {
        let seconds = u64::try_from(self.spec.active_deadline_seconds?).unwrap_or(0);
        let began = since(status.start_time.as_ref(), self.now);
        Some(later(began, Duration::from_secs(seconds)))
    }

    /// Starts and runs containers. Returns the phase, and whether the pod has a sandbox.
    fn sync(&mut self, status: &mut PodStatus, ips: &Ips<'_>) -> Option<(Phase, bool)> {
        let began = status.start_time.get_or_insert(Time(self.stamp)).0;
        status.host_ip = Some(ips.host.to_owned());
        status.host_ips = Some(vec![HostIP { ip: ips.host.to_owned() }]);
        let sandbox = match self.behavior.start_after.map(|after| later(began, after)) {
            Some(due) if due <= self.now => true,
            due => {
                self.requeue_at(due);
                false
            }
        };
        if sandbox && status.pod_ip.is_none() {
            let shared = self.spec.host_network == Some(true);
            status.pod_ip = if shared { Some(ips.host.to_owned()) } else { (ips.allocate)() };
            status.pod_ips = status.pod_ip.clone().map(|ip| vec![PodIP { ip }]);
        }
        let since = self.behavior.start_after.map_or(began, |after| later(began, after));
        let initialized = self.sync_init_containers(status, sandbox, since);
        self.sync_containers(status, sandbox && initialized, since);
        let main = status.container_statuses.as_deref().unwrap_or_default();
        let init = status.init_container_statuses.as_deref().unwrap_or_default();
        let phase = pod_conditions::phase(self.spec, init, main, false);
        if phase.is_terminal() {
            self.terminate_sidecars(status);
        }
        // The sandbox of a pod in a terminal phase is stopped.
        Some((phase, sandbox && !phase.is_terminal()))
    }

    /// Syncs the init containers, one after the other. Returns whether all have completed.
    fn sync_init_containers(&mut self, status: &mut PodStatus, may_start: bool, since: Timestamp) -> bool {
        let spec = self.spec;
        let before = status.init_container_statuses.take().unwrap_or_default();
        let mut all = Vec::with_capacity(before.len());
        let mut done = true;
        for (container, behavior) in spec.init_containers.iter().flatten().zip(&self.behavior.init) {
            let last = before.iter().find(|status| status.name == container.name);
            if !(may_start && done) {
                done = false;
                all.push(last.cloned().unwrap_or_else(|| waiting(container, "PodInitializing")));
                continue;
            }
            let policy = match RestartPolicy::of_pod(spec) {
                _ if is_sidecar(container) => RestartPolicy::Always,
                RestartPolicy::Never => RestartPolicy::Never,
                _ => RestartPolicy::OnFailure,
            };
            let mut became = self.sync_container(container, behavior, policy, last, since);
            done = is_initialized(container, Some(&became));
            // A completed init container counts as ready.
            became.ready |= exit_code(&became) == Some(0);
            all.push(became);
        }
        status.init_container_statuses = (!all.is_empty()).then_some(all);
        done
    }

    fn sync_containers(&mut self, status: &mut PodStatus, may_start: bool, since: Timestamp) {
        let spec = self.spec;
        let before = status.container_statuses.take().unwrap_or_default();
        let policy = RestartPolicy::of_pod(spec);
        let reason = match spec.init_containers.as_deref() {
            None | Some([]) => "ContainerCreating",
            Some(_) => "PodInitializing",
        };
        let mut all = Vec::with_capacity(spec.containers.len());
        for (container, behavior) in spec.containers.iter().zip(&self.behavior.main) {
            let last = before.iter().find(|status| status.name == container.name);
            all.push(match may_start {
                true => self.sync_container(container, behavior, policy, last, since),
                false => last.cloned().unwrap_or_else(|| waiting(container, reason)),
            });
        }
        status.container_statuses = Some(all);
    }

    fn sync_container(
        &mut self,
        container: &Container,
        behavior: &ContainerBehavior,
        policy: RestartPolicy,
        last: Option<&ContainerStatus>,
        since: Timestamp,
    ) -> ContainerStatus {
        let meta = &self.pod.metadata;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let pod = format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid));
        let uid = text(&meta.uid);
        let (now, stamp) = (self.now, self.stamp);
        let sync = ContainerSync { container, behavior, policy, pod: &pod, uid: &uid, since, now, stamp };
        let synced = sync.sync(last);
        self.requeue_at(synced.requeue_at);
        self.synced.events.extend(synced.events);
        synced.status
    }

    /// Terminates the containers of a pod that is being deleted, within its grace period.
    fn sync_terminating(&mut self, status: &mut PodStatus, deadline: Timestamp) -> Option<(Phase, bool)> {
        let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let takes = self.behavior.stop_after.unwrap_or(Duration::MAX);
        let asked = deadline.checked_sub(grace).unwrap_or(deadline);
        let due = later(asked, takes.min(grace));
        let running = self.containers(status).any(is_running);
        if running && due > self.now {
            self.requeue_at(Some(due));
            self.synced.killing = true;
            return None;
        }
        self.synced.delete = true;
        self.synced.killing = running;
        let code = if takes > grace { SIGKILL } else { SIGTERM };
        Some((self.terminate_all(status, code), false))
    }

    fn deadline_exceeded(&mut self, status: &mut PodStatus) -> Option<(Phase, bool)> {
        status.reason = Some("DeadlineExceeded".to_owned());
        status.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
        self.terminate_all(status, SIGTERM);
        Some((Phase::Failed, false))
    }

    fn containers<'s>(&self, status: &'s PodStatus) -> impl Iterator<Item = &'s ContainerStatus> + use<'s> {
        let main = status.container_statuses.iter().flatten();
        status.init_container_statuses.iter().flatten().chain(main)
    }

    /// Terminates all containers. Returns the resulting phase.
    fn terminate_all(&mut self, status: &mut PodStatus, code: i32) -> Phase {
        let stamp = self.stamp;
        let all = |statuses: &mut Option<Vec<ContainerStatus>>| {
            statuses.iter_mut().flatten().for_each(|status| finish(status, code, stamp));
        };
        all(&mut status.init_container_statuses);
        all(&mut status.container_statuses);
        let none = Vec::new();
        let main = status.container_statuses.as_ref().unwrap_or(&none);
        let init = status.init_container_statuses.as_ref().unwrap_or(&none);
        pod_conditions::phase(self.spec, init, main, true)
    }

    /// Terminates the sidecars, after the main containers.
    fn terminate_sidecars(&self, status: &mut PodStatus) {
        let stamp = self.stamp;
        let running = status.init_container_statuses.iter_mut().flatten().filter(|status| is_running(status));
        running.for_each(|status| finish(status, 0, stamp));
    }
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Terminates one container; the state of one that had not started is unknown.
fn finish(status: &mut ContainerStatus, code: i32, now: Timestamp) {
    let state = status.state.clone().unwrap_or_default();
    if let Some(running) = state.running {
        terminate(status, since(running.started_at.as_ref(), now), code, now);
    } else if state.terminated.is_none() {
        let unknown = ContainerStateTerminated {
            exit_code: SIGKILL,
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
            .map(|(key, value)| (format!("{}{key}", super::super::behavior::PREFIX), json!(value)))
            .collect();
        let meta =
            json!({"name": "p", "namespace": "d", "uid": "u", "generation": 1, "annotations": annotations});
        serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap()
    }

    /// Syncs a pod at this time until its status is stable. Returns the number of patches, when it is requeued, and whether it is
    /// deleted.
    fn sync(pod: &mut Pod, second: i64) -> (usize, Option<Timestamp>, bool) {
        let (behavior, _) = PodBehavior::of(pod, &[]);
        let address = || Some("10.128.0.1".to_owned());
        let ips = Ips { host: "10.127.0.1", allocate: &address };
        for patches in 0..10 {
            let synced = sync_pod(pod, &behavior, &ips, at(second));
            match synced.status {
                Some(status) => pod.status = Some(status),
                None => return (patches, synced.requeue_at, synced.delete),
            }
            if synced.delete {
                return (patches + 1, None, true);
            }
        }
        panic!("its status never gets stable: {:?}", pod.status);
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
    fn without_delays_one_patch_is_enough() {
        let mut pod = pod(
            &[],
            json!({"initContainers": [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}]}),
        );
        assert_eq!(sync(&mut pod, 0), (1, None, false));
        assert!(phase(&pod) == "Running" && holds(&pod, "Ready") && holds(&pod, "Initialized"));
        assert_eq!(sync(&mut pod, 1000), (0, None, false), "nothing more happens");
    }

    #[test]
    fn each_delay_is_one_more_patch() {
        let mut pod = pod(&[("start-after", "2s"), ("ready-after", "3s")], json!({}));
        assert_eq!(sync(&mut pod, 0), (1, Some(at(2)), false));
        assert!(phase(&pod) == "Pending" && !holds(&pod, "PodReadyToStartContainers"));
        assert_eq!(sync(&mut pod, 2), (1, Some(at(5)), false));
        assert!(phase(&pod) == "Running" && !holds(&pod, "Ready"));
        assert_eq!(sync(&mut pod, 5), (1, None, false));
        assert!(holds(&pod, "Ready"));
    }

    #[test]
    fn a_failed_init_container_blocks_the_pod_or_fails_it() {
        for (policy, expected) in [("Never", "Failed"), ("OnFailure", "Pending")] {
            let spec = json!({"restartPolicy": policy, "initContainers": [{"name": "init"}]});
            let mut pod = pod(&[("exit-code.init", "1")], spec);
            sync(&mut pod, 0);
            assert_eq!(phase(&pod), expected, "{policy}");
            assert!(!holds(&pod, "Initialized"));
        }
    }

    #[test]
    fn a_deleted_pod_terminates_before_it_is_removed() {
        let mut pod = pod(&[("stop-after", "4s")], json!({}));
        sync(&mut pod, 0);
        pod.metadata.deletion_timestamp = Some(Time(at(40)));
        pod.metadata.deletion_grace_period_seconds = Some(30);
        assert_eq!(
            sync(&mut pod, 10),
            (0, Some(at(14)), false),
            "asked to terminate at 10, it takes until 14"
        );
        assert_eq!(sync(&mut pod, 14), (1, None, true));
        assert!(phase(&pod) == "Failed" && !holds(&pod, "Ready"));
        let code = pod.status.clone().and_then(|status| exit_code(&status.container_statuses?[0]));
        assert_eq!(code, Some(SIGTERM));
        pod.metadata.deletion_grace_period_seconds = Some(0);
        assert_eq!(sync(&mut pod, 15), (0, None, false), "its finalizers are for others to remove");
    }

    #[test]
    fn the_grace_period_and_the_active_deadline_are_enforced() {
        let mut stubborn = pod(&[("stop-after", "never")], json!({}));
        sync(&mut stubborn, 0);
        stubborn.metadata.deletion_timestamp = Some(Time(at(40)));
        stubborn.metadata.deletion_grace_period_seconds = Some(30);
        assert_eq!(sync(&mut stubborn, 10).1, Some(at(40)));
        assert_eq!(sync(&mut stubborn, 40), (1, None, true));
        let code = stubborn.status.clone().and_then(|status| exit_code(&status.container_statuses?[0]));
        assert_eq!(code, Some(SIGKILL));
        let mut long = pod(&[], json!({"activeDeadlineSeconds": 60, "restartPolicy": "Never"}));
        assert_eq!(sync(&mut long, 0).1, Some(at(60)));
        sync(&mut long, 60);
        assert_eq!(
            (phase(&long), long.status.clone().unwrap().reason.as_deref()),
            ("Failed", Some("DeadlineExceeded"))
        );
    }
}
