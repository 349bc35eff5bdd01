//! The shape outside namespaces: a team has a badge in each namespace that it works in.

use super::Why;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Controller, Manager, Observed, Plan, Refusal};
use windlass_testing::{Building, Data, TestCluster, config_map, named};

/// What a team should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shapes.windlass.dev", version = "v1", kind = "Team", status = "TeamStatus")]
#[serde(rename_all = "camelCase")]
pub struct TeamSpec {
    /// The namespaces it works in.
    pub works_in: Vec<String>,
    /// What its badges say.
    pub motto: String,
}

/// What a team is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TeamStatus {
    /// Where it has a badge that says what it should.
    #[serde(default)]
    pub badges: Vec<String>,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What a team needs.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(team: &Team, observed: &Observed) -> Result<Plan, Refusal> {
    let says = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("motto").cloned());
    let badges = observed.list::<ConfigMap>()?;
    let badges = badges.iter().filter(|badge| says(badge).as_ref() == Some(&team.spec.motto));
    let mut badges: Vec<String> = badges.filter_map(|badge| badge.namespace()).collect();
    badges.sort();
    let plan = team.spec.works_in.iter().fold(Plan::new(), |plan, place| {
        let badge = config_map(team.name_any()).in_namespace(place).data("motto", &team.spec.motto);
        plan.apply(badge, Why::IsDeclared)
    });
    Ok(plan.status(TeamStatus { badges, ..Default::default() }))
}

/// The manager with its controller.
pub fn operator(manager: Manager) -> Manager {
    manager.controller(Controller::deciding(decide).owns::<ConfigMap>().prunes::<ConfigMap>())
}

/// A team works in two places, then in others with another motto.
///
/// # Errors
/// When the world does not become what it should.
pub async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    for place in ["east", "north", "west"] {
        cluster.create(named::<Namespace>(place)).await?;
    }
    let spec = TeamSpec { works_in: vec!["east".into(), "west".into()], motto: "slow".into() };
    cluster.create(Team::new("t", spec)).await?;
    cluster.eventually::<Team>("t").has(json!({"status": {"badges": ["east", "west"]}})).await?;
    cluster.patch::<Team>("t", json!({"spec": {"worksIn": ["north", "west"], "motto": "steady"}})).await?;
    cluster.eventually::<Team>("t").has(json!({"status": {"badges": ["north", "west"]}})).await?;
    cluster.in_namespace("east").eventually::<ConfigMap>("t").is_deleted().await?;
    Ok(())
}
