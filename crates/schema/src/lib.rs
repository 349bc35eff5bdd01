//! What Kubernetes types are: schemas, validation, defaults and merges. Pure: no I/O, no clock.

pub mod field;
mod go;
pub mod json;
mod parse;
mod pattern;
pub mod schema;

pub use field::{ErrorKind, FieldError, Path};
pub use schema::{Additional, Definitions, ListType, MapType, Reference, Schema, Type};
