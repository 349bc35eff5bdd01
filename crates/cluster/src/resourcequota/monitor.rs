//! The quota monitor: watches the objects of every kind that some quota counts, as long as one does, and queues the quotas to
//! be counted again.

use crate::discovery::Discovery;
use crate::pods;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;
use windlass::cache::{AnyObject, AnyOpened, Cache, Changed, Listening, Scope};
use windlass::clock::{Clock, Moment};
use windlass::queue::{Backoff, Priority, Queue, Taken};
use windlass::{Key, Task};
use windlass_apiserver::QuotaUsage;

/// How long the first list of a kind may take; after that the quota is requeued, so that it does not hold up the others.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether what a quota counts is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SyncState {
    Synced,
    /// All but kinds that are not served.
    SomeNotServed,
    /// Some kind is not listed yet: nothing can be counted.
    NotSynced,
}

/// Group and plural.
type Name = (String, String);

pub(super) struct QuotaMonitor {
    cache: Cache,
    clock: Clock,
    queue: Queue<Key>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    monitors: BTreeMap<Name, Arc<Monitor>>,
    /// What each quota counts.
    wants: HashMap<Key, BTreeSet<Name>>,
    /// When a lower count was first observed at which resourceVersion.
    versions: HashMap<Key, (String, Moment)>,
}

struct Monitor {
    objects: AnyOpened,
    _listening: Listening,
}

impl QuotaMonitor {
    pub(super) fn new(task: &Task) -> Arc<Self> {
        let clock = task.clock().clone();
        Arc::new(Self {
            cache: task.cache().clone(),
            queue: Queue::new(
                clock.clone(),
                Backoff { limit: Duration::from_secs(60), ..Backoff::default() },
            ),
            clock,
            inner: Mutex::default(),
        })
    }

    pub(super) fn stop(&self) {
        self.queue.shutdown();
    }

    pub(super) async fn next(&self) -> Option<Taken<Key>> {
        self.queue.next().await
    }

    pub(super) fn moment(&self) -> Moment {
        self.clock.moment()
    }

    pub(super) fn add(&self, quota: &Key) {
        self.queue.add(quota.clone(), Priority::NORMAL);
    }

    pub(super) fn add_of(&self, quota: &ObjectMeta) {
        self.add(&Key::of(self.cache.cluster().clone(), quota));
    }

    pub(super) fn requeue(&self, quota: &Key) {
        self.queue.retry(quota.clone());
    }

    pub(super) fn requeue_at(&self, quota: &Key, at: Moment) {
        self.queue.forget(quota);
        self.queue.add_at(quota.clone(), at, Priority::NORMAL);
    }

    pub(super) fn done(&self, quota: &Key) {
        self.queue.forget(quota);
    }

    /// How long a quota has had this version while a lower count was observed; none the first time.
    pub(super) fn unchanged(&self, quota: &Key, version: &str) -> Option<Duration> {
        let now = self.clock.moment();
        let mut inner = self.inner.lock();
        match inner.versions.get(quota) {
            Some((known, since)) if known == version => Some(now - *since),
            _ => {
                inner.versions.insert(quota.clone(), (version.to_owned(), now));
                None
            }
        }
    }

    pub(super) fn forget_version(&self, quota: &Key) {
        self.inner.lock().versions.remove(quota);
    }

    /// Forgets a deleted quota, and stops watching what only it counted.
    pub(super) fn forget(&self, quota: &Key) {
        let dropped = {
            let mut inner = self.inner.lock();
            inner.versions.remove(quota);
            inner.wants.remove(quota);
            inner.prune()
        };
        // Outside the lock: closing a store takes locks of its own.
        drop(dropped);
    }

    /// Watches these kinds for a quota. A kind that is not served has no objects.
    pub(super) async fn watch(
        self: &Arc<Self>,
        client: &Client,
        quota: &Key,
        kinds: BTreeSet<Name>,
    ) -> kube::Result<SyncState> {
        let (missing, dropped): (Vec<Name>, _) = {
            let mut inner = self.inner.lock();
            inner.wants.insert(quota.clone(), kinds.clone());
            let dropped = inner.prune();
            (kinds.iter().filter(|kind| !inner.monitors.contains_key(kind)).cloned().collect(), dropped)
        };
        drop(dropped);
        let discovery = match missing.is_empty() {
            true => Discovery::default(),
            false => Discovery::discover_stored(client).await?,
        };
        let mut sync_state = SyncState::Synced;
        for name in missing {
            let Some(objects) = self.open(&name, &discovery) else {
                sync_state = SyncState::SomeNotServed;
                continue;
            };
            let quota_monitor: Weak<Self> = Arc::downgrade(self);
            let listening = objects.listen_while(Arc::new(move |changed| {
                if let Some(quota_monitor) = quota_monitor.upgrade() {
                    quota_monitor.changed(changed);
                }
            }));
            let monitor = Arc::new(Monitor { objects, _listening: listening });
            self.inner.lock().monitors.insert(name, monitor);
        }
        let monitors: Vec<Arc<Monitor>> = self.inner.lock().monitors.values().cloned().collect();
        let synced = futures::future::join_all(monitors.iter().map(|monitor| monitor.objects.synced()));
        Ok(match self.clock.timeout(SYNC_TIMEOUT, synced).await {
            Ok(_) => sync_state,
            Err(_) => SyncState::NotSynced,
        })
    }

