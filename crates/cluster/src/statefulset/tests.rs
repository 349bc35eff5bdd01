//! What is decided for a StatefulSet: tests without a cluster.

use super::decide::{Observed, Step, TemplateRevision, decide};
use super::identity::Set;
use super::status::status;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn set(spec: Value) -> StatefulSet {
    let mut whole =
        json!({ "selector": { "matchLabels": { "app": "db" } }, "serviceName": "db", "template": {} });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": "db", "uid": "set" }, "spec": whole })).unwrap()
}

/// A pod of a set: of a revision, in a phase, ready or not, terminating or not.
fn pod(ordinal: i64, revision: &str, state: &str) -> (i64, Arc<Pod>) {
    let (phase, ready) = match state {
        "ready" | "terminating" => ("Running", "True"),
        "running" => ("Running", "False"),
        other => (other, "False"),
    };
    let pod = json!({
        "metadata": {
            "name": format!("db-{ordinal}"),
            "uid": format!("uid-{ordinal}"),
            "labels": { "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": format!("db-{ordinal}") },
            "deletionTimestamp": (state == "terminating").then_some("2026-01-01T00:00:00Z"),
        },
        "spec": { "containers": [] },
        "status": {
            "phase": phase,
            "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        },
    });
    (ordinal, Arc::new(serde_json::from_value(pod).unwrap()))
}

/// The steps in words, a phase to an element.
fn steps(set: &StatefulSet, pods: &[(i64, Arc<Pod>)], claims: &[&str]) -> Vec<Vec<String>> {
    let known = Set::of(set).unwrap();
    let claims: BTreeMap<String, Arc<PersistentVolumeClaim>> = claims
        .iter()
        .map(|name| {
            let metadata = ObjectMeta { name: Some((*name).to_owned()), ..ObjectMeta::default() };
            ((*name).to_owned(), Arc::new(PersistentVolumeClaim { metadata, ..Default::default() }))
        })
        .collect();
    let version = |name: &str| TemplateRevision { name: name.into(), template: PodTemplateSpec::default() };
    let observed = Observed {
        set: &known,
        owner: &OwnerReference::default(),
        pods,
        claim: &|name| claims.get(name).cloned(),
        current: &version("old"),
        update: &version("new"),
        current_replicas: 0,
        now: now(),
    };
    let name = |meta: &ObjectMeta| meta.name.clone().unwrap_or_default();
    let words = |step: &Step| match step {
        Step::Create(claims, pod) => {
            let claims: String =
                claims.iter().map(|claim| format!(" with {}", name(&claim.metadata))).collect();
            let revision = super::revision(pod).unwrap_or_default();
            format!("create {} {revision}{claims}", name(&pod.metadata))
        }
        Step::CreateClaims(claims, pod) => format!("create claims {} {}", name(&pod.metadata), claims.len()),
        Step::UpdateIdentity(pod) => format!("update identity {}", name(&pod.metadata)),
        Step::SetOwners(claim, owners) => {
            let owners: Vec<&str> = owners.iter().map(|owner| owner.kind.as_str()).collect();
            format!("own {} by {}", name(&claim.metadata), owners.join("+"))
        }
        Step::ConflictingOwner(claim) => format!("conflicting owner {claim}"),
        Step::Delete(pod) => format!("delete {}", name(&pod.metadata)),
    };
    decide(&observed).iter().map(|steps| steps.iter().map(words).collect()).collect()
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

fn nothing() -> Vec<Vec<String>> {
    Vec::new()
}

#[test]
fn an_ordered_set_makes_one_pod_after_the_other_is_ready() {
    let set = set(json!({ "replicas": 3 }));
    assert_eq!(steps(&set, &[], &[]), [["create db-0 new"]]);
    let waiting: [Vec<Vec<String>>; 3] =
        ["Pending", "running", "terminating"].map(|state| steps(&set, &[pod(0, "new", state)], &[]));
    assert!(waiting.iter().all(Vec::is_empty), "{waiting:?}");
    assert_eq!(steps(&set, &[pod(0, "new", "ready")], &[]), [["create db-1 new"]]);
}

#[test]
fn a_pod_that_was_not_ready_long_enough_holds_up_the_next() {
    let pods = [pod(0, "new", "ready")];
    assert!(steps(&set(json!({ "replicas": 2, "minReadySeconds": 61 })), &pods, &[]).is_empty());
    assert_eq!(
        steps(&set(json!({ "replicas": 2, "minReadySeconds": 60 })), &pods, &[]),
        [["create db-1 new"]]
    );
}

#[test]
fn a_parallel_set_makes_all_at_once_and_deletes_all_at_once() {
    let parallel = |replicas| {
        set(json!({ "replicas": replicas, "podManagementPolicy": "Parallel", "ordinals": { "start": 5 } }))
    };
    assert_eq!(steps(&parallel(2), &[], &[]), [["create db-5 new", "create db-6 new"]]);
    let pods = [5, 6, 7].map(|ordinal| pod(ordinal, "new", "running"));
    assert_eq!(steps(&parallel(1), &pods, &[]), [["delete db-7", "delete db-6"]]);
}

#[test]
fn what_broke_is_replaced_in_its_reconcile() {
    let set = set(json!({ "replicas": 3 }));
    let broken = [pod(0, "new", "ready"), pod(1, "new", "Failed"), pod(2, "new", "Succeeded")];
    assert_eq!(steps(&set, &broken, &[]), [["delete db-1"]]);
    assert_eq!(steps(&set, &[broken[0].clone(), broken[2].clone()], &[]), [["create db-1 new"]]);
}

#[test]
fn scaling_down_takes_the_highest_and_waits_for_it() {
    let set = set(json!({ "replicas": 1 }));
    let pods = |last: &str| [pod(0, "new", "ready"), pod(1, "new", "ready"), pod(2, "new", last)];
    assert_eq!(steps(&set, &pods("ready"), &[]), [["delete db-2"]]);
    assert_eq!(steps(&set, &pods("terminating"), &[]), nothing());
    assert_eq!(steps(&set, &pods("running"), &[]), [["delete db-2"]], "the one that is not well goes first");
    let unhealthy = [pod(0, "new", "ready"), pod(1, "new", "running"), pod(2, "new", "running")];
    assert_eq!(steps(&set, &unhealthy, &[]), nothing(), "a lower one is not well: it is waited for");
}

#[test]
fn an_update_begins_at_the_highest_and_ends_at_the_partition() {
    let rolling = |partition| {
        set(
            json!({ "replicas": 3, "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": partition } } }),
        )
    };
    let old = [0, 1, 2].map(|ordinal| pod(ordinal, "old", "ready"));
    assert_eq!(steps(&rolling(0), &old, &[]), [["delete db-2"]]);
    let some = [old[0].clone(), old[1].clone(), pod(2, "new", "ready")];
    assert_eq!(steps(&rolling(0), &some, &[]), [["delete db-1"]]);
    assert_eq!(steps(&rolling(2), &some, &[]), nothing());
    assert_eq!(
        steps(&rolling(2), &old[1..], &[]),
        [["create db-0 old"]],
        "below the partition it is the old one"
    );
    assert_eq!(
        steps(&set(json!({ "replicas": 3, "updateStrategy": { "type": "OnDelete" } })), &old, &[]),
        nothing()
    );
}

