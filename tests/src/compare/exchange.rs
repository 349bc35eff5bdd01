//! One request and its answer, as plain values.

use super::yaml;
use anyhow::Context;
use serde_json::{Value, json};
use std::fmt;
use windlass_apiserver::protobuf;

/// A request that can be sent to either server.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The path without the query.
    pub path: String,
    /// The query, unescaped.
    pub query: Vec<(&'static str, String)>,
    /// The body's media type; empty without a body.
    pub content_type: &'static str,
    /// The body; null for none.
    pub body: Value,
    /// Whether the body is sent as YAML.
    pub yaml: bool,
    /// The client's name: the field manager of requests that name none.
    pub user_agent: &'static str,
    /// Sent in the place of the body, byte by byte.
    pub raw: Option<Vec<u8>>,
    /// The media types that the client takes.
    pub accept: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

/// Media types of patches.
pub mod media {
    /// JSON, as creates and updates have it.
    pub const JSON: &str = "application/json";
    /// Protobuf, in Kubernetes' envelope.
    pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    /// RFC 6902.
    pub const JSON_PATCH: &str = "application/json-patch+json";
    /// RFC 7386.
    pub const MERGE_PATCH: &str = "application/merge-patch+json";
    /// The merge of Kubernetes' own, which knows the lists of built-in kinds.
    pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
    /// Server-side apply.
    pub const APPLY_PATCH: &str = "application/apply-patch+yaml";
}

impl Request {
    /// A request without a body.
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: "",
            body: Value::Null,
            yaml: false,
            user_agent: "tester",
            raw: None,
            accept: media::JSON,
            headers: Vec::new(),
        }
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As another user.
    #[must_use]
    pub fn impersonating(self, user: impl Into<String>) -> Self {
        self.header("impersonate-user", user)
    }

    /// With a query parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, content_type: &'static str, body: Value) -> Self {
        self.content_type = content_type;
        self.body = body;
        self
    }

    /// With the body written as YAML.
    #[must_use]
    pub fn as_yaml(mut self) -> Self {
        self.yaml = true;
        self
    }

    /// With a body that need not be JSON.
    #[must_use]
    pub fn raw(mut self, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        self.content_type = content_type;
        self.raw = Some(body.into());
        self
    }

    /// For a client that takes these media types.
    #[must_use]
    pub fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// From a client of this name.
    #[must_use]
    pub fn by(mut self, user_agent: &'static str) -> Self {
        self.user_agent = user_agent;
        self
    }

    fn uri(&self) -> String {
        let mut uri = self.path.clone();
        for (index, (name, value)) in self.query.iter().enumerate() {
            uri.push(if index == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            for byte in value.bytes() {
                if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                    uri.push(char::from(byte));
                } else {
                    uri.push_str(&format!("%{byte:02X}"));
                }
            }
        }
        uri
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yaml = if self.yaml { " as YAML" } else { "" };
        let (uri, agent, kind) = (self.uri(), self.user_agent, self.content_type);
        let accept = if self.accept == media::JSON { "" } else { self.accept };
        write!(f, "{} {uri} ({agent}) {kind}{yaml}{accept} ", self.method)?;
        for (name, value) in &self.headers {
            write!(f, "{name}: {value} ")?;
        }
        match &self.raw {
            Some(raw) => {
                let text = String::from_utf8_lossy(raw);
                let shown: String = text.chars().take(2000).collect();
                f.write_str(&shown)
            }
            None => write!(f, "{}", self.body),
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    /// The body. What came as protobuf is inside an object that says so; what is neither that nor JSON is a text.
    pub body: Value,
}

impl Answer {
    /// Whether it was a 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.warnings, self.body)
    }
}

/// A server that requests are sent to.
#[derive(Clone)]
pub struct Server {
    /// How messages call it.
    pub name: &'static str,
    client: kube::Client,
}

impl Server {
    /// The server behind a client.
    pub fn new(name: &'static str, client: kube::Client) -> Self {
        Self { name, client }
    }

    /// Opens a watch. Its events are read one by one, see [`Events::next`].
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn watch(&self, request: &Request) -> anyhow::Result<Events> {
        let builder = http::Request::get(request.uri()).header("accept", "application/json");
        let response = self.client.send(builder.body(kube::client::Body::empty())?).await?;
        Ok(Events { body: response.into_body(), buffer: Vec::new() })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When there was no answer, or its body was no JSON.
    pub async fn send(&self, request: &Request) -> anyhow::Result<Answer> {
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(request.uri())
            .header("accept", request.accept)
            .header("user-agent", request.user_agent);
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        let mut bytes = Vec::new();
        if !request.content_type.is_empty() {
            builder = builder.header("content-type", request.content_type);
            bytes = if let Some(raw) = &request.raw {
                raw.clone()
            } else if request.yaml {
                yaml::document(&request.body).into_bytes()
            } else {
                serde_json::to_vec(&request.body)?
            };
        }
        let response = self
            .client
            .send(builder.body(kube::client::Body::from(bytes))?)
            .await
            .with_context(|| format!("{} did not answer {request}", self.name))?;
        let (head, body) = response.into_parts();
        let bytes = http_body_util::BodyExt::collect(body).await.context("reading the body")?.to_bytes();
        let warnings = head
            .headers
            .get_all("warning")
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        let media = head.headers.get("content-type").and_then(|value| value.to_str().ok());
        let body = match media.is_some_and(|media| media.starts_with(media::PROTOBUF)) {
            true => json!({"protobuf": protobuf::decode(&bytes).context("reading protobuf")?}),
            false => serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        };
        Ok(Answer { status: head.status.as_u16(), warnings, body })
    }
}

/// An open watch.
pub struct Events {
    body: kube::client::Body,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event; nothing when the watch ended.
    ///
    /// # Errors
    /// When the connection broke, or what came was no JSON.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line).context("an event that is no JSON")?));
            }
            match http_body_util::BodyExt::frame(&mut self.body).await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                // What is no event stream is an error in one object, without a line's end.
                None if self.buffer.is_empty() => return Ok(None),
                None => self.buffer.push(b'\n'),
            }
        }
    }
}
