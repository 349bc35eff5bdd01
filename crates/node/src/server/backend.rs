//! What the server asks of the node that it serves for.

use super::stats::Summary;
use crate::logs::{LogOptions, LogStream};
use serde_json::Value;
use std::fmt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// A node that runs pods, as its server sees it.
///
/// A future that is dropped before it is done belongs to a caller who left: what it started for that caller is to end.
pub trait Backend: Send + Sync + 'static {
    /// Is there such a container? Asked before a connection is upgraded, so that a refusal can be answered in HTTP. It need
    /// not run.
    fn find(&self, container: &ContainerRef) -> impl Future<Output = Result<(), HttpError>> + Send;

    /// Is there such a pod? Asked before a connection is upgraded.
    fn find_pod(&self, pod: &PodRef) -> impl Future<Output = Result<(), HttpError>> + Send;

    /// What a container has written. See [`crate::logs::read`] for logs that are files.
    fn logs(
        &self,
        container: &ContainerRef,
        options: LogOptions,
    ) -> impl Future<Output = Result<LogStream, HttpError>> + Send;

    /// Runs a command in a container until it exits, and says how it did.
    fn exec(
        &self,
        container: &ContainerRef,
        command: Vec<String>,
        streams: Streams,
    ) -> impl Future<Output = Result<Exit, HttpError>> + Send;

    /// Joins the streams of a container's own process until it exits.
    fn attach(
        &self,
        container: &ContainerRef,
        streams: Streams,
    ) -> impl Future<Output = Result<Exit, HttpError>> + Send;

    /// Connects to a port inside of a pod, on its loopback address.
    fn connect(
        &self,
        pod: &PodRef,
        port: u16,
    ) -> impl Future<Output = Result<Box<dyn Duplex>, HttpError>> + Send;

    /// What the node and its pods use.
    fn stats(&self) -> impl Future<Output = Summary> + Send;

    /// The pods that it has, as a PodList.
    fn pods(&self) -> impl Future<Output = Value> + Send;
}

/// A pod by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which pod of that name is meant, if the caller says so.
    pub uid: Option<String>,
}

/// A container of a pod, of whatever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRef {
    /// Its pod.
    pub pod: PodRef,
    /// Its name.
    pub name: String,
}

/// A stream to read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;

/// A stream to write to; what the other side cannot take yet holds up the writer.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection into a pod.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What a process is connected with. A stream that is not there was not asked for.
pub struct Streams {
    /// What it reads.
    pub stdin: Option<Input>,
    /// What it writes.
    pub stdout: Option<Output>,
    /// What it complains with; with a terminal everything goes to `stdout`.
    pub stderr: Option<Output>,
    /// The sizes that the caller's terminal takes on.
    pub sizes: mpsc::Receiver<Size>,
    /// Does it get a terminal of its own?
    pub tty: bool,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Size {
    /// Characters in a line.
    #[serde(rename = "Width")]
    pub width: u16,
    /// Lines.
    #[serde(rename = "Height")]
    pub height: u16,
}

/// How a process ended: its exit code, 128 and the signal if it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub i32);

/// Why something is not done, in words for the one who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    /// The HTTP status that says so.
    pub code: u16,
    /// What is wrong.
    pub message: String,
}

impl HttpError {
    /// 404: there is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { code: 404, message: message.into() }
    }

    /// 400: it cannot be asked for now, or not so.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, message: message.into() }
    }

    /// 500: it should have worked.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self { code: 500, message: message.to_string() }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HttpError {}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("stdin", &self.stdin.is_some())
            .field("stdout", &self.stdout.is_some())
            .field("stderr", &self.stderr.is_some())
            .field("tty", &self.tty)
            .finish_non_exhaustive()
    }
}
