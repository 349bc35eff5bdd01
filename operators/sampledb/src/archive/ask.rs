//! Asks an archive.

use super::tar_stream::{self, QueueReader};
use super::{ACCESS, Info, Location, PORT, Source, tls};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::ServerName;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpStream;
use windlass::clock::Clock;

/// How long the next piece of a backup may take to come.
const PIECE: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take: a backup has been taken by then.
const ANSWER: Duration = Duration::from_secs(25 * 3600);
/// How large an answer may be, other than a backup.
const SAID: usize = 64 * 1024;

/// The archive did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// There is no way to it.
    #[error("the archive {host} cannot be reached: {why}")]
    Unreachable { host: String, why: io::Error },
    /// It says why.
    #[error("the archive: {0}")]
    Said(String),
    /// What it sent ended early, or could not be written.
    #[error("reading from the archive: {0}")]
    Read(io::Error),
}

/// An archive, seen from elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    host: String,
    port: u16,
    access: PathBuf,
    clock: Clock,
}

impl Archive {
    /// The one at a host, by what the pod was given.
    pub(crate) fn of(host: &str, clock: Clock) -> Self {
        Self::at(host, PORT, Path::new(ACCESS), clock)
    }

    pub(super) fn at(host: &str, port: u16, access: &Path, clock: Clock) -> Self {
        Self { host: host.to_owned(), port, access: access.to_owned(), clock }
    }

    /// Has it take a backup.
    pub(crate) async fn take(&self, at: &Location, source: &Source) -> Result<Info, AskError> {
        let body = serde_json::to_vec(source).map_err(|error| AskError::Said(error.to_string()))?;
        let answer = said(self.ask(Method::POST, at, body).await?).await?;
        serde_json::from_str(&answer).map_err(|error| AskError::Said(error.to_string()))
    }

    /// Has it delete a backup, if it is there.
    pub(crate) async fn remove(&self, at: &Location) -> Result<(), AskError> {
        said(self.ask(Method::DELETE, at, Vec::new()).await?).await.map(drop)
    }

    /// Writes the files of a backup into a directory that is there.
    pub(crate) async fn unpack(&self, at: &Location, directory: &Path) -> Result<(), AskError> {
        let mut body = self.ask(Method::GET, at, Vec::new()).await?.into_body();
        let (sender, receiver) = tar_stream::queue();
        let directory = directory.to_owned();
        let unpacked = tokio::task::spawn_blocking(move || {
            let mut reader = QueueReader::new(receiver);
            tar_stream::unpack(&mut reader, &directory)?;
            // To the end of what is sent, which an archive that broke off never reaches.
            io::copy(&mut reader, &mut io::sink()).map(drop)
        });
        loop {
            // An archive whose pod is replaced may leave without a word.
            let frame = match self.clock.timeout(PIECE, body.frame()).await {
                Ok(Some(frame)) => frame.map_err(io::Error::other),
                Ok(None) => break,
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the archive sends nothing any more")),
            };
            let failed = frame.is_err();
            let piece = frame.map(|frame| frame.into_data().unwrap_or_default());
            // Whoever unpacks says why it stopped.
            if sender.send(piece).await.is_err() || failed {
                break;
            }
        }
        drop(sender);
        unpacked.await.map_err(io::Error::other).flatten().map_err(AskError::Read)
    }

    async fn ask(
        &self,
        method: Method,
        at: &Location,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, AskError> {
        let unreachable = |why| AskError::Unreachable { host: self.host.clone(), why };
        let other = |why: hyper::Error| unreachable(io::Error::other(why));
        let stream = self.connect().await.map_err(unreachable)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(other)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(format!("/backups/{at}"))
            .header(http::header::HOST, &self.host)
            .header(http::header::AUTHORIZATION, tls::authorization(&self.access).map_err(unreachable)?)
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| unreachable(io::Error::other(error)))?;
        let answer = self.clock.timeout(ANSWER, sender.send_request(request)).await;
        let answer = answer.map_err(|_| unreachable(io::ErrorKind::TimedOut.into()))?.map_err(other)?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(AskError::Said(said(answer).await?))
    }

    async fn connect(&self) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let connector = tls::connector(&self.access)?;
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let connected = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            // A backup takes its time, in which nothing is said: an archive that is gone is noticed all the same.
            setsockopt(&stream, sockopt::KeepAlive, &true)?;
            setsockopt(&stream, sockopt::TcpKeepIdle, &30)?;
            setsockopt(&stream, sockopt::TcpKeepInterval, &10)?;
            setsockopt(&stream, sockopt::TcpKeepCount, &3)?;
            connector.connect(name, stream).await
        };
        self.clock.timeout(CONNECT, connected).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

async fn said(answer: Response<Incoming>) -> Result<String, AskError> {
    let body = Limited::new(answer.into_body(), SAID).collect().await;
    let body = body.map_err(|error| AskError::Read(io::Error::other(error)))?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}
