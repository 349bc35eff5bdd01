//! ResourceQuotas: keeps `status.used` right. Admission adds to it when an object is created; this controller fills it in for
//! a new quota and lowers it when objects are deleted.
//!
//! It counts with admission's own code (`windlass_apiserver::QuotaUsage`). A lower count is written only once the quota was left
//! unchanged for a moment: what admission has charged may be about to be stored.
//!
//! - `decide`: whether a status has to be written
//! - `monitor`: the objects of every kind that some quota counts

mod decide;
mod monitor;

use decide::{Verdict, verdict};
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use monitor::{QuotaMonitor, SyncState};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::cache::{Opened, Scope};
use windlass::clock::Moment;
use windlass::{Key, Kind, Manager, Task};
use windlass_apiserver::QuotaUsage;

/// The number of workers.
const WORKERS: usize = 5;
/// When a quota is counted again that counts a kind which is not served or cannot be listed.
const RESYNC_AFTER: Duration = Duration::from_secs(60);

pub(crate) fn add(manager: Manager) -> Manager {
    manager.task("resourcequota-controller", |task| async move { Ok(run(task).await?) })
}

async fn run(task: Task) -> kube::Result<()> {
    let quotas: Opened<ResourceQuota> = task.cache().open(Scope::default());
    let quota_monitor = QuotaMonitor::new(&task);
    let of_quotas = quota_monitor.clone();
    let _listening = quotas.listen_while(Arc::new(move |changed| of_quotas.add(&changed.key)));
    tokio::select! {
        () = task.stopped() => return Ok(()),
        _ = quotas.synced() => {}
    }
    quotas.list().iter().for_each(|quota| quota_monitor.add_of(&quota.metadata));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(run_worker(task.client().clone(), quotas.clone(), quota_monitor.clone()));
    }
    task.stopped().await;
    quota_monitor.stop();
    while workers.join_next().await.is_some() {}
    Ok(())
}

async fn run_worker(client: Client, quotas: Opened<ResourceQuota>, quota_monitor: Arc<QuotaMonitor>) {
    while let Some(taken) = quota_monitor.next().await {
        match sync_quota(&client, &quotas, &quota_monitor, &taken).await {
            Ok(None) => quota_monitor.done(&taken),
            Ok(Some(at)) => quota_monitor.requeue_at(&taken, at),
            Err(error) => {
                if crate::metadata_client::code(&error) != Some(409) {
                    tracing::warn!(quota = %*taken, "cannot update the status of the ResourceQuota: {error}");
                }
                quota_monitor.requeue(&taken);
            }
        }
    }
}

/// Counts the usage of a quota; returns when to count it again though nothing changes.
async fn sync_quota(
    client: &Client,
    quotas: &Opened<ResourceQuota>,
    quota_monitor: &Arc<QuotaMonitor>,
    key: &Key,
) -> kube::Result<Option<Moment>> {
    let Some(quota) = quotas.get(key) else {
        quota_monitor.forget(key);
        return Ok(None);
    };
    let mut tally = QuotaUsage::new(&json!({ "spec": quota.spec }));
    let sync_state = quota_monitor.watch(client, key, tally.kinds()).await?;
    if sync_state == SyncState::NotSynced {
        return Ok(Some(quota_monitor.moment() + RESYNC_AFTER));
    }
    let later = (sync_state == SyncState::SomeNotServed).then(|| quota_monitor.moment() + RESYNC_AFTER);
    quota_monitor.count(&mut tally, key.namespace().unwrap_or_default());
    let used = tally
        .used()
        .into_iter()
        .map(|(name, amount)| (name, Quantity(amount.as_str().unwrap_or_default().to_owned())));
    let version = quota.metadata.resource_version.as_deref().unwrap_or_default();
    match verdict(&quota, used.collect(), quota_monitor.unchanged(key, version)) {
        Verdict::Settled => {
            quota_monitor.forget_version(key);
            Ok(later)
        }
        Verdict::Wait(pause) => Ok(Some(quota_monitor.moment() + pause)),
        Verdict::Write(status) => {
            quota_monitor.forget_version(key);
            // What its metadata says is written with it: labels and owners that were left out would be gone.
            let metadata = ObjectMeta { managed_fields: None, ..quota.metadata.clone() };
            let object = json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": status,
            });
            match crate::metadata_client::put(client, &Kind::of::<ResourceQuota>(), key, "status", &object)
                .await
            {
                Err(error) if crate::metadata_client::code(&error) == Some(404) => Ok(None),
                done => done.map(|()| later),
            }
        }
    }
}
