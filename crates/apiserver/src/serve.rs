//! HTTP over TCP, without TLS: for tests, and for clients in other languages on the same machine.

use crate::api::Api;
use crate::flow::authenticate::Identity;
use crate::service::ApiService;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How many connections are served at once; more wait to be accepted.
const CONNECTIONS: u32 = 1024;

/// How long connections may take to finish after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// How long the server rests when it cannot accept, such as when there are no file descriptors left.
const REST: Duration = Duration::from_millis(50);

/// A server that runs. Dropping it stops it at once; [`Serving::stop`] lets requests finish.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: CancellationToken,
    accepting: JoinHandle<()>,
    places: Arc<Semaphore>,
    clock: Clock,
}

impl Api {
    /// Serves the API on a listener, to everyone as the administrator.
    ///
    /// # Errors
    /// If the listener has no address.
    pub fn serve_tcp(&self, listener: TcpListener) -> io::Result<Serving> {
        let address = listener.local_addr()?;
        let stop = self.0.stopped.child_token();
        let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
        let accepting = tokio::spawn(accept(self.clone(), listener, stop.clone(), places.clone()));
        Ok(Serving { address, stop, accepting, places, clock: self.clock().clone() })
    }
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more, ends watches, lets requests finish for a short while, and returns when all is over.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // The task ends by itself; if it panicked there is nothing to wait for.
        let _ = (&mut self.accepting).await;
        // Whoever has all places is alone.
        let _ = self.clock.timeout(GRACE, self.places.acquire_many(CONNECTIONS)).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
        self.accepting.abort();
    }
}

async fn accept(api: Api, listener: TcpListener, stop: CancellationToken, places: Arc<Semaphore>) {
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let serving = serve(api.clone(), stream, stop.clone());
                tokio::spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                api.clock().sleep(REST).await;
            }
        }
    }
}

async fn serve(api: Api, stream: TcpStream, stop: CancellationToken) {
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let service = ApiService::new(api.0.clone(), Identity::admin(), stop.clone());
    let service = TowerToHyperService::new(service);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            match api.clock().timeout(GRACE, connection.as_mut()).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
