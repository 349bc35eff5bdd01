//! Publishes Services and their endpoints to the network process, and makes its connections on the host's side.

use crate::net::{Network, ServiceMap};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass::cache::Opened;
use windlass_clock::Clock;

/// Changes within this time are published together.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// The wait before a retry.
const RETRY: Duration = Duration::from_secs(1);

/// Publishes the Services whenever they change.
pub(super) async fn publish_services(
    network: Network,
    clock: Clock,
    services: Opened<Service>,
    slices: Opened<EndpointSlice>,
) {
    let changed = Arc::new(Notify::new());
    let (of_services, of_slices) = (changed.clone(), changed.clone());
    let _services = services.listen_while(Arc::new(move |_| of_services.notify_one()));
    let _slices = slices.listen_while(Arc::new(move |_| of_slices.notify_one()));
    services.synced().await;
    slices.synced().await;
    let api = network.settings().api();
    let mut replaced = network.replaced();
    let mut last = None;
    loop {
        let service_map = ServiceMap::from_objects(
            services.list().iter().map(|service| Service::clone(service)),
            slices.list().iter().map(|slice| EndpointSlice::clone(slice)),
        )
        .with_api(api);
        if last.as_ref() != Some(&service_map) {
            match network.publish(&service_map).await {
                Ok(()) => last = Some(service_map),
                Err(error) => {
                    tracing::warn!("failed to publish Services to the network: {error}");
                    clock.sleep(RETRY).await;
                    continue;
                }
            }
        }
        tokio::select! {
            () = changed.notified() => {}
            _ = replaced.changed() => last = None,
        }
        clock.sleep(DEBOUNCE).await;
    }
}

/// Makes the network's connections on the host's side, as long as the kubelet runs.
pub(super) async fn serve_host(network: Network, clock: Clock, api: String) {
    loop {
        if let Err(error) = network.serve_host(&api).await {
            tracing::warn!("pods cannot reach the API: {error}");
        }
        clock.sleep(RETRY).await;
    }
}
