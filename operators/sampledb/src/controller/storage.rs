//! How large volumes are: claims grow to the size that the database asks for.
//!
//! It is a concern of its own, with a condition of its own: where a StorageClass allows no expansion the API server refuses to
//! patch a claim, and nothing else may wait for that. The StatefulSet's claim templates, for instances to come, are
//! provisioning's.

use crate::api::v1alpha1::{SampleDB, StorageStatus};
use crate::children;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use serde_json::json;
use windlass::quantity::value;
use windlass::{Observed, Plan, Reason, Reasoned, Refusal, Until};

/// The condition of this concern.
pub const CONDITION: &str = "StorageReady";

/// The conditions of a claim that say how its expansion goes, first what a person has to look at.
const STAGES: [&str; 4] = ["ControllerResizeError", "NodeResizeError", "FileSystemResizePending", "Resizing"];

#[derive(Debug)]
enum Why {
    Grows { from: Quantity, to: Quantity },
    SizeNotReported,
    ClaimNotBound { claim: String },
    VolumeTooSmall { claim: String, capacity: Quantity, size: Quantity },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::Grows { from, to } => format!("the volume grows from {} to {}", from.0, to.0),
            Self::SizeNotReported => "the size of claims is reported before they grow".to_owned(),
            Self::ClaimNotBound { claim } => format!("{claim} is not bound yet"),
            Self::VolumeTooSmall { claim, capacity, size } => {
                format!("the volume of {claim} has {} of {}", capacity.0, size.0)
            }
        }
    }
}

/// Which claims grow, given what is there.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(database: &SampleDB, observed: &Observed) -> Result<Plan, Refusal> {
    let mut claims = Vec::new();
    for ordinal in 0..database.spec.instances {
        let claim = observed.get::<PersistentVolumeClaim>(&children::claim_name(database, ordinal))?;
        claims.extend(claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()));
    }
    let now = StorageStatus {
        requested: claims.iter().filter_map(|claim| requested(claim)).max_by_key(|size| value(size)).cloned(),
        capacity: claims.iter().filter_map(|claim| capacity(claim)).min_by_key(|size| value(size)).cloned(),
    };
    // What the size can be set back to is known before anything is tried that may be refused.
    let reported = database.status.as_ref().and_then(|status| status.storage.as_ref());
    let is_known = reported.is_some_and(|reported| reported.requested == now.requested);
    let mut plan = Plan::new();
    for claim in &claims {
        plan = grow(plan, claim, &database.spec.storage.size, is_known);
    }
    Ok(plan.status(json!({ "storage": now })))
}

fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")
}

fn status(claim: &PersistentVolumeClaim) -> Option<&PersistentVolumeClaimStatus> {
    claim.status.as_ref().filter(|status| status.phase.as_deref() == Some("Bound"))
}

fn capacity(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    status(claim)?.capacity.as_ref()?.get("storage")
}

/// What is done, or awaited, for one claim. One that is larger stays so: volumes do not shrink.
fn grow(plan: Plan, claim: &PersistentVolumeClaim, size: &Quantity, is_known: bool) -> Plan {
    let name = claim.name_any();
    let (Some(requested), Some(capacity)) = (requested(claim), capacity(claim)) else {
        // Only one that is bound can be expanded.
        return plan.wait(Why::ClaimNotBound { claim: name }, Until::Change);
    };
    if value(requested) >= value(size) {
        return match value(capacity) < value(requested) {
            true => plan.wait(awaited(claim, capacity, requested), Until::Change),
            false => plan,
        };
    }
    if !is_known {
        return plan.wait(Why::SizeNotReported, Until::Change);
    }
    let patch = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    plan.patch::<PersistentVolumeClaim>(name, patch, Why::Grows { from: requested.clone(), to: size.clone() })
}

/// Why a volume is not as large as its claim, by the claim's own conditions if they say so.
fn awaited(claim: &PersistentVolumeClaim, capacity: &Quantity, size: &Quantity) -> Reason {
    let name = claim.name_any();
    let conditions = status(claim).and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let stage = STAGES.iter().find_map(|stage| {
        let condition = conditions.iter().find(|one| one.type_ == *stage && one.status == "True")?;
        Some((*stage, condition.message.clone().unwrap_or_default()))
    });
    let small = Why::VolumeTooSmall { claim: name, capacity: capacity.clone(), size: size.clone() };
    match stage {
        Some((stage, message)) => {
            let said = format!("{}. {message}", small.message());
            Reason::new(stage, said.trim_end_matches(". ").to_owned())
        }
        None => small.into(),
    }
}

