//! Deployments: rollout, rollback, pause and progress deadline.

use super::manual_pods::{self, all_ready, is_ready, pods, wait_for_count};
use super::watch_record::Record;
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{Building, TestCluster, object};

const REVISION: &str = "deployment.kubernetes.io/revision";

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a deployment creates a replica set, and reports its progress", comes_up)
        .test("a rolling update respects maxSurge and maxUnavailable at every moment", rolls_within_bounds)
        .test("a rollback reuses the old replica set, with a new revision", goes_back)
        .test("a paused deployment is scaled, but not rolled out until it is resumed", pauses)
        .test("a stuck rollout has ProgressDeadlineExceeded, and keeps the old pods", gets_stuck)
        .test("strategy Recreate creates no new pods while an old one is left", recreates)
        .test("a deployment keeps revisionHistoryLimit old replica sets", forgets)
        .test("scaling during a rollout is proportional", scales_in_proportion)
        .test("a deployment adopts a matching replica set, and continues its revision", adopts)
        .test("a hash collision increments collisionCount", collides)
        .test("a deployment reports ReplicaFailure of its replica sets", tells_of_trouble)
        .test("a deployment scaled to zero and back keeps its replica set", scales_to_nothing)
}

fn deployment(name: &str, replicas: i32) -> Deployment {
    object(
        name,
        json!({ "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": manual_pods::template(name, "one"),
        } }),
    )
}

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": image }] } } } })
}

/// The sets of a deployment, by revision.
async fn sets(cluster: &TestCluster, name: &str) -> anyhow::Result<Vec<ReplicaSet>> {
    let mut sets = cluster.list::<ReplicaSet>().await?;
    sets.retain(|set| set.owner_references().iter().any(|owner| owner.name == name));
    sets.sort_by_key(|set| revision(set.annotations().get(REVISION)));
    Ok(sets)
}

fn revision(text: Option<&String>) -> u32 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn sizes(sets: &[ReplicaSet]) -> Vec<i32> {
    sets.iter().map(size).collect()
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default()
}

/// Makes pods ready as they come, until the rollout is complete.
async fn complete(cluster: &TestCluster, name: &str) -> anyhow::Result<Deployment> {
    let look = || async {
        all_ready(cluster, name).await?;
        cluster.get::<Deployment>(name).await
    };
    cluster.until("the rollout is complete", look, is_complete).await
}

fn is_complete(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let all = spec.replicas.unwrap_or_default();
    let is = |number: Option<i32>| number.unwrap_or_default() == all;
    let conditions = status.conditions.iter().flatten();
    let mut reasons = conditions.filter(|condition| condition.type_ == "Progressing");
    is(status.replicas)
        && is(status.updated_replicas)
        && is(status.available_replicas)
        && status.observed_generation == deployment.metadata.generation
        && reasons.any(|condition| condition.reason.as_deref() == Some("NewReplicaSetAvailable"))
}

async fn comes_up(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let made = cluster.create(deployment("web", 3).annotated("note", "kept")).await?;
    let first = wait_for_count(&cluster, "web", 3).await?;
    let all = sets(&cluster, "web").await?;
    let [set] = &all[..] else { anyhow::bail!("one set, not {}", all.len()) };
    let hash = set.labels().get("pod-template-hash").context("a hash")?.clone();
    ensure!(set.name_any() == format!("web-{hash}"), "{}", set.name_any());
    ensure!((1..=10).contains(&hash.len()), "{hash}");
    let spec = set.spec.as_ref().context("a spec")?;
    ensure!(spec.selector.match_labels.as_ref().is_some_and(|labels| labels.len() == 2), "{spec:?}");
    let notes = set.annotations();
    ensure!(notes.get("note").is_some_and(|note| note == "kept"), "{notes:?}");
    ensure!(notes.get(REVISION).is_some_and(|revision| revision == "1"), "{notes:?}");
    let sized = ["desired-replicas", "max-replicas"]
        .map(|note| notes.get(&format!("deployment.kubernetes.io/{note}")).map(String::as_str));
    ensure!(sized == [Some("3"), Some("4")], "{notes:?}");
    let owner = &set.owner_references()[0];
    ensure!(Some(&owner.uid) == made.metadata.uid.as_ref() && owner.controller == Some(true), "{owner:?}");
    for pod in &first {
        ensure!(pod.name_any().starts_with(&format!("web-{hash}-")), "{}", pod.name_any());
        ensure!(pod.labels().get("pod-template-hash") == Some(&hash), "{:?}", pod.labels());
    }
    let waiting = json!({ "status": {
        "replicas": 3, "updatedReplicas": 3, "unavailableReplicas": 3, "observedGeneration": 1,
        "terminatingReplicas": 0,
    } });
    let web = || cluster.eventually::<Deployment>("web");
    web().has(waiting).await?;
    web().has_condition_because("Available", "MinimumReplicasUnavailable").await?;
    web().has_condition_because("Progressing", "ReplicaSetUpdated").await?;
    let told = web().has_event("ScalingReplicaSet").await?;
    ensure!(told == format!("Scaled up replica set web-{hash} from 0 to 3"), "{told}");
    let done = complete(&cluster, "web").await?;
    ensure!(done.annotations().get(REVISION).is_some_and(|revision| revision == "1"), "{done:?}");
    web().has_condition_because("Available", "MinimumReplicasAvailable").await?;
    let done = web().has_condition("Progressing", true).await?;
    let status = done.status.context("a status")?;
    let numbers = (status.ready_replicas, status.available_replicas, status.unavailable_replicas);
    ensure!(numbers == (Some(3), Some(3), None), "{numbers:?}");
    let progress = status.conditions.iter().flatten().find(|condition| condition.type_ == "Progressing");
    let message = progress.and_then(|progress| progress.message.clone()).unwrap_or_default();
    ensure!(message == format!("ReplicaSet \"web-{hash}\" has successfully progressed."), "{message}");
    Ok(())
}

