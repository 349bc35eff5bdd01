//! Requests to others over HTTPS: webhooks, and issuers of tokens. Connections are kept; answers and waits have bounds.

mod connector;
mod in_go;
mod kubeconfig;

pub(crate) use connector::{Connector, Reach};
pub(crate) use kubeconfig::{Endpoint, InvalidKubeconfig};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// More than any answer that is asked for: an admission webhook may replace a whole object, in base64.
const LONGEST_ANSWER: usize = 6 * 1024 * 1024;

/// How long somebody is waited for who is not given a time.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Who the API server is to admission webhooks.
const AGENT: HeaderValue = HeaderValue::from_static("kube-apiserver-admission");

/// Whose certificates a server may show.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trust<'a> {
    /// Those that these sign, as PEM.
    Authorities(&'a str),
    /// Those that this machine trusts.
    System,
    /// Any.
    Anyone,
}

/// A client of servers that are trusted alike.
#[derive(Clone)]
pub(crate) struct HttpsClient {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// What the body is said to be.
    pub(crate) content_type: String,
    /// Whether the server says when to ask again.
    pub(crate) retry_after: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{method} {url:?}: {why}")]
pub(crate) struct Unanswered {
    method: Method,
    url: String,
    why: String,
    /// The error behind it, if it is not the time.
    failure: Option<hyper_util::client::legacy::Error>,
    /// Whether the connection broke after it was made.
    pub(crate) broke: bool,
}

impl HttpsClient {
    /// `own` is the certificate and the key that the client shows, as PEM.
    pub(crate) fn new(
        trust: Trust<'_>,
        own: Option<(&str, &str)>,
        authorization: Option<HeaderValue>,
        timeout: Duration,
    ) -> io::Result<Self> {
        Ok(Self { authorization, timeout, ..Self::over(Connector::machine(), tls(trust, own)?) })
    }

    /// One that reaches others by a connector, and has a time for each request.
    pub(crate) fn through(connector: Connector, trust: Trust<'_>) -> io::Result<Self> {
        Ok(Self::over(connector, tls(trust, None)?))
    }

    fn over(connector: Connector, tls: ClientConfig) -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, authorization: None, timeout: USUAL_TIMEOUT }
    }

    pub(crate) async fn get(&self, url: &Uri) -> Result<Answered, Unanswered> {
        self.ask(request(Method::GET, url, Bytes::new()), self.timeout).await
    }

    pub(crate) async fn post_json(&self, url: &Uri, body: Bytes) -> Result<Answered, Unanswered> {
        self.ask(request(Method::POST, url, body), self.timeout).await
    }

    /// The same as who calls admission webhooks, within a time. Redirections are answers like others: nobody follows them.
    pub(crate) async fn post_json_within(
        &self,
        url: &Uri,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Answered, Unanswered> {
        let mut request = request(Method::POST, url, body);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        request.headers_mut().insert(USER_AGENT, AGENT);
        self.ask(request, timeout).await
    }

    async fn ask(
        &self,
        mut request: Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<Answered, Unanswered> {
        let (method, url) = (request.method().clone(), request.uri().to_string());
        let failed = |why: String, failure, broke| Unanswered {
            method: method.clone(),
            url: url.clone(),
            why,
            failure,
            broke,
        };
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let asking = async {
            let response = self.client.request(request).await.map_err(|error| {
                let broke = !error.is_connect();
                failed(chain(&error), Some(error), broke)
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| failed(error.to_string(), None, true))?.to_bytes();
            let retry_after = parts.headers.contains_key(RETRY_AFTER);
            let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let content_type = content_type.unwrap_or_default().to_owned();
            Ok(Answered { status: parts.status, body, content_type, retry_after })
        };
        match Clock::real().timeout(timeout, asking).await {
            Ok(answered) => answered,
            Err(_) => Err(failed("context deadline exceeded".to_owned(), None, false)),
        }
    }
}

/// What is posted is JSON.
fn request(method: Method, url: &Uri, body: Bytes) -> Request<Full<Bytes>> {
    let posts = method == Method::POST;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = url.clone();
    if posts {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    request
}

impl fmt::Debug for HttpsClient {
    /// Says nothing: what is logged is read by others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpsClient").finish_non_exhaustive()
    }
}

fn tls(trust: Trust<'_>, own: Option<(&str, &str)>) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match trust {
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(crate::dial::any_certificate()),
        Trust::Authorities(pem) => builder.with_root_certificates(authorities(pem)?),
        Trust::System => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            builder.with_root_certificates(roots)
        }
    };
    match own {
        None => Ok(builder.with_no_client_auth()),
        Some((certificates, key)) => {
            let certificates: Result<Vec<_>, _> =
                CertificateDer::pem_slice_iter(certificates.as_bytes()).collect();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(unusable)?;
            builder.with_client_auth_cert(certificates.map_err(unusable)?, key).map_err(unusable)
        }
    }
}

/// The certificates of a PEM text, of which there must be one.
pub(crate) fn authorities(pem: &str) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
    }
    match roots.is_empty() {
        true => Err(unusable("data does not contain any valid RSA or ECDSA certificates")),
        false => Ok(roots),
    }
}

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// An error with all that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
