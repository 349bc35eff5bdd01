//! An extension API server as a real HTTPS server: it says of itself what it is told to, and remembers what it was asked, with whose
//! headers.

use crate::parity::webhooks::server::{Proof, acceptor};
use anyhow::Context;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody as BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use windlass_clock::Clock;

/// Longer than any server is waited for.
const HANGS: Duration = Duration::from_secs(70);

/// How an extension API server answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// With this JSON.
    Json(u16, Value),
    /// With this status, media type and body.
    Raw(u16, &'static str, Vec<u8>),
    /// With these lines, each after a while, and nothing after them until the client has enough.
    Lines(Vec<Value>),
    /// Elsewhere.
    Redirect(u16, String),
    /// Not at all.
    Hang,
    /// By closing the connection.
    Close,
}

/// What a server was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, Vec<String>>,
    pub body: Bytes,
}

impl Asked {
    /// As it is compared: with these headers alone.
    pub fn shown(&self, headers: &[&str]) -> Value {
        let headers: BTreeMap<&String, &Vec<String>> =
            self.headers.iter().filter(|(name, _)| headers.contains(&name.as_str())).collect();
        let body = match self.body.len() {
            0..2000 => String::from_utf8_lossy(&self.body).into_owned(),
            length => format!("{length} bytes"),
        };
        json!({"method": self.method, "path": self.path, "query": self.query, "headers": headers, "body": body})
    }
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;

/// An extension API server, which ends when it is dropped.
pub struct Extension {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
    tasks: JoinSet<()>,
}

impl Extension {
    /// Answers as `answer` says, and proves to be `name`.
    pub async fn start(
        proof: Proof,
        name: &str,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        // By any address of this machine: endpoints of Services are never on loopback.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.context("no free port")?;
        let port = listener.local_addr()?.port();
        let (_, tls) = acceptor(proof, name)?;
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let answer: Arc<Mutex<Arc<Answer>>> = Arc::new(Mutex::new(Arc::new(answer)));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, tls, asked.clone(), answer.clone()));
        Ok(Self { port, asked, answer, tasks })
    }

    /// Answers so from now on.
    pub fn answer(&self, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        *self.answer.lock() = Arc::new(answer);
    }

    /// What it was asked since the last time that somebody looked.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// Stops to listen.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }
}

async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, asked, answer) = (tls.clone(), asked.clone(), answer.clone());
        connections.spawn(async move {
            // A client that leaves is no failure of the server.
            let _ = connection(stream, tls, asked, answer).await;
        });
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
) -> anyhow::Result<()> {
    let service = service_fn(move |request| {
        let answer = answer.lock().clone();
        respond(request, asked.clone(), answer)
    });
    let builder = hyper::server::conn::http1::Builder::new();
    match tls {
        Some(tls) => builder.serve_connection(TokioIo::new(tls.accept(stream).await?), service).await?,
        None => builder.serve_connection(TokioIo::new(stream), service).await?,
    }
    Ok(())
}

async fn respond(
    request: http::Request<Incoming>,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Answer>,
) -> anyhow::Result<Response<BoxBody<Bytes, Infallible>>> {
    let (head, body) = request.into_parts();
    let seen = Asked {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: headers(&head.headers),
        body: body.collect().await?.to_bytes(),
    };
    asked.lock().push(seen.clone());
    match answer(&seen) {
        Reply::Json(status, body) => raw(status, "application/json", body.to_string().into_bytes()),
        Reply::Raw(status, media, body) => raw(status, media, body),
        Reply::Redirect(status, to) => {
            let mut response = raw(status, "text/plain", b"elsewhere".to_vec())?;
            response.headers_mut().insert(http::header::LOCATION, to.parse()?);
            Ok(response)
        }
        Reply::Lines(lines) => {
            let lines = futures::stream::unfold(lines.into_iter(), |mut lines| async move {
                let clock = Clock::real();
                let Some(line) = lines.next() else {
                    clock.sleep(HANGS).await;
                    return None;
                };
                clock.sleep(Duration::from_millis(30)).await;
                Some((Ok(Frame::data(Bytes::from(format!("{line}\n")))), lines))
            });
            let mut response = raw(200, "application/json", Vec::new())?;
            *response.body_mut() = StreamBody::new(lines).boxed_unsync();
            Ok(response)
        }
        Reply::Hang => {
            Clock::real().sleep(HANGS).await;
            raw(500, "text/plain", Vec::new())
        }
        Reply::Close => anyhow::bail!("closed on purpose"),
    }
}

fn headers(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        all.entry(name.as_str().to_owned()).or_default().push(value);
    }
    all
}

fn raw(status: u16, media: &str, body: Vec<u8>) -> anyhow::Result<Response<BoxBody<Bytes, Infallible>>> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status)?;
    response.headers_mut().insert(http::header::CONTENT_TYPE, media.parse()?);
    Ok(response)
}
