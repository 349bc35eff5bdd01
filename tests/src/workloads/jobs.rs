//! Jobs: counting, back-off, failure and completion.

use super::manual_pods::{ended, spec};
use crate::targets::whole_cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_harness::{Suite, Target};
use windlass_testing::{TestCluster, object};

/// All of them.
pub fn behaviours(suite: Suite) -> Suite {
    suite
        .test("a job runs up to its parallelism until its completions succeeded", completes)
        .test("a job without completions is complete when one pod succeeded", work_queue)
        .test("an indexed job gives its pods their index, and lists completed indexes in its status", indexed)
        .test("a job fails at its backoffLimit", fails)
        .test("a job backs off after a failed pod", waits)
        .test("a job fails at its activeDeadlineSeconds, and its pods are deleted", deadline)
        .test("a suspended job deletes its pods, and resumes with new ones", suspends)
        .test("a pod failure policy ignores, or fails the job", failure_policy)
        .test("a success policy completes a job early", success_policy)
        .test("backoffLimitPerIndex applies to each index", per_index)
        .test("a terminating pod is replaced according to podReplacementPolicy", replacement)
        .test("a job with a manual selector adopts matching pods", own_selector)
        .test("a job with managedBy is not reconciled", managed_by_another)
        .test("the pods of a deleted job lose their finalizer", lets_go)
        .test("a finished job is deleted after ttlSecondsAfterFinished", expires)
}

/// A job called `work` with this in its spec.
fn job(fields: &Value) -> Job {
    let mut pod = spec();
    pod["restartPolicy"] = "Never".into();
    let mut spec = json!({ "template": { "spec": pod } });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    object("work", json!({ "spec": spec }))
}

/// The names of the active pods, once there are this many.
async fn working(cluster: &TestCluster, count: usize) -> anyhow::Result<Vec<Pod>> {
    let look = || async {
        let pods = cluster.list::<Pod>().await?.into_iter();
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let ended = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        let mut pods: Vec<Pod> =
            pods.filter(|pod| !ended(pod) && pod.metadata.deletion_timestamp.is_none()).collect();
        pods.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        Ok(pods)
    };
    cluster.until(&format!("{count} pods are at work"), look, |pods| pods.len() == count).await
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

async fn status_has(cluster: &TestCluster, status: Value) -> anyhow::Result<Job> {
    cluster.eventually::<Job>("work").has(json!({ "status": status })).await
}

/// The types and reasons of the conditions that the job has at its end.
async fn ends(cluster: &TestCluster, conditions: &[(&str, &str)]) -> anyhow::Result<Job> {
    let has = |job: &Job| {
        let there = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let there: Vec<(&str, &str)> =
            there.map(|one| (one.type_.as_str(), one.reason.as_deref().unwrap_or_default())).collect();
        there == conditions
    };
    cluster.eventually::<Job>("work").is(&format!("has the conditions {conditions:?}"), has).await
}

async fn completes(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({ "completions": 3, "parallelism": 2 }))).await?;
    let pods = working(&cluster, 2).await?;
    status_has(&cluster, json!({ "active": 2, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {} }))
        .await?;
    for pod in &pods {
        ensure!(name(pod).starts_with("work-") && name(pod).len() == "work-".len() + 5, "{}", name(pod));
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        ensure!(
            labels["batch.kubernetes.io/job-name"] == "work" && labels["job-name"] == "work",
            "{labels:?}"
        );
        let finalizers = pod.metadata.finalizers.clone().unwrap_or_default();
        ensure!(finalizers == ["batch.kubernetes.io/job-tracking"], "{finalizers:?}");
        ended(&cluster, name(pod), 0).await?;
    }
    let last = working(&cluster, 1).await?;
    status_has(&cluster, json!({ "active": 1, "succeeded": 2 })).await?;
    ended(&cluster, name(&last[0]), 0).await?;
    let met = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")];
    let done = ends(&cluster, &met).await?;
    let status = done.status.context("it has a status")?;
    ensure!(status.succeeded == Some(3) && status.active.is_none() && status.failed.is_none(), "{status:?}");
    ensure!(status.start_time.is_some() && status.completion_time.is_some(), "{status:?}");
    let named = status.uncounted_terminated_pods.unwrap_or_default();
    ensure!(named.succeeded.is_none() && named.failed.is_none(), "{named:?}");
    for pod in cluster.list::<Pod>().await? {
        ensure!(pod.metadata.finalizers.is_none(), "{} was counted and is let go", name(&pod));
    }
    let told = cluster.eventually::<Job>("work").has_event("Completed").await?;
    ensure!(told == "Job completed", "{told}");
    cluster.eventually::<Job>("work").has_event("SuccessfulCreate").await?;
    Ok(())
}

