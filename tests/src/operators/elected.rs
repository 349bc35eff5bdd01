//! The shape with a claim and an action: of a band's members one is claimed to lead, and is told so by an action, which others
//! may hear of only when it is done.

use super::Why;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass::{Action, Context, Controller, Failure, Guard, Manager, Observed, Plan, Refusal};
use windlass_testing::{Data, TestCluster, config_map};

/// What a band should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shapes.windlass.dev", version = "v1", kind = "Band", namespaced, status = "BandStatus")]
pub struct BandSpec {
    /// Who may lead; the first of them does, unless another does already.
    pub members: Vec<String>,
}

/// What a band is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BandStatus {
    /// Who leads, and knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What a band needs: a leader is claimed, then told, then shown.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(band: &Band, observed: &Observed) -> Result<Plan, Refusal> {
    let (claimed, first) = (format!("{}-leader", band.name_any()), band.spec.members.first());
    let Some(first) = first else { return Ok(Plan::waiting(Why::SomeoneLeads)) };
    let led_by = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("is").cloned());
    let claim = match observed.get::<ConfigMap>(&claimed)? {
        Some(map) if led_by(&map).is_some_and(|leader| band.spec.members.contains(&leader)) => (*map).clone(),
        Some(map) => (*map).clone().data("is", first),
        None => config_map(&claimed).data("is", first),
    };
    let leader = led_by(&claim).unwrap_or_default();
    let told = observed.action("tell", &leader)?.is_done();
    let plan = if told { Plan::new() } else { Plan::waiting(Why::WaitsForTheLeader) };
    let tell = Action::new("tell", &leader).with(&leader).only_if(Guard::same_spec(band));
    let plan = plan.claim(claim, Why::SomeoneLeads).action(tell, Why::KnowsThatItLeads);
    let status = BandStatus { leader: told.then_some(leader), ..Default::default() };
    Ok(plan.status(status))
}

/// Tells the leader that it leads, by a letter. Telling it twice does no harm.
async fn tell(band: Arc<Band>, leader: Value, context: Context) -> Result<(), Failure> {
    let letters: Api<ConfigMap> =
        Api::namespaced(context.client().clone(), &band.namespace().unwrap_or_default());
    let letter = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("letter-to-{}", leader.as_str().unwrap_or_default())},
        "data": {"says": format!("you lead {}", band.name_any())},
    });
    let name = letter["metadata"]["name"].as_str().unwrap_or_default();
    letters.patch(name, &PatchParams::apply("postman").force(), &Patch::Apply(&letter)).await?;
    Ok(())
}

/// The manager with its controller.
pub fn operator(manager: Manager) -> Manager {
    manager.controller(
        Controller::deciding(decide).owns::<ConfigMap>().claims::<ConfigMap>().action("tell", tell),
    )
}

/// A band elects its first member, and another when that one leaves.
///
/// # Errors
/// When the world does not become what it should.
pub async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    cluster.create(Band::new("b", BandSpec { members: vec!["ann".into(), "bob".into()] })).await?;
    cluster.eventually::<Band>("b").has(json!({"status": {"leader": "ann"}})).await?;
    cluster.patch::<Band>("b", json!({"spec": {"members": ["eve", "ann"]}})).await?;
    cluster
        .eventually::<Band>("b")
        .has(json!({"status": {"leader": "ann", "conditions": [
            {"type": "Ready", "observedGeneration": 2}, {}, {},
        ]}}))
        .await?;
    cluster.patch::<Band>("b", json!({"spec": {"members": ["bob"]}})).await?;
    cluster.eventually::<Band>("b").has(json!({"status": {"leader": "bob"}})).await?;
    cluster.eventually::<ConfigMap>("letter-to-bob").exists().await?;
    Ok(())
}
