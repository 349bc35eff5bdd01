//! What the manifests come to.

use super::place::Place;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_harness::{Suite, Target};

macro_rules! manifest {
    ($name:literal) => {
        include_str!(concat!("manifests/", $name, ".yaml"))
    };
}

/// All of them, as far as this machine has the programs.
pub(crate) fn all(suite: Suite) -> Suite {
    suite
        .test("three_memcached_behind_a_service_and_one_killed", |target| alone(|| memcached(target)))
        .test("nginx_serves_the_page_of_a_config_map", |target| alone(|| nginx(target)))
        .test("jobs_end_by_exit_code", |target| alone(|| jobs(target)))
        .test("two_postgres_with_volumes_one_following_the_other", |target| alone(|| postgres(target)))
}

/// On a thread of its own: closures that wait cannot be shown to be free to move between threads.
async fn alone<F: Future<Output = anyhow::Result<()>>>(
    body: impl FnOnce() -> F + Send + 'static,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(body())).await?
}

/// Whether an image has no program here; then it is said.
fn lacks(images: &[&str]) -> bool {
    let lacking = super::skip::reason(images);
    if let Some(why) = &lacking {
        eprintln!("{why}");
    }
    lacking.is_some()
}

async fn memcached(target: Target) -> anyhow::Result<()> {
    if lacks(&["memcached"]) {
        return Ok(());
    }
    let place = Place::in_(&target).await?;
    place.apply(manifest!("memcached")).await?;
    let pods = place.ready("app=cache", 3).await?;
    place.apply(manifest!("memcached-client")).await?;
    let said = place.said("asks-cache").await?;
    assert_eq!(said.lines().filter(|line| line.contains("version")).count(), 6, "{said}");
    place.kill(&pods[0]).await?;
    let after = place.ready("app=cache", 3).await?;
    assert!(after.iter().all(|pod| pod.uid() != pods[0].uid()), "another took its place");
    Ok(())
}

async fn nginx(target: Target) -> anyhow::Result<()> {
    if lacks(&["nginx", "busybox"]) {
        return Ok(());
    }
    let place = Place::in_(&target).await?;
    place.apply(manifest!("nginx")).await?;
    assert_eq!(place.said("asks-web").await?, "<h1>from a ConfigMap</h1>\n");
    Ok(())
}

async fn jobs(target: Target) -> anyhow::Result<()> {
    if lacks(&["busybox"]) {
        return Ok(());
    }
    let place = Place::in_(&target).await?;
    place.apply(manifest!("jobs")).await?;
    assert_eq!(place.ended("succeeds").await?.0, "Complete");
    assert_eq!(place.ended("fails").await?, ("Failed".to_owned(), "BackoffLimitExceeded".to_owned()));
    assert_eq!(place.ended("gives-up").await?, ("Failed".to_owned(), "PodFailurePolicy".to_owned()));
    Ok(())
}

async fn postgres(target: Target) -> anyhow::Result<()> {
    if lacks(&["postgres"]) {
        return Ok(());
    }
    let place = Place::in_(&target).await?;
    place.apply(manifest!("postgres")).await?;
    let pods = place.ready("app=db", 2).await?;
    let copy = LogParams { container: Some("copy".to_owned()), ..LogParams::default() };
    assert_eq!(place.pods().logs("db-1", &copy).await?, "copied\n");
    place.apply(manifest!("postgres-write")).await?;
    assert_eq!(place.said("writes").await?, "");
    place.apply(manifest!("postgres-read")).await?;
    assert_eq!(place.said("reads").await?, "windlass\nt\n");
    // What was written outlives the pods, and is not copied anew.
    for pod in &pods {
        place.kill(pod).await?;
    }
    place.ready("app=db", 2).await?;
    assert_eq!(place.pods().logs("db-1", &copy).await?, "");
    place.apply(&manifest!("postgres-read").replace("name: reads", "name: reads-again")).await?;
    assert_eq!(place.said("reads-again").await?, "windlass\nt\n");
    let volumes: Api<PersistentVolume> = Api::all(place.client.clone());
    let ours = async || {
        let all = volumes.list(&ListParams::default()).await?.items.into_iter();
        let of = |volume: &PersistentVolume| {
            let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            claim.is_some_and(|claim| claim.namespace.as_deref() == Some(place.namespace.as_str()))
        };
        anyhow::Ok(all.filter(of).collect::<Vec<_>>())
    };
    let folders: Vec<String> =
        ours().await?.into_iter().filter_map(|volume| Some(volume.spec?.host_path?.path)).collect();
    assert_eq!(folders.len(), 2);
    // One volume grows; then all goes, and nothing is left of it.
    let claims: Api<k8s_openapi::api::core::v1::PersistentVolumeClaim> =
        Api::namespaced(place.client.clone(), &place.namespace);
    let more = json!({"spec": {"resources": {"requests": {"storage": "96Mi"}}}});
    claims.patch("data-db-0", &PatchParams::default(), &Patch::Merge(more)).await?;
    place
        .until("the claim has grown", async || {
            let capacity = claims.get("data-db-0").await?.status.and_then(|status| status.capacity);
            Ok(capacity.filter(|capacity| capacity["storage"].0 == "96Mi"))
        })
        .await?;
    let sets: Api<StatefulSet> = Api::namespaced(place.client.clone(), &place.namespace);
    sets.delete("db", &DeleteParams::default()).await?;
    place.ready("app=db", 0).await?;
    claims.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    place.until("the volumes are gone", async || Ok(ours().await?.is_empty().then_some(()))).await?;
    assert!(folders.iter().all(|folder| !std::path::Path::new(folder).exists()), "{folders:?}");
    Ok(())
}
