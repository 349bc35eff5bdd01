//! What an operator is told when it starts: by flags, environment variables and a file. A flag counts before a variable, and that
//! before a line of the file.
//!
//! Every option has one name. `--log-level debug`, `WINDLASS_LOG_LEVEL=debug` and the line `log-level: debug` in the YAML file
//! that `--config` names say the same, and are read by the same parser. `--help` lists them.
//!
//! A program with flags of its own has these join them:
//!
//! ```no_run
//! use clap::Parser;
//! use windlass::Manager;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     /// The registry to pull images from
//!     #[arg(long, default_value = "registry.example.com")]
//!     registry: String,
//!     #[command(flatten)]
//!     windlass: windlass::config::Args,
//! }
//!
//! # async fn operator() -> windlass::Result<()> {
//! let cli = Cli::parse();
//! Manager::from_args(cli.windlass)?.run().await
//! # }
//! ```
//!
//! - `args`: the flags and the commands; `options`: each option
//! - `file`: the lines of the file; `layers`: which of the three counts
//! - `settings`: all of it as values

mod args;
mod file;
mod layers;
mod options;
mod settings;
#[cfg(test)]
mod tests;

pub use crate::logs::LogFormat;
pub use args::{Args, Command, ObjectName};
pub(crate) use args::{CommandLine, parse};
pub use layers::InvalidOption;
pub use settings::Settings;
