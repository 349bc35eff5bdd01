//! The code of `docs/cookbook.md` that is not in `operators/redis-cache`.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, CustomResource, CustomResourceExt, ResourceExt};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windlass::{
    Action, Certificate, CertificateAuthority, Controller, Fact, Failure, Generate, Manager, Observed,
    Outcome, Plan, Reason, Refusal, Relation,
};
use windlass_testing::{Data, TestCluster, config_map, object, secret};

/// An address that a DNS provider, which is no part of the cluster, should have.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Record", namespaced)]
pub struct RecordSpec {
    /// What the name stands for.
    pub address: String,
}

/// The provider's API: here a map, elsewhere an HTTP client.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<BTreeMap<String, String>>>);

impl Provider {
    async fn read(&self, name: &str) -> Result<Option<String>, Failure> {
        Ok(self.0.lock().get(name).cloned())
    }

    async fn write(&self, name: &str, address: &str) -> Result<(), Failure> {
        self.0.lock().insert(name.to_owned(), address.to_owned());
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        self.0.lock().remove(name);
        Ok(())
    }
}

fn records(provider: Provider) -> Controller<Record> {
    let (reads, writes, removes) = (provider.clone(), provider.clone(), provider);
    Controller::deciding(decide)
        .fact(
            "address",
            move |record: Arc<Record>, _| {
                let provider = reads.clone();
                async move { provider.read(&record.name_any()).await }
            },
            Duration::from_secs(30),
            Duration::from_secs(5),
        )
        .action("write", move |record: Arc<Record>, _, _| {
            let provider = writes.clone();
            async move { provider.write(&record.name_any(), &record.spec.address).await }
        })
        .action("remove", move |record: Arc<Record>, _, _| {
            let provider = removes.clone();
            async move { provider.remove(&record.name_any()).await }
        })
        .finalizer(clean_up)
}

fn decide(record: &Record, observed: &Observed) -> Result<Plan, Refusal> {
    let wanted = &record.spec.address;
    Ok(match observed.fact::<Option<String>>("address")? {
        Fact::Known { value: Some(address), .. } if address == *wanted => Plan::new(),
        // The key names the answer that was wrong: under the same key an action that is done is not done again.
        Fact::Known { at, .. } => Plan::waiting(Reason::new("Writes", "the provider is told")).action(
            Action::new("write", format!("{wanted}, not as at {at}")),
            Reason::new("Differs", "the provider has another address"),
        ),
        // Not known is not the same as not there: nothing is written before the provider has answered.
        Fact::Unknown { why } => Plan::waiting(Reason::new("ProviderSilent", why)),
    })
}

fn clean_up(record: &Record, observed: &Observed) -> Result<Plan, Refusal> {
    let remove = Action::new("remove", record.uid().unwrap_or_default());
    Ok(match observed.action("remove", remove.key())? {
        Outcome::Done { .. } => Plan::new(),
        _ => Plan::waiting(Reason::new("Removes", "the provider is told"))
            .action(remove, Reason::new("Deleted", "the name stands for nothing any more")),
    })
}

#[tokio::test]
async fn a_record_is_written_corrected_and_removed() -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    cluster.install([Record::crd()]).await?;
    let provider = Provider::default();
    let operator = cluster.run(records(provider.clone()));
    cluster.create(Record::new("www", RecordSpec { address: "192.0.2.1".into() })).await?;
    let has = |wanted: Option<&'static str>| {
        let provider = provider.clone();
        let look = move || {
            let provider = provider.clone();
            async move { Ok(provider.0.lock().get("www").cloned()) }
        };
        cluster.until("the provider knows", look, move |found: &Option<String>| found.as_deref() == wanted)
    };
    has(Some("192.0.2.1")).await?;
    provider.0.lock().insert("www".into(), "198.51.100.9".into());
    cluster.advance(Duration::from_secs(60)).await;
    has(Some("192.0.2.1")).await?;
    cluster.delete::<Record>("www").await?;
    has(None).await?;
    operator.stop().await
}