    /// Whole objects where what is in them counts, metadata where it does not.
    fn open(&self, (group, plural): &Name, discovery: &Discovery) -> Option<AnyOpened> {
        match (group.as_str(), plural.as_str()) {
            ("", "pods") => Some(self.cache.open::<Pod>(Scope::default()).into()),
            ("", "services") => Some(self.cache.open::<Service>(Scope::default()).into()),
            ("", "persistentvolumeclaims") => {
                Some(self.cache.open::<PersistentVolumeClaim>(Scope::default()).into())
            }
            ("", "resourcequotas") => Some(self.cache.open::<ResourceQuota>(Scope::default()).into()),
            _ => {
                let mut served = discovery.preferred().filter(|served| {
                    served.kind.group == *group && served.kind.plural == *plural && served.kind.namespaced
                });
                let served = served.find(|served| served.supports(&["list", "watch"]))?;
                Some(self.cache.open_any(served.kind.clone()))
            }
        }
    }

    /// Queues the quotas of a namespace when an object in it is created, deleted or changed in a way that counts.
    fn changed(&self, changed: &Changed) {
        if let (Some(old), Some(new)) = (&changed.old, &changed.new)
            && is_same(&**old, &**new)
        {
            return;
        }
        let quotas: Vec<Key> = {
            let inner = self.inner.lock();
            inner.wants.keys().filter(|quota| quota.namespace() == changed.key.namespace()).cloned().collect()
        };
        quotas.iter().for_each(|quota| self.add(quota));
    }

    /// Counts all that is in a namespace.
    pub(super) fn count(&self, tally: &mut QuotaUsage, namespace: &str) {
        for name in tally.kinds() {
            let Some(monitor) = self.inner.lock().monitors.get(&name).cloned() else { continue };
            let (group, plural) = &name;
            let by_number = tally.counts_only(group, plural);
            for object in monitor.objects.list() {
                if object.meta().namespace.as_deref() != Some(namespace) {
                    continue;
                }
                let counted = if by_number { outline(&*object) } else { object.to_json() };
                tally.add(group, plural, &counted);
            }
        }
    }
}

impl Inner {
    /// Removes the monitors that no quota needs.
    fn prune(&mut self) -> Vec<Arc<Monitor>> {
        let wanted: BTreeSet<&Name> = self.wants.values().flatten().collect();
        let unwanted: Vec<Name> =
            self.monitors.keys().filter(|name| !wanted.contains(name)).cloned().collect();
        unwanted.iter().filter_map(|name| self.monitors.remove(name)).collect()
    }
}

/// As much of an object as counting it needs: a terminal pod does not count.
fn outline(object: &dyn AnyObject) -> Value {
    match object.as_any().downcast_ref::<Pod>() {
        Some(pod) => json!({ "status": { "phase": pods::phase(pod) } }),
        None => Value::Null,
    }
}

/// Whether two states of an object count the same.
fn is_same(old: &dyn AnyObject, new: &dyn AnyObject) -> bool {
    let (old, new) = (old.as_any(), new.as_any());
    if let (Some(old), Some(new)) = (old.downcast_ref::<Pod>(), new.downcast_ref::<Pod>()) {
        let resources = |pod: &Pod| {
            pod.spec.as_ref().map(|spec| {
                spec.containers.iter().map(|container| container.resources.clone()).collect::<Vec<_>>()
            })
        };
        return pods::has_ended(old) == pods::has_ended(new) && resources(old) == resources(new);
    }
    if let (Some(old), Some(new)) = (old.downcast_ref::<Service>(), new.downcast_ref::<Service>()) {
        return old.spec == new.spec;
    }
    let claim =
        |any: &dyn std::any::Any| any.downcast_ref::<PersistentVolumeClaim>().map(|claim| claim.spec.clone());
    claim(old) == claim(new)
}
