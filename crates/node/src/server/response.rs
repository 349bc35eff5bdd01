//! HTTP responses.

use super::backend::HttpError;
use crate::logs::LogStream;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use std::io;

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const JSON: &str = "application/json";
/// What metrics are in.
pub(super) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An answer that is there at once.
pub(super) fn full(code: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never| match never {}).boxed_unsync();
    with(code, kind, body)
}

/// A log, as it comes.
pub(super) fn log(stream: LogStream) -> Response<Body> {
    let pieces = futures::stream::unfold(stream, async |mut stream| {
        let piece = stream.next().await?;
        Some((piece.map(Frame::data), stream))
    });
    with(StatusCode::OK, TEXT, StreamBody::new(pieces).boxed_unsync())
}

/// A refusal, in plain text as a kubelet's.
pub(super) fn refused(refusal: &HttpError) -> Response<Body> {
    let code = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    full(code, TEXT, refusal.message.clone())
}

/// The head of an answer after which something else is spoken.
pub(super) fn switched(response: Response<()>) -> Response<Body> {
    response.map(|()| Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync())
}

fn with(code: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
