//! Tests of the rollout decisions, without a cluster.

use super::decide::{Step, step};
use super::replica_sets::{
    DESIRED_REPLICAS, HASH_LABEL, MAX_REPLICAS, REVISION, Rollout, annotation, size, sized,
};
use super::scale::{scale_down_old, scale_proportionally};
use super::status::{PROGRESSING, condition, reasons};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn deployment(replicas: i32, image: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "d", "generation": 1 },
        "spec": {
            "replicas": replicas, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 2,
            "strategy": { "type": "RollingUpdate",
                          "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } },
                          "spec": { "containers": [{ "name": "app", "image": image }] } },
        },
    }))
    .unwrap()
}

/// A deployment and its sets, moved on by the decision and by a test that plays the other controllers.
struct Fixture {
    deployment: Deployment,
    sets: Vec<ReplicaSet>,
    /// The most pods and the fewest available that there ever were.
    most_pods: i32,
    fewest_available: i32,
}

impl Fixture {
    fn new(deployment: Deployment) -> Self {
        Self { deployment, sets: Vec::new(), most_pods: 0, fewest_available: i32::MAX }
    }

    /// Steps until the decision rests; the answer is after how long it looks again.
    fn settle(&mut self) -> Option<Duration> {
        for _ in 0..40 {
            let deployment = self.deployment.clone();
            let rollout = Rollout::of(&deployment).unwrap();
            let sets = self.sets.iter().cloned().map(Arc::new).collect();
            let runs = |set: &ReplicaSet| set.status.as_ref().is_some_and(|status| status.replicas > 0);
            match step(&rollout, sets, OwnerReference::default(), runs, now()) {
                Step::Create(set) => {
                    let mut set = *set;
                    set.metadata.uid = set.metadata.name.clone();
                    let second = i64::try_from(self.sets.len()).unwrap();
                    let at = Timestamp::from_second(second).unwrap();
                    set.metadata.creation_timestamp = Some(at.into());
                    self.sets.push(set);
                }
                Step::Update(sets) => {
                    for (_, set) in sets {
                        let old = self.sets.iter_mut().find(|old| old.metadata.uid == set.metadata.uid);
                        *old.unwrap() = set;
                    }
                }
                Step::Delete(sets) => {
                    self.sets.retain(|set| !sets.iter().any(|gone| gone.metadata.uid == set.metadata.uid));
                }
                Step::UpdateStatus(status, revision) => {
                    self.deployment.status = Some(*status);
                    if let Some(revision) = revision {
                        let annotations = self.deployment.metadata.annotations.get_or_insert_default();
                        annotations.insert(REVISION.to_owned(), revision);
                    }
                }
                Step::Done(after) => return after,
            }
            let pods = self.sets.iter().map(size).sum::<i32>();
            self.most_pods = self.most_pods.max(pods);
        }
        panic!("it does not come to rest");
    }

    /// Pods are made and ended as the sets want; those of sets that `works` become available, `at_once` at a time.
    fn pods_follow(&mut self, at_once: i32, works: impl Fn(&ReplicaSet) -> bool) {
        for set in &mut self.sets {
            let works = works(set);
            let wanted = size(set);
            let status = set.status.get_or_insert_default();
            let before = status.available_replicas.unwrap_or_default().min(wanted);
            let available = if works { wanted.min(before + at_once) } else { before };
            status.replicas = wanted;
            status.available_replicas = Some(available);
            status.ready_replicas = Some(available);
            status.observed_generation = Some(0);
            status.terminating_replicas = Some(0);
        }
        let available = self.sets.iter().filter_map(|set| set.status.as_ref()?.available_replicas).sum();
        self.fewest_available = self.fewest_available.min(available);
    }

    fn roll_out(&mut self, at_once: i32) {
        for _ in 0..100 {
            self.settle();
            if self.reason() == reasons::COMPLETE && self.status().replicas == self.status().updated_replicas
            {
                return;
            }
            self.pods_follow(at_once, |_| true);
        }
        panic!("it does not complete: {:?}", self.deployment.status);
    }

    fn status(&self) -> DeploymentStatus {
        self.deployment.status.clone().unwrap_or_default()
    }

    fn reason(&self) -> String {
        let status = self.status();
        condition(&status, PROGRESSING).and_then(|condition| condition.reason.clone()).unwrap_or_default()
    }

