//! The code of `docs/webhooks.md`, which shows it piece by piece.

use kube::CustomResourceExt;
use std::time::Duration;
use windlass::webhook::{Admission, ConversionError, Operation, Request, Spoke, Versions, Webhook};
use windlass::{Controller, Manager, Observed, Plan, Refusal};
use windlass_testing::{TestCluster, round_trip};

use v1::{Website, WebsiteSpec};

pub mod v1 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// What a website should be.
    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.dev", version = "v1", kind = "Website", namespaced)]
    pub struct WebsiteSpec {
        /// The image that serves it.
        pub image: String,
        /// How many serve it at once.
        pub replicas: i32,
        /// How many visitors one of them serves at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub visitors: Option<i32>,
    }
}

pub mod v1alpha1 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// What a website should be.
    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.dev", version = "v1alpha1", kind = "Website", namespaced)]
    pub struct WebsiteSpec {
        /// The image that serves it.
        pub image: String,
        /// How many serve it at once.
        pub size: i32,
    }
}

/// Sites do not shrink by more than half at once.
fn validate(site: &Website, request: &Request<Website>) -> Admission {
    let before = request.old().map_or(0, |old| old.spec.replicas);
    Admission::allow()
        .require(site.spec.replicas * 2 >= before, "spec.replicas", "at most half of them may go at once")
        .require(!site.spec.image.ends_with(":latest"), "spec.image", "must name a version")
}

/// One that serves more replicas needs fewer visitors in each.
fn default(site: &mut Website, _: &Request<Website>) {
    let replicas = site.spec.replicas.max(1);
    site.spec.visitors.get_or_insert(1000 / replicas);
}

/// Sites that are in use stay.
fn keep(site: &Website, request: &Request<Website>) -> Admission {
    match site.spec.replicas {
        0 => Admission::allow(),
        _ if request.user().groups.iter().any(|group| group == "system:masters") => {
            Admission::allow().warn("it was in use")
        }
        _ => Admission::deny("scale it to 0 first"),
    }
}

/// What v1alpha1 cannot say is kept here.
const VISITORS: &str = "example.dev/visitors";

impl Spoke for v1alpha1::Website {
    type Hub = v1::Website;

    fn to_hub(&self) -> Result<v1::Website, ConversionError> {
        let mut metadata = self.metadata.clone();
        let kept = metadata.annotations.as_mut().and_then(|all| all.remove(VISITORS));
        let visitors = match kept {
            Some(text) => Some(text.parse().map_err(|_| format!("{VISITORS} is no number: {text:?}"))?),
            None => None,
        };
        let spec = v1::WebsiteSpec { image: self.spec.image.clone(), replicas: self.spec.size, visitors };
        Ok(v1::Website { metadata, spec })
    }

    fn from_hub(hub: &v1::Website) -> Result<Self, ConversionError> {
        let mut metadata = hub.metadata.clone();
        if let Some(visitors) = hub.spec.visitors {
            metadata.annotations.get_or_insert_default().insert(VISITORS.to_owned(), visitors.to_string());
        }
        let spec = v1alpha1::WebsiteSpec { image: hub.spec.image.clone(), size: hub.spec.replicas };
        Ok(Self { metadata, spec })
    }
}

fn versions() -> Versions<Website> {
    Versions::hub::<v1::Website>().spoke::<v1alpha1::Website>()
}

fn decide(_: &Website, _: &Observed) -> Result<Plan, Refusal> {
    Ok(Plan::new())
}

pub fn operator(manager: Manager) -> Manager {
    manager
        .versions(versions())
        .webhook(Webhook::validating(validate))
        .webhook(Webhook::defaulting(default).timeout(Duration::from_secs(2)))
        .webhook(Webhook::validating(keep).named("keep").on([Operation::Delete]))
        .controller(Controller::deciding(decide))
}

fn website(replicas: i32) -> Website {
    let spec = WebsiteSpec { image: "nginx:1.29".into(), replicas, visitors: None };
    Website::new("shop", spec)
}

#[test]
fn half_of_the_servers_may_go() {
    assert!(validate(&website(5), &Request::update(website(10))).is_allowed());
    let refused = validate(&website(4), &Request::update(website(10)));
    assert_eq!(refused.invalid_fields()[0].field, "spec.replicas");
}

#[test]
fn visitors_follow_from_the_replicas() {
    let mut site = website(4);
    default(&mut site, &Request::create());
    assert_eq!(site.spec.visitors, Some(250));
}

#[test]
fn no_version_loses_anything() -> anyhow::Result<()> {
    round_trip::<v1alpha1::Website>()
}

#[tokio::test]
async fn a_cluster_asks_the_operator() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([versions().crd()?]).await?;
    let operator = cluster.run(operator).ready().await?;
    let old = v1alpha1::WebsiteSpec { image: "nginx:1.29".into(), size: 4 };
    cluster.create(v1alpha1::Website::new("shop", old)).await?;
    assert_eq!(cluster.get::<v1::Website>("shop").await?.spec.visitors, Some(250));
    let shrunk = serde_json::json!({"spec": {"replicas": 1}});
    let refused = cluster.patch::<v1::Website>("shop", shrunk).await.unwrap_err();
    assert!(format!("{refused:#}").contains("at most half of them may go at once"), "{refused:#}");
    operator.stop().await
}

#[test]
fn sites_in_use_stay() {
    let deleted = |replicas| keep(&website(replicas), &Request::delete());
    assert!(deleted(0).is_allowed());
    assert_eq!(deleted(1).message().as_deref(), Some("scale it to 0 first"));
}

#[test]
fn the_definition_has_both_versions() {
    let crd = versions().crd().unwrap();
    assert_eq!(crd.spec.versions.iter().filter(|version| version.storage).count(), 1);
    assert_eq!(crd.spec.versions.len(), 2);
    assert_eq!(v1::Website::crd_name(), "websites.example.dev");
}