async fn work_queue(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({ "parallelism": 2 }))).await?;
    let pods = working(&cluster, 2).await?;
    ended(&cluster, name(&pods[0]), 0).await?;
    status_has(&cluster, json!({ "active": 1, "succeeded": 1 })).await?;
    ended(&cluster, name(&pods[1]), 0).await?;
    let met = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")];
    ends(&cluster, &met).await?;
    status_has(&cluster, json!({ "succeeded": 2 })).await?;
    Ok(())
}

async fn indexed(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let fields = json!({ "completions": 4, "parallelism": 4, "completionMode": "Indexed" });
    cluster.create(job(&fields)).await?;
    let pods = working(&cluster, 4).await?;
    for (index, pod) in pods.iter().enumerate() {
        ensure!(name(pod).starts_with(&format!("work-{index}-")), "{}", name(pod));
        let key = "batch.kubernetes.io/job-completion-index";
        let number = index.to_string();
        let of = |map: &Option<std::collections::BTreeMap<String, String>>| {
            map.as_ref().and_then(|map| map.get(key).cloned())
        };
        ensure!(of(&pod.metadata.labels).as_ref() == Some(&number), "{:?}", pod.metadata);
        ensure!(of(&pod.metadata.annotations).as_ref() == Some(&number), "{:?}", pod.metadata);
        let spec = pod.spec.as_ref().context("it has a spec")?;
        ensure!(spec.hostname.as_deref() == Some(&*format!("work-{index}")), "{:?}", spec.hostname);
        let variable = spec.containers[0].env.iter().flatten().find(|one| one.name == "JOB_COMPLETION_INDEX");
        ensure!(variable.is_some(), "{:?}", spec.containers[0].env);
    }
    for index in [0, 1, 3] {
        ended(&cluster, name(&pods[index]), 0).await?;
    }
    status_has(&cluster, json!({ "succeeded": 3, "completedIndexes": "0,1,3", "active": 1 })).await?;
    ended(&cluster, name(&pods[2]), 0).await?;
    status_has(&cluster, json!({ "succeeded": 4, "completedIndexes": "0-3" })).await?;
    let met = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")];
    ends(&cluster, &met).await?;
    Ok(())
}

async fn fails(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({ "backoffLimit": 0, "parallelism": 2, "completions": 2 }))).await?;
    let pods = working(&cluster, 2).await?;
    ended(&cluster, name(&pods[0]), 1).await?;
    let failed = [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")];
    let job = ends(&cluster, &failed).await?;
    let status = job.status.context("it has a status")?;
    ensure!(status.failed == Some(2) && status.active.is_none(), "the other was ended: {status:?}");
    ensure!(status.completion_time.is_none(), "{status:?}");
    working(&cluster, 0).await?;
    let told = cluster.eventually::<Job>("work").has_event("BackoffLimitExceeded").await?;
    ensure!(told == "Job has reached the specified backoff limit", "{told}");
    Ok(())
}

async fn waits(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({}))).await?;
    let pods = working(&cluster, 1).await?;
    ended(&cluster, name(&pods[0]), 1).await?;
    status_has(&cluster, json!({ "failed": 1 })).await?;
    working(&cluster, 0).await?;
    // Ten seconds after the first failure, and on a driven clock as many more as one likes.
    cluster.advance(Duration::from_secs(10)).await;
    let again = working(&cluster, 1).await?;
    ensure!(name(&again[0]) != name(&pods[0]), "it is another one");
    if cluster.embedded().is_some() {
        ended(&cluster, name(&again[0]), 1).await?;
        status_has(&cluster, json!({ "failed": 2 })).await?;
        cluster.advance(Duration::from_secs(15)).await;
        working(&cluster, 0).await?;
        cluster.advance(Duration::from_secs(5)).await;
        working(&cluster, 1).await?;
    }
    Ok(())
}

