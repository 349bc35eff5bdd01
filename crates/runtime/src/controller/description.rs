//! A controller as data: what `describe` prints, and what its permissions follow from.

use super::parts::{Mode, Parts};
use super::permissions::Verbs;
use crate::kind::Kind;
use serde::Serialize;

/// A controller as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) owns: Vec<Kind>,
    pub(crate) watches: Vec<Kind>,
    pub(crate) references: Vec<Kind>,
    pub(crate) prunes: Vec<Kind>,
    pub(crate) deletes: Vec<Kind>,
    pub(crate) claims: Vec<Kind>,
    pub(crate) patches: Vec<Kind>,
    pub(crate) guards: Vec<Kind>,
    /// Of what it owns, what may be in another namespace or in none, where no owner reference is possible.
    pub(crate) anywhere: Vec<Kind>,
    /// Of what it owns, what outlives its object.
    pub(crate) retains: Vec<Kind>,
    /// Of what it owns, what it deletes itself once its cleanup is complete.
    pub(crate) collects: Vec<Kind>,
    /// What its own code does with a client.
    #[serde(skip)]
    pub(crate) uses: Verbs,
    pub(crate) actions: Vec<String>,
    pub(crate) facts: Vec<String>,
    /// Whether it decides purely, so that its plans can be shown.
    pub(crate) decides: bool,
    /// Whether it cleans up before an object is deleted.
    pub(crate) cleans_up: bool,
    pub(crate) concurrency: usize,
}

impl Parts {
    /// The controller as data.
    pub(crate) fn describe(&self) -> Description {
        let watched = |referenced: bool| {
            let kinds = self.watches.iter().filter(move |(_, _, by_name)| *by_name == referenced);
            kinds.map(|(watched, _, _)| watched.kind.clone()).collect()
        };
        Description {
            name: self.name.clone(),
            kind: self.kind.clone(),
            owns: self.owns.iter().map(|watched| watched.kind.clone()).collect(),
            watches: watched(false),
            references: watched(true),
            prunes: self.prunes.iter().cloned().collect(),
            deletes: self.deletes.iter().cloned().collect(),
            claims: self.claims.iter().cloned().collect(),
            patches: self.patches.iter().cloned().collect(),
            guards: self.guards.iter().cloned().collect(),
            uses: self.uses.clone(),
            anywhere: self.anywhere.iter().cloned().collect(),
            retains: self.retains.iter().cloned().collect(),
            collects: self.collects.iter().cloned().collect(),
            actions: self.actions.keys().cloned().collect(),
            facts: self.facts.keys().cloned().collect(),
            decides: matches!(self.mode, Mode::Deciding(_)),
            cleans_up: self.cleanup.is_some(),
            concurrency: self.concurrency,
        }
    }
}
