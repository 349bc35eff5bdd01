//! Keeps the network informed: of Services and who is behind them, and of the way to the API.

use crate::net::{Network, Table};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass::cache::Opened;
use windlass_clock::Clock;

/// Changes that come close together are published together.
const TOGETHER: Duration = Duration::from_millis(5);
/// What failed is tried again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// Publishes the Services whenever they change.
pub(super) async fn publish(
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
    let mut last = None;
    loop {
        let table = Table::from_objects(
            services.list().iter().map(|service| Service::clone(service)),
            slices.list().iter().map(|slice| EndpointSlice::clone(slice)),
        )
        .with_api(api);
        if last.as_ref() != Some(&table) {
            match network.publish(&table).await {
                Ok(()) => last = Some(table),
                Err(error) => {
                    tracing::warn!("the network was not told of Services: {error}");
                    clock.sleep(AGAIN).await;
                    continue;
                }
            }
        }
        changed.notified().await;
        clock.sleep(TOGETHER).await;
    }
}

/// Makes connections for the network on the machine's side, as long as the node is there.
pub(super) async fn serve_host(network: Network, clock: Clock, api: String) {
    loop {
        if let Err(error) = network.serve_host(&api).await {
            tracing::warn!("pods cannot reach the API: {error}");
        }
        clock.sleep(AGAIN).await;
    }
}
