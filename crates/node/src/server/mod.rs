//! The HTTPS server of a node: what the API server asks a kubelet for.
//!
//! `kubectl logs`, `exec`, `attach`, `cp` and `port-forward` come here through the API server, which passes on what the client
//! speaks: WebSocket (`v5.channel.k8s.io`, and SPDY tunnelled in it to forward ports), or SPDY of older clients. A real API
//! server does so too if the node says `ExtendWebSocketsToKubelet` among the features that it declares, and speaks SPDY with
//! it otherwise.
//!
//! So both are spoken: channels over WebSocket (`remote_command.rs`), SPDY inside of WebSocket messages for ports
//! (`port_forward.rs`), and SPDY by itself (`spdy`). What is run and read is behind one trait, [`Backend`]. Queues are
//! bounded everywhere.
//!
//! Nobody is anonymous: a caller has a client certificate of the cluster's CA, or a token that the API server reviews. What
//! it may do is then asked of the API server too, except for members of `system:masters` (`auth.rs`).

mod auth;
mod backend;
mod connection;
mod port_forward;
mod remote_command;
mod response;
mod route;
mod spdy;
mod stats;
mod stream_writer;
mod tls;
mod upgrade;

pub use auth::{Access, ApiServerOnly, Auth, Caller, WebhookAuth};
pub use backend::{Backend, ContainerRef, Duplex, Exit, HttpError, Input, Output, PodRef, Size, Streams};
pub use stats::{ContainerStats, Cpu, Memory, NodeStats, PodName, PodStats, Summary};
pub use tls::KeyAndCertificate;

use connection::Connections;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// What a node says in `status.declaredFeatures`, so that a real API server passes WebSockets on to it.
pub const WEBSOCKETS: &str = "ExtendWebSocketsToKubelet";

/// How many connections are served at once; more wait to be accepted.
const CONNECTIONS: u32 = 4096;

/// How long the server rests when it cannot accept, such as when there are no file descriptors left.
const REST: Duration = Duration::from_millis(50);

/// How long connections may take to finish after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// What a server needs besides a node to serve for.
pub struct Config {
    /// Who it is.
    pub identity: KeyAndCertificate,
    /// The CAs of clients' certificates that are believed, as PEM; empty to believe none.
    pub client_ca: String,
    /// Who may do what.
    pub auth: Arc<dyn Auth>,
    /// What ages of logs are counted by.
    pub clock: Clock,
}

/// A server that runs. Dropping it ends it, with all that it serves.
#[derive(Debug)]
pub struct ServerHandle {
    address: SocketAddr,
    stop: CancellationToken,
    accepting: JoinHandle<()>,
    places: Arc<Semaphore>,
}

/// Serves for a node on a listener.
///
/// # Errors
/// If the listener has no address, or the certificates are unusable.
pub fn serve<B: Backend>(listener: TcpListener, config: Config, backend: Arc<B>) -> io::Result<ServerHandle> {
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let connections = Arc::new(Connections {
        acceptor: tls::acceptor(&config.identity, &config.client_ca)?,
        auth: config.auth,
        clock: config.clock,
        backend,
        stop: stop.clone(),
    });
    let accepting = tokio::spawn(accept(listener, connections, places.clone()));
    Ok(ServerHandle { address, stop, accepting, places })
}

async fn accept<B: Backend>(listener: TcpListener, connections: Arc<Connections<B>>, places: Arc<Semaphore>) {
    loop {
        let place = tokio::select! {
            () = connections.stop.cancelled() => return,
            place = places.clone().acquire_owned() => place,
        };
        let Ok(place) = place else { return };
        let accepted = tokio::select! {
            () = connections.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                // Small pieces are typed by people, who see each of them come back.
                let _ = stream.set_nodelay(true);
                let connections = connections.clone();
                tokio::spawn(async move { connections.serve(stream, Arc::new(place)).await });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                Clock::real().sleep(REST).await;
            }
        }
    }
}

impl ServerHandle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more, ends all streams, and returns when they are gone.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // The task ends by itself; if it panicked there is nothing to wait for.
        let _ = (&mut self.accepting).await;
        // Whoever has all places is alone.
        let _ = Clock::real().timeout(GRACE, self.places.acquire_many(CONNECTIONS)).await;
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.stop.cancel();
        self.accepting.abort();
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}
