//! What can be special about a built-in kind: the form of a row of [`rows`](super::rows).

use super::RuleContext;
use super::rows::{PLAIN, RULES};
use crate::status::Status;
use serde_json::Value;
use windlass_schema::FieldError;
use windlass_schema::meta::NameRule;

/// How dependents are treated when an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// By finalizers, as the deletion asks.
    Collected,
    /// The same; where it asks for nothing, they stay.
    Orphaned,
    /// Not at all.
    Ignored,
}

/// How a change of a field is refused that is set once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fixed {
    Invalid(&'static str),
    /// The same of a text that is empty where it is absent.
    InvalidText(&'static str),
    Forbidden(&'static str),
    /// The value is shown by a function, as Go shows it.
    Shown(&'static str, fn(&Value) -> String),
    /// Some of it may change at times: what is wrong, given the object as it is to be and as it was.
    Mostly(fn(&Value, &Value) -> Vec<FieldError>),
}

/// What raises an object's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raised {
    /// A change of anything but metadata and status.
    ByContent,
    /// That, or a change of this field of the metadata.
    ByContentOr(&'static str),
    /// That; and a new object has none.
    Later,
    /// Nothing: it is 1 for good.
    Never,
}

/// What of the metadata the path of the status leaves as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// These fields.
    Fields(&'static [&'static str]),
    /// All that a client may set, but for the prefix of generated names and the grace period.
    All,
    /// All.
    Everything,
}

/// How often an update checks metadata beside the checks of every update; what is checked twice is told twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rechecks {
    /// The new metadata as a whole.
    pub(crate) whole: usize,
    /// What changed in it.
    pub(crate) changes: usize,
}

/// What is special about a kind.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) name: NameRule,
    pub(crate) dependents: Dependents,
    /// May an update leave the version out?
    pub(crate) unconditional_update: bool,
    /// May an update create what is not there?
    pub(crate) create_on_update: bool,
    /// Does it have a generation?
    pub(crate) generation: bool,
    /// If so, what raises it?
    pub(crate) raised: Raised,
    /// Also a change of fields that are dropped?
    pub(crate) raised_by_dropped: bool,
    /// What of the metadata does not change through the status?
    pub(crate) status_keeps: Kept,
    /// What a write may not own where that is not what its path leaves as it was: subresources (empty for the object
    /// itself), each with fields.
    pub(crate) resets: &'static [(&'static str, &'static [&'static [&'static str]])],
    /// A new object as it is written where that is not how it is read: with what is filled in only when it is read again,
    /// the first update writes more than it changes.
    pub(crate) unsettled: fn(&Value) -> Option<Value>,
    /// What is allowed and unwise, in words for the client; given the object as it was, if it was.
    pub(crate) warn: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Does the reference keep no cache of it?
    pub(crate) uncached: bool,
    /// Fields that only some subresource may change: the subresource that may (empty for the object itself) and the field.
    pub(crate) owned: &'static [(&'static str, &'static str)],
    /// May a new object bring its status?
    pub(crate) brings_status: bool,
    /// Fills in what was left out.
    pub(crate) default: fn(&mut Value),
    /// What is given out once the object is known to be valid; given the object as it was, if it was.
    pub(crate) allocate: fn(&RuleContext<'_>, &mut Value, Option<&Value>) -> Result<(), Status>,
    /// What creation sets whatever the client sent.
    pub(crate) prepare_create: fn(&RuleContext<'_>, &mut Value),
    /// What an update sets whatever the client sent; given the object as it was.
    pub(crate) prepare_update: fn(&mut Value, &Value),
    /// What an update of the status, or of the approval, sets; given the object as it was.
    pub(crate) prepare_status: fn(&RuleContext<'_>, &mut Value, &Value),
    pub(crate) validate: fn(&Value) -> Vec<FieldError>,
    /// Given the object as it was, and the subresource.
    pub(crate) validate_update: fn(&Value, &Value, &str) -> Vec<FieldError>,
    /// Fields that are set once.
    pub(crate) fixed: &'static [(&'static str, Fixed)],
    /// Does an update, other than of a subresource, check the whole object again, or only what changed?
    pub(crate) revalidates: bool,
    /// What of it an update does not check again: paths.
    pub(crate) unchecked: &'static [&'static str],
    /// Does such an update do so twice? What is wrong is told twice.
    pub(crate) validates_twice: bool,
    /// For kinds that go in phases: what the first deletion does beside setting the time.
    pub(crate) first_deletion: Option<fn(&mut Value, &str)>,
    /// How often an update checks the metadata again.
    pub(crate) rechecks: Rechecks,
    /// How often an update of a subresource does.
    pub(crate) status_rechecks: Rechecks,
    /// Must finalizers be qualified, or Kubernetes' own?
    pub(crate) qualified_finalizers: bool,
    /// What who deletes is told when nothing is said about dependents.
    pub(crate) deletion_warning: &'static str,
    /// Does a deletion answer with what was deleted?
    pub(crate) shows_deleted: bool,
    /// For what needs time to stop: how many seconds, given what was asked for.
    pub(crate) grace: Option<fn(&Value, Option<i64>) -> i64>,
    /// What clients are told with every answer, if the kind is deprecated.
    pub(crate) deprecated: &'static str,
}

/// The row of a built-in kind: of most, the plain one.
pub(crate) fn rules(group: &str, plural: &str) -> &'static Rules {
    static REST: Rules = PLAIN;
    RULES.iter().find(|rules| rules.group == group && rules.plural == plural).unwrap_or(&REST)
}

/// The package of a group's Go types, which conversion errors name.
pub(crate) fn package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(name) => name,
    }
}
