//! What is special about built-in kinds: one row per kind, a function only where a condition demands it.

mod checks;
mod context;
pub(crate) mod convert;
pub(crate) mod defaults;
pub(crate) mod disabled;
mod events;
mod key_pair;
pub(crate) mod pods;
mod prepare;
pub(crate) mod resources;
pub(crate) mod selecting;
pub(crate) mod services;
mod shown;
mod table;
pub(crate) mod validate;
pub(crate) mod walk;
pub(crate) mod warnings;
mod workloads;

pub(crate) use context::RuleContext;
pub(crate) use table::{Dependents, Fixed, Kept, Raised, Rules, package, rules};

use crate::object::{child, text};
use checks::config_key;
