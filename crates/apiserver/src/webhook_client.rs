//! How a webhook is called: by its URL, or by the Service that leads to it, trusting whom its configuration says. Those of admission and
//! those of conversion are called alike.

use crate::client::{Answered, Connector, HttpsClient, Reach, Trust};
use crate::dial::{Dialer, webhook_address};
use crate::typed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Uri;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpStream;
use windlass_schema::json as reader;
use windlass_store::Store;

/// The port of a Service that names none.
const PORT: u16 = 443;

/// What leads to webhooks behind Services.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) store: Arc<Store>,
    pub(crate) dialer: Arc<Dialer>,
}

/// Where a webhook is.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClientConfig {
    pub(crate) url: Option<String>,
    pub(crate) service: Option<ServiceReference>,
    /// In base64.
    pub(crate) ca_bundle: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceReference {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) path: Option<String>,
    pub(crate) port: Option<u16>,
}

/// Calls one webhook; its connections are kept.
pub(crate) struct Caller {
    config: ClientConfig,
    client: OnceLock<Result<(HttpsClient, String), String>>,
}

/// Why a call brought no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// Nobody could be called: the configuration says nothing that makes sense.
    NoClient(String),
    /// The call failed, or its answer is none; and the code that this counts as.
    Failed(String, u16),
}

impl Caller {
    pub(crate) fn new(config: ClientConfig) -> Self {
        Self { config, client: OnceLock::new() }
    }

    /// Posts a question within a time, which the webhook is told of, and returns what it answers.
    pub(crate) async fn post(
        &self,
        network: &Network,
        question: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let client = self.client.get_or_init(|| self.connect(network));
        let (client, url) = client.as_ref().map_err(|why| CallError::NoClient(why.clone()))?;
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let url: Uri = format!("{url}?timeout={seconds}s")
            .parse()
            .map_err(|error| CallError::Failed(format!("{error}"), 500))?;
        let answered = client.post_json_within(&url, question, timeout).await;
        let answered = answered.map_err(|error| CallError::Failed(error.in_go(), 503))?;
        let code = answered.status.as_u16();
        if !(200..=206).contains(&code) {
            return Err(CallError::Failed(refused(&answered), code));
        }
        if answered.body.is_empty() {
            let kind = &answered.content_type;
            let why = format!("0-length response with status code: {code} and content type: {kind}");
            return Err(CallError::Failed(why, 503));
        }
        Ok(answered.body)
    }

    /// A client, and the URL that it is to call.
    fn connect(&self, network: &Network) -> Result<(HttpsClient, String), String> {
        let bundle = self.config.ca_bundle.as_deref().unwrap_or_default();
        let bundle = STANDARD.decode(bundle).map_err(|error| error.to_string())?;
        let bundle = String::from_utf8_lossy(&bundle);
        let trust = if bundle.is_empty() { Trust::System } else { Trust::Authorities(&bundle) };
        let (connector, url) = match (&self.config.service, &self.config.url) {
            (Some(service), _) => {
                let reach = ServiceNetwork { network: network.clone(), service: service.clone() };
                (Connector::Other(Arc::new(reach)), service.url())
            }
            (None, Some(url)) => (Connector::machine(), without_end(url)),
            (None, None) => return Err("webhook configuration must have either service or URL".to_owned()),
        };
        let client = HttpsClient::through(connector, trust).map_err(|error| error.to_string())?;
        Ok((client, url))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("config", &self.config).finish_non_exhaustive()
    }
}

impl ServiceReference {
    /// Its name is whom the webhook must prove to be.
    fn url(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default().trim_matches('/');
        format!("https://{}.{}.svc:{}/{path}", self.name, self.namespace, self.port.unwrap_or(PORT))
    }
}

/// A URL without a slash at its end, unless that is all of its path.
fn without_end(url: &str) -> String {
    let trimmed = url.trim_end_matches('/');
    match trimmed.split_once("://").is_some_and(|(_, rest)| rest.contains('/')) {
        true => trimmed.to_owned(),
        false => format!("{trimmed}/"),
    }
}

/// Leads to the endpoints of a Service.
struct ServiceNetwork {
    network: Network,
    service: ServiceReference,
}

