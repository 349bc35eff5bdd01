//! One connection: its handshake, its protocol, and its end, by the client, by a shutdown, or because it was idle.

use super::authenticated::{Authentication, Front, Pulse};
use super::tls::Tls;
use super::{Api, GRACE};
use crate::read::PollOnWake;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a connection may be without a request, and how long the head of one may take: as the reference has it.
const IDLE: Duration = Duration::from_secs(90);

/// How often a silent HTTP/2 connection, such as one with watches only, is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);

/// How many requests of one HTTP/2 connection are served at once: the reference's limit.
const STREAMS: u32 = 100;

/// How much of a body HTTP/2 takes before it was read: nearly all objects are smaller.
const WINDOW: u32 = 256 * 1024;

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// Sent to those who speak HTTP where TLS is spoken.
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

pub(super) struct Connection {
    pub(super) api: Api,
    pub(super) stop: CancellationToken,
    /// Where the client is.
    pub(super) peer: Option<IpAddr>,
}

/// What both protocols' connections can.
trait Stoppable: Future<Output = Result<(), hyper::Error>> {
    /// Finishes what was begun, and begins nothing more.
    fn finish(self: Pin<&mut Self>);
}

impl Connection {
    /// The stream after its handshake, if that comes about in time.
    pub(super) async fn handshake(&self, tls: &Tls, mut stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let shaking = async {
            let mut first = [0];
            if stream.peek(&mut first).await.ok()? == 0 {
                return None;
            }
            if first != [TLS_HANDSHAKE] {
                let _ = stream.write_all(NOT_TLS).await;
                let _ = stream.shutdown().await;
                return None;
            }
            match tls.acceptor.accept(stream).await {
                Ok(stream) => Some(stream),
                Err(error) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    None
                }
            }
        };
        let clock = Clock::real();
        tokio::select! {
            () = self.stop.cancelled() => None,
            shaken = clock.timeout(HANDSHAKE, shaking) => shaken.ok().flatten(),
        }
    }

    pub(super) async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        authentication: Authentication,
    ) {
        let pulse = Arc::new(Pulse::new());
        let front =
            Front::new(self.api.0.clone(), authentication, self.stop.clone(), pulse.clone(), self.peer);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), front)
            .with_upgrades();
        self.run(connection, &pulse).await;
    }

    pub(super) async fn http2<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        stream: S,
        authentication: Authentication,
    ) {
        let pulse = Arc::new(Pulse::new());
        let front =
            Front::new(self.api.0.clone(), authentication, self.stop.clone(), pulse.clone(), self.peer);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .max_concurrent_streams(STREAMS)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW * 16)
            .serve_connection(TokioIo::new(stream), front);
        self.run(connection, &pulse).await;
    }

    async fn run(&self, connection: impl Stoppable, pulse: &Pulse) {
        let mut connection = pin!(connection);
        let over = PollOnWake::new(async {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = pulse.idle_for(IDLE) => {}
            }
        });
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => Some(ended),
            () = over => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().finish();
                match Clock::real().timeout(GRACE, connection.as_mut()).await {
                    Ok(ended) => ended,
                    Err(_) => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stoppable
    for http1::UpgradeableConnection<TokioIo<S>, Front>
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stoppable for http2::Connection<TokioIo<S>, Front, TokioExecutor> {
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
