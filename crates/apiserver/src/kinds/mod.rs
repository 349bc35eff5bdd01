//! What is special about built-in kinds: one row per kind, a function only where a condition demands it.

mod checks;
pub(crate) mod convert;
pub(crate) mod defaults;
mod events;
mod pods;
mod prepare;
pub(crate) mod services;
mod table;
mod workloads;

pub(crate) use checks::{child, text};
pub(crate) use table::{Dependents, Fixed, Kept, Raised, Rules, package, rules};
