//! One HTTP/1.1 connection over TLS.

use super::Ask;
use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

/// A connection to a server, with the credentials of a kubeconfig.
#[derive(Debug)]
pub struct Connection {
    sender: Option<SendRequest<Full<Bytes>>>,
    host: String,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When the server is not there, or does not know us.
    pub async fn open(config: &kube::Config) -> anyhow::Result<Self> {
        let (stream, host) = connect(config).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; an error reaches whoever sends next.
        tokio::spawn(connection);
        Ok(Self { sender: Some(sender), host })
    }

    /// As many connections as asked for.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub async fn open_many(config: &kube::Config, count: usize) -> anyhow::Result<Vec<Self>> {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(Self::open(config).await?);
        }
        Ok(all)
    }

    /// A place for a connection that is in use elsewhere; asking it fails.
    pub fn closed() -> Self {
        Self { sender: None, host: String::new() }
    }

    pub(super) fn take(&mut self) -> anyhow::Result<Self> {
        let sender = self.sender.take().context("a connection whose load failed")?;
        Ok(Self { sender: Some(sender), host: self.host.clone() })
    }

    /// Sends a request and reads its answer to the end; how many bytes that were.
    ///
    /// # Errors
    /// When the connection broke, or the answer is no success.
    pub async fn ask(&mut self, ask: &Ask) -> anyhow::Result<usize> {
        let mut body = self.send(ask).await?;
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(length)
    }

    async fn send(&mut self, ask: &Ask) -> anyhow::Result<Incoming> {
        let request = Request::builder()
            .method(&ask.method)
            .uri(&ask.path)
            .header(header::HOST, &self.host)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, ask.content_type)
            .body(Full::new(Bytes::copy_from_slice(ask.body.as_bytes())))?;
        let sender = self.sender.as_mut().context("a connection whose load failed")?;
        sender.ready().await?;
        let answer = sender.send_request(request).await?;
        if !answer.status().is_success() {
            let status = answer.status();
            let text = answer.into_body().collect().await?.to_bytes();
            bail!("{} {}: {status}: {}", ask.method, ask.path, String::from_utf8_lossy(&text));
        }
        Ok(answer.into_body())
    }
}

/// The events of a watch, read from the connection as they come. Nothing is between it and the bytes: what a client costs
/// itself would count fifty times.
#[derive(Debug)]
pub struct Events {
    stream: TlsStream<TcpStream>,
    buffer: Box<[u8; 16 << 10]>,
    /// Ends of events that were read and not yet told of.
    ready: usize,
    last: u8,
}

impl Events {
    /// Opens a watch at this path.
    ///
    /// # Errors
    /// When the server is not there, or does not answer with a watch.
    pub async fn open(config: &kube::Config, path: &str) -> anyhow::Result<Self> {
        let (mut stream, host) = connect(config).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        ensure!(head.starts_with(b"HTTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&head));
        Ok(Self { stream, buffer: Box::new([0; 16 << 10]), ready: 0, last: 0 })
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// When the watch ended.
    pub async fn next(&mut self) -> anyhow::Result<()> {
        while self.ready == 0 {
            let count = self.stream.read(&mut self.buffer[..]).await?;
            ensure!(count > 0, "the watch ended");
            for byte in &self.buffer[..count] {
                // An event is a line of JSON; what separates chunks follows no brace.
                self.ready += usize::from(*byte == b'\n' && self.last == b'}');
                self.last = *byte;
            }
        }
        self.ready -= 1;
        Ok(())
    }
}

async fn connect(config: &kube::Config) -> anyhow::Result<(TlsStream<TcpStream>, String)> {
    let host = config.cluster_url.host().context("a server without a host")?.to_owned();
    let port = config.cluster_url.port_u16().context("a server without a port")?;
    let tls = TlsConnector::from(Arc::new(config.rustls_client_config()?));
    let tcp = TcpStream::connect((host.as_str(), port)).await?;
    tcp.set_nodelay(true)?;
    let stream = tls.connect(ServerName::try_from(host.clone())?, tcp).await?;
    Ok((stream, format!("{host}:{port}")))
}
