//! Conflicts: fields of an applied configuration that other managers own, and their error messages.

use super::managed::{Identifier, UPDATE};
use super::path::{Path, path_text};
use crate::go;
use std::fmt;

/// A field that somebody else owns and the intent would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub owner: Identifier,
    /// The field.
    pub path: Path,
}

/// All conflicts of an intent, by owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// A cause in the Status of a refused apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictCause {
    /// Always `FieldManagerConflict`.
    pub reason: &'static str,
    /// With whom, such as `conflict with "kubectl" using v1`.
    pub message: String,
    /// The field, such as `.spec.replicas`.
    pub field: String,
}

/// The owner as messages name it.
fn named(owner: &Identifier) -> String {
    let mut name = go::quote(&owner.manager);
    if !owner.subresource.is_empty() {
        name = format!("{name} with subresource {}", go::quote(&owner.subresource));
    }
    if owner.operation == UPDATE {
        name = format!("{name} using {}", owner.api_version);
    }
    name
}

impl Conflicts {
    /// The causes for the Status, one per conflict.
    pub fn causes(&self) -> Vec<ConflictCause> {
        let cause = |conflict: &Conflict| ConflictCause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", named(&conflict.owner)),
            field: path_text(&conflict.path),
        };
        self.0.iter().map(cause).collect()
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            let (owner, path) = (named(&only.owner), path_text(&only.path));
            return write!(f, "Apply failed with 1 conflict: conflict with {owner}: {path}");
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let by_owner = self.0.chunk_by(|a, b| a.owner == b.owner);
        for (i, conflicts) in by_owner.enumerate() {
            let line_end = if i > 0 { "\n" } else { "" };
            write!(f, "{line_end}conflicts with {}:", named(&conflicts[0].owner))?;
            for conflict in conflicts {
                write!(f, "\n- {}", path_text(&conflict.path))?;
            }
        }
        Ok(())
    }
}
