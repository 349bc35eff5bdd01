//! From flags, environment variables and a file to settings: the first that gives an option counts.

use super::args::Args;
use super::file;
use super::options::Options;
use super::settings::Settings;
use clap::FromArgMatches;
use std::collections::BTreeMap;
use std::path::Path;

/// An option that was given is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct InvalidOption {
    /// Where it was given: the command line, a variable, or a line of the file.
    pub place: String,
    /// What is wrong with it.
    pub message: String,
}

/// An option that was given, in one place.
pub(super) struct Given {
    pub(super) place: String,
    /// As clap knows it, `log_level`.
    pub(super) id: String,
    pub(super) values: Vec<String>,
}

/// The environment variable of an option.
pub(super) fn variable(id: &str) -> String {
    format!("WINDLASS_{}", id.to_uppercase())
}

/// The flag of an option, which is its name in the file too.
pub(super) fn flag(id: &str) -> String {
    id.replace('_', "-")
}

impl Args {
    /// Joins what the environment and the file say. `open` reads the file, if one is named.
    pub(crate) fn settings(
        &self,
        variables: &BTreeMap<String, String>,
        open: impl FnOnce(&Path) -> std::io::Result<String>,
    ) -> Result<Settings, InvalidOption> {
        let invalid = |place: &str, message: String| InvalidOption { place: place.to_owned(), message };
        let options = self.options.clone().or(read(from_variables(variables))?);
        let in_file = match options.config.as_deref().filter(|path| !path.as_os_str().is_empty()) {
            None => Options::default(),
            Some(path) => {
                let text =
                    open(path).map_err(|error| invalid(&path.display().to_string(), error.to_string()))?;
                read(file::lines(path, &text)?)?
            }
        };
        let settings = Settings::from(options.or(in_file));
        settings.check().map_err(|(place, message)| invalid(place, message))?;
        Ok(settings)
    }
}

fn from_variables(variables: &BTreeMap<String, String>) -> Vec<Given> {
    let given = |id: String| {
        let place = variable(&id);
        // An empty one is none: so a manifest unsets it.
        let value = variables.get(&place).filter(|value| !value.is_empty())?;
        Some(Given { place, id, values: vec![value.clone()] })
    };
    Options::names().filter_map(given).collect()
}

/// Reads what was given elsewhere as if it were given by flags: there is one parser for each option.
fn read(given: Vec<Given>) -> Result<Options, InvalidOption> {
    let mut all = Options::default();
    for Given { place, id, values } in given {
        let words = values.iter().map(|value| format!("--{}={value}", flag(&id)));
        // One by one, so that an error has its place.
        let matches = Options::command().args_override_self(true).try_get_matches_from(words);
        let options = matches.and_then(|matches| Options::from_arg_matches(&matches));
        let invalid = |error: clap::Error| InvalidOption { place, message: one_line(&error) };
        all = all.or(options.map_err(invalid)?);
    }
    Ok(all)
}

/// What clap says, without its usage.
pub(super) fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match error.kind() {
        clap::error::ErrorKind::UnknownArgument | clap::error::ErrorKind::InvalidSubcommand => {
            format!("{line}; --help lists what there is")
        }
        _ => line,
    }
}
