//! Dialers of other networks than this machine's own, such as that of pods.

use futures::future::BoxFuture;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Connects to addresses of another network, such as that of pods.
pub trait Dial: Send + Sync + 'static {
    /// Connects to an address; none where it is not of that network.
    fn connect(&self, to: SocketAddr) -> Option<BoxFuture<'_, io::Result<TcpStream>>>;
}
