//! Whole requests, from the first byte of their method to the last of their answer; no bytes may make any of it panic, hang
//! or leave the store unreadable.

mod seeds;

pub use seeds::seeds;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt;
use windlass_apiserver::{Api, ApiService, Config, Identity};
use windlass_clock::Clock;

/// More requests than this are not read from one input.
const MOST: usize = 8;

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(10);

/// Sends the requests of an input, one after the other, to an API of their own.
///
/// They are written as HTTP is: a line with method and URI, headers, an empty line, and the body; a zero byte and a line's
/// end are between two.
pub fn requests(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let api = Api::new(Config::default());
        let service = api.service(Identity::admin());
        for request in split(bytes).into_iter().take(MOST) {
            if let Some(request) = read(request) {
                let answered = Clock::real().timeout(SOON, answer(&service, request)).await;
                assert!(answered.is_ok(), "no answer within {SOON:?}");
            }
        }
        still_readable(&service).await;
    });
}

/// Between two requests there is a zero byte and a line's end: bodies may hold either alone.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\0\n") {
        parts.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    parts.push(rest);
    parts
}

fn read(bytes: &[u8]) -> Option<Request<Full<Bytes>>> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match end {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (bytes, &bytes[..0]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let space = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::new(Full::new(Bytes::copy_from_slice(body)));
    *request.method_mut() = Method::from_bytes(&first[..space]).ok()?;
    *request.uri_mut() = Uri::try_from(&first[space + 1..]).ok()?;
    for line in lines {
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) =
            (HeaderName::from_bytes(&line[..at]), HeaderValue::from_bytes(line[at + 1..].trim_ascii()));
        if let (Ok(name), Ok(value)) = (name, value) {
            request.headers_mut().append(name, value);
        }
    }
    Some(request)
}

/// Asks, and checks what can be said of every answer.
async fn answer(service: &ApiService, request: Request<Full<Bytes>>) {
    let asked = format!("{} {}", request.method(), request.uri());
    let Ok(response) = service.clone().oneshot(request).await else { return };
    let (head, body) = response.into_parts();
    let code = head.status.as_u16();
    assert!((200..600).contains(&code), "{asked}: {code}");
    assert_ne!(code, 500 + 1, "{asked}: not implemented");
    // A watch goes on; what it began with is enough.
    if head.headers.contains_key("transfer-encoding") || asked.contains("watch") {
        return;
    }
    let bytes = body.collect().await.expect("a body").to_bytes();
    let is_json =
        head.headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json && !bytes.is_empty() {
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{asked}: {error}"));
        if code >= 400 {
            assert_eq!(value["kind"], "Status", "{asked}: {value}");
            assert_eq!(value["code"], code, "{asked}: {value}");
            assert_eq!(value["status"], "Failure", "{asked}: {value}");
        }
    }
}

/// Everything that is stored can be listed, and read alone.
async fn still_readable(service: &ApiService) {
    for path in ["/api/v1/namespaces", "/api/v1/configmaps", "/apis/apps/v1/deployments", "/api/v1/pods"] {
        let list = get(service, path).await;
        for item in list["items"].as_array().expect("a list") {
            let metadata = &item["metadata"];
            let plural = path.rsplit('/').next().unwrap_or_default();
            let name = metadata["name"].as_str().expect("a name");
            let item = match metadata["namespace"].as_str() {
                Some(namespace) => {
                    format!(
                        "{}/namespaces/{namespace}/{plural}/{name}",
                        &path[..path.len() - plural.len() - 1]
                    )
                }
                None => format!("{path}/{name}"),
            };
            assert_eq!(get(service, &item).await["metadata"]["name"], name);
        }
    }
}

async fn get(service: &ApiService, path: &str) -> Value {
    let request = Request::get(path).body(Full::<Bytes>::default()).expect("a request");
    let response = service.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), 200, "{path}");
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}
