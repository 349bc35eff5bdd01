//! The shape with references: a report is written from a source with the key of a seal, both of which others make.

use super::Why;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Controller, Manager, Observed, Plan, Refusal, Relation};
use windlass_testing::{Data, TestCluster, config_map, secret};

/// What a report should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shapes.windlass.dev", version = "v1", kind = "Report", namespaced, status = "ReportStatus")]
pub struct ReportSpec {
    /// The ConfigMap that it is written from.
    pub source: String,
    /// The Secret that it is sealed with.
    pub seal: String,
}

/// What a report is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportStatus {
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What a report needs.
///
/// # Errors
/// While its source or its seal is missing.
pub fn decide(report: &Report, observed: &Observed) -> Result<Plan, Refusal> {
    let source = observed.referenced::<ConfigMap>(&report.spec.source)?;
    let seal = observed.referenced::<Secret>(&report.spec.seal)?;
    let text = source.data.as_ref().and_then(|data| data.get("text").cloned()).unwrap_or_default();
    let sealed = seal.data.as_ref().map_or(0, |data| data.len());
    let written = config_map(format!("{}-written", report.name_any()));
    let written = written.data("text", &text).data("seals", &sealed.to_string());
    Ok(Plan::new().apply(written, Why::IsDeclared).status(ReportStatus::default()))
}

/// The manager with its controller.
pub fn operator(manager: Manager) -> Manager {
    manager.controller(
        Controller::deciding(decide)
            .owns::<ConfigMap>()
            .references::<ConfigMap>(|report: &Report| Relation::named(&report.spec.source))
            .references::<Secret>(|report| Relation::named(&report.spec.seal)),
    )
}

/// A report is asked for before there is anything to write it from; then its source changes, and goes.
///
/// # Errors
/// When the world does not become what it should.
pub async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    let report = || cluster.eventually::<Report>("r");
    cluster.create(Report::new("r", ReportSpec { source: "s".into(), seal: "k".into() })).await?;
    report().has_condition("ReferencesResolved", false).await?;
    cluster.create(config_map("s").data("text", "one")).await?;
    cluster.create(secret("k").data("key", "hidden")).await?;
    report().has_condition("Ready", true).await?;
    cluster.eventually::<ConfigMap>("r-written").has(json!({"data": {"text": "one", "seals": "1"}})).await?;
    cluster.patch::<ConfigMap>("s", json!({"data": {"text": "two"}})).await?;
    cluster.eventually::<ConfigMap>("r-written").has(json!({"data": {"text": "two"}})).await?;
    cluster.delete::<Secret>("k").await?;
    report().has_condition_because("Ready", "ReferenceMissing").await?;
    cluster.eventually::<ConfigMap>("r-written").has(json!({"data": {"text": "two"}})).await?;
    Ok(())
}
