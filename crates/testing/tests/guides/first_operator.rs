//! The code of `docs/first-operator.md`, which shows it piece by piece.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Controller, Manager, Observed, Plan, Reasoned, Refusal};
use windlass_testing::{TestCluster, campaign};

/// What a website should be.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
pub struct WebsiteSpec {
    /// The image that serves it.
    pub image: String,
    /// How many serve it at once.
    pub replicas: i32,
}

/// What a website is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct WebsiteStatus {
    /// How many serve it now.
    #[serde(default)]
    pub ready: i32,
    /// How it stands, in the usual form.
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

#[derive(Debug)]
enum Why {
    RunsTheSite,
    LetsVisitorsIn,
    NobodyWouldServe,
    WaitsForReplicas,
}

impl Reasoned for Why {}

fn decide(site: &Website, observed: &Observed) -> Result<Plan, Refusal> {
    if site.spec.replicas < 1 {
        return Err(Why::NobodyWouldServe.into());
    }
    let name = site.name_any();
    let running = observed.get::<Deployment>(&name)?;
    let ready = running.and_then(|running| running.status.as_ref()?.ready_replicas).unwrap_or(0);
    let plan = Plan::new()
        .apply(deployment(site), Why::RunsTheSite)
        .apply(service(site), Why::LetsVisitorsIn)
        .status(WebsiteStatus { ready, ..Default::default() });
    Ok(match ready < site.spec.replicas {
        true => plan.wait(Why::WaitsForReplicas, windlass::Until::Change),
        false => plan,
    })
}

fn deployment(site: &Website) -> Deployment {
    let labels = json!({ "app": site.name_any() });
    windlass_testing::object(
        site.name_any(),
        json!({"spec": {
            "replicas": site.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": site.spec.image}]},
            },
        }}),
    )
}

fn service(site: &Website) -> Service {
    let spec = json!({"selector": {"app": site.name_any()}, "ports": [{"port": 80}]});
    windlass_testing::object(site.name_any(), json!({ "spec": spec }))
}

fn operator(manager: Manager) -> Manager {
    manager.controller(Controller::deciding(decide).owns::<Deployment>().owns::<Service>())
}

#[expect(dead_code, reason = "it needs a cluster, and is there to be compiled")]
async fn run() -> windlass::Result<()> {
    operator(Manager::from_env()?).run().await
}

fn website(replicas: i32) -> Website {
    Website::new("shop", WebsiteSpec { image: "nginx".into(), replicas })
}

#[test]
fn a_site_runs_as_many_replicas_as_declared() {
    let plan = decide(&website(3), &Observed::empty()).unwrap();
    let deployment = plan.applied::<Deployment>("shop").unwrap();
    assert_eq!(deployment.spec.unwrap().replicas, Some(3));
}

#[test]
fn a_site_that_nobody_would_serve_is_refused() {
    let refusal = decide(&website(0), &Observed::empty()).unwrap_err();
    assert_eq!(refusal.reason().name(), "NobodyWouldServe");
}

#[tokio::test]
async fn a_site_is_ready_when_its_replicas_are() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([Website::crd()]).await?;
    let operator = cluster.run(operator);

    cluster.create(website(2)).await?;
    cluster.eventually::<Website>("shop").has_condition("Ready", true).await?;
    cluster.eventually::<Website>("shop").has(json!({"status": {"ready": 2}})).await?;

    cluster.patch::<Website>("shop", json!({"spec": {"image": "nginx:2"}})).await?;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"image": "nginx:2"}]}}}});
    cluster.eventually::<Deployment>("shop").has(image).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_site_survives_every_fault_at_every_write() -> anyhow::Result<()> {
    async fn life(cluster: TestCluster) -> anyhow::Result<()> {
        cluster.create(website(1)).await?;
        cluster.eventually::<Service>("shop").exists().await?;
        cluster.patch::<Website>("shop", json!({"spec": {"replicas": 2}})).await?;
        cluster.eventually::<Deployment>("shop").has(json!({"spec": {"replicas": 2}})).await?;
        Ok(())
    }
    println!("{}", campaign::every_fault([Website::crd()], operator, life).await?);
    Ok(())
}
