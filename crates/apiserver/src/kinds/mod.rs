//! What is special about built-in kinds: one row per kind, a function only where a condition demands it.
//!
//! - `rows`: what is special about a kind; `rules`: the form of a row
//! - `checks`, and a file per theme: functions where a condition demands one
//! - `field_selectors`: what objects can be selected by
//! - `defaults`, `validate`: rows about Go structs, which one `walk` finds wherever they are in an object
//! - `match_conditions`, `policy_expressions`: what match conditions of admission webhooks, and policies, know in CEL
//! - `convert`: kinds that are served in other groups or versions than they are stored in
//!
//! What the types themselves are (OpenAPI, and the tags of Go's structs) is in `facts`, and
//! `typed` decodes and encodes by it.

mod certificates;
mod checks;
mod conditions;
mod context;
pub(crate) mod convert;
pub(crate) mod defaults;
pub(crate) mod disabled_features;
mod events;
pub(crate) mod field_selectors;
mod go_format;
pub(crate) mod match_conditions;
mod pod_update;
pub(crate) mod pods;
pub(crate) mod policy_expressions;
mod prepare;
pub(crate) mod resources;
mod rows;
mod rules;
pub(crate) mod service_range;
pub(crate) mod services;
mod tls_secrets;
pub(crate) mod validate;
pub(crate) mod walk;
pub(crate) mod warnings;
mod workload_status;
mod workloads;

pub(crate) use context::RuleContext;
pub(crate) use rules::{Dependents, Fixed, Kept, Raised, Rules, package, rules};

use crate::object::{child, text};
use checks::config_key;
