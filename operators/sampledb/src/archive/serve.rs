//! The archive's pod: takes, hands out and deletes backups for whoever has the token.
//!
//! `POST /backups/LOCATION` takes one, `GET` reads its files as a tar archive, `DELETE` deletes it.

use super::destination::{Destination, Volume};
use super::tar_stream::{self, QueueWriter};
use super::{ACCESS, CERTIFICATE, Location, PORT, Source, VOLUME, take, tls};
use crate::settings::SOCKETS;
use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use windlass::clock::Clock;

/// Connections at once; others wait until one ends.
const CONNECTIONS: usize = 32;
/// How long a handshake, and the head of a request, may take.
const HEAD: Duration = Duration::from_secs(10);
/// How large the body of a request may be.
const BODY: usize = 256 * 1024;

type Body = UnsyncBoxBody<Bytes, io::Error>;

struct Server {
    destination: Arc<dyn Destination>,
    clock: Clock,
    certificate: PathBuf,
    access: PathBuf,
    scratch: PathBuf,
    /// One backup at a time: a second attempt waits, and then finds what the first one took.
    taking: Mutex<()>,
}

/// Serves the archive until the process ends.
///
/// # Errors
/// When the volume cannot be read, or the port is taken.
pub(crate) async fn serve() -> io::Result<()> {
    let server = Server {
        destination: Arc::new(Volume::at(Path::new(VOLUME))?),
        clock: Clock::real(),
        certificate: CERTIFICATE.into(),
        access: ACCESS.into(),
        scratch: SOCKETS.into(),
        taking: Mutex::new(()),
    };
    let listener = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).await {
        Ok(listener) => listener,
        // Without IPv6.
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?,
    };
    tracing::info!("the archive takes requests");
    Arc::new(server).accept(listener).await;
    Ok(())
}

