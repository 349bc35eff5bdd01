//! From what was said, in all places, to settings and a command. It reads nothing itself: see [`Sources`].

use super::options::{Known, OPTIONS, Takes};
use super::settings::Settings;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where things are said.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The command line, without the program's own name.
    pub arguments: Vec<String>,
    /// The environment's variables, by name.
    pub variables: BTreeMap<String, String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What to do.
    pub command: Command,
    /// How.
    pub settings: Settings,
}

/// What an operator's binary can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Be an operator.
    Run,
    /// Say how it is used.
    Help,
    /// Say what it watches, writes and needs.
    Describe,
    /// Say what it would do about an object, or given what was observed.
    Plan(Option<Named>),
    /// Show what a decision about an object sees.
    Capture(Named),
    /// Say what an object waits for.
    Why(Named),
}

/// An object as a person names it: `Vault orders`, `vaults shop/orders`.
pub type Named = (String, String);

/// What was said is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Misread {
    /// Where it was said.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
}

impl Misread {
    fn at(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

/// What was said about an option, and where.
struct Said {
    place: String,
    values: Vec<String>,
}

type Layer = BTreeMap<&'static str, Said>;

impl Sources {
    /// Those of this process. Variables that are no text are left out.
    pub fn of_this_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            arguments: std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect(),
            variables: std::env::vars_os().filter_map(text).collect(),
        }
    }
}

/// Reads everything. `open` reads the file, if one is named.
///
/// # Errors
/// [`Misread`] with the flag, variable or line that is not understood.
pub fn read(
    sources: &Sources,
    open: impl FnOnce(&Path) -> std::io::Result<String>,
) -> Result<Asked, Misread> {
    let (words, flags) = flags(&sources.arguments)?;
    let command = command(&words)?;
    let variables = variables(&sources.variables)?;
    let config = flags.get("config").or_else(|| variables.get("config"));
    let file = match config.and_then(|said| said.values.last()) {
        None => Layer::new(),
        Some(path) => {
            let path = PathBuf::from(path);
            let text =
                open(&path).map_err(|error| Misread::at(path.display().to_string(), error.to_string()))?;
            file(&path, &text)?
        }
    };
    let mut settings = Settings::default();
    for known in OPTIONS {
        if let Some(said) = [&flags, &variables, &file].into_iter().find_map(|layer| layer.get(known.name)) {
            settings.set(known, &said.values).map_err(|what| Misread::at(&said.place, what))?;
        }
    }
    settings.check().map_err(|what| Misread::at("leader election", what))?;
    Ok(Asked { command, settings })
}

/// The words of the command, and the flags.
fn flags(arguments: &[String]) -> Result<(Vec<&str>, Layer), Misread> {
    let (mut words, mut layer) = (Vec::new(), Layer::new());
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        let flag = match argument {
            "-h" | "--help" | "help" => {
                words.insert(0, "help");
                continue;
            }
            "-n" => "namespace",
            "-o" => "output",
            _ => match argument.strip_prefix("--") {
                Some(flag) => flag,
                None if argument.starts_with('-') => return Err(unknown(argument)),
                None => {
                    words.push(argument);
                    continue;
                }
            },
        };
        let (name, given) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let known = Known::of(name).ok_or_else(|| unknown(argument))?;
        let place = format!("--{}", known.name);
        let value = match (known.takes, given) {
            (_, Some(value)) => value,
            (Takes::Switch, None) => "true",
            (Takes::One(what) | Takes::Many(what), None) => {
                arguments.next().ok_or_else(|| Misread::at(&place, format!("{what} is missing")))?
            }
        };
        let said = layer.entry(known.name).or_insert_with(|| Said { place, values: Vec::new() });
        said.values.push(value.to_owned());
    }
    Ok((words, layer))
}

fn unknown(argument: &str) -> Misread {
    Misread::at(argument, "no such option; --help lists them")
}

fn command(words: &[&str]) -> Result<Command, Misread> {
    let named = |kind: &&str, name: &&str| ((*kind).to_owned(), (*name).to_owned());
    Ok(match words {
        [] | ["run"] => Command::Run,
        ["help", ..] => Command::Help,
        ["describe"] => Command::Describe,
        ["plan"] => Command::Plan(None),
        ["plan", kind, name] => Command::Plan(Some(named(kind, name))),
        ["capture", kind, name] => Command::Capture(named(kind, name)),
        ["why", kind, name] => Command::Why(named(kind, name)),
        [command @ ("capture" | "why"), ..] => {
            return Err(Misread::at(*command, "write a KIND and a NAME, or NAMESPACE/NAME"));
        }
        [word, ..] => return Err(Misread::at(*word, "no such command; --help lists them")),
    })
}

fn variables(variables: &BTreeMap<String, String>) -> Result<Layer, Misread> {
    let said = OPTIONS.iter().filter_map(|known| {
        let place = known.variable();
        let value = variables.get(&place).filter(|value| !value.is_empty())?;
        Some((known.name, Said { place, values: vec![value.clone()] }))
    });
    Ok(said.collect())
}

fn file(path: &Path, text: &str) -> Result<Layer, Misread> {
    let path = path.display();
    if text.trim().is_empty() {
        return Ok(Layer::new());
    }
    let Lines(lines) = serde_saphyr::from_str(text)
        .map_err(|error| Misread::at(path.to_string(), first_line(&error.to_string())))?;
    let mut layer = Layer::new();
    for (name, value) in lines {
        let place = format!("{path}, line {}", name.referenced.line());
        let Some(known) = Known::of(&name.value).filter(|known| known.name != "config") else {
            let names: BTreeSet<_> =
                OPTIONS.iter().map(|known| known.name).filter(|name| *name != "config").collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Misread::at(
                place,
                format!("no option is called {:?}; there are {names}", name.value),
            ));
        };
        let values = texts(&value)
            .ok_or_else(|| Misread::at(&place, format!("{} takes no such value", known.name)))?;
        layer.insert(known.name, Said { place, values });
    }
    Ok(layer)
}

/// The lines of a file in their order: names, with where they are, and values.
struct Lines(Vec<(Spanned<String>, Value)>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Lines;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lines of the form `name: value`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lines, A::Error> {
                let mut lines = Vec::new();
                while let Some(line) = map.next_entry()? {
                    lines.push(line);
                }
                Ok(Lines(lines))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A value of the file as the texts that a flag would have: a scalar, a list of them, or pairs.
fn texts(value: &Value) -> Option<Vec<String>> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    };
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(values) => values.iter().map(scalar).collect(),
        Value::Object(pairs) => {
            pairs.iter().map(|(name, value)| Some(format!("{name}={}", scalar(value)?))).collect()
        }
        value => scalar(value).map(|value| vec![value]),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
