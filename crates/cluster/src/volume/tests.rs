//! What is decided for claims and volumes: tests without a cluster.

use super::decide::{ClaimContext, Step, VolumeStep, claim_steps, volume_step};
use super::matching::find_best_match;
use super::provision;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_component_helpers::local_volumes::{PROVISIONER, PROVISIONS_VOLUMES};

fn merged(mut base: Value, more: &Value) -> Value {
    json_patch_merge(&mut base, more);
    base
}

/// A merge patch, as far as the tests need one.
fn json_patch_merge(base: &mut Value, more: &Value) {
    let Some(fields) = more.as_object() else {
        *base = more.clone();
        return;
    };
    if !base.is_object() {
        *base = json!({});
    }
    for (field, value) in fields {
        match value {
            Value::Null => drop(base.as_object_mut().map(|base| base.remove(field))),
            value => json_patch_merge(&mut base[field], value),
        }
    }
}

fn volume(name: &str, size: &str, more: &Value) -> Arc<PersistentVolume> {
    let base = json!({
        "metadata": { "name": name, "resourceVersion": "7" },
        "spec": { "capacity": { "storage": size }, "accessModes": ["ReadWriteOnce"], "storageClassName": "slow" },
        "status": { "phase": "Available" },
    });
    Arc::new(serde_json::from_value(merged(base, more)).unwrap())
}

fn claim(more: &Value) -> PersistentVolumeClaim {
    let base = json!({
        "metadata": { "name": "data", "namespace": "shop", "uid": "claim" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
            "resources": { "requests": { "storage": "5Gi" } },
        },
        "status": { "phase": "Pending" },
    });
    serde_json::from_value(merged(base, more)).unwrap()
}

fn class(provisioner: &str, mode: &str) -> StorageClass {
    let class =
        json!({ "metadata": { "name": "slow" }, "provisioner": provisioner, "volumeBindingMode": mode });
    serde_json::from_value(class).unwrap()
}

fn context<'a>(volumes: &'a [Arc<PersistentVolume>], class: Option<&'a StorageClass>) -> ClaimContext<'a> {
    ClaimContext { volumes, class, default_class: None, node: None, waiting_pods: &[] }
}

fn reason(steps: &[Step]) -> Option<&'static str> {
    steps.iter().find_map(|step| match step {
        Step::Event(_, reason, _) => Some(*reason),
        _ => None,
    })
}

#[test]
fn the_smallest_that_fits_is_taken() {
    let volumes = [
        volume("small", "1Gi", &json!({})),
        volume("large", "50Gi", &json!({})),
        volume("medium", "10Gi", &json!({})),
        volume("fast", "6Gi", &json!({ "spec": { "storageClassName": "fast" } })),
        volume("block", "6Gi", &json!({ "spec": { "volumeMode": "Block" } })),
        volume("shared", "6Gi", &json!({ "spec": { "accessModes": ["ReadWriteMany"] } })),
        volume("used", "6Gi", &json!({ "spec": { "claimRef": { "name": "other", "namespace": "shop" } } })),
        volume("over", "6Gi", &json!({ "status": { "phase": "Released" } })),
    ];
    let taken = |claim: &PersistentVolumeClaim| {
        find_best_match(&volumes, claim, false, None).and_then(|volume| volume.metadata.name.clone())
    };
    assert_eq!(taken(&claim(&json!({}))).as_deref(), Some("medium"));
    let labelled = claim(&json!({ "spec": { "selector": { "matchLabels": { "disk": "ssd" } } } }));
    assert_eq!(taken(&labelled), None);
    let huge = claim(&json!({ "spec": { "resources": { "requests": { "storage": "1Ti" } } } }));
    assert_eq!(taken(&huge), None);
}

#[test]
fn what_is_set_aside_for_a_claim_is_its_own() {
    let aside = json!({ "spec": { "claimRef": { "name": "data", "namespace": "shop" } } });
    let volumes = [volume("medium", "10Gi", &json!({})), volume("mine", "50Gi", &aside)];
    let taken = find_best_match(&volumes, &claim(&json!({})), false, None).unwrap();
    assert_eq!(taken.metadata.name.as_deref(), Some("mine"));
}

