//! The RBAC rules that an operator needs: they follow from what its controllers declare that they watch, own and write.
//!
//! What a plan does to children besides applying them (`.deletes`, `.claims`), and what code with a client of its own does
//! (`.uses`), is declared beforehand: an operator that never deletes a Secret need not be allowed to. A plan that does what
//! was not declared is not carried out (`declared.rs`).
//!
//! Permissions are declared and not derived: a decision is a function that cannot be inspected, and to grant what some plan
//! might do would let every operator delete all that it owns. A kind that is pruned, or owned in any namespace, is declared
//! as deleted by that. `operators/memcached/tests/permissions.rs` takes each verb away on the embedded API and on the
//! reference, and sees it missed.

use super::Controller;
use super::description::Description;
use crate::kind::{Cached, Kind, Object};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a cache needs.
const WATCH: &[&str] = &["list", "watch"];
/// What code may read that has a client.
const READ: &[&str] = &["get", "list", "watch"];
/// What is written is also read, when it is not clear what came of a write. Applying what is not there creates it.
const APPLY: &[&str] = &["create", "get", "list", "patch", "watch"];

/// By group and resource, the verbs.
pub(crate) type Verbs = BTreeMap<(String, String), BTreeSet<String>>;

/// The rules of the operator's ClusterRole, or of its Role in each namespace that it watches.
pub(crate) fn rules(controllers: &[Description]) -> Vec<Value> {
    let mut rules = Verbs::new();
    let mut allow = |group: &str, resource: String, verbs: &[&str]| {
        let allowed: &mut BTreeSet<String> = rules.entry((group.to_owned(), resource)).or_default();
        allowed.extend(verbs.iter().map(ToString::to_string));
    };
    for controller in controllers {
        let Kind { group, plural, .. } = &controller.kind;
        // A reconciler writes whatever it likes to what it owns.
        let reconciles = !controller.decides;
        allow(group, plural.to_string(), READ);
        if reconciles || controller.patches_its_objects() {
            allow(group, plural.to_string(), &["patch"]);
        }
        allow(group, format!("{plural}/status"), if reconciles { &["patch", "update"] } else { &["patch"] });
        // Children that block its deletion name it as their owner: some clusters ask for this then.
        if !controller.owns.is_empty() {
            allow(group, format!("{plural}/finalizers"), &["update"]);
        }
        for kind in &controller.owns {
            allow(&kind.group, kind.plural.to_string(), APPLY);
            if reconciles || controller.claims.contains(kind) {
                allow(&kind.group, kind.plural.to_string(), &["update"]);
            }
            if reconciles || controller.deletes_children(kind) {
                allow(&kind.group, kind.plural.to_string(), &["delete"]);
            }
        }
        for kind in controller.watches.iter().chain(&controller.references) {
            let mut allow_too = |verbs: &[&str]| allow(&kind.group, kind.plural.to_string(), verbs);
            allow_too(if reconciles { READ } else { WATCH });
            if controller.patches.contains(kind) {
                allow_too(&["get", "patch"]);
            }
            if controller.deletes.contains(kind) && !controller.owns.contains(kind) {
                allow_too(&["get", "delete"]);
            }
        }
        for kind in &controller.guards {
            allow(&kind.group, kind.plural.to_string(), &["get"]);
        }
        for ((group, resource), verbs) in &controller.uses {
            allow(group, resource.clone(), &verbs.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    allow("", "events".to_owned(), &["create", "patch"]);
    rules.into_iter().map(|((group, resource), verbs)| rule(&group, &resource, &verbs)).collect()
}

/// The rules of the Role in the namespace of the lease, where a leader is elected.
pub(crate) fn election_rules() -> Vec<Value> {
    vec![rule("coordination.k8s.io", "leases", &["get", "create", "update"].map(str::to_owned).into())]
}

fn rule(group: &str, resource: &str, verbs: &BTreeSet<String>) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
}

impl Description {
    /// Whether it puts a finalizer, or the kinds to remember, on its objects.
    fn patches_its_objects(&self) -> bool {
        self.cleans_up || self.collected().next().is_some() || !self.prunes.is_empty()
    }

    /// The kinds of children that it deletes with their object.
    fn collected(&self) -> impl Iterator<Item = &Kind> {
        self.anywhere.iter().chain(&self.collects).filter(|kind| !self.retains.contains(kind))
    }

    /// Whether it deletes children of a kind itself.
    fn deletes_children(&self, kind: &Kind) -> bool {
        self.deletes.iter().chain(&self.prunes).chain(self.collected()).any(|deleted| deleted == kind)
    }
}

impl<K: Cached> Controller<K> {
    /// Its plans also delete objects of this kind, which it owns, one by one ([`Plan::delete`](crate::Plan::delete)); or which it
    /// watches, such as the pods of a StatefulSet: then those to which the object is related, and no others. What is
    /// pruned, or collected with its owner, need not be declared.
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

    /// What its actions and its polls, or a reconciler, do with a client besides: verbs on a resource of a group (`""`
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
