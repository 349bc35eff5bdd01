//! Flags as the programs of Kubernetes take them: `--name=value`, `--name value`, and `--name` for what is on or off.

use anyhow::{Context, bail};
use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;
use windlass_schema::formats::go_duration;

/// A flag that has a meaning here.
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) help: &'static str,
}

/// What follows a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Value,
    /// Nothing, or `=true` or `=false`.
    Bool,
}

/// What a program was told.
#[derive(Debug, Default)]
pub(super) struct Flags {
    values: HashMap<&'static str, Vec<String>>,
    /// Flags that have no meaning here, as they were given.
    pub(super) ignored: Vec<String>,
    /// Whether it is only asked for its flags, or its version.
    pub(super) help: bool,
    pub(super) version: bool,
}

impl Flags {
    pub(super) fn parse(arguments: &[String], known: &'static [Flag]) -> anyhow::Result<Self> {
        let mut flags = Self::default();
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            let Some(flag) = argument.strip_prefix('-').map(|flag| flag.strip_prefix('-').unwrap_or(flag))
            else {
                bail!("unexpected argument {argument:?}");
            };
            let (name, value) =
                flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
            let name = name.replace('_', "-");
            match name.as_str() {
                "help" | "h" => flags.help = true,
                "version" => flags.version = value != Some("false"),
                _ => {}
            }
            if matches!(name.as_str(), "help" | "h" | "version") {
                continue;
            }
            let found = known.iter().find(|flag| flag.name == name);
            let value = match (value, found) {
                (Some(value), _) => Some(value.to_owned()),
                (None, Some(Flag { takes: Takes::Bool, .. })) => Some("true".to_owned()),
                (None, Some(_)) => {
                    Some(rest.next().with_context(|| format!("--{name} needs a value"))?.clone())
                }
                // Who knows? What does not look like a flag is taken for the value.
                (None, None) => rest.next_if(|next| !next.starts_with('-')).cloned(),
            };
            match found {
                Some(flag) => flags.values.entry(flag.name).or_default().extend(value),
                None => flags.ignored.push(format!("--{name}")),
            }
        }
        Ok(flags)
    }

    /// The value of a flag; the last one, if it was given several times.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The values of a flag that may be given several times, and that may hold several, separated by commas.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        let values = self.values.get(name).into_iter().flatten();
        values.flat_map(|value| value.split(',')).filter(|value| !value.is_empty()).collect()
    }

    /// The value of a flag, as something else.
    pub(super) fn parsed<T>(&self, name: &str) -> anyhow::Result<Option<T>>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => bail!("--{name}={value}: {error}"),
        }
    }

    /// The value of a flag, as a duration.
    pub(super) fn duration(&self, name: &str, default: Duration) -> anyhow::Result<Duration> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let parsed = go_duration(value).and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
        match parsed {
            Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
            None => bail!("--{name}={value}: time: invalid duration {value:?}"),
        }
    }

    /// Tells what was ignored.
    pub(super) fn warn_of_ignored(&self) {
        for flag in &self.ignored {
            eprintln!("warning: {flag} has no effect here");
        }
    }
}

/// The text of `--help`.
pub(super) fn help(what: &str, known: &[Flag]) -> String {
    let mut text = format!("{what}\n\nFlags:\n");
    for flag in known {
        let value = if flag.takes == Takes::Value { " string" } else { "" };
        text.push_str(&format!("      --{}{value}\n            {}\n", flag.name, flag.help));
    }
    text.push_str("\nOther flags are ignored, with a warning.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Flag] = &[
        Flag { name: "secure-port", takes: Takes::Value, help: "" },
        Flag { name: "allow-privileged", takes: Takes::Bool, help: "" },
    ];

    fn parse(arguments: &[&str]) -> anyhow::Result<Flags> {
        Flags::parse(&arguments.iter().map(|&one| one.to_owned()).collect::<Vec<_>>(), KNOWN)
    }

    #[test]
    fn values_follow_in_either_way() {
        let flags =
            parse(&["--secure-port", "1", "--allow_privileged", "--secure-port=2", "--x", "y", "-v=3"])
                .unwrap();
        assert_eq!(flags.parsed::<u16>("secure-port").unwrap(), Some(2));
        assert_eq!(flags.list("secure-port"), ["1", "2"]);
        assert_eq!(flags.parsed::<bool>("allow-privileged").unwrap(), Some(true));
        assert_eq!(flags.ignored, ["--x", "--v"]);
        assert!(parse(&["--x", "--help"]).unwrap().help);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |arguments: &[&str]| parse(arguments).unwrap_err().to_string();
        assert_eq!(error(&["serve"]), "unexpected argument \"serve\"");
        assert_eq!(error(&["--secure-port"]), "--secure-port needs a value");
        let error = parse(&["--secure-port=x"]).unwrap().parsed::<u16>("secure-port").unwrap_err();
        assert_eq!(error.to_string(), "--secure-port=x: invalid digit found in string");
    }
}
