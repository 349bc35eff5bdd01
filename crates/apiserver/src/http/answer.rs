//! What a verb answers with, before it becomes an HTTP response.

use super::ApiBody;
use crate::read::Pieces;
use crate::request::media::Media;
use bytes::Bytes;
use serde_json::Value;

/// What is sent back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// The name that a new object was given.
    pub(crate) name: String,
    pub(crate) body: ApiBody,
    /// What the body is encoded in already.
    pub(crate) media: Media,
}

impl Answer {
    pub(crate) fn new(code: u16, body: impl Into<Bytes>) -> Self {
        Self { code, name: String::new(), body: ApiBody::full(body.into()), media: Media::Json }
    }

    pub(crate) fn pieces(code: u16, body: Pieces, media: Media) -> Self {
        Self { code, name: String::new(), body: ApiBody::pieces(body), media }
    }

    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::new(code, windlass_schema::json::write(value))
    }
}
