//! What is decided for a Job: tests without a cluster, and lives that are cut off anywhere.

use super::decide::{Plan, TRACKING, View, decide, finished_condition, is_tracked};
use super::pod_template;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// A Job and its pods in a world of their own, in which time stands still unless it is moved.
struct World {
    job: Job,
    pods: Vec<Arc<Pod>>,
    now: Timestamp,
    made: usize,
}

impl World {
    fn new(spec: Value) -> Self {
        let mut whole = json!({ "template": { "spec": { "containers": [], "restartPolicy": "Never" } } });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let job = json!({ "metadata": { "name": "work", "uid": "job" }, "spec": whole });
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { job: serde_json::from_value(job).unwrap(), pods: Vec::new(), now, made: 0 }
    }

    fn plan(&self) -> Plan {
        decide(&View::of(&self.job, &self.pods, self.now).unwrap())
    }

    /// One pass, as the controller makes it, cut off after so many writes. False if there was nothing to do.
    fn pass(&mut self, mut writes: usize) -> bool {
        if finished_condition(&self.job).is_some() {
            return false;
        }
        let mut write = || {
            writes = writes.saturating_sub(1);
            writes > 0
        };
        let plan = self.plan();
        if !plan.delete.is_empty() || !plan.create.is_empty() {
            for pod in &plan.delete {
                if plan.uncounted {
                    self.release(pod);
                }
                self.delete(pod);
                if !write() {
                    return true;
                }
            }
            for (index, replaces) in &plan.create {
                self.make(*index, replaces.as_deref());
                if !write() {
                    return true;
                }
            }
            return true;
        }
        if self.job.status.as_ref() != Some(&plan.status) {
            self.job.status = Some(plan.status);
            return true;
        }
        for pod in &plan.release {
            self.release(pod);
            if !write() {
                break;
            }
        }
        !plan.release.is_empty()
    }

    /// Until there is nothing to do.
    fn rest(&mut self) {
        let passes = (0..100).take_while(|_| self.pass(usize::MAX)).count();
        assert!(passes < 100, "it comes to rest");
    }

    fn make(&mut self, index: Option<u32>, replaces: Option<&Pod>) {
        let view = View::of(&self.job, &[], self.now).unwrap();
        let mut pod = pod_template::pod(&view, OwnerReference::default(), index, replaces);
        pod.metadata.name = Some(format!("pod-{}", self.made));
        pod.metadata.uid = Some(format!("uid-{}", self.made));
        pod.status = Some(serde_json::from_value(json!({ "phase": "Running" })).unwrap());
        self.made += 1;
        self.pods.push(Arc::new(pod));
    }

    fn change(&mut self, uid: &str, change: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.pods.iter_mut().find(|pod| pod.metadata.uid.as_deref() == Some(uid)) {
            change(Arc::make_mut(pod));
        }
        self.pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() || is_tracked(pod));
    }

    fn release(&mut self, pod: &Pod) {
        let uid = pod.metadata.uid.clone().unwrap();
        self.change(&uid, |pod| pod.metadata.finalizers = None);
    }

    fn delete(&mut self, pod: &Pod) {
        let now = self.now;
        let uid = pod.metadata.uid.clone().unwrap();
        self.change(&uid, |pod| pod.metadata.deletion_timestamp = Some(Time(now)));
    }

    /// The first pod at work ends.
    fn end(&mut self, code: i32) -> bool {
        let running = self.pods.iter().find(|pod| crate::pods::is_active(pod));
        let Some(uid) = running.and_then(|pod| pod.metadata.uid.clone()) else { return false };
        let status = json!({
            "phase": if code == 0 { "Succeeded" } else { "Failed" },
            "containerStatuses": [{
                "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": code, "finishedAt": self.now.to_string() } },
            }],
        });
        self.change(&uid, |pod| pod.status = Some(serde_json::from_value(status).unwrap()));
        true
    }

    fn later(&mut self, seconds: i64) {
        self.now = self.now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
    }

    fn running(&self) -> usize {
        self.pods.iter().filter(|pod| crate::pods::is_active(pod)).count()
    }

    fn conditions(&self) -> Vec<String> {
        let conditions = self.job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let words = conditions.map(|one| format!("{} {}", one.type_, one.reason.clone().unwrap_or_default()));
        words.collect()
    }

    fn counts(&self) -> (i32, i32) {
        let status = self.job.status.clone().unwrap_or_default();
        (status.succeeded.unwrap_or_default(), status.failed.unwrap_or_default())
    }
}

#[test]
fn as_many_run_as_may_until_enough_succeeded() {
    let mut world = World::new(json!({ "completions": 3, "parallelism": 2, "backoffLimit": 6 }));
    world.rest();
    assert_eq!(world.running(), 2);
    assert!(world.pods.iter().all(|pod| pod.metadata.finalizers.iter().flatten().any(|one| one == TRACKING)));
    world.end(0);
    world.rest();
    assert_eq!((world.running(), world.counts()), (2, (1, 0)));
    world.end(0);
    world.rest();
    assert_eq!((world.running(), world.counts()), (1, (2, 0)), "no more are begun than are needed");
    world.end(0);
    world.rest();
    assert_eq!(world.conditions(), ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
    assert_eq!(world.counts(), (3, 0));
    let status = world.job.status.unwrap();
    assert!(status.completion_time.is_some() && status.active.is_none());
    assert_eq!(status.uncounted_terminated_pods, Some(Default::default()));
}

#[test]
fn a_failure_is_waited_after_ever_longer_and_too_many_fail_the_job() {
    let mut world = World::new(json!({ "completions": 1, "parallelism": 1, "backoffLimit": 1 }));
    world.rest();
    world.end(1);
    world.rest();
    assert_eq!((world.running(), world.counts()), (0, (0, 1)), "it waits");
    let wait = world.plan().wait.unwrap();
    assert_eq!(wait.duration_since(world.now).as_secs(), 10);
    world.later(10);
    world.rest();
    assert_eq!(world.running(), 1);
    world.end(1);
    world.rest();
    assert_eq!(world.conditions(), ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]);
    assert_eq!(world.counts(), (0, 2));
}

