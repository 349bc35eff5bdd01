//! Requests that are led to an extension API server, as they arrive: their bodies, and what is answered, are read by nobody here.

use crate::aggregation::{Registered, Remote, Streamed};
use crate::audit::SourceAddress;
use crate::dial::webhook_address;
use crate::http::ApiBody;
use crate::http::response::{failure, plain, respond};
use crate::operation::LONGEST_REQUEST;
use crate::request::Identity;
use crate::request::media::accept;
use crate::request::path::unescape;
use crate::request::query::{self, Query};
use crate::state::ApiState;
use crate::status::Status;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONNECTION, EXPECT, HOST, LOCATION, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How long a server may take to say what it serves.
const DISCOVERY: Duration = Duration::from_secs(5);

const REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_EXTRA: &str = "x-remote-extra-";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// What is between two neighbours only.
const HOP_BY_HOP: [HeaderName; 8] =
    [CONNECTION, UPGRADE, TE, TRAILER, TRANSFER_ENCODING, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, EXPECT];

/// Whom a server allows to read what it answers: here it is not the one that is asked.
const ALLOWED: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// A request that is led elsewhere.
pub(super) struct Led<'a> {
    pub(super) api: &'a Arc<ApiState>,
    pub(super) identity: &'a Identity,
    pub(super) query: &'a Query,
    pub(super) to: &'a Registered,
    /// How long it may take; none for what goes on for as long as both like.
    pub(super) limit: Option<Duration>,
    /// Ends what goes on when this server stops.
    pub(super) ended: CancellationToken,
}

/// How long a request that is led on may take: what is about no object is discovery, which is to be quick; watches, streams and the like
/// have no end.
pub(super) fn limit(long_running: bool, path: &str, query: &Query) -> Option<Duration> {
    let is_discovery = path.trim_matches('/').split('/').count() == 3;
    match (long_running, is_discovery) {
        (true, _) => None,
        (false, true) => Some(DISCOVERY),
        (false, false) => Some(query::timeout(query).min(LONGEST_REQUEST)),
    }
}

impl Led<'_> {
    /// What is answered.
    pub(super) async fn answer(&self, mut parts: Parts, body: Streamed) -> Response<ApiBody> {
        let unavailable = || text(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
        let Some(remote) = self.to.remote.as_ref().filter(|remote| remote.available) else {
            return unavailable();
        };
        let extension = match self.api.aggregation.extension(remote, || self.api.proxy_client()) {
            Ok(extension) => extension,
            Err(why) => return text(StatusCode::INTERNAL_SERVER_ERROR, &why),
        };
        let Some(url) = self.url(remote, &parts) else { return unavailable() };
        let client = match parts.extensions.remove::<OnUpgrade>() {
            Some(client) if parts.headers.contains_key(UPGRADE) => Some(client),
            _ => None,
        };
        let mut request = Request::new(body);
        *request.method_mut() = parts.method.clone();
        *request.headers_mut() = self.headers(&parts, &url, client.is_some());
        *request.version_mut() = Version::HTTP_11;
        *request.uri_mut() = url;
        let sending = extension.send(request);
        let answered = match self.limit {
            None => Ok(sending.await),
            Some(limit) => Clock::real().timeout(limit, sending).await,
        };
        match answered {
            Ok(Ok(answered)) => self.passed(answered, client),
            Ok(Err(why)) => unreachable_service(&why.0),
            Err(_) if self.limit == Some(DISCOVERY) => unreachable_service("context deadline exceeded"),
            Err(_) => timed_out(),
        }
    }

    /// The same path at one of the server's endpoints.
    fn url(&self, remote: &Remote, parts: &Parts) -> Option<Uri> {
        let network = &self.api.aggregation.network;
        let through = (&*network.store, &*network.dialer);
        let address = webhook_address(through, (&remote.namespace, &remote.service), remote.port).ok()?;
        let query = sorted(self.query);
        format!("https://{}{}{query}", address.authority(), written(parts.uri.path())).parse().ok()
    }

    /// The request's headers, without what is for this server alone, and with who asks.
    fn headers(&self, parts: &Parts, url: &Uri, upgrades: bool) -> HeaderMap {
        let mut headers = parts.headers.clone();
        let kept = if upgrades { &[CONNECTION, UPGRADE][..] } else { &[] };
        for name in HOP_BY_HOP.iter().filter(|name| !kept.contains(name)).chain([&AUTHORIZATION, &HOST]) {
            headers.remove(name);
        }
        let told: Vec<HeaderName> =
            headers.keys().filter(|name| name.as_str().starts_with(REMOTE_EXTRA)).cloned().collect();
        for name in told.iter().chain([&REMOTE_USER, &REMOTE_GROUP, &REMOTE_UID]) {
            headers.remove(name);
        }
        let mut add = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(name, value);
            }
        };
        add(REMOTE_USER, &self.identity.user);
        if !self.identity.uid.is_empty() {
            add(REMOTE_UID, &self.identity.uid);
        }
        for group in &self.identity.groups {
            add(REMOTE_GROUP, group);
        }
        for (key, values) in &self.identity.extra {
            let name = format!("{REMOTE_EXTRA}{}", escaped_key(key));
            for value in values {
                if let Ok(name) = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()) {
                    add(name, value);
                }
            }
        }
        if !upgrades {
            add(FORWARDED_URI, url.path());
            add(FORWARDED_HOST, url.authority().map_or("", http::uri::Authority::as_str));
            add(FORWARDED_PROTO, "https");
        }
        if let Some(SourceAddress(peer)) = parts.extensions.get::<SourceAddress>() {
            add(FORWARDED_FOR, &peer.to_string());
        }
        headers
    }

    /// An answer as it came, its body as it comes.
    fn passed(&self, mut answered: Response<Incoming>, client: Option<OnUpgrade>) -> Response<ApiBody> {
        if answered.status() == StatusCode::SWITCHING_PROTOCOLS {
            return match client {
                Some(client) => self.switched(answered, client),
                None => unreachable_service("the server switched protocols unasked"),
            };
        }
        if answered.status().is_redirection() && answered.headers().contains_key(LOCATION) {
            let why = "the backend attempted to redirect this request, which is not permitted";
            return plain(StatusCode::BAD_GATEWAY, why);
        }
        for name in HOP_BY_HOP.iter().chain(&ALLOWED) {
            answered.headers_mut().remove(name);
        }
        let mut response = answered.map(|body| ApiBody::passed(body, self.ended.clone()));
        *response.version_mut() = Version::HTTP_11;
        response
    }

    /// Lets client and server speak what they agreed upon.
    fn switched(&self, mut answered: Response<Incoming>, client: OnUpgrade) -> Response<ApiBody> {
        let streams = self.api.aggregation.network.dialer.streams.clone();
        let Ok(place) = streams.try_acquire_owned() else {
            let why = "too many streams are open, please try again later";
            return failure(&Status::too_many_requests(why, 1));
        };
        let backend = hyper::upgrade::on(&mut answered);
        let ended = self.ended.clone();
        tokio::spawn(async move {
            let _place = place;
            let joining = async {
                let (client, backend) = tokio::try_join!(client, backend).map_err(io::Error::other)?;
                tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(backend)).await
            };
            tokio::select! {
                () = ended.cancelled() => {}
                over = joining => if let Err(error) = over {
                    tracing::debug!(%error, "a stream to an extension API server broke off");
                }
            }
        });
        let (head, _) = answered.into_parts();
        let mut response = Response::new(ApiBody::full(bytes::Bytes::new()));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        response
    }
}

