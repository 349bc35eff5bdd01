//! What the operator does, from its pure decision to a whole cluster.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::CustomResourceExt;
use memcached_operator::api::v1alpha1;
use memcached_operator::api::v1beta1::{Memcached, MemcachedSpec};
use memcached_operator::controller::memcached::decide;
use memcached_operator::operator;
use serde_json::json;
use windlass::Observed;
use windlass_testing::{TestCluster, campaign, object, round_trip};

fn memcached(size: i32) -> Memcached {
    Memcached::new("sample", MemcachedSpec { size, image: "memcached:1.6".into(), ..Default::default() })
}

#[test]
fn a_deployment_has_as_many_replicas_as_the_size_says() {
    let plan = decide(&memcached(5), &Observed::empty()).unwrap();
    let deployment = plan.applied::<Deployment>("sample").unwrap();
    assert_eq!(deployment.spec.unwrap().replicas, Some(5));
}

#[test]
fn it_waits_and_says_for_how_many() {
    let deployment: Deployment =
        object("sample", json!({"status": {"readyReplicas": 1}, "spec": {"selector": {}, "template": {}}}));
    let plan = decide(&memcached(3), &Observed::empty().with(deployment)).unwrap();
    assert!(plan.to_string().contains("1 of 3 servers are ready"), "{plan}");
}

#[test]
fn a_name_that_no_service_can_have_is_refused_with_the_reason() {
    for (name, fits) in
        [("a-1", true), ("1-a", false), ("a.b", false), ("a-", false), (&*"a".repeat(64), false)]
    {
        let mut memcached = memcached(1);
        memcached.metadata.name = Some(name.to_owned());
        let decided = decide(&memcached, &Observed::empty());
        assert_eq!(decided.is_ok(), fits, "{name}");
    }
}

#[test]
fn servers_stay_below_their_memory_limit() {
    let mut memcached = memcached(1);
    memcached.spec.resources = serde_json::from_value(json!({"limits": {"memory": "128Mi"}}))
        .expect("resources as they are written");
    let plan = decide(&memcached, &Observed::empty()).unwrap();
    let template = plan.applied::<Deployment>("sample").unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!(template.containers[0].command.clone().unwrap(), ["memcached", "--memory-limit=96"]);
}

#[tokio::test]
async fn what_it_does_is_seen_from_outside() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([Memcached::crd()]).await?;
    let manager = operator(cluster.manager());
    let inspector = manager.inspector();
    let running = cluster.run_manager(manager);
    cluster.create(memcached(2)).await?;
    cluster.eventually::<Memcached>("sample").has_condition("Ready", true).await?;
    cluster.eventually::<Memcached>("sample").has_event("RunsTheServers").await?;
    cluster.eventually::<Memcached>("sample").has_event("LetsClientsFindThem").await?;
    let page = inspector.metrics();
    for line in [
        "memcached_servers{state=\"declared\"} 2",
        "memcached_servers{state=\"ready\"} 2",
        "controller_runtime_max_concurrent_reconciles{controller=\"memcached\"} 2",
    ] {
        assert!(page.lines().any(|one| one == line), "{line} is not on\n{page}");
    }
    cluster.create(Memcached::new("1-is-no-host", memcached(1).spec)).await?;
    cluster
        .eventually::<Memcached>("1-is-no-host")
        .has_condition_because("Ready", "NameIsNoHostName")
        .await?;
    running.stop().await
}

#[tokio::test]
async fn its_status_follows_the_size_up_and_down() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([memcached_operator::api::memcached().crd()?]).await?;
    let operator = cluster.run(operator);
    cluster.create(memcached(3)).await?;
    for size in [3, 5, 2] {
        cluster.patch::<Memcached>("sample", json!({"spec": {"size": size}})).await?;
        let memcached = cluster
            .eventually::<Memcached>("sample")
            .is(&format!("ready with {size} servers"), |memcached| {
                let Some(status) = &memcached.status else { return false };
                let ready = status.conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
                ready && status.ready == size && status.nodes.len() == size as usize
            })
            .await?;
        let mut pods: Vec<String> =
            cluster.list::<Pod>().await?.into_iter().filter_map(|pod| pod.metadata.name).collect();
        pods.sort();
        assert_eq!(memcached.status.unwrap_or_default().nodes, pods);
    }
    cluster.delete::<Memcached>("sample").await?;
    cluster.eventually::<Deployment>("sample").is_deleted().await?;
    cluster.eventually::<Service>("sample").is_deleted().await?;
    operator.stop().await
}

#[tokio::test]
async fn a_size_that_makes_no_sense_is_refused_by_the_api() -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    cluster.install([Memcached::crd()]).await?;
    let refused = cluster.create(memcached(-1)).await.unwrap_err();
    assert!(format!("{refused:#}").contains("spec.size"), "{refused:#}");
    Ok(())
}

#[tokio::test]
async fn it_survives_every_fault_at_every_write() -> anyhow::Result<()> {
    async fn life(cluster: TestCluster) -> anyhow::Result<()> {
        cluster.create(memcached(1)).await?;
        cluster.eventually::<Memcached>("sample").has(json!({"status": {"ready": 1}})).await?;
        cluster.patch::<Memcached>("sample", json!({"spec": {"size": 2}})).await?;
        cluster.eventually::<Memcached>("sample").has(json!({"status": {"ready": 2}})).await?;
        cluster.delete::<Memcached>("sample").await?;
        cluster.eventually::<Deployment>("sample").is_deleted().await?;
        cluster.eventually::<Service>("sample").is_deleted().await
    }
    println!("{}", campaign::every_fault([Memcached::crd()], operator, life).await?);
    Ok(())
}

#[test]
fn no_version_loses_anything() -> anyhow::Result<()> {
    round_trip::<v1alpha1::Memcached>()
}

#[tokio::test]
async fn servers_of_the_old_version_get_defaults_and_stay_what_they_are() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([memcached_operator::api::memcached().crd()?]).await?;
    let running = cluster.run(operator).ready().await?;
    let old: v1alpha1::Memcached = object(
        "sample",
        json!({"spec": {"size": 1, "image": "memcached:1.6", "resources": {"limits": {"memory": "16Mi"}}}}),
    );
    cluster.create(old).await?;
    cluster.eventually::<v1alpha1::Memcached>("sample").has(json!({"status": {"ready": 1}})).await?;
    assert_eq!(cluster.get::<Memcached>("sample").await?.spec.max_connections, Some(256));
    let deployment = cluster.get::<Deployment>("sample").await?.spec.unwrap();
    let command = deployment.template.spec.unwrap().containers[0].command.clone().unwrap();
    assert_eq!(command, ["memcached", "--memory-limit=12", "--conn-limit=256"]);
    let refused =
        cluster.patch::<Memcached>("sample", json!({"spec": {"maxConnections": 300}})).await.unwrap_err();
    assert!(format!("{refused:#}").contains("at most 256 fit"), "{refused:#}");
    // Who changes it in the old version does not change what only the new one can say.
    cluster.patch::<v1alpha1::Memcached>("sample", json!({"spec": {"size": 2}})).await?;
    let sample = cluster.get::<Memcached>("sample").await?;
    assert_eq!((sample.spec.size, sample.spec.max_connections), (2, Some(256)));
    running.stop().await
}