    fn change(&mut self, change: impl FnOnce(&mut k8s_openapi::api::apps::v1::DeploymentSpec)) {
        change(self.deployment.spec.as_mut().unwrap());
        *self.deployment.metadata.generation.as_mut().unwrap() += 1;
    }

    fn image(&mut self, image: &str) {
        self.change(|spec| spec.template = deployment(1, image).spec.unwrap().template);
    }

    fn sizes(&self) -> Vec<i32> {
        self.sets.iter().map(size).collect()
    }
}

#[test]
fn the_first_set_is_made_whole_and_named_by_its_template() {
    let mut fixture = Fixture::new(deployment(3, "a"));
    fixture.settle();
    let set = &fixture.sets[0];
    let hash = &set.metadata.labels.as_ref().unwrap()[HASH_LABEL];
    assert_eq!(set.metadata.name, Some(format!("web-{hash}")));
    assert_eq!(set.spec.as_ref().unwrap().selector.match_labels.as_ref().unwrap()[HASH_LABEL], *hash);
    assert_eq!((size(set), annotation(set, REVISION)), (3, Some("1")));
    assert_eq!((annotation(set, DESIRED_REPLICAS), annotation(set, MAX_REPLICAS)), (Some("3"), Some("4")));
    fixture.roll_out(1);
    assert_eq!(fixture.reason(), reasons::COMPLETE);
    assert_eq!(fixture.deployment.metadata.annotations.as_ref().unwrap()[REVISION], "1");
}

#[test]
fn a_rollout_stays_within_its_bounds_at_every_step() {
    for (replicas, at_once) in [(1, 1), (3, 1), (4, 2), (10, 1), (10, 3), (37, 5)] {
        let mut fixture = Fixture::new(deployment(replicas, "a"));
        fixture.roll_out(replicas);
        let unavailable = replicas / 4;
        (fixture.most_pods, fixture.fewest_available) = (0, i32::MAX);
        fixture.image("b");
        fixture.roll_out(at_once);
        assert!(
            fixture.most_pods <= replicas + (replicas + 3) / 4,
            "{replicas}: {} are too many",
            fixture.most_pods
        );
        assert!(
            fixture.fewest_available >= replicas - unavailable,
            "{replicas}: {} are too few",
            fixture.fewest_available
        );
        assert_eq!(fixture.sizes(), [0, replicas]);
        assert_eq!(annotation(&fixture.sets[1], REVISION), Some("2"));
    }
}

#[test]
fn going_back_takes_the_old_set_again_with_a_new_revision() {
    let mut fixture = Fixture::new(deployment(4, "a"));
    fixture.roll_out(4);
    fixture.image("b");
    fixture.roll_out(4);
    fixture.image("a");
    fixture.roll_out(4);
    assert_eq!(fixture.sizes(), [4, 0]);
    assert_eq!(annotation(&fixture.sets[0], REVISION), Some("3"));
    assert_eq!(annotation(&fixture.sets[0], "deployment.kubernetes.io/revision-history"), Some("1"));
}

#[test]
fn only_so_much_history_is_kept() {
    let mut fixture = Fixture::new(deployment(2, "a"));
    for image in ["a", "b", "c", "d", "e"] {
        fixture.image(image);
        fixture.roll_out(2);
    }
    fixture.settle();
    let revisions: Vec<_> = fixture.sets.iter().filter_map(|set| annotation(set, REVISION)).collect();
    assert_eq!(revisions, ["3", "4", "5"]);
}

