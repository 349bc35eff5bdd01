//! PodDisruptionBudgets, evictions and quotas.

use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, config_map, object, pod};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a disruption budget's status counts the pods that it selects", counts)
        .test("evictions succeed up to disruptionsAllowed", evictions)
        .test("pods that are not running are evicted regardless of budgets", not_running)
        .test("an unready pod is evicted if enough others are healthy", unhealthy)
        .test("a pod with two budgets cannot be evicted", two_budgets)
        .test("evictions support dry run and preconditions", rehearsed)
        .test("a budget with a percentage needs pods with a controller, and reports SyncFailed", unmanaged)
        .test("a quota's status counts usage, and concurrent creations do not exceed it", quota)
}

fn budget(name: &str, mut spec: Value) -> PodDisruptionBudget {
    if spec.get("selector").is_none() {
        spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    }
    object(name, json!({ "spec": spec }))
}

/// Pods whose status says that they run and are ready; no node runs them.
async fn running(cluster: &TestCluster, names: &[&str]) -> anyhow::Result<()> {
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    for name in names {
        made(cluster, name).await?;
        say(cluster, name, "Running", true).await?;
    }
    Ok(())
}

async fn made(cluster: &TestCluster, name: &str) -> anyhow::Result<Pod> {
    let mut new = pod(name, "nginx");
    new.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    // On a node that nobody runs: no scheduler and no kubelet changes it, and it goes when it is deleted.
    let spec = new.spec.as_mut().context("it has one")?;
    spec.node_selector = Some([("example.com/nowhere".to_owned(), "true".to_owned())].into());
    spec.termination_grace_period_seconds = Some(0);
    cluster.create(new).await
}

async fn say(cluster: &TestCluster, name: &str, phase: &str, ready: bool) -> anyhow::Result<()> {
    let status = if ready { "True" } else { "False" };
    let patch =
        json!({ "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": status }] } });
    let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}

/// Evicts pods, once each: the usual client would try a refused eviction again, for long.
struct Evictor {
    client: Client,
    namespace: String,
}

impl Evictor {
    async fn of(target: &Target, cluster: &TestCluster) -> anyhow::Result<Self> {
        let client = match target.kubeconfig() {
            None => cluster.client(),
            Some(path) => {
                let file = Kubeconfig::read_from(path)?;
                let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
                config.default_retry = false;
                Client::try_from(config)?
            }
        };
        Ok(Self { client, namespace: cluster.namespace().to_owned() })
    }

    /// HTTP status and body.
    async fn evict(&self, name: &str, options: Value) -> anyhow::Result<(u16, Value)> {
        let namespace = &self.namespace;
        let metadata = json!({ "name": name, "namespace": namespace });
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options,
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = self.client.send(request.body(body.to_string().into_bytes().into())?).await?;
        let code = answer.status().as_u16();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
        Ok((code, serde_json::from_slice(&body)?))
    }
}

async fn allows(cluster: &TestCluster, name: &str, number: i32) -> anyhow::Result<PodDisruptionBudget> {
    let what = format!("allows {number}");
    cluster
        .eventually::<PodDisruptionBudget>(name)
        .is(&what, |budget| {
            let status = budget.status.as_ref();
            status.is_some_and(|status| {
                status.disruptions_allowed == Some(number)
                    && status.observed_generation == budget.metadata.generation
            })
        })
        .await
}

fn reason(budget: &PodDisruptionBudget) -> Option<(String, String)> {
    let conditions = budget.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == "DisruptionAllowed")?;
    Some((condition.status.clone(), condition.reason.clone()))
}

async fn counts(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(budget("web", json!({ "minAvailable": 2 }))).await?;
    cluster.eventually::<PodDisruptionBudget>("web").has_event("NoPods").await?;
    running(&cluster, &["a", "b", "c"]).await?;
    let found = allows(&cluster, "web", 1).await?;
    let status = serde_json::to_value(&found.status)?;
    let numbers = ["currentHealthy", "desiredHealthy", "expectedPods"].map(|field| status[field].clone());
    ensure!(numbers == [json!(3), json!(2), json!(3)], "{status}");
    ensure!(reason(&found) == Some(("True".into(), "SufficientPods".into())), "{status}");
    say(&cluster, "a", "Running", false).await?;
    let found = allows(&cluster, "web", 0).await?;
    ensure!(reason(&found) == Some(("False".into(), "InsufficientPods".into())));
    cluster.patch::<PodDisruptionBudget>("web", json!({ "spec": { "minAvailable": 1 } })).await?;
    allows(&cluster, "web", 1).await?;
    Ok(())
}

