//! From HTTP to what a client wants to speak instead.

use super::backend::HttpError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// Says which of Kubernetes' protocols is spoken over SPDY.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

const SPDY: &str = "SPDY/3.1";

/// What the WebSocket protocol adds to a key before it is hashed.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What both sides will speak, and the answer that says so.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) protocol: Protocol,
    pub(super) response: Response<()>,
}

/// What can be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Channels in messages; the client can close one.
    ChannelsV5,
    /// Channels in messages.
    ChannelsV4,
    /// Channels in messages; how it went is told in words, and only if it went wrong.
    Channels,
    /// SPDY inside of messages.
    Tunnel,
    /// SPDY by itself.
    Spdy,
}

/// What is offered for a kind of request: names over WebSocket, the better first, and the name over SPDY.
#[derive(Debug)]
pub(super) struct Offer {
    websocket: &'static [(&'static str, Protocol)],
    spdy: &'static str,
}

/// For exec and attach.
pub(super) const REMOTE_COMMAND: Offer = Offer {
    websocket: &[
        ("v5.channel.k8s.io", Protocol::ChannelsV5),
        ("v4.channel.k8s.io", Protocol::ChannelsV4),
        ("channel.k8s.io", Protocol::Channels),
    ],
    spdy: "v4.channel.k8s.io",
};

/// For forwarding.
pub(super) const PORT_FORWARD: Offer = Offer {
    websocket: &[
        ("SPDY/3.1+portforward.k8s.io", Protocol::Tunnel),
        ("v4.channel.k8s.io", Protocol::ChannelsV4),
    ],
    spdy: "portforward.k8s.io",
};

/// What `headers` and the offer have in common.
pub(super) fn agree(headers: &HeaderMap, offer: &Offer) -> Result<Agreed, HttpError> {
    if !has(headers, &CONNECTION, "upgrade") {
        return Err(HttpError::bad_request("Upgrade request required"));
    }
    if has(headers, &UPGRADE, "websocket") {
        return websocket(headers, offer);
    }
    if has(headers, &UPGRADE, SPDY) {
        return spdy(headers, offer);
    }
    Err(HttpError::bad_request("Upgrade request required"))
}

fn websocket(headers: &HeaderMap, offer: &Offer) -> Result<Agreed, HttpError> {
    let key =
        headers.get(SEC_WEBSOCKET_KEY).ok_or_else(|| HttpError::bad_request("unable to upgrade: no key"))?;
    let agreed = offer.websocket.iter().find(|(name, _)| has(headers, &SEC_WEBSOCKET_PROTOCOL, name));
    let Some(&(name, protocol)) = agreed else { return Err(no_protocol()) };
    let hashed = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), GUID.as_bytes()].concat());
    let accept = HeaderValue::try_from(STANDARD.encode(hashed.as_ref())).map_err(HttpError::internal)?;
    let mut response = switching(HeaderValue::from_static("websocket"));
    response.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
    Ok(Agreed { protocol, response })
}

fn spdy(headers: &HeaderMap, offer: &Offer) -> Result<Agreed, HttpError> {
    if !has(headers, &STREAM_PROTOCOL, offer.spdy) {
        return Err(no_protocol());
    }
    let mut response = switching(HeaderValue::from_static(SPDY));
    response.headers_mut().insert(STREAM_PROTOCOL, HeaderValue::from_static(offer.spdy));
    Ok(Agreed { protocol: Protocol::Spdy, response })
}

fn switching(protocol: HeaderValue) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, protocol);
    response
}

fn no_protocol() -> HttpError {
    HttpError { code: 403, message: "unable to upgrade: unable to negotiate protocol".to_owned() }
}

/// Is `wanted` among the values of a header, which are many or separated by commas?
fn has(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_best_protocol_of_a_websocket_is_taken_and_the_key_is_answered() {
        let asked = headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", "v4.channel.k8s.io, v5.channel.k8s.io"),
        ]);
        let agreed = agree(&asked, &REMOTE_COMMAND).unwrap();
        assert_eq!(agreed.protocol, Protocol::ChannelsV5);
        // The example of the protocol's own definition.
        assert_eq!(agreed.response.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(agreed.response.headers()[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io");
    }

    #[test]
    fn spdy_is_taken_with_a_known_protocol() {
        let mut asked = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "v3.channel.k8s.io"),
        ]);
        assert_eq!(agree(&asked, &REMOTE_COMMAND).unwrap_err().code, 403);
        asked.append(STREAM_PROTOCOL, HeaderValue::from_static("v4.channel.k8s.io"));
        assert_eq!(agree(&asked, &REMOTE_COMMAND).unwrap().protocol, Protocol::Spdy);
    }

    #[test]
    fn what_does_not_upgrade_is_refused() {
        assert_eq!(agree(&HeaderMap::new(), &PORT_FORWARD).unwrap_err().code, 400);
        let asked = headers(&[("connection", "upgrade"), ("upgrade", "h2c")]);
        assert_eq!(agree(&asked, &PORT_FORWARD).unwrap_err().code, 400);
    }
}
