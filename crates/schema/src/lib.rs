//! What Kubernetes types are: schemas, validation, defaults and merges. Pure: no I/O, no clock.

pub mod schema;

pub use schema::{Additional, Definitions, ListType, MapType, Reference, Schema, Type};
