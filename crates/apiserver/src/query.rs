//! The parameters of a request, as read and as checked: who writes, whether for real, and how strictly.

use crate::path::unescape;
use crate::status::{Cause, Named, Status};
use windlass_schema::field::{FieldError, Path};

/// A URL's query, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, true)?, unescape(value, true)?))
        });
        Self(pairs.collect())
    }

    /// The first value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The same with another parameter.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// All of them, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A flag, as Kubernetes reads one: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }
}

/// Checks the time that a request may take, as everything but a watch reads it.
///
/// # Errors
/// 400 for what is no duration.
pub(crate) fn check_timeout(query: &Query) -> Result<(), Status> {
    let asked = query.get("timeout").unwrap_or_default();
    if asked.is_empty() {
        return Ok(());
    }
    duration(asked).map_err(|why| {
        Status::bad_request(format!("invalid timeout specified in the request URL - time: {why}"))
    })
}

/// Is it a duration, such as `1m30s`? Says in Go's words why not.
fn duration(text: &str) -> Result<(), String> {
    let invalid = || format!("invalid duration {text:?}");
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let number = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(number);
        if !amount.contains(|next: char| next.is_ascii_digit()) || amount.matches('.').count() > 1 {
            return Err(invalid());
        }
        let unit = after.find(|next: char| next.is_ascii_digit() || next == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        match unit {
            "" => return Err(format!("missing unit in duration {text:?}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = after,
            _ => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        }
    }
    Ok(())
}

/// How strictly unknown and duplicate fields are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    Ignore,
    Warn,
    Strict,
}

/// What every write has.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    /// Whom managedFields names.
    pub(crate) manager: String,
    pub(crate) strictness: Strictness,
    pub(crate) force: bool,
    /// Is it an apply?
    pub(crate) apply: bool,
}

/// The kinds of options, which errors name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    Update,
    Patch { apply: bool },
}

impl WriteOptions {
    pub(crate) fn read(query: &Query, write: Write, user_agent: &str) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let dry_run = check_dry_run(&query.all("dryRun").collect::<Vec<_>>(), &mut errors);
        let manager = query.get("fieldManager").unwrap_or_default();
        check_manager(manager, &mut errors);
        let apply = write == Write::Patch { apply: true };
        if apply && manager.is_empty() {
            errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
        }
        let force = query.get("force").map(|_| query.flag("force"));
        if matches!(write, Write::Patch { apply: false }) && force.is_some() {
            errors
                .push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
        let strictness = match query.get("fieldValidation").unwrap_or_default() {
            "Ignore" => Strictness::Ignore,
            "Strict" => Strictness::Strict,
            "" | "Warn" => Strictness::Warn,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), other, &supported));
                Strictness::Warn
            }
        };
        if !errors.is_empty() {
            let kind = match write {
                Write::Create => "CreateOptions",
                Write::Update => "UpdateOptions",
                Write::Patch { .. } => "PatchOptions",
            };
            return Err(invalid_options(kind, &errors));
        }
        let manager = match manager {
            "" => manager_of(user_agent),
            named => named.to_owned(),
        };
        Ok(Self { dry_run, manager, strictness, force: force.unwrap_or(false), apply })
    }
}

/// 422 for options that contradict themselves.
pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid(Named { group: "meta.k8s.io", kind }, "", causes(errors))
}

/// Errors of fields as the causes of a status.
pub(crate) fn causes(errors: &[FieldError]) -> Vec<Cause> {
    let cause = |error: &FieldError| Cause {
        reason: error.reason().to_owned(),
        message: error.message(),
        field: error.path.clone(),
    };
    errors.iter().map(cause).collect()
}

/// Reads `dryRun`, which knows one value.
pub(crate) fn check_dry_run(values: &[&str], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported(&Path::new("dryRun"), values.to_vec(), &["All"]));
    }
    !values.is_empty()
}

const LONGEST_MANAGER: usize = 128;

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    let path = Path::new("fieldManager");
    if manager.len() > LONGEST_MANAGER {
        errors.push(FieldError::too_long(&path, LONGEST_MANAGER));
    }
    for (at, character) in manager.chars().enumerate() {
        if !printable(character) {
            let text = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
            errors.push(FieldError::invalid(&path, manager, text));
        }
    }
}

fn printable(character: char) -> bool {
    !character.is_control() && (character == ' ' || !character.is_whitespace())
}

/// The field manager of a client that named none: what its user agent begins with.
fn manager_of(user_agent: &str) -> String {
    let mut manager = String::new();
    for character in user_agent.split('/').next().unwrap_or_default().chars().filter(|&c| printable(c)) {
        if manager.len() + character.len_utf8() > LONGEST_MANAGER {
            break;
        }
        manager.push(character);
    }
    if manager.is_empty() { "unknown".to_owned() } else { manager }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_what_the_user_agent_begins_with() {
        assert_eq!(manager_of("kubectl/v1.36 (linux)"), "kubectl");
        assert_eq!(manager_of("/x"), "unknown");
    }

    #[test]
    fn durations_are_gos() {
        for fine in ["0", "5s", "-1s", "1m30s", "1.5h", ".5ms"] {
            assert_eq!(duration(fine), Ok(()), "{fine}");
        }
        for (text, why) in [
            ("5", "missing unit in duration \"5\""),
            ("x", "invalid duration \"x\""),
            ("5y", "unknown unit \"y\" in duration \"5y\""),
            ("-", "invalid duration \"-\""),
        ] {
            assert_eq!(duration(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn apply_needs_a_manager_and_nothing_else_may_force() {
        let read =
            |query: &str, write| WriteOptions::read(&Query::parse(query), write, "t").map_err(|e| e.message);
        let apply = read("", Write::Patch { apply: true }).unwrap_err();
        assert!(apply.ends_with("fieldManager: Required value: is required for apply patch"), "{apply}");
        assert!(read("force=true", Write::Patch { apply: false }).is_err());
        assert!(read("dryRun=Some", Write::Create).is_err());
        assert!(read("dryRun=All", Write::Create).is_ok_and(|options| options.dry_run));
    }
}