async fn evictions(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let evictor = Evictor::of(&target, &cluster).await?;
    running(&cluster, &["a", "b", "c"]).await?;
    cluster.create(budget("web", json!({ "minAvailable": 2 }))).await?;
    allows(&cluster, "web", 1).await?;
    let (code, answer) = evictor.evict("a", json!(null)).await?;
    ensure!(code == 201 && answer["status"] == "Success", "{code} {answer}");
    cluster.eventually::<Pod>("a").is_deleted().await?;
    cluster
        .eventually::<PodDisruptionBudget>("web")
        .has(json!({ "status": { "disruptionsAllowed": 0, "currentHealthy": 2, "expectedPods": 2 } }))
        .await?;
    let (code, answer) = evictor.evict("b", json!(null)).await?;
    ensure!(code == 429, "{code} {answer}");
    let wanted = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 429, "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": { "causes": [{ "reason": "DisruptionBudget",
            "message": "The disruption budget web needs 2 healthy pods and has 2 currently" }] },
    });
    ensure!(answer == wanted, "{answer}");
    let (code, answer) = evictor.evict("none", json!(null)).await?;
    ensure!(code == 404 && answer["message"] == "pods \"none\" not found", "{code} {answer}");
    Ok(())
}

async fn not_running(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let evictor = Evictor::of(&target, &cluster).await?;
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    made(&cluster, "waits").await?;
    made(&cluster, "failed").await?;
    say(&cluster, "failed", "Failed", false).await?;
    cluster.create(budget("web", json!({ "minAvailable": 5 }))).await?;
    for name in ["waits", "failed"] {
        let (code, answer) = evictor.evict(name, json!(null)).await?;
        ensure!(code == 201, "{name}: {answer}");
        cluster.eventually::<Pod>(name).is_deleted().await?;
    }
    Ok(())
}

async fn unhealthy(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let evictor = Evictor::of(&target, &cluster).await?;
    running(&cluster, &["a", "b", "sick", "sick-too"]).await?;
    for sick in ["sick", "sick-too"] {
        say(&cluster, sick, "Running", false).await?;
    }
    cluster.create(budget("web", json!({ "minAvailable": 2 }))).await?;
    allows(&cluster, "web", 0).await?;
    // Enough are healthy without it.
    let (code, answer) = evictor.evict("sick", json!(null)).await?;
    ensure!(code == 201, "{answer}");
    cluster.patch::<PodDisruptionBudget>("web", json!({ "spec": { "minAvailable": 3 } })).await?;
    allows(&cluster, "web", 0).await?;
    let (code, _) = evictor.evict("sick-too", json!(null)).await?;
    ensure!(code == 429);
    let always = json!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } });
    cluster.patch::<PodDisruptionBudget>("web", always).await?;
    let (code, answer) = evictor.evict("sick-too", json!(null)).await?;
    ensure!(code == 201, "{answer}");
    cluster.eventually::<Pod>("sick-too").is_deleted().await
}

async fn two_budgets(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let evictor = Evictor::of(&target, &cluster).await?;
    running(&cluster, &["a"]).await?;
    let all = json!({ "minAvailable": 0, "selector": {} });
    cluster.create(budget("one", json!({ "minAvailable": 0 }))).await?;
    cluster.create(budget("two", all)).await?;
    let (code, answer) = evictor.evict("a", json!(null)).await?;
    ensure!(code == 500, "{code} {answer}");
    let why =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    ensure!(answer["message"] == why && answer["status"] == "Failure", "{answer}");
    cluster.get::<Pod>("a").await?;
    Ok(())
}

