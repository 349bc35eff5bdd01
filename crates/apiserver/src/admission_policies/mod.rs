//! Admission policies: expressions in CEL that say whether an object may be written, and what it is to be.
//!
//! - `index`: the stored policies with their bindings, an index that follows the store; `policy`, `binding`: one of each
//! - `budget`: what expressions may cost; `conditions`: match conditions
//! - `validating`, `mutating`: what the expressions of a policy decide, given what they see
//! - `type_checking`: what does not fit the types that a policy is about
//!
//! All of it is pure. Which policies a request concerns, the parameters, and what becomes of a decision is in `flow::policies`.

mod binding;
mod budget;
mod conditions;
mod index;
mod mutating;
mod policy;
mod type_checking;
mod validating;

pub(crate) use binding::{Binding, ParamRef};
pub(crate) use conditions::Matched;
pub(crate) use index::{BoundPolicy, Policies};
pub(crate) use mutating::{Mutated, Mutation, PatchType};
pub(crate) use policy::{ParamKind, Policy};
pub use type_checking::ExpressionWarning;
pub(crate) use type_checking::check as check_types;
pub(crate) use validating::{AuditAnnotation, Decided, Decision};
