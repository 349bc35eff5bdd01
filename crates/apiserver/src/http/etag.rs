//! ETags: documents that a client may have already.

use super::ApiBody;
use super::response::respond;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, HeaderValue, VARY};
use http::{Response, StatusCode};
use std::hash::{DefaultHasher, Hasher};

/// A tag of these bytes: equal tags mean equal bytes, here and after a restart.
pub(crate) fn tag(bytes: &[u8]) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(bytes);
        hasher.finish()
    };
    format!("{:016X}{:016X}", half(0), half(1))
}

/// A document with its tag, or word that the client has it already.
pub(crate) fn tagged(media: &'static str, tag: &str, known: &str, body: Vec<u8>) -> Response<ApiBody> {
    let tag = format!("\"{tag}\"");
    let same = known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = match same {
        true => respond(StatusCode::NOT_MODIFIED, media, ApiBody::full(Bytes::new())),
        false => respond(StatusCode::OK, media, ApiBody::full(body.into())),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}