/// Copies ConfigMaps to another cluster.
fn copies(there: Client) -> Controller<ConfigMap> {
    Controller::deciding(|map: &ConfigMap, _: &Observed| {
        let version = map.resource_version().unwrap_or_default();
        Ok(Plan::new().action(Action::new("copy", version), Reason::new("Changed", "the copy is older")))
    })
    .filter(|map| map.labels().contains_key("copied"))
    .action("copy", move |map: Arc<ConfigMap>, _, _| {
        let maps: Api<ConfigMap> = Api::default_namespaced(there.clone());
        async move {
            let copy = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": map.name_any() }, "data": map.data,
            });
            maps.patch(&map.name_any(), &PatchParams::apply("copies").force(), &Patch::Apply(&copy)).await?;
            Ok(())
        }
    })
}

/// One operator on several clusters: a manager on each, and what goes between them is an action with a client of the other.
fn on_both(east: (Manager, Client), west: (Manager, Client)) -> [Manager; 2] {
    [east.0.cluster("east").controller(copies(west.1)), west.0.cluster("west").controller(copies(east.1))]
}

#[tokio::test]
async fn what_is_made_on_one_cluster_is_on_both() -> anyhow::Result<()> {
    let (east, west) = (TestCluster::api_only(), TestCluster::api_only());
    let managers = on_both((east.manager(), east.client()), (west.manager(), west.client()));
    let [one, other] = managers;
    let (one, other) = (east.run_manager(one), west.run_manager(other));
    let mut map = config_map("settings").data("k", "v");
    map.labels_mut().insert("copied".into(), "true".into());
    east.create(map).await?;
    west.eventually::<ConfigMap>("settings").has(json!({"data": {"k": "v"}})).await?;
    one.stop().await?;
    other.stop().await
}

/// Refuses while a Secret that it names is missing, and continues when it is there.
fn with_login(map: &ConfigMap, observed: &Observed) -> Result<Plan, Refusal> {
    let login = observed.referenced::<Secret>("login")?;
    let user = login.data.as_ref().and_then(|data| data.get("user")).map(|user| user.0.len());
    Ok(Plan::new()
        .apply(secret(format!("{}-copy", map.name_any())), Reason::new("Copies", "it is used"))
        .status(json!({ "length": user })))
}

#[test]
fn a_secret_that_is_missing_is_named() {
    let map = config_map("m");
    let refusal = with_login(&map, &Observed::empty()).unwrap_err();
    assert_eq!(refusal.to_string(), "ReferenceMissing: Secret login is not there");
    let login: Secret = object("login", json!({"data": {"user": "YW5uYQ=="}}));
    assert!(with_login(&map, &Observed::empty().with(login)).is_ok());
    let controller = Controller::deciding(with_login)
        .owns::<Secret>()
        .references::<Secret>(|_: &ConfigMap| Relation::named("login"));
    assert!(format!("{controller:?}").contains("Secret"));
}

/// A book whose pages are not lost with it.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Ledger", namespaced)]
pub struct LedgerSpec {}

fn ledgers() -> Controller<Ledger> {
    Controller::deciding(|ledger: &Ledger, _| {
        let page = config_map(format!("{}-page", ledger.name_any()));
        Ok(Plan::new().apply(page, Reason::new("Keeps", "what is written outlives the ledger")))
    })
    .retains::<ConfigMap>()
}

#[tokio::test]
async fn a_page_outlives_its_ledger() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([Ledger::crd()]).await?;
    let operator = cluster.run(ledgers());
    cluster.create(Ledger::new("l", LedgerSpec {})).await?;
    cluster.eventually::<ConfigMap>("l-page").has(json!({})).await?;
    let ledgers: Api<Ledger> = Api::namespaced(cluster.client(), cluster.namespace());
    ledgers.delete("l", &DeleteParams::foreground()).await?;
    let look = || async { Ok(ledgers.get_opt("l").await?.is_some()) };
    cluster.until("the ledger is gone", look, |there: &bool| !there).await?;
    // As long as the garbage collector likes.
    cluster.advance(Duration::from_secs(60)).await;
    let pages: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
    anyhow::ensure!(pages.get_opt("l-page").await?.is_some(), "the page went with the ledger");
    operator.stop().await
}

