//! Kubernetes' protobuf: an envelope around messages that are read by tables, straight into the JSON that the same object
//! would have, and written from it.
//!
//! In come bytes and the tables of a type; out comes a value, or the other way round. No bytes make it panic; depth and
//! size are bounded.
//!
//! Types are asked through a trait, as in [`crate::strategic`]: the API server implements it with what it knows of the
//! built-in kinds.

mod decode;
mod encode;
mod envelope;
mod leaf;
mod reverse_buffer;
#[cfg(test)]
mod tests;
mod tree;
mod wire;

pub use decode::decode;
pub use encode::{encode, frame_head, item_head, list_ends};
pub use envelope::{Envelope, open};

use thiserror::Error;

/// The magic bytes of an envelope.
const PREFIX: &[u8] = b"k8s\0";

/// Why bytes cannot be decoded; the server's error text where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ProtoError(pub String);

/// The type of a field's value.
#[derive(Debug)]
pub enum Kind<'a, S> {
    /// A string, or what is one in JSON.
    Text,
    /// True or false.
    Bool,
    /// An integer of this number of bits.
    Int {
        /// How many.
        bits: u8,
        /// Can it be negative?
        signed: bool,
    },
    /// A floating-point number.
    Float,
    /// Bytes, base64 in JSON.
    Bytes,
    /// A time in seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// A quantity, as text.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// JSON inside.
    Json,
    /// A schema or a list of schemas.
    SchemaOrArray,
    /// A schema, or whether anything is allowed.
    SchemaOrBool,
    /// A schema or a list of names.
    SchemaOrStrings,
    /// Another message, by the name of its type.
    Message(&'a str),
    /// A repeated field.
    List(&'a S),
    /// A map with string keys.
    Map(&'a S),
}

// By hand: what it refers to need not be copied for that.
impl<S> Clone for Kind<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Kind<'_, S> {}

/// The type of a field, wherever it is kept.
pub trait Shape: Sized {
    /// The type of its values, without pointers.
    fn kind(&self) -> Kind<'_, Self>;

    /// Is it a pointer, so that absent differs from the zero value?
    fn is_optional(&self) -> bool;
}

/// A field of a message.
#[derive(Debug, Clone)]
pub struct Field<S> {
    /// Its number on the wire.
    pub number: u32,
    /// Its name in JSON.
    pub name: String,
    /// Is it a message whose fields JSON shows among the fields of this one?
    pub inline: bool,
    /// Is it a list that has a message of its own, whose first field its items are?
    pub wrapped: bool,
    /// Its type.
    pub shape: S,
}

/// The tables.
pub trait Messages {
    /// What types of fields are made of.
    type Shape: Shape;

    /// The fields of a message, in the order of their numbers; `None` for a type that is not known.
    fn fields(&self, message: &str) -> Option<&[Field<Self::Shape>]>;

    /// The type of schemas, which some kinds of values hold.
    fn schema(&self) -> &str;
}
