//! Tokens of pages in a browser, which cannot set a header of a WebSocket: they are named among its protocols.
//!
//! The token is in the protocol `base64url.bearer.authorization.k8s.io.TOKEN`, as the reference has it.

use crate::http::websocket;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;

const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// A token, and the protocols that remain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) token: String,
    pub(super) protocols: String,
}

/// The token that is among the protocols, if any; an error if it cannot be one.
pub(super) fn shown(headers: &HeaderMap) -> Result<Option<Shown>, ()> {
    if !websocket::is_websocket(headers) {
        return Ok(None);
    }
    let (tokens, protocols): (Vec<_>, Vec<_>) =
        websocket::protocols(headers).partition(|protocol| protocol.starts_with(PREFIX));
    let encoded = match tokens.as_slice() {
        [] => return Ok(None),
        [token] => &token[PREFIX.len()..],
        _ => return Err(()),
    };
    let token = URL_SAFE_NO_PAD.decode(encoded).map_err(drop)?;
    let token = String::from_utf8(token).map_err(drop)?;
    match (token.is_empty(), protocols.is_empty()) {
        (true, _) => Ok(None),
        // One of them has to be answered, and the token must not be.
        (false, true) => Err(()),
        (false, false) => Ok(Some(Shown { token, protocols: protocols.join(",") })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

    fn shown_in(protocols: &[&str]) -> Result<Option<Shown>, ()> {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, "keep-alive, Upgrade".parse().unwrap());
        headers.insert(UPGRADE, "websocket".parse().unwrap());
        for protocol in protocols {
            headers.append(SEC_WEBSOCKET_PROTOCOL, protocol.parse().unwrap());
        }
        shown(&headers)
    }

    #[test]
    fn a_token_is_told_from_protocols() {
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode("secret"));
        let found = Some(Shown { token: "secret".to_owned(), protocols: "a,b".to_owned() });
        assert_eq!(shown_in(&["a", &token, "b"]), Ok(found));
        assert_eq!(shown_in(&[&format!("{token}, a")]).unwrap().unwrap().protocols, "a");
        assert_eq!(shown_in(&["a, b"]), Ok(None));
        assert_eq!(shown_in(&[]), Ok(None));
        assert_eq!(shown_in(&[PREFIX, "a"]), Ok(None));
        for wrong in [&[token.as_str()][..], &[&token, &token, "a"], &["a", &format!("{PREFIX}=")]] {
            assert_eq!(shown_in(wrong), Err(()), "{wrong:?}");
        }
        let mut plain = HeaderMap::new();
        plain.insert(SEC_WEBSOCKET_PROTOCOL, format!("{token}, a").parse().unwrap());
        assert_eq!(shown(&plain), Ok(None));
    }
}