/// A shop that is served by TLS.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Shop", namespaced)]
pub struct ShopSpec {
    /// The names under which it is reached.
    hosts: Vec<String>,
}

const MINUTE: Duration = Duration::from_secs(60);

fn shops() -> Controller<Shop> {
    let why = Reason::new("Encrypts", "clients know whom they talk to");
    Controller::deciding(move |shop: &Shop, _| {
        let ca = format!("{}-ca", shop.name_any());
        let authority = CertificateAuthority::new().valid_for(30 * MINUTE);
        let certificate = Certificate::server(&shop.spec.hosts, &ca).valid_for(6 * MINUTE);
        let tls_secret =
            |name: String| Secret { type_: Some("kubernetes.io/tls".to_owned()), ..secret(name) };
        Ok(Plan::new()
            .create_once(tls_secret(ca), Generate::new().certificate_authority(authority), why.clone())
            .create_once(
                tls_secret(format!("{}-tls", shop.name_any())),
                Generate::new().certificate(certificate),
                why.clone(),
            ))
    })
    .owns::<Secret>()
}

#[tokio::test]
async fn a_certificate_is_renewed_in_time_and_when_it_is_for_others() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([Shop::crd()]).await?;
    let operator = cluster.run(shops());
    cluster.create(Shop::new("s", ShopSpec { hosts: vec!["s.example.com".to_owned()] })).await?;
    let holds = |key: &'static str| {
        move |secret: &Secret| secret.data.as_ref().and_then(|data| data.get(key)).map(|text| text.0.clone())
    };
    let read = |secret: Secret| (holds("tls.crt")(&secret), holds("ca.crt")(&secret));
    let tls = || async {
        cluster.eventually::<Secret>("s-tls").is("filled", |s| holds("ca.crt")(s).is_some()).await
    };
    let (first, trusted) = read(tls().await?);
    anyhow::ensure!(first.is_some(), "it is created with its certificate");
    cluster.advance(3 * MINUTE).await;
    anyhow::ensure!(read(tls().await?) == (first.clone(), trusted.clone()), "nothing is due");
    cluster.advance(MINUTE).await;
    let another = |before: Option<Vec<u8>>| move |secret: &Secret| holds("tls.crt")(secret) != before;
    let renewed =
        cluster.eventually::<Secret>("s-tls").is("renewed after 4 of 6 minutes", another(first)).await?;
    let (second, same) = read(renewed);
    anyhow::ensure!(same == trusted, "by the same authority");
    cluster.patch::<Shop>("s", json!({"spec": {"hosts": ["s.example.com", "shop.example.com"]}})).await?;
    let wider = cluster.eventually::<Secret>("s-tls").is("issued for another name", another(second)).await?;
    anyhow::ensure!(read(wider).1 == trusted, "by the same authority");
    // After 20 minutes a successor of the authority is trusted too, and a minute later it signs.
    cluster.advance(17 * MINUTE).await;
    let next =
        cluster.eventually::<Secret>("s-ca").is("succeeded", |ca| holds("tls.crt")(ca) != trusted).await?;
    let (signer, bundle) = read(next);
    let both = [signer.unwrap_or_default(), trusted.unwrap_or_default()].concat();
    anyhow::ensure!(bundle == Some(both.clone()), "both are trusted");
    cluster
        .eventually::<Secret>("s-tls")
        .is("told of both", |s| holds("ca.crt")(s) == Some(both.clone()))
        .await?;
    operator.stop().await
}