async fn deadline(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let seconds = if cluster.embedded().is_some() { 3600 } else { 2 };
    cluster
        .create(job(&json!({ "activeDeadlineSeconds": seconds, "completions": 2, "parallelism": 1 })))
        .await?;
    working(&cluster, 1).await?;
    cluster.advance(Duration::from_secs(seconds)).await;
    let failed = [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")];
    ends(&cluster, &failed).await?;
    working(&cluster, 0).await?;
    let told = cluster.eventually::<Job>("work").has_event("DeadlineExceeded").await?;
    ensure!(told == "Job was active longer than specified deadline", "{told}");
    Ok(())
}

async fn suspends(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({ "suspend": true, "completions": 2, "parallelism": 2 }))).await?;
    let suspended = |job: &Job| job.status.as_ref().is_some_and(|status| status.start_time.is_none());
    ends(&cluster, &[("Suspended", "JobSuspended")]).await?;
    cluster.eventually::<Job>("work").is("has not started", suspended).await?;
    working(&cluster, 0).await?;
    cluster.patch::<Job>("work", json!({ "spec": { "suspend": false } })).await?;
    working(&cluster, 2).await?;
    let resumed = ends(&cluster, &[("Suspended", "JobResumed")]).await?;
    ensure!(!suspended(&resumed), "{resumed:?}");
    cluster.patch::<Job>("work", json!({ "spec": { "suspend": true } })).await?;
    working(&cluster, 0).await?;
    let again = ends(&cluster, &[("Suspended", "JobSuspended")]).await?;
    let status = again.status.context("it has a status")?;
    ensure!(status.failed.is_none() && status.start_time.is_none(), "{status:?}");
    for (reason, message) in [("Suspended", "Job suspended"), ("Resumed", "Job resumed")] {
        let told = cluster.eventually::<Job>("work").has_event(reason).await?;
        ensure!(told == message, "{told}");
    }
    Ok(())
}

async fn failure_policy(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let rules = json!([
        { "action": "Ignore", "onExitCodes": { "operator": "In", "values": [3] } },
        { "action": "FailJob", "onExitCodes": { "containerName": "app", "operator": "In", "values": [42] } },
    ]);
    let fields = json!({ "backoffLimit": 0, "parallelism": 2, "completions": 2, "podFailurePolicy": { "rules": rules } });
    cluster.create(job(&fields)).await?;
    let pods = working(&cluster, 2).await?;
    ended(&cluster, name(&pods[0]), 3).await?;
    let let_go = |pod: &Pod| pod.metadata.finalizers.is_none();
    cluster.eventually::<Pod>(name(&pods[0])).is("was looked at", let_go).await?;
    let unfailed = |job: &Job| job.status.as_ref().is_some_and(|status| status.failed.is_none());
    cluster.eventually::<Job>("work").is("has not failed", unfailed).await?;
    ended(&cluster, name(&pods[1]), 42).await?;
    let failed = [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")];
    let job = ends(&cluster, &failed).await?;
    let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
    let message = conditions[0].message.clone().unwrap_or_default();
    let wanted = format!(
        "Container app for pod {}/{} failed with exit code 42 matching FailJob rule at index 1",
        cluster.namespace(),
        name(&pods[1])
    );
    ensure!(message == wanted, "{message}");
    Ok(())
}

async fn success_policy(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let rules = json!([{ "succeededIndexes": "1-2", "succeededCount": 1 }]);
    let fields = json!({
        "completions": 4, "parallelism": 4, "completionMode": "Indexed", "successPolicy": { "rules": rules },
    });
    cluster.create(job(&fields)).await?;
    let pods = working(&cluster, 4).await?;
    ended(&cluster, name(&pods[2]), 0).await?;
    let met = [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")];
    let job = ends(&cluster, &met).await?;
    let status = job.status.context("it has a status")?;
    ensure!(status.succeeded == Some(1) && status.completed_indexes.as_deref() == Some("2"), "{status:?}");
    ensure!(status.failed.is_none(), "{status:?}");
    working(&cluster, 0).await?;
    Ok(())
}

async fn per_index(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let fields = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed",
        "backoffLimitPerIndex": 0, "maxFailedIndexes": 2,
    });
    cluster.create(job(&fields)).await?;
    let pods = working(&cluster, 3).await?;
    let counts = pods[0].metadata.annotations.clone().unwrap_or_default();
    ensure!(counts["batch.kubernetes.io/job-index-failure-count"] == "0", "{counts:?}");
    ended(&cluster, name(&pods[1]), 1).await?;
    status_has(&cluster, json!({ "failedIndexes": "1", "failed": 1, "active": 2 })).await?;
    ended(&cluster, name(&pods[0]), 0).await?;
    ended(&cluster, name(&pods[2]), 0).await?;
    status_has(&cluster, json!({ "failedIndexes": "1", "completedIndexes": "0,2", "succeeded": 2 })).await?;
    let failed = [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")];
    ends(&cluster, &failed).await?;
    Ok(())
}

async fn replacement(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let mut made = job(&json!({ "podReplacementPolicy": "Failed" }));
    // On a node that nobody keeps: without one, the pod would be ended for the test.
    if let Some(pod) = made.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
        pod.node_name = Some("elsewhere".to_owned());
    }
    cluster.create(made).await?;
    let pods = working(&cluster, 1).await?;
    // It stays, since it has a finalizer, and nobody ends its container.
    cluster.delete::<Pod>(name(&pods[0])).await?;
    status_has(&cluster, json!({ "terminating": 1 })).await?;
    working(&cluster, 0).await?;
    ended(&cluster, name(&pods[0]), 1).await?;
    status_has(&cluster, json!({ "failed": 1, "terminating": 0 })).await?;
    cluster.advance(Duration::from_secs(10)).await;
    working(&cluster, 1).await?;
    Ok(())
}

