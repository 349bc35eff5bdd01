//! ResourceQuotas: their status says what is used. Admission counts what is added to it; this says what each quota is about
//! in the first place, and takes away what is gone.
//!
//! - `decide`: whether a status is to be written
//! - `monitor`: the objects of every kind that some quota counts

mod decide;
mod monitor;

use decide::{Verdict, verdict};
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use monitor::{Watched, Watching};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::cache::{Opened, Scope};
use windlass::clock::Moment;
use windlass::{Key, Kind, Manager, Task};
use windlass_apiserver::QuotaUsage;

/// Quotas that are counted at once.
const WORKERS: usize = 5;
/// When a quota is looked at again that counts a kind which is not served, or cannot be listed.
const LATER: Duration = Duration::from_secs(60);

pub(crate) fn add(manager: Manager) -> Manager {
    manager.task("resourcequota-controller", |task| async move { Ok(keep_counting(task).await?) })
}

async fn keep_counting(task: Task) -> kube::Result<()> {
    let quotas: Opened<ResourceQuota> = task.cache().open(Scope::default());
    let watched = Watched::new(&task);
    let of_quotas = watched.clone();
    let _listening = quotas.listen_while(Arc::new(move |changed| of_quotas.add(&changed.key)));
    tokio::select! {
        () = task.stopped() => return Ok(()),
        _ = quotas.synced() => {}
    }
    quotas.list().iter().for_each(|quota| watched.add_of(&quota.metadata));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(task.client().clone(), quotas.clone(), watched.clone()));
    }
    task.stopped().await;
    watched.stop();
    while workers.join_next().await.is_some() {}
    Ok(())
}

async fn work(client: Client, quotas: Opened<ResourceQuota>, watched: Arc<Watched>) {
    while let Some(taken) = watched.next().await {
        match count(&client, &quotas, &watched, &taken).await {
            Ok(None) => watched.done(&taken),
            Ok(Some(again)) => watched.again_at(&taken, again),
            Err(error) => {
                if crate::metadata_client::code(&error) != Some(409) {
                    tracing::warn!(quota = %*taken, "the quota is not counted: {error}");
                }
                watched.again(&taken);
            }
        }
    }
}

/// Counts what is used of a quota; answers when that is to be done again though nothing changes.
async fn count(
    client: &Client,
    quotas: &Opened<ResourceQuota>,
    watched: &Arc<Watched>,
    key: &Key,
) -> kube::Result<Option<Moment>> {
    let Some(quota) = quotas.get(key) else {
        watched.forget(key);
        return Ok(None);
    };
    let mut tally = QuotaUsage::new(&json!({ "spec": quota.spec }));
    let watching = watched.watch(client, key, tally.kinds()).await?;
    if watching == Watching::NotYet {
        return Ok(Some(watched.moment() + LATER));
    }
    let later = (watching == Watching::Some).then(|| watched.moment() + LATER);
    watched.count(&mut tally, key.namespace().unwrap_or_default());
    let used = tally
        .used()
        .into_iter()
        .map(|(name, amount)| (name, Quantity(amount.as_str().unwrap_or_default().to_owned())));
    let version = quota.metadata.resource_version.as_deref().unwrap_or_default();
    match verdict(&quota, used.collect(), watched.unchanged(key, version)) {
        Verdict::Settled => {
            watched.forget_version(key);
            Ok(later)
        }
        Verdict::Wait(pause) => Ok(Some(watched.moment() + pause)),
        Verdict::Write(status) => {
            watched.forget_version(key);
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