#[test]
fn claims_come_before_their_pod_and_go_as_the_policy_says() {
    let set = |replicas| {
        set(json!({
            "replicas": replicas,
            "volumeClaimTemplates": [{ "metadata": { "name": "data" } }],
            "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete", "whenDeleted": "Delete" },
        }))
    };
    assert_eq!(steps(&set(1), &[], &[]), [["create db-0 new with data-db-0"]]);
    assert_eq!(steps(&set(1), &[], &["data-db-0"]), [["create db-0 new"]]);
    let pending = [pod(0, "new", "Pending")];
    assert_eq!(steps(&set(1), &pending, &[]), [["create claims db-0 1"]]);
    assert_eq!(steps(&set(1), &pending, &["data-db-0"]), [["own data-db-0 by StatefulSet"]]);
    let ready = [pod(0, "new", "ready")];
    assert_eq!(steps(&set(0), &ready, &["data-db-0"]), [["own data-db-0 by Pod"], ["delete db-0"]]);
    assert_eq!(
        steps(&set(1), &ready, &["data-db-0"]),
        [["own data-db-0 by StatefulSet", "update identity db-0"]],
        "its volume is not there"
    );
}

#[test]
fn the_status_counts_and_an_update_that_is_done_is_current() {
    let rolling = set(json!({ "replicas": 2 }));
    let known = Set::of(&rolling).unwrap();
    let count = |pods: &[(i64, Arc<Pod>)]| status(&known, None, pods, ("old", "new"), 0, now());
    let half = count(&[pod(0, "old", "ready"), pod(1, "new", "running")]);
    let expected = StatefulSetStatus {
        replicas: 2,
        ready_replicas: Some(1),
        available_replicas: Some(1),
        current_replicas: Some(1),
        updated_replicas: Some(1),
        current_revision: Some("old".into()),
        update_revision: Some("new".into()),
        collision_count: Some(0),
        ..StatefulSetStatus::default()
    };
    assert_eq!(half, expected);
    let done = count(&[pod(0, "new", "ready"), pod(1, "new", "ready")]);
    assert_eq!((done.current_replicas, done.current_revision.as_deref()), (Some(2), Some("new")));
}