async fn rehearsed(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let evictor = Evictor::of(&target, &cluster).await?;
    running(&cluster, &["a", "b"]).await?;
    cluster.create(budget("web", json!({ "minAvailable": 1 }))).await?;
    allows(&cluster, "web", 1).await?;
    let (code, _) = evictor.evict("a", json!({ "dryRun": ["All"] })).await?;
    ensure!(code == 201);
    ensure!(cluster.get::<Pod>("a").await?.metadata.deletion_timestamp.is_none());
    allows(&cluster, "web", 1).await?;
    let other = json!({ "preconditions": { "uid": "9d1c8ee6-9a2d-4c0a-bb30-7f2ff7a20f6f" } });
    let (code, answer) = evictor.evict("a", other).await?;
    ensure!(code == 409, "{answer}");
    cluster.get::<Pod>("a").await?;
    // A pod that is kept says why it goes.
    cluster.patch::<Pod>("b", json!({ "metadata": { "finalizers": ["example.com/held"] } })).await?;
    allows(&cluster, "web", 0).await.ok();
    cluster.delete::<PodDisruptionBudget>("web").await?;
    let (code, answer) = evictor.evict("b", json!(null)).await?;
    ensure!(code == 201, "{answer}");
    let going: Pod = cluster.get("b").await?;
    let conditions = going.status.and_then(|status| status.conditions).unwrap_or_default();
    let said =
        conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").context("no condition")?;
    ensure!(said.reason.as_deref() == Some("EvictionByEvictionAPI"), "{said:?}");
    ensure!(said.message.as_deref() == Some("Eviction API: evicting"), "{said:?}");
    cluster.patch::<Pod>("b", json!({ "metadata": { "finalizers": null } })).await?;
    cluster.eventually::<Pod>("b").is_deleted().await
}

async fn unmanaged(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    running(&cluster, &["a"]).await?;
    cluster.create(budget("web", json!({ "maxUnavailable": "50%" }))).await?;
    cluster.eventually::<PodDisruptionBudget>("web").has_event("UnmanagedPods").await?;
    let found = allows(&cluster, "web", 0).await?;
    ensure!(found.status.and_then(|status| status.expected_pods) == Some(0));
    let owner = cluster.create(config_map("owner")).await?;
    let reference = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid, "controller": true }]);
    cluster.patch::<Pod>("a", json!({ "metadata": { "ownerReferences": reference } })).await?;
    let failed = |budget: &PodDisruptionBudget| reason(budget) == Some(("False".into(), "SyncFailed".into()));
    cluster.eventually::<PodDisruptionBudget>("web").is("says that it failed", failed).await?;
    Ok(())
}

async fn quota(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(config_map("before")).await?;
    let base = cluster.list::<ConfigMap>().await?.len();
    // A namespace gets its own map a little later.
    let base = cluster
        .until("its own map is there", || cluster.list::<ConfigMap>(), |maps| maps.len() >= base)
        .await?
        .len();
    let hard = json!({ "count/configmaps": (base + 5).to_string(), "configmaps": (base + 5).to_string(), "pods": "3" });
    cluster.create(object::<ResourceQuota>("q", json!({ "spec": { "hard": hard } }))).await?;
    let counted = json!({ "status": { "hard": { "configmaps": (base + 5).to_string() },
        "used": { "configmaps": base.to_string(), "count/configmaps": base.to_string(), "pods": "0" } } });
    cluster.eventually::<ResourceQuota>("q").has(counted).await?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), cluster.namespace());
    let create = |number: usize| {
        let maps = maps.clone();
        async move { maps.create(&PostParams::default(), &config_map(format!("many-{number}"))).await }
    };
    let made = futures::future::join_all((0..20).map(create)).await;
    let refused: Vec<String> =
        made.iter().filter_map(|made| made.as_ref().err()).map(ToString::to_string).collect();
    let there = cluster.list::<ConfigMap>().await?.len();
    match cluster.embedded() {
        Some(_) => ensure!(there == base + 5, "{there} of {}: {refused:?}", base + 5),
        // Who loses a race there too often is refused, though there would be room.
        None => ensure!(there <= base + 5 && there > base, "{there} of {}", base + 5),
    }
    ensure!(refused.iter().any(|why| why.contains("exceeded quota: q")), "{refused:?}");
    cluster.delete::<ConfigMap>("before").await?;
    let full = (there - 1).to_string();
    cluster
        .eventually::<ResourceQuota>("q")
        .has(json!({ "status": { "used": { "configmaps": full } } }))
        .await?;
    Ok(())
}
