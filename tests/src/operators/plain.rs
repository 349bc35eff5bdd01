//! The plain shape: a site has pages and an index of them, and its status counts them.

use super::Why;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Controller, Manager, Observed, Plan, Refusal};
use windlass_testing::{Data, TestCluster, config_map};

/// What a site should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shapes.windlass.dev", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub struct SiteSpec {
    /// The names of its pages.
    pub pages: Vec<String>,
}

/// What a site is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteStatus {
    /// How many pages are there.
    #[serde(default)]
    pub pages: usize,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What a site needs.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn decide(site: &Site, observed: &Observed) -> Result<Plan, Refusal> {
    let name = |page: &str| format!("{}-{page}", site.name_any());
    let there = observed.names::<ConfigMap>()?;
    let pages = site.spec.pages.iter().filter(|page| there.contains(&name(page))).count();
    let index = config_map(name("index")).data("pages", &site.spec.pages.join(","));
    let plan = site.spec.pages.iter().fold(Plan::new(), |plan, page| {
        plan.apply(config_map(name(page)).data("title", page), Why::IsDeclared)
    });
    Ok(plan.apply(index, Why::IsDeclared).status(SiteStatus { pages, ..Default::default() }))
}

/// The manager with its controller.
pub fn operator(manager: Manager) -> Manager {
    manager.controller(Controller::deciding(decide).owns::<ConfigMap>().prunes::<ConfigMap>().concurrency(2))
}

/// A site gets another page and loses one.
///
/// # Errors
/// When the world does not become what it should.
pub async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    let spec = SiteSpec { pages: vec!["home".into(), "news".into()] };
    cluster.create(Site::new("s", spec)).await?;
    cluster.eventually::<Site>("s").has(json!({"status": {"pages": 2}})).await?;
    cluster.patch::<Site>("s", json!({"spec": {"pages": ["home", "shop", "help"]}})).await?;
    cluster.eventually::<ConfigMap>("s-news").is_deleted().await?;
    cluster.eventually::<Site>("s").has(json!({"status": {"pages": 3}})).await?;
    Ok(())
}
