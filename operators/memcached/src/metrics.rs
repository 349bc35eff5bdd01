//! Metrics of this operator's own, computed from the cache when the page is read.

use crate::api::v1beta1::Memcached;
use std::sync::Arc;
use windlass::metrics::{Page, Type};

/// The number of servers that all Memcacheds declare, and of those that are ready; for [`windlass::Manager::measures`].
pub(crate) fn servers(all: &[Arc<Memcached>], page: &mut Page) {
    let declared: i32 = all.iter().map(|one| one.spec.size).sum();
    let ready: i32 = all.iter().map(|one| one.status.as_ref().map_or(0, |status| status.ready)).sum();
    page.family("memcached_servers", Type::Gauge, "Servers of all Memcacheds, as declared and as they are.")
        .sample(&[("state", "declared")], declared.into())
        .sample(&[("state", "ready")], ready.into());
}
