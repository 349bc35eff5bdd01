//! What Kubernetes types are: schemas, validation, defaults, merges, quantities and schedules. Pure: no I/O, no clock.

pub mod apply;
mod cel;
mod correlate;
pub mod default;
pub mod embedded;
pub mod field;
pub mod formats;
mod go;
pub mod json;
pub mod lists;
pub mod meta;
pub mod names;
mod parse;
pub mod patch;
mod pattern;
pub mod proto;
pub mod prune;
pub mod quantity;
pub mod rules;
pub mod schedule;
pub mod schema;
pub mod selector;
pub mod strategic;
pub mod structural;
pub mod validate;
pub mod yaml;

pub use field::{ErrorKind, FieldError, Path};
pub use go::quote;
pub use quantity::{ParseQuantityError, Quantity};
pub use schedule::{ParseScheduleError, Schedule};
pub use schema::{Additional, Definitions, ListType, MapType, Reference, Schema, Type};