impl Reach for ServiceNetwork {
    fn connect(&self, _: &str, port: u16) -> BoxFuture<'static, io::Result<TcpStream>> {
        let Network { store, dialer } = &self.network;
        let ServiceReference { namespace, name, .. } = &self.service;
        let address = webhook_address((store, dialer), (namespace, name), port);
        let dialer = dialer.clone();
        Box::pin(async move {
            let address = address.map_err(|status| io::Error::other(status.message))?;
            dialer.dial(&address.host, address.port).await
        })
    }
}

/// What an answer that is no success says, in the words of Kubernetes' clients.
fn refused(answered: &Answered) -> String {
    let is_text = answered.content_type.is_empty() || answered.content_type.starts_with("text/");
    let body = String::from_utf8_lossy(&answered.body);
    let said = if is_text { body.trim() } else { "unknown" };
    let text = match answered.status.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if said == "unknown" => "the content type requested by the client could not be returned",
        406 | 415 => said,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            let said = windlass_schema::quote(said);
            return format!("an error on the server ({said}) has prevented the request from succeeding");
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    text.to_owned()
}

/// The object that was answered, or nothing: in JSON, or in YAML, as the reference takes it.
pub(crate) fn document(answered: &[u8]) -> Result<Value, String> {
    const WANTED: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                          \"json:\\\"kind,omitempty\\\"\" }";
    let value = match answered.trim_ascii_start().first() {
        None => Value::Null,
        Some(b'{') => reader::read(answered).map_err(|error| error.to_string())?.value,
        Some(_) => {
            let text = std::str::from_utf8(answered).map_err(|error| error.to_string())?;
            serde_saphyr::from_str(text).map_err(|error| error.to_string())?
        }
    };
    match value {
        Value::Null => Ok(Value::Null),
        mut review @ Value::Object(_) => {
            for path in ["", "/response", "/response/result"] {
                if let Some(Value::Object(fields)) = review.pointer_mut(path) {
                    // To Go a null says nothing.
                    fields.retain(|_, value| !value.is_null());
                }
            }
            Ok(review)
        }
        other => {
            let shape = typed::shape(&other);
            Err(format!("json: cannot unmarshal {shape} into Go value of type {WANTED}"))
        }
    }
}

/// A kind as Go prints it.
pub(crate) fn go_kind(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("{group}/{version}, Kind={kind}"),
        None => format!("/{api_version}, Kind={kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    #[test]
    fn urls_have_no_slash_at_their_end() {
        assert_eq!(without_end("https://a.b/c/"), "https://a.b/c");
        assert_eq!(without_end("https://a.b"), "https://a.b/");
        assert_eq!(without_end("https://a.b:1/"), "https://a.b:1/");
        let service = ServiceReference { namespace: "n".into(), name: "s".into(), path: None, port: None };
        assert_eq!(service.url(), "https://s.n.svc:443/");
        let service = ServiceReference { path: Some("/a/b".into()), port: Some(8443), ..service };
        assert_eq!(service.url(), "https://s.n.svc:8443/a/b");
    }

    #[test]
    fn a_null_in_an_answer_says_nothing() {
        let read =
            document(br#"{"kind": null, "response": {"uid": null, "convertedObjects": [{"spec": null}]}}"#);
        assert_eq!(read.unwrap(), serde_json::json!({"response": {"convertedObjects": [{"spec": null}]}}));
        assert_eq!(document(b"").unwrap(), Value::Null);
    }

    #[test]
    fn an_error_of_the_webhook_is_told_in_the_words_of_kubernetes() {
        let refused = |code: u16, content_type: &str, body: &'static str| {
            super::refused(&Answered {
                status: StatusCode::from_u16(code).unwrap(),
                body: Bytes::from_static(body.as_bytes()),
                content_type: content_type.to_owned(),
                retry_after: false,
            })
        };
        assert_eq!(
            refused(500, "text/plain", "it \"broke\"\n"),
            "an error on the server (\"it \\\"broke\\\"\") has prevented the request from succeeding"
        );
        assert!(refused(500, "application/json", "{}").contains("(\"unknown\")"));
        assert_eq!(refused(403, "", "not you"), "not you");
        assert!(refused(302, "", "").contains("the status code 302"));
    }
}
