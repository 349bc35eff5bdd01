//! A plan that waits until what it applies is healthy, and says what is not.

use crate::support::{Fixture, Thing, Why, named, of};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass::{Controller, Observed, Plan, Refusal};

fn decide(thing: &Thing, observed: &Observed) -> Result<Plan, Refusal> {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = PersistentVolumeClaim {
        metadata: named(of(thing, "data")),
        spec: serde_json::from_value(spec).unwrap(),
        ..Default::default()
    };
    Ok(Plan::new().apply(claim, Why::Needed).until_healthy(observed))
}

#[tokio::test]
async fn a_plan_waits_until_what_it_applied_is_healthy() {
    let fixture = Fixture::new().await;
    fixture.thing("a", 1).await;
    let _operator = fixture.run(Controller::deciding(decide).owns::<PersistentVolumeClaim>());
    fixture.until_condition("a", "Ready", "False", "NotBound").await;
    let progressing = fixture.condition("a", "Progressing").await.unwrap();
    assert_eq!((progressing.status.as_str(), progressing.observed_generation), ("True", Some(1)));
    assert_eq!(progressing.message, "PersistentVolumeClaim a-data: it is Pending, and not bound");
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    let claims = fixture.here::<PersistentVolumeClaim>();
    claims.patch_status("a-data", &PatchParams::default(), &bound).await.unwrap();
    fixture.until_condition("a", "Ready", "True", "AsDeclared").await;
}