async fn own_selector(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let labels = json!({ "own": "yes" });
    let mut pod = spec();
    pod["restartPolicy"] = "Never".into();
    // Without an account no pod is let in.
    cluster.eventually::<ServiceAccount>("default").exists().await?;
    let orphan: Pod = object("orphan", json!({ "metadata": { "labels": labels }, "spec": pod }));
    cluster.create(orphan).await?;
    let fields = json!({
        "manualSelector": true, "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": pod },
    });
    cluster.create(job(&fields)).await?;
    let taken_up = json!({ "metadata": {
        "finalizers": ["batch.kubernetes.io/job-tracking"],
        "ownerReferences": [{ "kind": "Job", "name": "work", "controller": true }],
    } });
    cluster.eventually::<Pod>("orphan").has(taken_up).await?;
    ended(&cluster, "orphan", 0).await?;
    let met = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")];
    ends(&cluster, &met).await?;
    Ok(())
}

async fn managed_by_another(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({ "managedBy": "example.com/queue" }))).await?;
    // What comes later is done, so this one was passed over.
    let mut other = job(&json!({}));
    other.metadata.name = Some("other".into());
    cluster.create(other).await?;
    let pods = working(&cluster, 1).await?;
    ensure!(name(&pods[0]).starts_with("other-"), "{}", name(&pods[0]));
    let passed = cluster.get::<Job>("work").await?;
    ensure!(passed.status.is_none_or(|status| status.uncounted_terminated_pods.is_none()));
    Ok(())
}

async fn lets_go(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    cluster.create(job(&json!({}))).await?;
    let pods = working(&cluster, 1).await?;
    ended(&cluster, name(&pods[0]), 1).await?;
    let again = json!({ "status": { "failed": 1 } });
    cluster.eventually::<Job>("work").has(again).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let running = working(&cluster, 1).await?;
    let jobs: kube::Api<Job> = kube::Api::namespaced(cluster.client(), cluster.namespace());
    jobs.delete("work", &DeleteParams::background()).await?;
    cluster.eventually::<Job>("work").is_deleted().await?;
    let look = || cluster.find::<Pod>(name(&running[0]));
    let let_go = |pod: &Option<Pod>| pod.as_ref().is_none_or(|pod| pod.metadata.finalizers.is_none());
    cluster.until("the pod has no finalizer", look, let_go).await?;
    Ok(())
}

async fn expires(target: Target) -> anyhow::Result<()> {
    let cluster = whole_cluster(&target).await?;
    let seconds = if cluster.embedded().is_some() { 600 } else { 2 };
    cluster.create(job(&json!({ "ttlSecondsAfterFinished": seconds }))).await?;
    let pods = working(&cluster, 1).await?;
    ended(&cluster, name(&pods[0]), 0).await?;
    let met = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")];
    ends(&cluster, &met).await?;
    cluster.advance(Duration::from_secs(seconds)).await;
    let look = || cluster.find::<Job>("work");
    let goes = |job: &Option<Job>| job.as_ref().is_none_or(|job| job.metadata.deletion_timestamp.is_some());
    cluster.until("the job goes", look, goes).await?;
    Ok(())
}
