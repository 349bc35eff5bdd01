//! One HTTP/1.1 connection over TLS.

use super::Ask;
use anyhow::{Context, bail};
use bytes::{Buf, Bytes, BytesMut};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
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
        let host = config.cluster_url.host().context("a server without a host")?.to_owned();
        let port = config.cluster_url.port_u16().context("a server without a port")?;
        let tls = TlsConnector::from(Arc::new(config.rustls_client_config()?));
        let tcp = TcpStream::connect((host.as_str(), port)).await?;
        tcp.set_nodelay(true)?;
        let stream = tls.connect(ServerName::try_from(host.clone())?, tcp).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; an error reaches whoever sends next.
        tokio::spawn(connection);
        Ok(Self { sender: Some(sender), host: format!("{host}:{port}") })
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

    /// Sends the request of a watch; its events come one at a time.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub async fn watch(mut self, ask: &Ask) -> anyhow::Result<Frames> {
        let body = self.send(ask).await?;
        Ok(Frames { body, rest: BytesMut::new(), _connection: self })
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

/// The events of a watch: one line of JSON each.
#[derive(Debug)]
pub struct Frames {
    body: Incoming,
    rest: BytesMut,
    // The answer ends with it.
    _connection: Connection,
}

impl Frames {
    /// The next event's line; nothing when the watch ended.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn next(&mut self) -> anyhow::Result<Option<Bytes>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end).freeze();
                self.rest.advance(1);
                return Ok(Some(line));
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Some(data) = frame?.data_ref() {
                        self.rest.extend_from_slice(data);
                    }
                }
                None => return Ok(None),
            }
        }
    }
}
