//! The options of a write, as its query gives them: who writes, whether for real, and how strictly it is read.

use super::query::Query;
use crate::status::{Named, Status, causes};
use windlass_schema::field::{FieldError, Path};

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
    /// The field manager that the request names; empty if none.
    pub(crate) field_manager: String,
    /// How unknown fields are to be taken, if the request says so.
    pub(crate) field_validation: String,
}

/// The kinds of options, which errors name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    Update,
    Patch { apply: bool },
}

impl WriteOptions {
    /// Those of a write that the server makes itself, beside the one that it was asked for.
    pub(crate) fn of_server(dry_run: bool) -> Self {
        Self {
            dry_run,
            manager: "kube-apiserver".to_owned(),
            strictness: Strictness::Ignore,
            force: false,
            apply: false,
            field_manager: String::new(),
            field_validation: String::new(),
        }
    }

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
        let field_manager = manager.to_owned();
        let field_validation = query.get("fieldValidation").unwrap_or_default().to_owned();
        let manager = match manager {
            "" => manager_of(user_agent),
            named => named.to_owned(),
        };
        let force = force.unwrap_or(false);
        Ok(Self { dry_run, manager, strictness, force, apply, field_manager, field_validation })
    }
}

/// 422 for options that contradict themselves.
pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid(Named { group: "meta.k8s.io", kind }, "", causes(errors))
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
