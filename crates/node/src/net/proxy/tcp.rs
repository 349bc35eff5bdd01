//! Connections to a Service.

use super::Shared;
use super::places::Places;
use crate::net::host;
use crate::net::relay::{CONNECTING, break_off, relay};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Takes connections, each carried by a task of its own that outlives the listener.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, places: Places) {
    loop {
        let (client, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                shared.clock.sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // It has its share: better refused than kept waiting behind connections that may last for ever.
        let Some(place) = places.take(client_of(from)) else {
            break_off(client);
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            match shared.connect(client_of(from)).await {
                Some(backend) => _ = relay(client, backend).await,
                None => break_off(client),
            }
            drop(place);
        });
    }
}

fn client_of(from: SocketAddr) -> Ipv4Addr {
    match from {
        SocketAddr::V4(from) => *from.ip(),
        SocketAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

impl Shared {
    /// A connection to one of the endpoints: who does not answer is passed over.
    async fn connect(&self, client: Ipv4Addr) -> Option<TcpStream> {
        let candidates = self.balancer.lock().candidates(client, self.clock.moment());
        for backend in candidates {
            if let Ok(Ok(stream)) = self.clock.timeout(CONNECTING, self.dial(backend)).await {
                self.balancer.lock().keep(client, backend, self.clock.moment());
                return Some(stream);
            }
        }
        None
    }

    async fn dial(&self, backend: SocketAddrV4) -> io::Result<TcpStream> {
        if self.api || !self.pods.contains(*backend.ip()) {
            return host::ask(&self.host, backend, self.api).await;
        }
        TcpStream::connect(backend).await
    }
}
