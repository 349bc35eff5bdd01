//! What a program says to its manager's cache: before it runs, and while it does.

use crate::support::{Running, cluster, make, mirror, until};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::Manager;
use windlass::cache::{Cache, Scope};
use windlass::clock::Clock;

#[tokio::test]
async fn the_cache_is_told_what_to_hold_and_opens_kinds_while_the_manager_runs() {
    let (_api, client) = cluster();
    make(&client, "a").await;
    let (send, receive) = tokio::sync::oneshot::channel::<Cache>();
    let transformed = Arc::new(AtomicUsize::new(0));
    let counted = transformed.clone();
    let manager = Manager::new(client.clone(), Clock::real()).controller(mirror()).caching(move |cache| {
        cache.transform(move |_: &mut ConfigMap| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let _ = send.send(cache.clone());
    });
    let running = Running::start(manager);
    let cache = receive.await.unwrap();
    cache.synced().await;
    assert!(transformed.load(Ordering::Relaxed) > 0);
    let before = cache.stats().len();
    let secrets = cache.open::<PartialObjectMeta<Secret>>(Scope::default().within("default"));
    secrets.synced().await;
    until("the mirror is seen", || async { secrets.len() == 1 }).await;
    assert_eq!(cache.stats().len(), before + 1);
    drop(secrets);
    assert_eq!(cache.stats().len(), before);
    running.stop().await.unwrap();
}
