//! `runtime.Unknown`, the envelope of every protobuf message of the API: four magic bytes, and a message with the type of its content.

use super::wire::{BYTES, Reader, Wire, wrong};
use super::{PREFIX, ProtoError};
use std::borrow::Cow;

/// A message and its type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope<'a> {
    /// The API version of the object; may be empty.
    pub api_version: Cow<'a, str>,
    /// The kind of the object; may be empty.
    pub kind: Cow<'a, str>,
    /// The object.
    pub raw: &'a [u8],
}

/// Decodes the envelope.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, ProtoError> {
    if bytes.is_empty() {
        return Err(ProtoError("empty data".to_owned()));
    }
    let Some(rest) = bytes.strip_prefix(PREFIX) else {
        let why = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(ProtoError(why.to_owned()));
    };
    if rest.is_empty() {
        return Err(ProtoError("empty body".to_owned()));
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::new("Unknown", rest);
    while let Some(field) = reader.next(|number| number <= 4)? {
        match field {
            (1, Wire::Bytes(meta)) => {
                let mut reader = Reader::new("TypeMeta", meta);
                while let Some(field) = reader.next(|number| number <= 2)? {
                    match field {
                        (1, Wire::Bytes(bytes)) => envelope.api_version = String::from_utf8_lossy(bytes),
                        (2, Wire::Bytes(bytes)) => envelope.kind = String::from_utf8_lossy(bytes),
                        (1, wire) => return Err(wrong(wire, BYTES, "APIVersion")),
                        (2, wire) => return Err(wrong(wire, BYTES, "Kind")),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(raw)) => envelope.raw = raw,
            (3 | 4, Wire::Bytes(_)) => {}
            (1, wire) => return Err(wrong(wire, BYTES, "TypeMeta")),
            (2, wire) => return Err(wrong(wire, BYTES, "Raw")),
            (3, wire) => return Err(wrong(wire, BYTES, "ContentEncoding")),
            (4, wire) => return Err(wrong(wire, BYTES, "ContentType")),
            _ => {}
        }
    }
    Ok(envelope)
}
