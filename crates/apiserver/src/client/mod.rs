//! Requests to others over HTTPS: webhooks, and issuers of tokens. Connections are kept; answers and waits have bounds.

mod connector;
mod in_go;
mod kubeconfig;
mod redirect;
mod verifier;

pub(crate) use connector::{Connector, Reach};
pub(crate) use in_go::words as go_words;
pub(crate) use kubeconfig::{Endpoint, InvalidKubeconfig};
pub(crate) use verifier::TrustedCertificates;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// More than any answer that is asked for: an admission webhook may replace a whole object, in base64.
const LONGEST_ANSWER: usize = 6 * 1024 * 1024;

/// How often a client is led elsewhere before it gives up.
const MOST_REQUESTS: usize = 10;

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

/// What a server is asked.
struct Asked {
    /// The method of the first request, which errors name.
    first_method: Method,
    method: Method,
    url: Uri,
    headers: HeaderMap,
    body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{method} \"{url}\": {why}")]
pub(crate) struct Unanswered {
    method: Method,
    /// The last that was asked, or was to be.
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
        self.ask(Asked::new(Method::GET, url, Bytes::new()), self.timeout).await
    }

    pub(crate) async fn post_json(&self, url: &Uri, body: Bytes) -> Result<Answered, Unanswered> {
        self.ask(Asked::new(Method::POST, url, body), self.timeout).await
    }

    /// The same as who calls admission webhooks, within a time.
    pub(crate) async fn post_json_within(
        &self,
        url: &Uri,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Answered, Unanswered> {
        let mut asked = Asked::new(Method::POST, url, body);
        asked.headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        asked.headers.insert(USER_AGENT, AGENT);
        self.ask(asked, timeout).await
    }

    /// Asks, and where it is led elsewhere asks there, as Go's clients do.
    async fn ask(&self, mut asked: Asked, timeout: Duration) -> Result<Answered, Unanswered> {
        if let Some(authorization) = &self.authorization {
            asked.headers.insert(AUTHORIZATION, authorization.clone());
        }
        // Whom the client waits for when its time is over.
        let (method, last) = (asked.first_method.clone(), Mutex::new(asked.url.clone()));
        let asking = async {
            let mut requests = 0;
            loop {
                requests += 1;
                let response = self.client.request(asked.request()).await.map_err(|error| {
                    let broke = !error.is_connect();
                    asked.failed(chain(&error), Some(error), broke)
                })?;
                let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
                match asked.redirected(response.status(), location) {
                    None => return asked.answered(response).await,
                    Some(Ok(_)) if requests == MOST_REQUESTS => {
                        let why = format!("stopped after {MOST_REQUESTS} redirects");
                        let url = location.map(String::from_utf8_lossy).unwrap_or_default().into_owned();
                        return Err(Unanswered { url, ..asked.failed(why, None, false) });
                    }
                    Some(Ok(next)) => asked = next,
                    Some(Err(why)) => return Err(asked.failed(why, None, false)),
                }
                *last.lock() = asked.url.clone();
            }
        };
        match Clock::real().timeout(timeout, asking).await {
            Ok(answered) => answered,
            Err(_) => {
                let (url, why) = (last.into_inner().to_string(), "context deadline exceeded".to_owned());
                Err(Unanswered { method, url, why, failure: None, broke: false })
            }
        }
    }
}

/// A client that sends bodies as they come, to addresses of a server that must prove to be `host`.
pub(crate) fn streaming<B>(
    connector: Connector,
    trust: Trust<'_>,
    own: Option<(&str, &str)>,
    host: &str,
) -> io::Result<Client<HttpsConnector<Connector>, B>>
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    let name = ServerName::try_from(host.to_owned()).map_err(unusable)?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls(trust, own)?)
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(name))
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

impl Asked {
    /// What is posted is JSON.
    fn new(method: Method, url: &Uri, body: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Self { first_method: method.clone(), method, url: url.clone(), headers, body }
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    async fn answered(&self, response: Response<Incoming>) -> Result<Answered, Unanswered> {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await;
        let body = body.map_err(|error| self.failed(error.to_string(), None, true))?.to_bytes();
        let retry_after = parts.headers.contains_key(RETRY_AFTER);
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        Ok(Answered { status: parts.status, body, content_type, retry_after })
    }

    fn failed(
        &self,
        why: String,
        failure: Option<hyper_util::client::legacy::Error>,
        broke: bool,
    ) -> Unanswered {
        let (method, url) = (self.first_method.clone(), self.url.to_string());
        Unanswered { method, url, why, failure, broke }
    }
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
        Trust::Authorities(pem) => {
            let verifier = Arc::new(TrustedCertificates::read(pem)?);
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
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