#[test]
fn one_that_gets_stuck_says_so_after_its_deadline_and_keeps_the_old_pods() {
    let mut fixture = Fixture::new(deployment(10, "a"));
    fixture.roll_out(10);
    fixture.image("broken");
    for _ in 0..5 {
        fixture.settle();
        fixture.pods_follow(10, |set| annotation(set, REVISION) == Some("1"));
    }
    let after = fixture.settle().expect("it is looked at again");
    assert!(after <= Duration::from_secs(601) && after > Duration::from_secs(599), "{after:?}");
    assert_eq!(fixture.sizes(), [8, 5], "no more than may be unavailable");
    let status = fixture.deployment.status.as_mut().unwrap();
    let progressing = status.conditions.as_mut().unwrap().iter_mut().find(|one| one.type_ == PROGRESSING);
    progressing.unwrap().last_update_time = Some("2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().into());
    // Just at the deadline it is not over yet.
    fixture.settle();
    assert_eq!(fixture.reason(), reasons::UPDATED);
    let status = fixture.deployment.status.as_mut().unwrap();
    let progressing = status.conditions.as_mut().unwrap().iter_mut().find(|one| one.type_ == PROGRESSING);
    progressing.unwrap().last_update_time = Some("2025-12-31T23:59:59Z".parse::<Timestamp>().unwrap().into());
    assert_eq!(fixture.settle(), None);
    assert_eq!(fixture.reason(), reasons::TIMED_OUT);
}

#[test]
fn a_paused_one_is_scaled_but_not_rolled_out() {
    let mut fixture = Fixture::new(deployment(4, "a"));
    fixture.roll_out(4);
    fixture.change(|spec| spec.paused = Some(true));
    fixture.image("b");
    fixture.settle();
    assert_eq!((fixture.sizes(), fixture.reason()), (vec![4], reasons::PAUSED.to_owned()));
    fixture.change(|spec| spec.replicas = Some(6));
    fixture.settle();
    assert_eq!(fixture.sizes(), [6]);
    fixture.change(|spec| spec.paused = None);
    fixture.settle();
    assert_eq!(fixture.reason(), reasons::RESUMED);
    fixture.pods_follow(6, |_| true);
    fixture.roll_out(6);
    assert_eq!(fixture.sizes(), [0, 6]);
}

#[test]
fn pods_that_a_smaller_set_has_not_told_of_yet_are_not_spent_twice() {
    let deployment = deployment(6, "a");
    let rollout = Rollout::of(&deployment).unwrap();
    let set = |name: &str, count: i32, available: i32| {
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": { "name": name, "uid": name },
            "spec": { "selector": {} },
            "status": { "replicas": available, "availableReplicas": available },
        }))
        .unwrap();
        Arc::new(sized(&set, &rollout, count))
    };
    // It became smaller by one, and its status still tells of six.
    let (old, new) = (set("old", 5, 6), set("new", 3, 1));
    let sizes = scale_down_old(&rollout, &new, std::slice::from_ref(&old));
    assert_eq!(sizes.iter().map(|(_, size)| *size).collect::<Vec<_>>(), [4], "five stay available");
}

#[test]
fn scaled_in_the_middle_of_a_rollout_every_set_gets_its_share() {
    let deployment = deployment(10, "a");
    let rollout = Rollout::of(&deployment).unwrap();
    let set = |name: &str, count: i32| {
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": { "name": name, "uid": name },
            "spec": { "selector": {} },
        }))
        .unwrap();
        Arc::new(sized(&set, &rollout, count))
    };
    let (old, new) = (set("old", 8), set("new", 5));
    let grown = Deployment { spec: self::deployment(20, "a").spec, ..deployment.clone() };
    let sizes =
        scale_proportionally(&Rollout::of(&grown).unwrap(), None, Some(&new), std::slice::from_ref(&old));
    let sizes: Vec<_> =
        sizes.iter().map(|(set, size)| (set.metadata.name.as_deref().unwrap(), *size)).collect();
    assert_eq!(sizes, [("old", 15), ("new", 10)], "25 in all, as 20 and a quarter more");
    let shrunk = Deployment { spec: self::deployment(5, "a").spec, ..deployment.clone() };
    let sizes = scale_proportionally(&Rollout::of(&shrunk).unwrap(), None, Some(&new), &[old]);
    let sizes: Vec<_> =
        sizes.iter().map(|(set, size)| (set.metadata.name.as_deref().unwrap(), *size)).collect();
    assert_eq!(sizes, [("old", 4), ("new", 3)], "7 in all, as 5 and two more");
}

#[test]
fn recreating_waits_until_the_old_pods_are_gone() {
    let mut fixture = Fixture::new(deployment(3, "a"));
    fixture.change(|spec| {
        spec.strategy = serde_json::from_value(json!({ "type": "Recreate" })).unwrap();
    });
    fixture.roll_out(3);
    fixture.image("b");
    fixture.settle();
    assert_eq!(fixture.sizes(), [0], "the new set is not even made");
    fixture.pods_follow(3, |_| true);
    fixture.settle();
    assert_eq!(fixture.sizes(), [0, 3]);
}
