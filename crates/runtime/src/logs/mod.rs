//! Logs by `tracing`: for people, or one JSON object per line. Every line of a reconcile says whose it is: `controller`, `kind`,
//! `object` and `reconcile_id`, the last of which is another one each reconcile.
//!
//! [`Manager::from_env`](crate::Manager::from_env) starts them as it is told; a program that has a subscriber of its own
//! keeps it.

mod json;

use json::Lines;
use std::io::IsTerminal;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    #[default]
    Human,
}

/// Starts logging to standard error. `level` is as in `--log-level`. Whether it did: a program that already logs is left
/// alone.
///
/// # Errors
/// A sentence, when the level is not understood.
pub fn init(format: LogFormat, level: &str) -> Result<bool, String> {
    let filter = filter(level)?;
    let logging = Registry::default().with(layer(format, std::io::stderr).with_filter(filter));
    Ok(tracing::subscriber::set_global_default(logging).is_ok())
}

/// A layer that writes lines, for a subscriber of one's own.
pub fn layer<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    match format {
        LogFormat::Json => Lines::new(writer).boxed(),
        LogFormat::Human => {
            let colours = std::io::stderr().is_terminal();
            tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(writer).boxed()
        }
    }
}

/// What a level lets through: `info`, or by part `info,kube=debug`.
pub(crate) fn filter(level: &str) -> Result<Targets, String> {
    for part in level.split(',') {
        let word = part.rsplit('=').next().unwrap_or_default().trim();
        // A word that is no level would otherwise be taken for a part of the program, and nothing be logged.
        if word.parse::<LevelFilter>().is_err() || word.parse::<u8>().is_ok() || word.is_empty() {
            return Err(format!(
                "{word:?} is no level: write error, warn, info, debug or trace, or part=level"
            ));
        }
    }
    level.parse().map_err(|error| format!("{level:?} is not understood: {error}"))
}