async fn rolls_within_bounds(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    // A quarter more, rounded up, and a quarter fewer, rounded down.
    cluster.create(deployment("web", 6)).await?;
    complete(&cluster, "web").await?;
    let of_sets = Record::<ReplicaSet>::start(&cluster).await?;
    let of_pods = Record::<Pod>::start(&cluster).await?;
    cluster.patch::<Deployment>("web", image("two")).await?;
    let look = || async {
        // One after the other, so that the rollout has many moments.
        let unready = pods(&cluster, "web").await?.into_iter().find(|pod| !is_ready(pod));
        if let Some(pod) = unready {
            manual_pods::fares(&cluster, &pod, true).await?;
        }
        cluster.get::<Deployment>("web").await
    };
    cluster
        .until("the rollout is complete", look, |web| {
            is_complete(web) && web.annotations().get(REVISION).is_some_and(|revision| revision == "2")
        })
        .await?;
    let most = of_sets.moments(&cluster).await?.iter().map(|sets| sets.values().map(size).sum::<i32>()).max();
    ensure!(most.is_some_and(|most| (7..=8).contains(&most)), "at most 8 at a time: {most:?}");
    let ready = |pod: &&Pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none();
    let moments = of_pods.moments(&cluster).await?;
    let fewest = moments.iter().map(|pods| pods.values().filter(ready).count()).min();
    ensure!(fewest >= Some(5), "at least 5 ready at every moment: {fewest:?}");
    ensure!(sizes(&sets(&cluster, "web").await?) == [0, 6], "all of them are new");
    Ok(())
}

async fn goes_back(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(deployment("web", 2)).await?;
    complete(&cluster, "web").await?;
    let first = sets(&cluster, "web").await?[0].name_any();
    cluster.patch::<Deployment>("web", image("two")).await?;
    cluster
        .eventually::<Deployment>("web")
        .has(json!({"metadata": {"annotations": {REVISION: "2"}}}))
        .await?;
    complete(&cluster, "web").await?;
    cluster.patch::<Deployment>("web", image("one")).await?;
    cluster
        .eventually::<Deployment>("web")
        .has(json!({"metadata": {"annotations": {REVISION: "3"}}}))
        .await?;
    complete(&cluster, "web").await?;
    let all = sets(&cluster, "web").await?;
    ensure!(sizes(&all) == [0, 2] && all[1].name_any() == first, "the first set again: {:?}", sizes(&all));
    let history = all[1].annotations().get("deployment.kubernetes.io/revision-history").cloned();
    ensure!(history.as_deref() == Some("1"), "{history:?}");
    Ok(())
}

async fn pauses(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(deployment("web", 2)).await?;
    complete(&cluster, "web").await?;
    let web = || cluster.eventually::<Deployment>("web");
    cluster.patch::<Deployment>("web", json!({ "spec": { "paused": true } })).await?;
    web().has_condition_because("Progressing", "DeploymentPaused").await?;
    let changed = cluster.patch::<Deployment>("web", image("two")).await?;
    let observed = json!({ "status": { "observedGeneration": changed.metadata.generation } });
    web().has(observed).await?;
    ensure!(sets(&cluster, "web").await?.len() == 1, "nothing new while it is paused");
    cluster.patch::<Deployment>("web", json!({ "spec": { "replicas": 4 } })).await?;
    wait_for_count(&cluster, "web", 4).await?;
    ensure!(sizes(&sets(&cluster, "web").await?) == [4], "but it grows");
    all_ready(&cluster, "web").await?;
    web().has(json!({ "status": { "availableReplicas": 4 } })).await?;
    cluster.patch::<Deployment>("web", json!({ "spec": { "paused": false } })).await?;
    web().has(json!({ "metadata": { "annotations": { REVISION: "2" } } })).await?;
    complete(&cluster, "web").await?;
    ensure!(sizes(&sets(&cluster, "web").await?) == [0, 4], "and then goes on");
    Ok(())
}

