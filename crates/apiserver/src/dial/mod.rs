//! Connections to kubelets, pods and Services: over TLS where that is spoken, to kubelets with a certificate that they trust.

mod address;
mod reach;
mod unverified;

pub(crate) use address::{Address, Scheme};
pub use reach::Reach;
pub use unverified::unverified;

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

/// Who the API server is to kubelets.
const USER: &str = "kube-apiserver-kubelet-client";
const GROUP: &str = "system:masters";

/// A connection to somewhere.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// How the API reaches kubelets; what that needs is made when it is first needed.
pub(crate) struct Dialer {
    trusted: OnceLock<TlsConnector>,
    anonymous: OnceLock<TlsConnector>,
    /// Ways to other networks than this machine's.
    ways: RwLock<Vec<Arc<dyn Reach>>>,
    /// Whose turn it is of a Service's endpoints.
    pub(crate) turns: AtomicUsize,
    /// Places for streams that are passed on.
    pub(crate) places: Arc<Semaphore>,
}

impl Dialer {
    pub(crate) fn new() -> Self {
        let places = Arc::new(Semaphore::new(STREAMS));
        Self {
            trusted: OnceLock::new(),
            anonymous: OnceLock::new(),
            ways: RwLock::default(),
            turns: AtomicUsize::new(0),
            places,
        }
    }

    pub(crate) fn reach_by(&self, way: Arc<dyn Reach>) {
        self.ways.write().push(way);
    }

    /// A connection to a host and its port: by the first way that leads there, or else by this machine's own network.
    async fn dial(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        if let Ok(address) = host.parse::<IpAddr>() {
            let ways = self.ways.read().clone();
            let to = SocketAddr::new(address, port);
            if let Some(connecting) = ways.iter().find_map(|way| way.connect(to)) {
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
                Scheme::Https => once(&self.anonymous, || unverified(None))?,
                Scheme::Kubelet => once(&self.trusted, || {
                    let (certificate, key) = credentials()
                        .and_then(|known| known.issue_client(USER, Some(GROUP)))
                        .map_err(io::Error::other)?;
                    unverified(Some((&certificate, &key)))
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
