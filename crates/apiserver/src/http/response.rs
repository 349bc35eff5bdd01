//! HTTP responses: their headers, and their bodies in the media type that was negotiated.

use crate::http::Answer;
use crate::http::ApiBody;
use crate::protobuf;
use crate::request::media::Media;
use crate::request::media::accept;
use crate::status::Status;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use windlass_schema::{json, yaml};

/// A response with the headers that all have.
pub(crate) fn respond(code: StatusCode, content_type: &'static str, body: ApiBody) -> Response<ApiBody> {
    let length = body.length();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(length) = length {
        headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// What a verb answered, in the encoding that was asked for.
pub(crate) fn success(answer: Answer, media: Media, watch: bool) -> Response<ApiBody> {
    let code = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::OK);
    match answer.media {
        Media::Protobuf if watch => respond(code, accept::PROTOBUF_WATCH, answer.body),
        Media::Protobuf => respond(code, accept::PROTOBUF, answer.body),
        Media::Json | Media::Yaml => encoded(respond(code, accept::JSON, answer.body), media, false),
    }
}

/// With warnings for whoever reads along.
pub(crate) fn warned(
    mut response: Response<ApiBody>,
    warnings: impl Iterator<Item = String>,
) -> Response<ApiBody> {
    for warning in warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        let text: String = text.chars().filter(|character| !character.is_control()).collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}

/// An error.
pub(crate) fn failure(status: &Status) -> Response<ApiBody> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(code, "application/json", ApiBody::full(status.to_bytes().into()));
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A text.
pub(crate) fn plain(code: StatusCode, text: impl Into<Bytes>) -> Response<ApiBody> {
    respond(code, "text/plain; charset=utf-8", ApiBody::full(text.into()))
}

/// Is the body JSON?
pub(crate) fn is_json(response: &Response<ApiBody>) -> bool {
    let media = response.headers().get(CONTENT_TYPE);
    media.is_some_and(|value| value.as_bytes().starts_with(accept::JSON.as_bytes()))
}

/// The same in another encoding. What has no such form stays what it is.
pub(crate) fn encoded(response: Response<ApiBody>, media: Media, pretty: bool) -> Response<ApiBody> {
    if media == Media::Json && !pretty || !is_json(&response) {
        return response;
    }
    let Some(body) = response.body().bytes() else { return response };
    match media {
        Media::Json => indented(response),
        Media::Yaml => match json::read_own(&body) {
            Ok(value) => with_body(response, yaml::write(&value).into(), accept::YAML),
            Err(_) => response,
        },
        Media::Protobuf => match protobuf::encode(&body) {
            Ok(body) => with_body(response, body.into(), accept::PROTOBUF),
            Err(_) => response,
        },
    }
}

/// The same, for people to read.
pub(crate) fn indented(response: Response<ApiBody>) -> Response<ApiBody> {
    let json = is_json(&response).then(|| response.body().bytes()).flatten();
    let Some(text) = json.map(|json| indent(&json)) else { return response };
    let media = response.headers().get(CONTENT_TYPE).cloned();
    let mut response = with_body(response, text.into(), accept::JSON);
    if let Some(media) = media {
        response.headers_mut().insert(CONTENT_TYPE, media);
    }
    response
}

/// Compact JSON with a line for each value, in the order in which they are.
fn indent(json: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let line = |text: &mut Vec<u8>, depth: usize| {
        text.push(b'\n');
        text.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    for (at, &byte) in json.iter().enumerate() {
        let empty = |from: u8, to: u8| byte == from && json.get(at + 1) == Some(&to);
        let closes = |from: u8, to: u8| byte == to && at > 0 && json[at - 1] == from;
        match byte {
            _ if quoted => {
                text.push(byte);
                quoted = escaped || byte != b'"';
                escaped = byte == b'\\' && !escaped;
            }
            b'"' => {
                text.push(byte);
                quoted = true;
            }
            b'{' | b'[' if empty(b'{', b'}') || empty(b'[', b']') => text.push(byte),
            b'}' | b']' if closes(b'{', b'}') || closes(b'[', b']') => text.push(byte),
            b'{' | b'[' => {
                text.push(byte);
                depth += 1;
                line(&mut text, depth);
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(byte);
            }
            b',' => {
                text.push(byte);
                line(&mut text, depth);
            }
            b':' => text.extend_from_slice(b": "),
            _ => text.push(byte),
        }
    }
    text
}

/// The parameters of a media type stay what they were.
fn with_body(response: Response<ApiBody>, body: Bytes, media: &str) -> Response<ApiBody> {
    let length = body.len();
    let mut response = response.map(|_| ApiBody::full(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    let parameters = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let parameters = parameters.find(';').map_or("", |at| &parameters[at..]);
    if let Ok(value) = HeaderValue::from_str(&format!("{media}{parameters}")) {
        headers.insert(CONTENT_TYPE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::indent;

    #[test]
    fn indented_json_keeps_its_order_and_its_texts() {
        let json = br#"{"b":[1,{"x":"a{,\\\":"}],"a":{},"c":[]}"#;
        let text = String::from_utf8(indent(json)).expect("text");
        assert_eq!(
            text,
            "{\n  \"b\": [\n    1,\n    {\n      \"x\": \"a{,\\\\\\\":\"\n    }\n  ],\n  \"a\": {},\n  \"c\": []\n}"
        );
    }
}
