//! A Service or a pod at an address of the host.

use super::relay::{break_off, relay};
use super::{NetError, Network};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// How many connections there may be at once.
const CONNECTIONS: usize = 1024;

/// Forwards every connection of `listener` to `to` inside the network, until it is dropped or the network is gone. `on_error` is called for
/// connections that failed.
///
/// # Errors
/// The network does not answer any more.
pub async fn expose(
    network: &Network,
    listener: TcpListener,
    to: SocketAddrV4,
    on_error: impl Fn(&NetError) + Send + Sync + 'static,
) -> Result<(), NetError> {
    let (clock, places, on_error) =
        (Clock::real(), Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(on_error));
    let mut carried: JoinSet<Result<(), NetError>> = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(()) };
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else {
                    clock.sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let (network, on_error) = (network.clone(), on_error.clone());
                carried.spawn(async move {
                    let _place = place;
                    match network.connect(to).await {
                        Ok(inside) => _ = relay(client, inside).await,
                        Err(error) => {
                            break_off(client);
                            on_error(&error);
                            if matches!(error, NetError::Unreachable(_)) {
                                return Err(error);
                            }
                        }
                    }
                    Ok(())
                });
            }
            Some(Ok(Err(gone))) = carried.join_next() => return Err(gone),
        }
    }
}