async fn gets_stuck(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let seconds = if cluster.embedded().is_some() { 600 } else { 3 };
    cluster.create(deployment("web", 4).set("spec.progressDeadlineSeconds", seconds)).await?;
    complete(&cluster, "web").await?;
    cluster.patch::<Deployment>("web", image("broken")).await?;
    let web = || cluster.eventually::<Deployment>("web");
    // Of four, one more and one less: two of the new, three of the old, and no further.
    let sets_are = |wanted: [i32; 2]| {
        let cluster = &cluster;
        async move {
            let what = format!("the sets are of {wanted:?}");
            cluster.until(&what, || sets(cluster, "web"), |sets| sizes(sets) == wanted).await
        }
    };
    sets_are([3, 2]).await?;
    web().has(json!({ "status": { "updatedReplicas": 2, "unavailableReplicas": 2 } })).await?;
    cluster.advance(Duration::from_secs(seconds + 1)).await;
    let stuck = web().has_condition_because("Progressing", "ProgressDeadlineExceeded").await?;
    let status = stuck.status.context("a status")?;
    let progress = status.conditions.iter().flatten().find(|condition| condition.type_ == "Progressing");
    ensure!(progress.is_some_and(|progress| progress.status == "False"), "{progress:?}");
    web().has_condition_because("Available", "MinimumReplicasAvailable").await?;
    sets_are([3, 2]).await?;
    // Back to what worked.
    cluster.patch::<Deployment>("web", image("one")).await?;
    complete(&cluster, "web").await?;
    sets_are([0, 4]).await?;
    Ok(())
}

async fn recreates(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(deployment("web", 2).set("spec.strategy", json!({ "type": "Recreate" }))).await?;
    complete(&cluster, "web").await?;
    let old = wait_for_count(&cluster, "web", 2).await?;
    let held = old[0].name_any();
    let hold = json!({ "metadata": { "finalizers": ["windlass.dev/held"] } });
    cluster.patch::<Pod>(&held, hold).await?;
    let of_pods = Record::<Pod>::start(&cluster).await?;
    cluster.patch::<Deployment>("web", image("two")).await?;
    let going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    cluster.eventually::<Pod>(&held).is("is on its way out", going).await?;
    let web = || cluster.eventually::<Deployment>("web");
    web().has(json!({ "status": { "terminatingReplicas": 1 } })).await?;
    ensure!(sets(&cluster, "web").await?.len() == 1, "nothing new while an old pod is there");
    cluster.patch::<Pod>(&held, json!({ "metadata": { "finalizers": null } })).await?;
    web().has(json!({ "metadata": { "annotations": { REVISION: "2" } } })).await?;
    complete(&cluster, "web").await?;
    let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone());
    for moment in of_pods.moments(&cluster).await? {
        let mut images: Vec<_> = moment.values().filter_map(image).collect();
        images.dedup();
        ensure!(images.len() <= 1, "never two images at a time: {images:?}");
    }
    Ok(())
}

async fn forgets(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(deployment("web", 1).set("spec.revisionHistoryLimit", 1)).await?;
    complete(&cluster, "web").await?;
    for (number, name) in [(2, "two"), (3, "three"), (4, "four")] {
        cluster.patch::<Deployment>("web", image(name)).await?;
        let revision = json!({ "metadata": { "annotations": { REVISION: format!("{number}") } } });
        cluster.eventually::<Deployment>("web").has(revision).await?;
        complete(&cluster, "web").await?;
    }
    let left = cluster.until("one old set is left", || sets(&cluster, "web"), |sets| sets.len() == 2).await?;
    let revisions: Vec<_> = left.iter().map(|set| revision(set.annotations().get(REVISION))).collect();
    ensure!(revisions == [3, 4], "{revisions:?}");
    Ok(())
}

