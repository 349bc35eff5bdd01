//! What a process is told when it starts: flags, then environment, then a file, then defaults; the first that says
//! something counts.
//!
//! Every option has one name. `--log-level debug`, `WINDLASS_LOG_LEVEL=debug` and the line `log-level: debug` in the file
//! that `--config` names say the same. `--help` lists them.
//!
//! There is no parser for command lines underneath: two dozen options are a table and a loop, and an operator that wants
//! flags of its own reads them with whatever it likes and builds [`Settings`] itself.

mod help;
mod options;
mod read;
mod settings;
#[cfg(test)]
mod tests;

pub use crate::logs::LogFormat;
pub use help::help;
pub use read::{Asked, Command, Misread, Sources, read};
pub use settings::Settings;
