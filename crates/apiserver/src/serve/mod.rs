//! HTTP over TCP: with TLS for everyone who can prove who they are, or without, for tests on the same machine.

mod authenticated;
mod connection;
mod subject;
mod tls;
mod trust;

use crate::api::Api;
use crate::authentication::RequestHeader;
use crate::credentials::FRONT_PROXY;
use crate::flow::authenticate::Authenticator;
use crate::request::identity::Identity;
pub use subject::{Subject, of as subject_of};
pub use tls::TlsIdentity;

use authenticated::Authentication;
use connection::Connection;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tls::Tls;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How many connections are served at once; more wait to be accepted.
const CONNECTIONS: u32 = 16_384;

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

/// What clients connect with.
#[derive(Clone)]
enum Transport {
    /// Plain HTTP: everyone is the administrator.
    Plain(Arc<Identity>),
    /// TLS: every request is authenticated.
    Tls { tls: Tls, authenticator: Arc<Authenticator> },
}

impl Api {
    /// Serves the API on a listener, to everyone as the administrator.
    ///
    /// # Errors
    /// If the listener has no address.
    pub fn serve_tcp(&self, listener: TcpListener) -> io::Result<Serving> {
        self.serve(listener, Transport::Plain(Arc::new(Identity::admin())))
    }

    /// Serves the API on a listener over TLS, HTTP/1.1 and HTTP/2, to those who prove who they are.
    ///
    /// # Errors
    /// If the listener has no address, or the credentials are unusable.
    pub fn serve_tls(&self, listener: TcpListener) -> io::Result<Serving> {
        let credentials = self.0.credentials().map_err(io::Error::other)?;
        let proxy = credentials.front_proxy().map_err(io::Error::other)?;
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let identity = TlsIdentity {
            certificates: credentials.server_certificate().to_owned(),
            key: credentials.server_key().to_owned(),
            client_ca: Some(credentials.ca_certificate().to_owned()),
            request_header: Some(RequestHeader {
                client_ca: proxy.ca_certificate.clone(),
                allowed_names: owned(&[FRONT_PROXY]),
                username_headers: owned(&["X-Remote-User"]),
                uid_headers: owned(&["X-Remote-Uid"]),
                group_headers: owned(&["X-Remote-Group"]),
                extra_headers_prefixes: owned(&["X-Remote-Extra-"]),
            }),
            proxy_client: Some((proxy.certificate.clone(), proxy.key.clone())),
        };
        self.serve_tls_as(listener, &identity)
    }

    /// Serves the API on a listener over TLS, with certificates that others made.
    ///
    /// # Errors
    /// If the listener has no address, or a certificate or key is unusable.
    pub fn serve_tls_as(&self, listener: TcpListener, identity: &TlsIdentity) -> io::Result<Serving> {
        // A key that cannot be used is told now, and not by refusing every token later.
        self.0.accounts()?;
        self.0.aggregation.prove_with(identity.proxy_client.clone());
        let authenticator = Arc::new(Authenticator::new(self.0.clone()));
        let serving = self.serve(listener, Transport::Tls { tls: Tls::new(identity)?, authenticator })?;
        tokio::spawn(trust::publish(self.clone(), identity.clone()));
        Ok(serving)
    }

    fn serve(&self, listener: TcpListener, transport: Transport) -> io::Result<Serving> {
        let address = listener.local_addr()?;
        let stop = self.0.stopped.child_token();
        let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
        let accepting = tokio::spawn(accept(self.clone(), transport, listener, stop.clone(), places.clone()));
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

async fn accept(
    api: Api,
    transport: Transport,
    listener: TcpListener,
    stop: CancellationToken,
    places: Arc<Semaphore>,
) {
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => return,
            place = places.clone().acquire_owned() => place,
        };
        let Ok(place) = place else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let serving = serve(api.clone(), transport.clone(), stream, stop.clone());
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

async fn serve(api: Api, transport: Transport, stream: TcpStream, stop: CancellationToken) {
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok().map(|address| address.ip());
    let connection = Connection { api, stop, peer };
    match transport {
        Transport::Plain(identity) => connection.http1(stream, Authentication::AsIdentity(identity)).await,
        Transport::Tls { tls, authenticator } => {
            // Each stage in a box of its own: a connection that waits holds no room for the stages it is not in.
            let Some(stream) = Box::pin(connection.handshake(&tls, stream)).await else { return };
            let session = stream.get_ref().1;
            let http2 = session.alpn_protocol() == Some(tls::H2);
            let certificate = tls.judge(session.peer_certificates());
            let proxy = tls.proxy(session.peer_certificates());
            let authentication = Authentication::PerRequest { authenticator, certificate, proxy };
            match http2 {
                true => Box::pin(connection.http2(stream, authentication)).await,
                false => Box::pin(connection.http1(stream, authentication)).await,
            }
        }
    }
}
