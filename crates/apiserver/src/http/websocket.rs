//! Watches and logs over WebSocket, for clients that read messages, such as pages in a browser.
//!
//! Such a page cannot set headers; its bearer token is read by `flow/websocket_token.rs`.

use crate::http::ApiBody;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

/// What the WebSocket protocol adds to a key before it is hashed.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// WebSocketUpgrade of text, in which bytes are written as base64.
const BASE64: &str = "base64.binary.k8s.io";
const BINARY: &str = "binary.k8s.io";

/// A client that asks for the answer as WebSocket messages.
pub(crate) struct WebSocketUpgrade {
    client: OnUpgrade,
    accept: HeaderValue,
    /// What it would speak, what it likes best first.
    protocols: Vec<String>,
}

/// How a body is cut into messages.
#[derive(Clone, Copy)]
enum Cut {
    /// Each line, as text: events.
    Lines,
    /// As it comes.
    Bytes,
    /// As it comes, in base64.
    Base64,
}

impl WebSocketUpgrade {
    /// Whether a request wants to be answered so.
    pub(crate) fn requested(parts: &Parts) -> Option<Self> {
        if parts.method != Method::GET || !is_websocket(&parts.headers) {
            return None;
        }
        let key = parts.headers.get(SEC_WEBSOCKET_KEY)?;
        let hashed = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), GUID.as_bytes()].concat());
        let accept = HeaderValue::try_from(STANDARD.encode(hashed.as_ref())).ok()?;
        let protocols = protocols(&parts.headers).map(ToOwned::to_owned).collect();
        Some(Self { client: parts.extensions.get::<OnUpgrade>()?.clone(), accept, protocols })
    }

    /// An answer as messages, if it is one that goes on: a watch or a log.
    pub(crate) fn answer(self, response: Response<ApiBody>) -> Response<ApiBody> {
        let (protocol, cut) =
            match (response.status(), response.body().is_watch(), response.body().is_passed()) {
                (StatusCode::OK, true, _) => (self.protocols.first(), Cut::Lines),
                (StatusCode::OK, _, true) => {
                    match self.protocols.iter().find_map(|one| Some((one, cut(one)?))) {
                        Some((protocol, cut)) => (Some(protocol), cut),
                        None if self.protocols.is_empty() => (None, Cut::Bytes),
                        None => return response,
                    }
                }
                _ => return response,
            };
        let protocol = protocol.and_then(|one| HeaderValue::try_from(one).ok());
        let body = response.into_body();
        tokio::spawn(async move {
            let Ok(upgraded) = self.client.await else { return };
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            if let Err(error) = send(body, socket, cut).await {
                tracing::debug!(%error, "a client that reads messages is gone");
            }
        });
        let mut response = Response::new(ApiBody::full(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// Whether a client asks to speak WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    values(headers, &UPGRADE).any(|value| value.eq_ignore_ascii_case("websocket"))
        && values(headers, &CONNECTION).any(|value| value.eq_ignore_ascii_case("upgrade"))
}

/// What it would speak over it, what it likes best first.
pub(crate) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    values(headers, &SEC_WEBSOCKET_PROTOCOL)
}

/// The values of a header, which are many or separated by commas.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// How a log is cut for who speaks this.
fn cut(protocol: &str) -> Option<Cut> {
    match protocol {
        BINARY => Some(Cut::Bytes),
        BASE64 => Some(Cut::Base64),
        _ => None,
    }
}

/// Sends a body until it or the client's patience ends.
async fn send<S>(mut body: ApiBody, socket: WebSocketStream<S>, cut: Cut) -> Result<(), Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (mut sink, mut source) = socket.split();
    let mut rest = BytesMut::new();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            // What it says is of no interest, but that it goes.
            said = source.next() => match said {
                Some(Ok(message)) if !message.is_close() => continue,
                _ => break,
            },
        };
        let Some(Ok(frame)) = frame else { break };
        let Ok(data) = frame.into_data() else { continue };
        match cut {
            Cut::Bytes => sink.send(Message::Binary(data)).await?,
            Cut::Base64 => sink.send(Message::text(STANDARD.encode(&data))).await?,
            Cut::Lines => {
                rest.extend_from_slice(&data);
                while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                    let line = rest.split_to(end + 1);
                    sink.send(Message::text(String::from_utf8_lossy(&line).into_owned())).await?;
                }
            }
        }
    }
    sink.send(Message::Close(None)).await
}
