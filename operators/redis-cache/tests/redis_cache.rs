//! What the operator does, from its pure decision to a whole cluster, and through every fault.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::CustomResourceExt;
use redis_cache_operator::api::v1alpha1::{Backup, RedisCache, RedisCacheSpec};
use redis_cache_operator::controller::{clean_up, decide};
use redis_cache_operator::{operator, redis_caches};
use serde_json::{Value, json};
use windlass::{Observed, Plan, Propagation, RESTART_ANNOTATION};
use windlass_testing::{TestCluster, campaign, named, object};

fn cache(spec: Value) -> RedisCache {
    let mut whole = json!({ "replicas": 1, "image": "redis:7" });
    for (name, value) in spec.as_object().into_iter().flatten() {
        whole[name] = value.clone();
    }
    let spec: RedisCacheSpec = serde_json::from_value(whole).expect("a spec as it is written");
    RedisCache::new("orders", spec)
}

fn password(text: &str) -> Secret {
    let mut secret: Secret = named("orders-auth");
    secret.data = Some([("password".to_owned(), k8s_openapi::ByteString(text.into()))].into());
    secret
}

fn plan(cache: &RedisCache, observed: &Observed) -> Plan {
    let plan = decide(cache, observed).expect("it can be carried out");
    redis_caches().check(&plan).expect("it does what the controller declares");
    plan
}

fn restarts_with(cache: &RedisCache, password: Secret) -> Option<String> {
    let servers: StatefulSet = plan(cache, &Observed::empty().with(password)).applied("orders")?;
    servers.spec?.template.metadata?.annotations?.remove(RESTART_ANNOTATION)
}

#[test]
fn servers_wait_for_their_password_and_restart_when_it_or_a_setting_changes() {
    let plain = cache(json!({}));
    let first = plan(&plain, &Observed::empty());
    assert!(
        first.applied::<StatefulSet>("orders").is_none() && first.applied::<Secret>("orders-auth").is_some()
    );
    let once = restarts_with(&plain, password("a"));
    assert!(once.is_some());
    assert_eq!(once, restarts_with(&cache(json!({"replicas": 3})), password("a")));
    assert_ne!(once, restarts_with(&plain, password("b")));
    assert_ne!(once, restarts_with(&cache(json!({"settings": {"maxmemory": "64mb"}})), password("a")));
}

#[test]
fn a_last_backup_is_taken_before_anything_is_deleted() {
    let none = cache(json!({}));
    assert!(clean_up(&none, &Observed::empty()).unwrap().is_complete());
    let cache = cache(json!({"backup": {"claim": "kept", "onDelete": true}}));
    let begins = clean_up(&cache, &Observed::empty()).unwrap();
    redis_caches().check(&begins).expect("it does what the controller declares");
    assert!(!begins.is_complete() && begins.applied::<Job>("orders-last-backup").is_some());
    let ended = |condition: &str| -> Plan {
        let conditions = json!([{"type": condition, "status": "True", "message": "no space"}]);
        let job: Job = object("orders-last-backup", json!({"status": {"conditions": conditions}}));
        clean_up(&cache, &Observed::empty().with(job)).unwrap()
    };
    assert!(ended("Complete").is_complete());
    let failed = ended("Failed");
    assert!(!failed.is_complete() && failed.to_string().contains("no space"), "{failed}");
}

#[test]
fn without_the_claim_for_its_backups_nothing_is_begun() {
    let cache = cache(json!({"backup": {"claim": "kept", "schedule": "@daily"}}));
    let refusal = decide(&cache, &Observed::empty()).unwrap_err();
    assert!(refusal.to_string().contains("PersistentVolumeClaim kept"), "{refusal}");
}

async fn started() -> anyhow::Result<TestCluster> {
    let cluster = TestCluster::start();
    cluster.install([RedisCache::crd()]).await?;
    Ok(cluster)
}

#[tokio::test]
async fn storage_cannot_be_unset() -> anyhow::Result<()> {
    let cluster = started().await?;
    cluster.create(cache(json!({"storage": "1Gi"}))).await?;
    let refused =
        cluster.patch::<RedisCache>("orders", json!({"spec": {"storage": null}})).await.unwrap_err();
    assert!(format!("{refused:#}").contains("storage cannot be unset"), "{refused:#}");
    let refused = cluster.create(RedisCache::new("odd", cache(json!({"storage": "much"})).spec)).await;
    assert!(format!("{:#}", refused.unwrap_err()).contains("spec.storage"));
    Ok(())
}

async fn uids(cluster: &TestCluster) -> anyhow::Result<Vec<String>> {
    let pods = cluster.list::<Pod>().await?;
    Ok(pods.into_iter().filter_map(|pod| pod.metadata.uid).collect())
}