#[test]
fn a_claim_that_waits_gets_what_its_node_reaches() {
    let here = |node: &str| {
        let term = json!({ "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] }] });
        json!({ "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [term] } } } })
    };
    let volumes = [volume("a", "10Gi", &here("n1")), volume("b", "10Gi", &here("n2"))];
    let node: Node =
        serde_json::from_value(json!({ "metadata": { "labels": { "kubernetes.io/hostname": "n2" } } }))
            .unwrap();
    assert_eq!(find_best_match(&volumes, &claim(&json!({})), true, None), None);
    let taken = find_best_match(&volumes, &claim(&json!({})), true, Some(&node)).unwrap();
    assert_eq!(taken.metadata.name.as_deref(), Some("b"));
}

#[test]
fn binding_goes_step_by_step_and_comes_to_rest() {
    let mut there = serde_json::to_value(claim(&json!({}))).unwrap();
    let mut free = serde_json::to_value(&*volume("v", "10Gi", &json!({}))).unwrap();
    let mut writes = 0;
    for _ in 0..8 {
        let claim: PersistentVolumeClaim = serde_json::from_value(there.clone()).unwrap();
        let volumes = [Arc::new(serde_json::from_value::<PersistentVolume>(free.clone()).unwrap())];
        let steps = claim_steps(&claim, &context(&volumes, None));
        if steps.is_empty() {
            break;
        }
        for step in steps {
            writes += 1;
            match step {
                Step::Volume(_, patch) => json_patch_merge(&mut free, &patch),
                Step::Claim(patch) => json_patch_merge(&mut there, &patch),
                Step::Status(status) => there["status"] = serde_json::to_value(status).unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(writes, 3);
    assert_eq!(free["spec"]["claimRef"]["uid"], "claim");
    assert_eq!(there["spec"]["volumeName"], "v");
    assert_eq!(
        there["status"],
        json!({ "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "10Gi" } })
    );
    let bound: PersistentVolumeClaim = serde_json::from_value(there).unwrap();
    assert!(
        matches!(&claim_steps(&bound, &context(&[], None))[..], [Step::Status(lost), Step::Event(true, "ClaimLost", _)] if lost.phase.as_deref() == Some("Lost"))
    );
}

#[test]
fn without_a_volume_it_is_said_what_is_waited_for() {
    let event_reason = |claim: &PersistentVolumeClaim, class: Option<&StorageClass>| {
        reason(&claim_steps(claim, &context(&[], class)))
    };
    let ours = class(PROVISIONER, "WaitForFirstConsumer");
    assert_eq!(event_reason(&claim(&json!({})), Some(&ours)), Some("WaitForFirstConsumer"));
    assert_eq!(event_reason(&claim(&json!({})), None), Some("ProvisioningFailed"));
    assert_eq!(
        event_reason(&claim(&json!({})), Some(&class("example.com/csi", "Immediate"))),
        Some("ExternalProvisioning")
    );
    let none = claim(&json!({ "spec": { "storageClassName": "" } }));
    assert_eq!(event_reason(&none, None), Some("FailedBinding"));
    let selected =
        claim(&json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "n1" } } }));
    assert_eq!(claim_steps(&selected, &context(&[], Some(&ours))), [Step::Provision]);
    let itself = json!({ "metadata": { "name": "n1", "annotations": { PROVISIONS_VOLUMES: "true" } } });
    let itself: Node = serde_json::from_value(itself).unwrap();
    let left_to_it = ClaimContext { node: Some(&itself), ..context(&[], Some(&ours)) };
    assert_eq!(reason(&claim_steps(&selected, &left_to_it)), Some("ExternalProvisioning"));
    let made = provision::volume(&selected, &ours).unwrap();
    assert_eq!(made.metadata.name.as_deref(), Some("pvc-claim"));
    assert!(made.spec.unwrap().node_affinity.is_some());
    let open = claim(&json!({ "spec": { "storageClassName": null } }));
    let with_default = ClaimContext { default_class: Some("standard"), ..context(&[], None) };
    let assigned = Step::Claim(json!({ "spec": { "storageClassName": "standard" } }));
    assert_eq!(claim_steps(&open, &with_default), [assigned]);
}

#[test]
fn a_volume_is_free_bound_released_and_reclaimed() {
    let bound = json!({ "spec": { "claimRef": { "name": "data", "namespace": "shop", "uid": "claim" } } });
    let phase =
        |volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>| match volume_step(volume, claim) {
            VolumeStep::Phase(phase, _) => phase.to_owned(),
            other => format!("{other:?}"),
        };
    assert_eq!(phase(&volume("v", "1Gi", &json!({})), None), "Available");
    let used = volume("v", "1Gi", &bound);
    let of_it = claim(&json!({ "spec": { "volumeName": "v" } }));
    assert_eq!(phase(&used, Some(&of_it)), "Bound");
    assert_eq!(phase(&used, Some(&claim(&json!({})))), "Leave", "the claim's reconcile is next");
    assert_eq!(phase(&used, None), "Released");
    let released = |more: &Value| {
        volume(
            "v",
            "1Gi",
            &merged(merged(bound.clone(), &json!({ "status": { "phase": "Released" } })), more),
        )
    };
    assert_eq!(phase(&released(&json!({})), None), "Leave", "it is retained");
    let delete = json!({ "spec": { "persistentVolumeReclaimPolicy": "Delete" } });
    assert_eq!(phase(&released(&delete), None), "Failed", "nobody knows how to delete it");
    let ours =
        json!({ "metadata": { "annotations": { "pv.kubernetes.io/provisioned-by": "windlass.dev/local" } } });
    assert_eq!(phase(&released(&merged(delete, &ours)), None), "Delete");
    let other_claim = claim(&json!({ "spec": { "volumeName": "w" } }));
    let by_us = merged(
        bound,
        &json!({ "metadata": { "annotations": { "pv.kubernetes.io/bound-by-controller": "yes" } } }),
    );
    assert!(matches!(volume_step(&volume("v", "1Gi", &by_us), Some(&other_claim)), VolumeStep::Unbind(_)));
}