fn unreachable_service(why: &str) -> Response<ApiBody> {
    text(StatusCode::SERVICE_UNAVAILABLE, &format!("error trying to reach service: {why}"))
}

/// As the reference tells whoever waits for too long: with a Status that does not say what it is.
fn timed_out() -> Response<ApiBody> {
    let status = Status::timeout("request did not complete within the allotted timeout", 0);
    let mut body: Value = serde_json::from_slice(&status.to_bytes()).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    let body = windlass_schema::json::write(&body);
    respond(StatusCode::GATEWAY_TIMEOUT, accept::JSON, ApiBody::full(body.into()))
}

/// As Go's `http.Error` writes it.
fn text(code: StatusCode, text: &str) -> Response<ApiBody> {
    let mut response = plain(code, format!("{text}\n"));
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A query as Go writes one that it has read: sorted by name.
fn sorted(query: &Query) -> String {
    let mut pairs: Vec<(&str, &str)> = query.pairs().collect();
    pairs.sort_by_key(|(name, _)| *name);
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{}={}", escaped(name, true), escaped(value, true)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// A path as Go writes one that it has read.
fn written(path: &str) -> String {
    let Some(path) = unescape(path, false) else { return path.to_owned() };
    let mut written = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                written.push(char::from(byte))
            }
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'@' => written.push(char::from(byte)),
            _ => written.push_str(&format!("%{byte:02X}")),
        }
    }
    written
}

/// The key of what else is known of a user, as a header can have it.
fn escaped_key(key: &str) -> String {
    escaped(key, false)
}

/// With escapes: of what may not be in a query, or of what may not be in the name of a header.
fn escaped(text: &str, query: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'^' | b'`' | b'|' => !query,
            _ => false,
        };
        match byte {
            _ if plain => escaped.push(char::from(byte)),
            b' ' if query => escaped.push('+'),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_led_on_in_order() {
        let query = Query::parse("watch=1&labelSelector=a%3Db,c&fieldSelector=x y&watch=2&bad=%zz");
        assert_eq!(sorted(&query), "?fieldSelector=x+y&labelSelector=a%3Db%2Cc&watch=1&watch=2");
        assert_eq!(sorted(&Query::default()), "");
    }

    #[test]
    fn a_path_is_led_on_as_it_was_read() {
        assert_eq!(written("/apis/a.b/v1/x%3Ay%20z/%C3%A9*"), "/apis/a.b/v1/x:y%20z/%C3%A9%2A");
        assert_eq!(written("/broken/%zz"), "/broken/%zz");
    }

    #[test]
    fn keys_of_extras_are_names_of_headers() {
        assert_eq!(escaped_key("example.com/scope%"), "example.com%2Fscope%25");
        assert_eq!(escaped_key("a b"), "a%20b");
    }

    #[test]
    fn what_tells_what_is_served_is_quick_and_watches_have_no_end() {
        let query = Query::parse("timeout=2s");
        let path = "/apis/a.example/v1/gadgets";
        assert_eq!(limit(false, path, &query), Some(Duration::from_secs(2)));
        assert_eq!(limit(true, path, &query), None);
        assert_eq!(limit(false, "/apis/a.example/v1/", &query), Some(DISCOVERY));
    }
}
