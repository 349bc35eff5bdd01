//! The cluster's DNS: a small server for one zone, over datagrams and connections. Names outside the zone are refused at once: the
//! network has no way out, and an address that cannot be reached helps nobody.

mod names;
mod packet;

pub(crate) use names::Names;

use super::Settings;
use parking_lot::RwLock;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use windlass_clock::Clock;

/// Where names are asked for.
pub(super) const PORT: u16 = 53;
/// For how long an answer may be remembered, in seconds: endpoints come and go.
const TTL: u32 = 5;
/// How many may ask over connections at once, and how long each may be silent.
const CONNECTIONS: usize = 128;
const SILENCE: Duration = Duration::from_secs(10);
/// The longest datagram that is read; a question is far shorter.
const DATAGRAM: usize = 4096;

/// The server's state.
#[derive(Debug)]
pub(super) struct Dns {
    names: RwLock<Arc<Names>>,
    turn: AtomicUsize,
}

impl Dns {
    /// Begins to answer, with no names yet.
    pub(super) async fn serve(settings: &Settings) -> io::Result<Arc<Self>> {
        let names = RwLock::new(Arc::new(Names::new(settings, super::ServiceMap::default())));
        let dns = Arc::new(Self { names, turn: AtomicUsize::new(0) });
        let address = SocketAddrV4::new(settings.dns, PORT);
        let (datagrams, connections) = (UdpSocket::bind(address).await?, TcpListener::bind(address).await?);
        tokio::spawn(dns.clone().answer_datagrams(datagrams));
        tokio::spawn(dns.clone().answer_connections(connections));
        Ok(dns)
    }

    /// Answers by these names from now on.
    pub(super) fn know(&self, names: Names) {
        *self.names.write() = Arc::new(names);
    }

    fn answer(&self, bytes: &[u8], datagram: bool) -> Option<Vec<u8>> {
        match packet::parse(bytes) {
            Ok(query) => {
                let names = self.names.read().clone();
                let answer = names.answer(&query, self.turn.fetch_add(1, Ordering::Relaxed));
                Some(query.answer(&answer, TTL, datagram))
            }
            Err(refused) => refused,
        }
    }

    async fn answer_datagrams(self: Arc<Self>, socket: UdpSocket) {
        let mut buffer = vec![0; DATAGRAM];
        loop {
            // An error is about an earlier answer that nobody took.
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                tokio::task::yield_now().await;
                continue;
            };
            if let Some(answer) = self.answer(&buffer[..length], true) {
                _ = socket.send_to(&answer, from).await;
            }
        }
    }

    async fn answer_connections(self: Arc<Self>, listener: TcpListener) {
        let (clock, places) = (Clock::real(), Arc::new(Semaphore::new(CONNECTIONS)));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                clock.sleep(Duration::from_millis(50)).await;
                continue;
            };
            let dns = self.clone();
            tokio::spawn(async move {
                _ = dns.answer_connection(stream).await;
                drop(place);
            });
        }
    }

    async fn answer_connection(&self, mut stream: TcpStream) -> io::Result<()> {
        let clock = Clock::real();
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        loop {
            let one = async {
                let length = stream.read_u16().await?;
                let mut question = vec![0; usize::from(length)];
                stream.read_exact(&mut question).await?;
                let answer = self.answer(&question, false).ok_or(io::ErrorKind::InvalidData)?;
                let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
                stream.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await
            };
            clock.timeout(SILENCE, one).await.map_err(late)??;
        }
    }
}
