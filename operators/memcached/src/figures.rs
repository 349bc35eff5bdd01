//! Metrics of this operator's own, counted from the cache when somebody asks.

use crate::api::v1alpha1::Memcached;
use std::sync::{Arc, OnceLock};
use windlass::Manager;
use windlass::cache::Store;
use windlass::metrics::{Page, Type};

/// A manager that shows them.
pub(crate) fn shown(manager: Manager) -> Manager {
    let store: Arc<OnceLock<Arc<Store<Memcached>>>> = Arc::default();
    let kept = store.clone();
    let manager = manager.caching(move |cache| drop(kept.set(cache.store::<Memcached>())));
    manager.metrics(move |page| {
        let all = store.get().map(|store| store.list()).unwrap_or_default();
        let ready = |one: &Arc<Memcached>| one.status.as_ref().map_or(0, |status| status.ready);
        show(page, all.iter().map(|one| one.spec.size).sum(), all.iter().map(ready).sum());
    })
}

fn show(page: &mut Page, wanted: i32, ready: i32) {
    page.family("memcached_servers", Type::Gauge, "Servers of all Memcacheds, as declared and as they are.")
        .sample(&[("state", "declared")], wanted.into())
        .sample(&[("state", "ready")], ready.into());
}
