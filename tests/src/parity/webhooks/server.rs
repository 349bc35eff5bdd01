//! A webhook as a real HTTPS server, which answers as it is told and remembers what it was asked.

use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use windlass_apiserver::Credentials;
use windlass_clock::Clock;

/// Longer than any webhook is waited for.
const HANGS: Duration = Duration::from_secs(60);

/// Who signs the certificates of webhooks.
static AUTHORITY: LazyLock<Credentials> =
    LazyLock::new(|| Credentials::generate().expect("keys can be generated"));

/// Who signs certificates that nobody trusts.
static STRANGER: LazyLock<Credentials> =
    LazyLock::new(|| Credentials::generate().expect("keys can be generated"));

/// How a webhook answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// With the response of a review, whose UID is filled in.
    Response(Value),
    /// With this status, media type and body.
    Raw(u16, &'static str, Vec<u8>),
    /// With this many blanks.
    Blanks(usize),
    /// With this status, which leads elsewhere.
    Redirect(u16, String),
    /// Not at all.
    Hang,
    /// By closing the connection.
    Close,
}

/// It may pass.
pub fn allowed() -> Reply {
    Reply::Response(json!({"allowed": true}))
}

/// It may not, for this reason.
pub fn denied(message: &str) -> Reply {
    Reply::Response(json!({"allowed": false, "status": {"message": message}}))
}

/// It may pass, changed by a JSON patch.
pub fn patched(patch: &Value) -> Reply {
    patched_with(patch.to_string().as_bytes())
}

/// The same with bytes that may be no patch.
pub fn patched_with(patch: &[u8]) -> Reply {
    let patch = BASE64_STANDARD.encode(patch);
    Reply::Response(json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"}))
}

/// Whom a server proves to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Itself.
    Own,
    /// Itself, signed by somebody else than clients trust.
    Stranger,
    /// Somebody else.
    Other,
    /// Nobody: it speaks no TLS.
    None,
}

type Answer = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// A webhook server, which ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    certificate: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Answers each path and review as `answer` says.
    pub async fn start(
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Self::proving(Proof::Own, "", answer).await
    }

    /// The same with another certificate; it is for `name`, too.
    pub async fn proving(
        proof: Proof,
        name: &str,
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        // By any address of this machine: endpoints of Services are never on loopback.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.context("no free port")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr()?.port()));
        let (certificate, tls) = acceptor(proof, name)?;
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, tls, asked.clone(), Arc::new(answer)));
        Ok(Self { address, certificate, asked, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }

    /// Whom its clients trust, as configurations have it.
    pub fn bundle() -> String {
        BASE64_STANDARD.encode(AUTHORITY.ca_certificate())
    }

    /// Its own certificate, as configurations have what they trust.
    pub fn own_bundle(&self) -> String {
        BASE64_STANDARD.encode(&self.certificate)
    }

    /// What it was asked since the last time that somebody looked: paths, and requests of reviews.
    pub fn take_asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// Stops to listen.
    pub fn stop(&mut self) {
        self.tasks.abort_all();
    }
}

/// A certificate, and what accepts connections of a server that proves by it to be `name`, or somebody else.
pub fn acceptor(proof: Proof, name: &str) -> anyhow::Result<(String, Option<TlsAcceptor>)> {
    let (by, hosts) = match proof {
        Proof::None | Proof::Own => (&AUTHORITY, &["127.0.0.1", "localhost", name][..]),
        Proof::Stranger => (&STRANGER, &["127.0.0.1", "localhost", name][..]),
        Proof::Other => (&AUTHORITY, &["other.example.com"][..]),
    };
    let (certificate, tls) = signed(by, hosts)?;
    Ok((certificate, (!matches!(proof, Proof::None)).then_some(tls)))
}

fn signed(by: &Credentials, hosts: &[&str]) -> anyhow::Result<(String, TlsAcceptor)> {
    let hosts: Vec<&str> = hosts.iter().copied().filter(|host| !host.is_empty()).collect();
    let (certificate, key) = by.issue_server("webhook", &hosts)?;
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok((certificate, TlsAcceptor::from(Arc::new(config))))
}

async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    answer: Arc<Answer>,
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
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    answer: Arc<Answer>,
) -> anyhow::Result<()> {
    let service = service_fn(move |request| respond(request, asked.clone(), answer.clone()));
    let builder = hyper::server::conn::http1::Builder::new();
    match tls {
        Some(tls) => {
            let stream = tls.accept(stream).await?;
            builder.serve_connection(TokioIo::new(stream), service).await?;
        }
        None => builder.serve_connection(TokioIo::new(stream), service).await?,
    }
    Ok(())
}

async fn respond(
    request: http::Request<Incoming>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    answer: Arc<Answer>,
) -> anyhow::Result<Response<Full<Bytes>>> {
    let path = request.uri().path().trim_matches('/').to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let method = request.method().clone();
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut seen = review.clone();
    seen["query"] = json!(query);
    if method != http::Method::POST {
        seen["method"] = json!(method.as_str());
    }
    asked.lock().push((path.clone(), seen));
    let uid = review["request"]["uid"].clone();
    match answer(&path, &review["request"]) {
        Reply::Response(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = uid;
            }
            let version = &review["apiVersion"];
            let answer = json!({"kind": review["kind"], "apiVersion": version, "response": response});
            raw(200, "application/json", answer.to_string().into_bytes())
        }
        Reply::Raw(status, media, body) => {
            // So that the UID can be part of it.
            let body = match String::from_utf8(body) {
                Ok(text) => text.replace("<uid>", uid.as_str().unwrap_or_default()).into_bytes(),
                Err(bytes) => bytes.into_bytes(),
            };
            raw(status, media, body)
        }
        Reply::Blanks(count) => raw(200, "application/json", vec![b' '; count]),
        Reply::Redirect(status, to) => {
            let mut response = raw(status, "text/plain", Vec::new())?;
            response.headers_mut().insert(http::header::LOCATION, to.parse()?);
            Ok(response)
        }
        Reply::Hang => {
            Clock::real().sleep(HANGS).await;
            raw(500, "text/plain", Vec::new())
        }
        Reply::Close => anyhow::bail!("closed on purpose"),
    }
}

fn raw(status: u16, media: &str, body: Vec<u8>) -> anyhow::Result<Response<Full<Bytes>>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status)?;
    response.headers_mut().insert(http::header::CONTENT_TYPE, media.parse()?);
    Ok(response)
}
