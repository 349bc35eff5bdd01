//! What is special about built-in kinds: one row per kind, a function only where a condition demands it.

mod checks;
mod table;

pub(crate) use checks::{child, text};
pub(crate) use table::{Dependents, Rules, package, rules};
