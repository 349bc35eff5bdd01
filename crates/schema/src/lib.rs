//! Kubernetes' type machinery: schemas, validation, defaulting, patches, server-side apply, quantities and schedules. Pure: no I/O,
//! no clock.
//!
//! - Schemas: [`schema`] (the types), [`structural`] (is a CRD's schema structural?), [`validate`], [`default`], [`prune`], [`lists`]
//!   (list types), [`formats`], [`embedded`] (embedded resources), [`rules`] (`x-kubernetes-validations`, in CEL), [`Expression`]
//!   (CEL elsewhere).
//! - Writes: [`patch`] (JSON patch and merge patch), [`strategic`] (strategic merge patch), [`apply`] (server-side apply and managed fields).
//! - Objects: [`meta`] (ObjectMeta), [`names`], [`selector`], [`quantity`], [`schedule`], [`field`] (field errors).
//! - Encodings: [`json`], [`yaml`], [`proto`].
//!
//! Results and error texts are those of the Kubernetes API server, since clients show and compare them.

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
pub mod patch;
pub mod pattern;
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

pub use cel::{
    AuthorizerAnswers, AuthorizerCheck, AuthorizerDecision, Composition, Environment, Evaluated, Evaluation,
    Expression, VariableType, is_cel_identifier,
};
pub use field::{ErrorKind, FieldError, Path};
pub use go::quote;
pub use quantity::{ParseQuantityError, Quantity};
pub use schedule::{ParseScheduleError, Schedule};
pub use schema::{Additional, Definitions, ListType, MapType, Reference, Schema, Type};