#[test]
fn a_job_without_completions_is_done_when_one_succeeded_and_all_ended() {
    let mut world = World::new(json!({ "parallelism": 3 }));
    world.rest();
    world.end(0);
    world.rest();
    assert_eq!((world.running(), world.conditions().len()), (2, 0));
    world.end(1);
    world.end(0);
    world.rest();
    assert_eq!(world.counts(), (2, 1));
    assert_eq!(world.conditions().last().unwrap(), "Complete CompletionsReached");
}

#[test]
fn a_deadline_ends_what_runs() {
    let mut world = World::new(json!({ "completions": 2, "parallelism": 2, "activeDeadlineSeconds": 60 }));
    world.rest();
    assert_eq!(world.plan().wait.unwrap().duration_since(world.now).as_secs(), 60);
    world.later(60);
    world.rest();
    assert_eq!(world.conditions(), ["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]);
    assert_eq!((world.counts(), world.pods.len()), ((0, 2), 0));
}

#[test]
fn a_suspended_job_has_no_pods_and_no_failures_and_starts_anew() {
    let mut world = World::new(json!({ "completions": 2, "parallelism": 2, "activeDeadlineSeconds": 60 }));
    world.rest();
    world.job.spec.as_mut().unwrap().suspend = Some(true);
    world.later(30);
    world.rest();
    assert_eq!((world.running(), world.counts()), (0, (0, 0)));
    assert_eq!(world.conditions(), ["Suspended JobSuspended"]);
    assert!(world.job.status.as_ref().unwrap().start_time.is_none());
    world.job.spec.as_mut().unwrap().suspend = Some(false);
    world.later(3600);
    world.rest();
    assert_eq!((world.running(), world.conditions()), (2, vec!["Suspended JobResumed".to_owned()]));
    assert_eq!(world.job.status.as_ref().unwrap().start_time, Some(Time(world.now)));
}

#[test]
fn each_index_succeeds_once_or_fails_for_itself() {
    let mut world = World::new(json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed",
        "backoffLimit": 100, "backoffLimitPerIndex": 1,
    }));
    world.rest();
    let indexes: Vec<_> = world.pods.iter().map(|pod| pod_template::index(pod)).collect();
    assert_eq!(indexes, [Some(0), Some(1), Some(2)]);
    world.end(1);
    world.end(0);
    world.end(0);
    world.rest();
    let status = world.job.status.clone().unwrap();
    assert_eq!(status.completed_indexes.as_deref(), Some("1,2"));
    assert_eq!(status.failed_indexes.as_deref(), Some(""));
    world.later(10);
    world.rest();
    let again = world.pods.iter().find(|pod| crate::pods::is_active(pod)).unwrap();
    assert_eq!((pod_template::index(again), pod_template::failures_before(again)), (Some(0), (1, 0)));
    world.end(1);
    world.rest();
    assert_eq!(world.job.status.clone().unwrap().failed_indexes.as_deref(), Some("0"));
    assert_eq!(world.conditions(), ["FailureTarget FailedIndexes", "Failed FailedIndexes"]);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn policies_end_a_job_early() {
    let rules = json!([{ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [42] } }]);
    let spec = json!({ "completions": 2, "parallelism": 2, "podFailurePolicy": { "rules": rules } });
    let mut world = World::new(spec);
    world.rest();
    world.end(42);
    world.rest();
    assert_eq!(world.conditions()[0], "FailureTarget PodFailurePolicy");

    let rules = json!([{ "succeededIndexes": "0" }]);
    let mut world = World::new(json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": { "rules": rules },
    }));
    world.rest();
    world.end(0);
    world.rest();
    assert_eq!(world.conditions(), ["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]);
    assert_eq!(world.counts(), (1, 0), "those that were ended are no failures");
}

proptest! {
    /// Whatever is cut off, each pod counts once.
    #[test]
    fn every_end_is_counted_exactly_once(
        indexed in any::<bool>(),
        steps in proptest::collection::vec((0usize..4, 1usize..4), 1..60),
    ) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let spec = json!({
            "completions": 6, "parallelism": 3, "completionMode": mode, "backoffLimit": 1000,
        });
        let mut world = World::new(spec);
        let (mut success, mut bad) = (0, 0);
        for (step, writes) in steps {
            match step {
                0 => success += i32::from(world.end(0)),
                1 => bad += i32::from(world.end(1)),
                2 => world.later(700),
                _ => drop(world.pass(writes)),
            }
        }
        for _ in 0..20 {
            world.rest();
            world.later(700);
            success += i32::from(world.end(0));
        }
        prop_assert_eq!(world.counts(), (success, bad));
        prop_assert_eq!(success, 6, "as many as were asked for, and no more");
        prop_assert!(world.conditions().contains(&"Complete CompletionsReached".to_owned()));
        prop_assert!(!world.pods.iter().any(|pod| is_tracked(pod)));
    }
}