async fn scales_in_proportion(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let bounds = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 3, "maxUnavailable": 2 } });
    cluster.create(deployment("web", 10).set("spec.strategy", bounds)).await?;
    complete(&cluster, "web").await?;
    cluster.patch::<Deployment>("web", image("broken")).await?;
    let sizes_are = |wanted: [i32; 2]| {
        let cluster = &cluster;
        async move {
            let what = format!("the sets are of {wanted:?}");
            cluster.until(&what, || sets(cluster, "web"), |sets| sizes(sets) == wanted).await
        }
    };
    sizes_are([8, 5]).await?;
    wait_for_count(&cluster, "web", 13).await?;
    // From 13 at most to 18: each set grows by its share.
    cluster.patch::<Deployment>("web", json!({ "spec": { "replicas": 15 } })).await?;
    sizes_are([11, 7]).await?;
    Ok(())
}

async fn adopts(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut template = manual_pods::template("web", "one");
    template["metadata"]["labels"]["pod-template-hash"] = "12345".into();
    let labels = template["metadata"]["labels"].clone();
    let lone: ReplicaSet = object(
        "lone",
        json!({
            "metadata": { "labels": labels, "annotations": { REVISION: "7" } },
            "spec": { "replicas": 2, "selector": { "matchLabels": labels }, "template": template },
        }),
    );
    cluster.create(lone).await?;
    wait_for_count(&cluster, "web", 2).await?;
    cluster.create(deployment("web", 2)).await?;
    let revision = json!({ "metadata": { "annotations": { REVISION: "7" } } });
    cluster.eventually::<Deployment>("web").has(revision).await?;
    complete(&cluster, "web").await?;
    let all = sets(&cluster, "web").await?;
    ensure!(all.len() == 1 && all[0].name_any() == "lone", "it is the deployment's now, and the only one");
    cluster.patch::<Deployment>("web", image("two")).await?;
    let revision = json!({ "metadata": { "annotations": { REVISION: "8" } } });
    cluster.eventually::<Deployment>("web").has(revision).await?;
    Ok(())
}

async fn collides(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(deployment("web", 1)).await?;
    wait_for_count(&cluster, "web", 1).await?;
    let first = sets(&cluster, "web").await?;
    let hash = first[0].labels()["pod-template-hash"].clone();
    // Of the same template a deployment of another name makes a set of the same hash, but that name is taken.
    let taken: ReplicaSet = object(
        format!("other-{hash}"),
        json!({ "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": "taken" } },
            "template": manual_pods::template("taken", "one"),
        } }),
    );
    cluster.create(taken).await?;
    let mut other = deployment("web", 1);
    other.metadata.name = Some("other".into());
    cluster.create(other).await?;
    cluster.eventually::<Deployment>("other").has(json!({ "status": { "collisionCount": 1 } })).await?;
    let made = cluster.until("it has a set", || sets(&cluster, "other"), |sets| sets.len() == 1).await?;
    ensure!(made[0].name_any() != format!("other-{hash}"), "{}", made[0].name_any());
    Ok(())
}

async fn tells_of_trouble(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let class = format!("{}-none", cluster.namespace());
    cluster.create(deployment("web", 2).set("spec.template.spec.priorityClassName", class)).await?;
    let web = || cluster.eventually::<Deployment>("web");
    web().has_condition_because("ReplicaFailure", "FailedCreate").await?;
    web().has_condition_because("Available", "MinimumReplicasUnavailable").await?;
    cluster
        .patch::<Deployment>("web", json!({"spec": {"template": {"spec": {"priorityClassName": null}}}}))
        .await?;
    complete(&cluster, "web").await?;
    web()
        .is("has no trouble any more", |web| {
            let conditions = web.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().all(|condition| condition.type_ != "ReplicaFailure")
        })
        .await?;
    Ok(())
}

async fn scales_to_nothing(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(deployment("web", 2)).await?;
    complete(&cluster, "web").await?;
    cluster.patch::<Deployment>("web", json!({ "spec": { "replicas": 0 } })).await?;
    wait_for_count(&cluster, "web", 0).await?;
    cluster
        .eventually::<Deployment>("web")
        .is("is told to have none", |web| {
            web.status.as_ref().is_some_and(|status| status.replicas.unwrap_or_default() == 0)
        })
        .await?;
    cluster.patch::<Deployment>("web", json!({ "spec": { "replicas": 3 } })).await?;
    wait_for_count(&cluster, "web", 3).await?;
    complete(&cluster, "web").await?;
    let all = sets(&cluster, "web").await?;
    ensure!(sizes(&all) == [3], "{:?}", sizes(&all));
    let told = cluster.events::<Deployment>("web").await?;
    let name = all[0].name_any();
    let wanted = format!("ScalingReplicaSet: Scaled down replica set {name} from 2 to 0");
    ensure!(told.contains(&wanted), "{told:?}");
    Ok(())
}
