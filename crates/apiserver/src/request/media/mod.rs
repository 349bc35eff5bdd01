//! Media types: what a body is encoded in ([`content_type`]), and what an answer is to be encoded in ([`accept`]).

pub(crate) mod accept;
pub(crate) mod content_type;

/// The encodings of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}
