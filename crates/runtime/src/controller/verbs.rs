//! What a controller's plans do to its children besides making and applying them. It is said beforehand, since permissions follow
//! from it: an operator that never deletes a Secret need not be allowed to.

use super::Controller;
use super::parts::Mode;
use super::running::Running;
use crate::kind::{Cached, Kind, Object};
use crate::plan::Effect;
use crate::write::WriteError;

impl<K: Cached> Controller<K> {
    /// Its plans also delete objects of this kind, which it owns, one by one ([`Plan::delete`](crate::Plan::delete)). What is
    /// pruned, or goes with its owner, need not be said.
    ///
    /// ```
    /// # use k8s_openapi::api::batch::v1::{CronJob, Job};
    /// # use windlass::{Controller, Plan};
    /// let controller = Controller::deciding(|_: &CronJob, _| Ok(Plan::new())).owns::<Job>().deletes::<Job>();
    /// ```
    pub fn deletes<C: Object>(mut self) -> Self {
        self.parts.deletes.insert(Kind::of::<C>());
        self
    }

    /// What its actions and its polls, or a reconciler by writer, do with a client besides: verbs on a resource of a group (`""`
    /// is the core group), such as `pods/exec`. It counts for the generated permissions and for nothing else.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::{Controller, Plan};
    /// let controller = Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new())).uses("", "pods/exec", &["create"]);
    /// ```
    pub fn uses(mut self, group: &str, resource: &str, verbs: &[&str]) -> Self {
        let entry = self.parts.uses.entry((group.to_owned(), resource.to_owned())).or_default();
        entry.extend(verbs.iter().map(ToString::to_string));
        self
    }

    /// Its plans also claim objects of this kind, which it owns ([`Plan::claim`](crate::Plan::claim)).
    pub fn claims<C: Object>(mut self) -> Self {
        self.parts.claims.insert(Kind::of::<C>());
        self
    }
}

impl Running {
    /// Whether the controller said that its plans do this. A reconciler that writes by hand may do everything.
    pub(super) fn said(&self, effect: &Effect, kind: &Kind) -> Result<(), WriteError> {
        if matches!(self.mode, Mode::Reconciling(_)) {
            return Ok(());
        }
        let unsaid = |say: &'static str| Err(WriteError::Unsaid { kind: kind.kind.to_string(), say });
        match effect {
            Effect::Delete { .. }
                if ![&self.deletes, &self.prunes, &self.anywhere]
                    .iter()
                    .any(|kinds| kinds.contains(kind)) =>
            {
                unsaid("deletes")
            }
            Effect::Claim { .. } if !self.claims.contains(kind) => unsaid("claims"),
            _ => Ok(()),
        }
    }
}
