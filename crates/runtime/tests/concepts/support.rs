//! What these tests stand on: an embedded API with a kind of its own, and an operator that runs on it.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use windlass::{Controller, Manager, Object, Reasoned};
use windlass_apiserver::{Config, Identity};
use windlass_clock::{Clock, Driver};

/// Where everything in a namespace happens.
pub const HERE: &str = "default";
/// As whom the operator writes.
pub const OPERATOR: &str = "operator";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A kind in namespaces.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Thing", namespaced, status = "ThingStatus")]
pub struct ThingSpec {
    pub size: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThingStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "windlass::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The reasons of these tests' plans.
#[derive(Debug, Clone)]
pub enum Why {
    Needed,
    Awaited,
}
impl Reasoned for Why {}

pub struct Fixture {
    pub api: windlass_apiserver::Api,
    pub client: Client,
    pub clock: Clock,
}

/// An operator that runs until this is dropped.
pub struct Operator {
    task: tokio::task::JoinHandle<windlass::Result<()>>,
    stop: tokio_util::sync::CancellationToken,
}

impl Operator {
    /// Stops it as a signal would, and waits for it to end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        (&mut self.task).await.expect("it does not panic").expect("it ends well");
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fixture {
    /// With a `Thing` kind, in real time.
    pub async fn new() -> Self {
        Self::on(Clock::real()).await
    }

    /// With the operator's time in the test's hand; the API's own is real.
    pub async fn driven() -> (Self, Driver) {
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
        (Self::on(clock).await, driver)
    }

    async fn on(clock: Clock) -> Self {
        let api = windlass_apiserver::Api::new(Config::default());
        let client = Client::new(api.service(Identity::admin()), HERE);
        let fixture = Self { api, client, clock };
        fixture.define(Thing::crd()).await;
        fixture
    }

    /// Creates a definition; the embedded API serves it before it answers.
    pub async fn define(&self, definition: CustomResourceDefinition) {
        let all: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        all.create(&PostParams::default(), &definition).await.unwrap();
    }

    pub fn run<K: windlass::Cached>(&self, controller: Controller<K>) -> Operator {
        let manager = Manager::new(self.as_user(OPERATOR), self.clock.clone()).controller(controller);
        let stop = tokio_util::sync::CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        Operator { task: tokio::spawn(manager.run_until(stopped)), stop }
    }

    pub fn as_user(&self, name: &str) -> Client {
        Client::new(self.api.service(Identity::privileged(name)), HERE)
    }

    /// The objects of a kind in the usual namespace.
    pub fn here<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), HERE)
    }

    pub async fn thing(&self, name: &str, size: i32) -> Thing {
        let thing = Thing::new(name, ThingSpec { size, about: None });
        self.here().create(&PostParams::default(), &thing).await.unwrap()
    }

    pub async fn resize(&self, name: &str, size: i32) {
        self.merge::<Thing>(name, json!({"spec": {"size": size}})).await;
    }

    pub async fn merge<K>(&self, name: &str, patch: Value)
    where
        K: Object + kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        let by = PatchParams::default();
        self.here::<K>().patch(name, &by, &Patch::Merge(patch)).await.unwrap();
    }

    /// The status of one of a thing's conditions, with its reason and message.
    pub async fn condition(&self, name: &str, of: &str) -> Option<Condition> {
        let thing = self.here::<Thing>().get_opt(name).await.unwrap()?;
        thing.status?.conditions.into_iter().find(|condition| condition.type_ == of)
    }

    /// Waits until a condition of a thing has this status and reason.
    pub async fn until_condition(&self, name: &str, of: &str, status: &str, reason: &str) {
        let what = format!("{of} of {name} is {status} for {reason}");
        self.until(&what, || async {
            let condition = self.condition(name, of).await;
            condition.is_some_and(|one| one.status == status && one.reason == reason)
        })
        .await;
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        let clock = Clock::real();
        let deadline = clock.moment() + PATIENCE;
        while clock.moment() < deadline {
            if holds().await {
                return;
            }
            clock.sleep(Duration::from_millis(5)).await;
        }
        let things = self.here::<Thing>().list(&ListParams::default()).await.unwrap();
        panic!("it is not so that {what}; things: {:#?}", things.items);
    }

    /// The operator's writes until now, but for events.
    pub fn writes(&self) -> Vec<String> {
        let records = self.api.faults().audit().since(0);
        let by_operator = records.iter().filter(|one| one.user == OPERATOR && one.resource != "events");
        by_operator
            .map(|one| format!("{} {}/{} {}", one.verb, one.resource, one.subresource, one.name))
            .collect()
    }

    /// Waits until the operator wrote nothing for a while.
    pub async fn until_silent(&self) {
        let clock = Clock::real();
        let (mut before, mut rounds) = (usize::MAX, 0);
        while rounds < 15 {
            let now = self.writes().len();
            rounds = if now == before { rounds + 1 } else { 0 };
            before = now;
            clock.sleep(Duration::from_millis(10)).await;
        }
    }

    /// The reasons of the events about an object, with their messages.
    pub async fn events(&self, about: &str) -> Vec<(String, String)> {
        let events = self.here::<Event>().list(&ListParams::default()).await.unwrap();
        let about =
            events.items.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(about));
        about.map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default())).collect()
    }
}

pub fn named(name: impl Into<String>) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..Default::default() }
}

/// A config map with one entry.
pub fn map(
    name: impl Into<String>,
    key: &str,
    value: impl ToString,
) -> k8s_openapi::api::core::v1::ConfigMap {
    let data = Some([(key.to_owned(), value.to_string())].into());
    k8s_openapi::api::core::v1::ConfigMap { metadata: named(name), data, ..Default::default() }
}

/// The entry of a config map.
pub fn entry(map: &k8s_openapi::api::core::v1::ConfigMap, key: &str) -> Option<String> {
    map.data.as_ref()?.get(key).cloned()
}

/// `thing` as in the names of what is made for it.
pub fn of(thing: &Thing, what: &str) -> String {
    format!("{}-{what}", thing.name_any())
}
