//! The way to what is on the host's side: the API itself, and endpoints that are no pods. The network process has no way there, so
//! it asks the node, which makes the connection and hands it over: the bytes do not pass through the node, and the connection
//! outlives it.

use super::protocol::{read, write};
use super::socket_path::through_directory;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use windlass_clock::Clock;

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(10);
/// How many are made at once.
const AT_ONCE: usize = 64;

/// What the network process asks the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Wanted {
    /// To which endpoint.
    to: SocketAddrV4,
    /// Whether it is the API's own: the node knows where that is, whatever the endpoint says.
    api: bool,
}

/// How it went; the connection comes along where it went well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    wrong: Option<String>,
}

/// The network process' side: a connection to `to`.
pub(super) async fn ask(socket: &Path, to: SocketAddrV4, api: bool) -> io::Result<TcpStream> {
    let stream = through_directory(socket, |path| std::os::unix::net::UnixStream::connect(path))?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    write(&stream, &Wanted { to, api }, None).await?;
    let (made, connection): (Made, _) = read(&stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    match (made.wrong, connection) {
        (None, Some(connection)) => {
            let connection = std::net::TcpStream::from(connection);
            connection.set_nonblocking(true)?;
            TcpStream::from_std(connection)
        }
        (wrong, _) => Err(io::Error::other(wrong.unwrap_or_default())),
    }
}

/// The node's side: makes connections to `api` (a host and a port) and to endpoints for which `allowed` holds, until it is dropped.
pub(super) async fn serve(
    socket: &Path,
    api: &str,
    allowed: impl Fn() -> Arc<HashSet<SocketAddrV4>>,
) -> io::Result<()> {
    // Another that listens there is of a node before us.
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = through_directory(socket, |path| UnixListener::bind(path))?;
    let (clock, places, api) = (Clock::real(), Arc::new(Semaphore::new(AT_ONCE)), Arc::<str>::from(api));
    let mut making = tokio::task::JoinSet::new();
    loop {
        let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
        let Ok((stream, _)) = listener.accept().await else {
            clock.sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (clock, api, allowed) = (clock.clone(), api.clone(), allowed());
        making.spawn(async move {
            let made = clock.timeout(CONNECTING, make(&stream, &api, &allowed)).await;
            let (wrong, connection) = match made {
                Ok(Ok(connection)) => (None, Some(connection)),
                Ok(Err(error)) => (Some(error.to_string()), None),
                Err(late) => (Some(late.to_string()), None),
            };
            _ = write(&stream, &Made { wrong }, connection.as_ref().map(AsFd::as_fd)).await;
            drop(place);
        });
        while making.try_join_next().is_some() {}
    }
}

async fn make(stream: &UnixStream, api: &str, allowed: &HashSet<SocketAddrV4>) -> io::Result<TcpStream> {
    let (wanted, _): (Wanted, _) = read(stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if wanted.api {
        return TcpStream::connect(api).await;
    }
    if !allowed.contains(&wanted.to) {
        return Err(io::Error::other(format!("{} is no endpoint of a Service", wanted.to)));
    }
    TcpStream::connect(wanted.to).await
}
