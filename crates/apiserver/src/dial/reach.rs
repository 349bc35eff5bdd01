//! Ways to addresses that this machine's own network does not have.

use futures::future::BoxFuture;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A way to addresses of another network, such as that of pods.
pub trait Reach: Send + Sync + 'static {
    /// Connects to an address; none where this way does not lead there.
    fn connect(&self, to: SocketAddr) -> Option<BoxFuture<'_, io::Result<TcpStream>>>;
}
