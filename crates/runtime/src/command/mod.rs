//! What every operator's binary answers besides running: what it is (`describe`), what a decision sees (`capture`), what it
//! would do (`plan`), and what an object waits for (`why`). Here are the pure parts; the manager fetches what they need.
//!
//! `describe` and `plan` on a capture need no cluster. `capture` fills caches of its own in a process of its own: facts and
//! the outcomes of actions, which only the running operator has, are unknown in it.

mod changes;
mod describe;
mod plan;
mod redact;
mod why;

pub(crate) use describe::describe;
pub(crate) use plan::{captures, plan};
pub(crate) use redact::redact;
pub(crate) use why::{to_json as why_to_json, to_text as why_to_text};

/// A command could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub String);