/// Whether two versions of a claim differ in what is decided by.
pub fn claim_differs(one: &PersistentVolumeClaim, other: &PersistentVolumeClaim) -> bool {
    let conditions =
        |claim: &PersistentVolumeClaim| status(claim).and_then(|status| status.conditions.clone());
    (requested(one), capacity(one)) != (requested(other), capacity(other))
        || conditions(one) != conditions(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn database(size: &str, reported: &str) -> SampleDB {
        let mut database: SampleDB = serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB", "metadata": {"name": "db"},
            "spec": {"version": "15", "instances": 2, "storage": {"size": size}},
        }))
        .unwrap();
        database.status = Some(serde_json::from_value(json!({"storage": {"requested": reported}})).unwrap());
        database
    }

    fn claim(ordinal: i32, size: &str, status: Value) -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": format!("data-db-{ordinal}")},
            "spec": {"resources": {"requests": {"storage": size}}},
            "status": status,
        }))
        .unwrap()
    }

    fn bound(capacity: &str) -> Value {
        json!({"phase": "Bound", "capacity": {"storage": capacity}})
    }

    fn decided(database: &SampleDB, claims: &[PersistentVolumeClaim]) -> Plan {
        let observed = claims.iter().cloned().fold(Observed::empty(), Observed::with);
        let plan = decide(database, &observed).unwrap();
        crate::storages().check(&plan).unwrap();
        plan
    }

    fn patched(plan: &Plan) -> Vec<&str> {
        plan.steps().iter().map(|step| step.effect.name()).collect()
    }

    #[test]
    fn claims_grow_that_are_too_small_and_none_shrinks() {
        let claims =
            [claim(0, "1Gi", bound("1Gi")), claim(1, "4Gi", bound("4Gi")), claim(2, "1Gi", bound("1Gi"))];
        let plan = decided(&database("2Gi", "4Gi"), &claims);
        // There are two instances; what one that is not wanted any more left is left as it is.
        assert_eq!(patched(&plan), ["data-db-0"]);
        let status = plan.reported().unwrap();
        assert_eq!(status["storage"], json!({"requested": "4Gi", "capacity": "1Gi"}));
        let equal = decided(&database("1024Mi", "1Gi"), &[claim(0, "1Gi", bound("1Gi"))]);
        assert!(patched(&equal).is_empty() && equal.is_complete(), "{equal}");
    }

    #[test]
    fn the_size_is_reported_before_a_claim_grows() {
        let claims = [claim(0, "1Gi", bound("1Gi"))];
        let unknown = SampleDB { status: None, ..database("2Gi", "1Gi") };
        let plan = decided(&unknown, &claims);
        assert!(
            patched(&plan).is_empty() && plan.reported().unwrap()["storage"]["requested"] == "1Gi",
            "{plan}"
        );
        assert_eq!(patched(&decided(&database("2Gi", "1Gi"), &claims)), ["data-db-0"]);
    }

    #[test]
    fn one_that_is_not_bound_is_waited_for() {
        let plan = decided(&database("2Gi", "1Gi"), &[claim(0, "1Gi", json!({"phase": "Pending"}))]);
        assert!(patched(&plan).is_empty());
        assert_eq!(plan.waits()[0].reason.name(), "ClaimNotBound");
    }

    #[test]
    fn a_volume_that_grows_is_waited_for_and_its_claim_says_why() {
        let awaited = |conditions: Value| {
            let mut status = bound("1Gi");
            status["conditions"] = conditions;
            let plan = decided(&database("2Gi", "2Gi"), &[claim(0, "2Gi", status)]);
            assert!(patched(&plan).is_empty());
            plan.waits()[0].reason.to_string()
        };
        assert_eq!(awaited(json!([])), "VolumeTooSmall: the volume of data-db-0 has 1Gi of 2Gi");
        let pending = json!({"type": "FileSystemResizePending", "status": "True", "message": "Waiting for user to (re-)start a pod"});
        let said = awaited(json!([{"type": "Resizing", "status": "True"}, pending]));
        assert_eq!(
            said,
            "FileSystemResizePending: the volume of data-db-0 has 1Gi of 2Gi. Waiting for user to (re-)start a pod"
        );
        let resizing = awaited(json!([{"type": "Resizing", "status": "True"}]));
        assert_eq!(resizing, "Resizing: the volume of data-db-0 has 1Gi of 2Gi");
    }

    #[test]
    fn what_is_decided_by_makes_a_difference_and_nothing_else() {
        let one = claim(0, "1Gi", bound("1Gi"));
        let mut labelled = one.clone();
        labelled.labels_mut().insert("a".to_owned(), "b".to_owned());
        assert!(!claim_differs(&one, &labelled));
        assert!(claim_differs(&one, &claim(0, "2Gi", bound("1Gi"))));
        assert!(claim_differs(&one, &claim(0, "1Gi", bound("2Gi"))));
        assert!(claim_differs(&one, &claim(0, "1Gi", json!({"phase": "Lost"}))));
    }
}