impl Server {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = room.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let server = self.clone();
                    tokio::spawn(async move {
                        if let Err(error) = server.connection(stream).await {
                            tracing::debug!("a connection ended early: {error}");
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::debug!("a connection was not accepted: {error}");
                    self.clock.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let acceptor = tls::acceptor(&self.certificate)?;
        let shaken = self.clock.timeout(HEAD, acceptor.accept(stream)).await;
        let stream = shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let service = service_fn(|request| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), service);
        connection.await.map_err(io::Error::other)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let given = request.headers().get(http::header::AUTHORIZATION).map(|value| value.as_bytes().to_vec());
        match tls::authorization(&self.access) {
            Ok(wanted) if given.is_some_and(|given| tls::is_equal(&given, wanted.as_bytes())) => {}
            Ok(_) => return said(StatusCode::UNAUTHORIZED, "the token is not the archive's"),
            Err(error) => return said(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
        let location = request.uri().path().strip_prefix("/backups/").map(str::parse::<Location>);
        let Some(Ok(at)) = location else {
            return said(StatusCode::NOT_FOUND, "there is nothing of that name");
        };
        match *request.method() {
            Method::POST => self.take(&at, request).await,
            Method::GET => self.read(at).await,
            Method::DELETE => self.remove(at).await,
            _ => said(StatusCode::METHOD_NOT_ALLOWED, "only POST, GET and DELETE"),
        }
    }

    async fn take(&self, at: &Location, request: Request<Incoming>) -> Response<Body> {
        let body = match Limited::new(request.into_body(), BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return said(StatusCode::BAD_REQUEST, error),
        };
        let source: Source = match serde_json::from_slice(&body) {
            Ok(source) => source,
            Err(error) => return said(StatusCode::BAD_REQUEST, error),
        };
        let _one = self.taking.lock().await;
        match take::take(&self.clock, &self.destination, at, &source, &self.scratch).await {
            Ok(info) => match serde_json::to_string(&info) {
                Ok(text) => said(StatusCode::OK, text),
                Err(error) => said(StatusCode::INTERNAL_SERVER_ERROR, error),
            },
            Err(error) => {
                tracing::warn!("{at} was not taken: {error}");
                said(StatusCode::INTERNAL_SERVER_ERROR, error)
            }
        }
    }

    async fn read(&self, at: Location) -> Response<Body> {
        match self.destination.find(&at) {
            Ok(Some(_)) => {}
            Ok(None) => return said(StatusCode::NOT_FOUND, format!("there is no backup {at}")),
            Err(error) => return said(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
        let (sender, receiver) = tar_stream::queue();
        let destination = self.destination.clone();
        tokio::task::spawn_blocking(move || {
            let writer = QueueWriter::new(sender.clone());
            if let Err(error) = destination.read(&at, Box::new(writer)) {
                tracing::warn!("{at} was not read to its end: {error}");
                // The connection breaks off: half of it is not taken for the whole.
                let _ = sender.blocking_send(Err(error));
            }
        });
        let pieces = futures::stream::unfold(receiver, async |mut receiver| {
            let piece = receiver.recv().await?;
            Some((piece, receiver))
        });
        Response::new(StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync())
    }

    async fn remove(&self, at: Location) -> Response<Body> {
        let destination = self.destination.clone();
        let removed = tokio::task::spawn_blocking(move || destination.remove(&at)).await;
        match removed.map_err(io::Error::other).flatten() {
            Ok(()) => said(StatusCode::OK, "it is not there"),
            Err(error) => said(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
    }
}

fn said(status: StatusCode, what: impl ToString) -> Response<Body> {
    let body = Full::new(Bytes::from(what.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::super::ask::{Archive, AskError};
    use super::super::{Info, TOKEN, WalRange};
    use super::*;
    use crate::lsn::Lsn;
    use std::fs;

    /// A folder with a certificate of its own for `localhost`, and a token.
    fn credentials() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        for name in ["tls.crt", "ca.crt"] {
            fs::write(folder.path().join(name), key.cert.pem()).unwrap();
        }
        fs::write(folder.path().join("tls.key"), key.signing_key.serialize_pem()).unwrap();
        fs::write(folder.path().join(TOKEN), "0123456789abcdef").unwrap();
        folder
    }

    #[tokio::test]
    async fn a_backup_is_read_by_who_has_the_token_and_a_damaged_one_breaks_off() {
        let (folder, volume) = (credentials(), tempfile::tempdir().unwrap());
        let destination = Volume::at(volume.path()).unwrap();
        let at: Location = "uid/nightly.1".parse().unwrap();
        let data = destination.begin(&at).unwrap();
        fs::create_dir(data.join("base")).unwrap();
        fs::write(data.join("base/1"), vec![3; 1_000_000]).unwrap();
        let wal = WalRange { begin: Lsn(1), end: Lsn(2), timeline: 1 };
        let info = Info {
            size_bytes: 1,
            duration_seconds: 1,
            wal,
            system_identifier: "7".to_owned(),
            version: None,
        };
        destination.publish(&at, &info).unwrap();
        let server = Server {
            destination: Arc::new(destination),
            clock: Clock::real(),
            certificate: folder.path().to_owned(),
            access: folder.path().to_owned(),
            scratch: volume.path().to_owned(),
            taking: Mutex::new(()),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(Arc::new(server).accept(listener));

        let access = credentials();
        let archive = Archive::at("localhost", port, access.path(), Clock::real());
        let to = tempfile::tempdir().unwrap();
        // It trusts another.
        assert!(matches!(archive.unpack(&at, to.path()).await, Err(AskError::Unreachable { .. })));
        fs::copy(folder.path().join("ca.crt"), access.path().join("ca.crt")).unwrap();
        archive.unpack(&at, to.path()).await.unwrap();
        assert_eq!(fs::read(to.path().join("base/1")).unwrap(), vec![3; 1_000_000]);
        let other: Location = "uid/another.1".parse().unwrap();
        let missing = archive.unpack(&other, to.path()).await.unwrap_err();
        assert_eq!(missing.to_string(), "the archive: there is no backup uid/another.1");
        // One of its files cannot be read: what arrived is not taken for the whole.
        fs::remove_file(volume.path().join("uid/nightly.1/data/base/1")).unwrap();
        std::os::unix::fs::symlink("loop", volume.path().join("uid/nightly.1/data/loop")).unwrap();
        fs::remove_dir(volume.path().join("uid/nightly.1/data/base")).unwrap();
        fs::write(access.path().join(TOKEN), "another-token-of-16").unwrap();
        let refused = archive.unpack(&at, to.path()).await.unwrap_err();
        assert_eq!(refused.to_string(), "the archive: the token is not the archive's");
    }
}
