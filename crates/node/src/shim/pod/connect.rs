//! Connections to what listens on the pod's loopback, for who cannot enter its network.

use super::super::protocol::Reply;
use super::requests::Pod;
use crate::ipc;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Loopback answers at once; one that accepts nothing more is not waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// Connects, and hands the connection over.
pub async fn connect(pod: &Pod, socket: &UnixStream, port: u16) {
    let to = async |address: IpAddr| match pod.clock.timeout(LIMIT, TcpStream::connect((address, port))).await
    {
        Ok(connected) => connected,
        Err(late) => Err(io::Error::other(late)),
    };
    let connected = match to(Ipv4Addr::LOCALHOST.into()).await {
        Ok(stream) => Ok(stream),
        Err(error) => to(Ipv6Addr::LOCALHOST.into()).await.map_err(|_| error),
    };
    let _ = match connected {
        Ok(stream) => ipc::send_async(socket, &Reply::Done, &[stream.as_fd()]).await,
        Err(error) => {
            let why = format!("failed to connect to localhost:{port} inside the pod: {error}");
            ipc::send_async(socket, &Reply::Failed(why), &[]).await
        }
    };
}