#[tokio::test]
async fn a_cache_from_its_creation_to_its_last_backup() -> anyhow::Result<()> {
    let cluster = started().await?;
    let running = cluster.run(operator);
    cluster.create(claim()).await?;
    let backup = json!({"claim": "kept", "schedule": "@hourly", "onDelete": true});
    cluster.create(cache(json!({"replicas": 2, "storage": "1Gi", "backup": backup}))).await?;
    cluster.eventually::<RedisCache>("orders").has_condition("Ready", true).await?;
    cluster.eventually::<CronJob>("orders-backup").exists().await?;
    let before = uids(&cluster).await?;
    assert_eq!(before.len(), 2);

    // A field that cannot be changed: the StatefulSet is another, its pods are the same.
    let set = cluster.get::<StatefulSet>("orders").await?.metadata.uid;
    cluster.patch::<RedisCache>("orders", json!({"spec": {"storage": "2Gi"}})).await?;
    cluster
        .eventually::<StatefulSet>("orders")
        .is("another, with larger volumes for new pods", |servers| {
            let claims = servers.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_ref());
            let larger = claims.is_some_and(|claims| json!(claims).to_string().contains("2Gi"));
            servers.metadata.uid != set && larger
        })
        .await?;
    cluster.eventually::<RedisCache>("orders").has_event("RunsTheServers").await?;
    cluster.eventually::<RedisCache>("orders").has_condition("Ready", true).await?;
    assert_eq!(uids(&cluster).await?, before);
    let pods = cluster.list::<Pod>().await?;
    assert!(pods.iter().all(|pod| pod.metadata.owner_references.is_some()), "they are adopted");

    // A new password: whoever deletes the Secret gets another, and the servers restart with it.
    cluster.delete::<Secret>("orders-auth").await?;
    cluster.eventually::<RedisCache>("orders").has_condition("Ready", false).await?;
    cluster.eventually::<RedisCache>("orders").has_condition("Ready", true).await?;
    let after = uids(&cluster).await?;
    assert!(after.len() == 2 && after.iter().all(|uid| !before.contains(uid)), "{before:?} {after:?}");

    // Paused: nothing is done, and everybody can see why.
    let paused = |yes: &str| json!({"metadata": {"annotations": {"windlass.dev/paused": yes}}});
    cluster.patch::<RedisCache>("orders", paused("true")).await?;
    cluster.eventually::<RedisCache>("orders").has_condition_because("Ready", "PausedByAnnotation").await?;
    cluster.patch::<RedisCache>("orders", json!({"spec": {"backup": {"schedule": null}}})).await?;
    cluster.patch::<RedisCache>("orders", paused("false")).await?;
    cluster.eventually::<CronJob>("orders-backup").is_deleted().await?;

    cluster.delete::<RedisCache>("orders").await?;
    cluster.eventually::<Job>("orders-last-backup").exists().await?;
    cluster.eventually::<RedisCache>("orders").is_deleted().await?;
    cluster.eventually::<StatefulSet>("orders").is_deleted().await?;
    cluster.eventually::<ConfigMap>("orders").is_deleted().await?;
    assert!(cluster.find::<PersistentVolumeClaim>("kept").await?.is_some(), "it is not ours");
    running.stop().await
}

fn claim() -> PersistentVolumeClaim {
    let request = json!({"requests": {"storage": "1Gi"}});
    object("kept", json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": request}}))
}

#[tokio::test]
async fn it_survives_every_fault_at_every_write_to_its_end() -> anyhow::Result<()> {
    async fn life(cluster: TestCluster) -> anyhow::Result<()> {
        cluster.create(claim()).await?;
        let mut cache = cache(json!({"storage": "1Gi"}));
        cache.spec.backup =
            Some(Backup { claim: "kept".into(), schedule: Some("@daily".into()), on_delete: true });
        cluster.create(cache).await?;
        cluster.eventually::<RedisCache>("orders").has_condition("Ready", true).await?;
        cluster.patch::<RedisCache>("orders", json!({"spec": {"backup": {"schedule": null}}})).await?;
        cluster.eventually::<CronJob>("orders-backup").is_deleted().await?;
        cluster.delete::<RedisCache>("orders").await?;
        cluster.eventually::<RedisCache>("orders").is_deleted().await?;
        cluster.eventually::<StatefulSet>("orders").is_deleted().await
    }
    let report = campaign::every_fault([RedisCache::crd()], operator, life).await?;
    println!("{report}");
    assert!(report.effective > report.lives / 2, "{report}");
    Ok(())
}

#[test]
fn a_plan_says_that_servers_may_be_created_anew() {
    let plan = plan(&cache(json!({})), &Observed::empty().with(password("a")));
    let json = serde_json::to_value(&plan).unwrap();
    let recreates = json["steps"]
        .as_array()
        .unwrap()
        .iter()
        .any(|step| step.pointer("/effect/recreate") == Some(&json!(Propagation::Orphan)));
    assert!(recreates, "{json:#}");
}
