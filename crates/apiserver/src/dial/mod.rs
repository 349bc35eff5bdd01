//! Connections to kubelets, pods and Services: over TLS where that is spoken, to kubelets with a certificate that they trust.

mod address;
mod insecure;
mod networks;
mod service;

pub(crate) use address::{Address, Scheme};
pub(crate) use insecure::any_certificate;
pub use insecure::insecure_tls;
pub use networks::Dial;
pub(crate) use service::{is_somewhere_else, service_address, webhook_address};

use crate::credentials::{Credentials, CredentialsError};
use parking_lot::RwLock;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use windlass_clock::Clock;

/// How long it may take to reach a kubelet.
const CONNECTING: Duration = Duration::from_secs(30);

/// How many streams are passed on at once.
const STREAMS: usize = 4096;

/// Who the API server is to kubelets: a user who may do nothing but ask nodes, in no group. A Node may say that its kubelet is anywhere,
/// also where this very API is served.
const USER: &str = "kube-apiserver-kubelet-client";

/// A connection to somewhere.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Connects to kubelets, pods and Services; the TLS clients are made when they are first needed.
pub(crate) struct Dialer {
    trusted: OnceLock<TlsConnector>,
    anonymous: OnceLock<TlsConnector>,
    /// Dialers of other networks than this machine's.
    networks: RwLock<Vec<Arc<dyn Dial>>>,
    /// Whose turn it is of a Service's endpoints.
    pub(crate) next_endpoint: AtomicUsize,
    /// Places for streams that are passed on.
    pub(crate) streams: Arc<Semaphore>,
}

impl Dialer {
    pub(crate) fn new() -> Self {
        let streams = Arc::new(Semaphore::new(STREAMS));
        Self {
            trusted: OnceLock::new(),
            anonymous: OnceLock::new(),
            networks: RwLock::default(),
            next_endpoint: AtomicUsize::new(0),
            streams,
        }
    }

    pub(crate) fn dial_with(&self, dialer: Arc<dyn Dial>) {
        self.networks.write().push(dialer);
    }

    /// A connection to a host and its port: by the first dialer that knows it, or else by this machine's own network.
    pub(crate) async fn dial(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        if let Ok(address) = host.parse::<IpAddr>() {
            let networks = self.networks.read().clone();
            let to = SocketAddr::new(address, port);
            if let Some(connecting) = networks.iter().find_map(|network| network.connect(to)) {
                return connecting.await;
            }
        }
        TcpStream::connect((host, port)).await
    }

    /// Connects to where a request leads.
    pub(crate) async fn connect(
        &self,
        to: &Address,
        credentials: impl FnOnce() -> Result<Credentials, CredentialsError>,
    ) -> io::Result<Box<dyn Wire>> {
        let connecting = async {
            let stream = self.dial(&to.host, to.port).await?;
            // What is typed is to be seen at once.
            stream.set_nodelay(true)?;
            let connector = match to.scheme {
                Scheme::Http => return Ok(Box::new(stream) as Box<dyn Wire>),
                Scheme::Https => once(&self.anonymous, || insecure_tls(None))?,
                Scheme::Kubelet => once(&self.trusted, || {
                    let (certificate, key) = credentials()
                        .and_then(|known| known.issue_client(USER, &[]))
                        .map_err(io::Error::other)?;
                    insecure_tls(Some((&certificate, &key)))
                })?,
            };
            let name = ServerName::try_from(to.host.clone()).map_err(io::Error::other)?;
            Ok(Box::new(connector.connect(name, stream).await?) as Box<dyn Wire>)
        };
        let connected = Clock::real().timeout(CONNECTING, connecting).await;
        connected.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout")))
    }
}

fn once(
    cell: &OnceLock<TlsConnector>,
    make: impl FnOnce() -> io::Result<TlsConnector>,
) -> io::Result<&TlsConnector> {
    match cell.get() {
        Some(known) => Ok(known),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}
