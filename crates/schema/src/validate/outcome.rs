//! The result of validation: errors, each once, and the number of matches, which selects the best of several failed alternatives.

use crate::field::{ErrorKind, FieldError, Path};
use crate::go;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;

/// Where in the value: a path on the stack, rendered only for errors.
#[derive(Clone, Copy)]
pub(super) enum Trail<'a> {
    Root,
    Field(&'a Trail<'a>, &'a str),
    /// A key under `additionalProperties`, or a missing field: joined with a dot even at the root.
    Dotted(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trail::Root => Ok(()),
            Trail::Field(Trail::Root, name) => out.write_str(name),
            Trail::Field(parent, name) | Trail::Dotted(parent, name) => write!(out, "{parent}.{name}"),
            Trail::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

#[derive(Debug)]
struct Finding {
    /// Two findings with the same text are one.
    text: String,
    /// None for findings about the value as a whole, which carry no path of their own.
    name: Option<String>,
    kind: ErrorKind,
    value: Option<Value>,
    detail: String,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    findings: Vec<Finding>,
    seen: HashSet<String>,
    pub(super) matches: usize,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn count_match(&mut self) {
        self.matches += 1;
    }

    /// What matched stays, what was wrong is let through.
    pub(super) fn forgiven(self) -> Self {
        Self { matches: self.matches, ..Self::default() }
    }

    fn add(&mut self, finding: Finding) {
        if self.seen.insert(finding.text.clone()) {
            self.findings.push(finding);
        }
    }

    /// A finding whose detail repeats the path, as most do: `a.b in body should ...`.
    pub(super) fn invalid(&mut self, trail: &Trail<'_>, value: Value, what: &str) {
        self.about(ErrorKind::Invalid, trail, Some(value), what);
    }

    /// The value has not the JSON type, or not the format, called `wanted`.
    pub(super) fn wrong_type(&mut self, trail: &Trail<'_>, wanted: &str, found: &str) {
        let what = format!("must be of type {wanted}: {}", go::quote(found));
        self.about(ErrorKind::TypeInvalid, trail, Some(found.into()), &what);
    }

    fn about(&mut self, kind: ErrorKind, trail: &Trail<'_>, value: Option<Value>, what: &str) {
        let name = trail.to_string();
        let detail = format!("{name} in body {what}");
        self.add(Finding { text: detail.clone(), name: Some(name), kind, value, detail });
    }

    /// A finding with a detail of its own; `text` and the detail make it distinct.
    pub(super) fn plain(
        &mut self,
        kind: ErrorKind,
        trail: &Trail<'_>,
        value: Option<Value>,
        text: &str,
        detail: String,
    ) {
        let name = trail.to_string();
        self.add(Finding { text: format!("{name} {text} {detail}"), name: Some(name), kind, value, detail });
    }

    /// A finding about the whole: alternatives, and numbers out of their type's range.
    pub(super) fn overall(&mut self, detail: String) {
        let (text, value) = (detail.clone(), Some("".into()));
        self.add(Finding { text, name: None, kind: ErrorKind::Invalid, value, detail });
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        for finding in other.findings {
            self.add(finding);
        }
    }

    pub(super) fn into_field_errors(self, path: &Path) -> Vec<FieldError> {
        self.findings.into_iter().map(|finding| finding.into_field_error(path)).collect()
    }
}

impl Finding {
    fn into_field_error(self, path: &Path) -> FieldError {
        let path = match self.name.as_deref() {
            None | Some("" | ".") => path.clone(),
            Some(name) => path.child(name.strip_prefix('.').unwrap_or(name)),
        };
        FieldError::new(self.kind, &path, self.value, self.detail)
    }
}
