//! The queue between what changed and who works on it: keys in, one worker per key out.
//!
//! A key is queued at most once, however often it is added: the earliest due time and the highest priority win. It is
//! never with two workers at once; added while a worker has it, it runs again afterwards. Adding, taking and finishing
//! cost the same with a thousand keys as with a million; only a due time in the future costs O(log n).
//!
//! - `core`: what is queued and what comes next; pure, told the time.
//! - `index`: which slot a key has. `due` and `lanes`: its two orders, by due time and by priority.
//! - [`Queue`]: the shell that waits, wakes and reads the clock.

mod backoff;
mod core;
mod due;
mod index;
mod lanes;
mod priority;
mod shell;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod shell_tests;

pub use backoff::Backoff;
pub use core::{Depth, KeyState, Position, Tally};
pub use priority::Priority;
pub use shell::{Queue, Taken};
