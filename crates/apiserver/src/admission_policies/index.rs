//! The stored policies with their bindings, by the resources that they are about.

use super::binding::Binding;
use super::policy::Policy;
use crate::following::{Following, Index};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass_store::{Entry, Store};

const VALIDATING: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const VALIDATING_BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";
const MUTATING: &str = "admissionregistration.k8s.io/mutatingadmissionpolicies";
const MUTATING_BINDINGS: &str = "admissionregistration.k8s.io/mutatingadmissionpolicybindings";

/// All policies that are bound, in the order of their names.
pub(crate) struct Policies(Following<Stored>);

/// A policy and what binds it, in the order of their names.
pub(crate) struct BoundPolicy {
    pub(crate) policy: Arc<Policy>,
    pub(crate) bindings: Vec<Arc<Binding>>,
}

type Bound = Arc<[Arc<BoundPolicy>]>;

impl Policies {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self(Following::new(store))
    }

    /// Those that validate and may be about a resource.
    pub(crate) fn validating(&self, plural: &str) -> Bound {
        self.0.current().validating.about(plural)
    }

    /// Those that mutate and may be about a resource.
    pub(crate) fn mutating(&self, plural: &str) -> Bound {
        self.0.current().mutating.about(plural)
    }
}

#[derive(Default)]
struct Stored {
    validating: Sort,
    mutating: Sort,
}

/// The policies of one sort.
struct Sort {
    policies: BTreeMap<String, Arc<Policy>>,
    bindings: BTreeMap<String, Arc<Binding>>,
    /// Those about a resource, by its plural name: those that name it, and those that name none.
    by_plural: HashMap<String, Bound>,
    /// Those that name none, for all other resources.
    others: Bound,
}

impl Default for Sort {
    fn default() -> Self {
        let (policies, bindings) = Default::default();
        Self { policies, bindings, by_plural: HashMap::new(), others: Arc::new([]) }
    }
}

impl Index for Stored {
    const RESOURCES: &'static [&'static str] =
        &[VALIDATING, VALIDATING_BINDINGS, MUTATING, MUTATING_BINDINGS];

    fn take(&mut self, entry: &Entry, gone: bool) {
        let name = &*entry.key().name;
        let object = if gone { Value::Null } else { entry.value() };
        let resource = &*entry.key().resource;
        let sort = match resource {
            VALIDATING | VALIDATING_BINDINGS => &mut self.validating,
            _ => &mut self.mutating,
        };
        let changed = match (resource, gone) {
            (VALIDATING | MUTATING, true) => sort.policies.remove(name).is_some(),
            (VALIDATING | MUTATING, false) => sort.take_policy(name, object),
            (_, true) => sort.bindings.remove(name).is_some(),
            (_, false) => {
                sort.bindings.insert(name.to_owned(), Arc::new(Binding::read(name, &object)));
                true
            }
        };
        if changed {
            sort.bind();
        }
    }
}

impl Sort {
    fn about(&self, plural: &str) -> Bound {
        self.by_plural.get(plural).unwrap_or(&self.others).clone()
    }

    /// A policy whose spec is as it was keeps what was compiled of it.
    fn take_policy(&mut self, name: &str, mut object: Value) -> bool {
        let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        if self.policies.get(name).is_some_and(|known| *known.spec() == spec) {
            return false;
        }
        self.policies.insert(name.to_owned(), Arc::new(Policy::read(name, spec)));
        true
    }

    fn bind(&mut self) {
        let mut by_policy: HashMap<&str, Vec<Arc<Binding>>> = HashMap::new();
        for binding in self.bindings.values() {
            by_policy.entry(&binding.policy).or_default().push(binding.clone());
        }
        let bound: Vec<(Option<Vec<String>>, Arc<BoundPolicy>)> = self
            .policies
            .iter()
            .filter_map(|(name, policy)| {
                let bindings = by_policy.remove(name.as_str())?;
                let bound = BoundPolicy { policy: policy.clone(), bindings };
                Some((plurals(policy), Arc::new(bound)))
            })
            .collect();
        let named = bound.iter().filter_map(|(plurals, _)| plurals.as_ref()).flatten();
        let about = |plural: &str| -> Bound {
            let fits = |plurals: &Option<Vec<String>>| {
                plurals.as_ref().is_none_or(|named| named.iter().any(|name| name == plural))
            };
            bound.iter().filter(|(plurals, _)| fits(plurals)).map(|(_, bound)| bound.clone()).collect()
        };
        self.by_plural = named.map(|plural| (plural.clone(), about(plural))).collect();
        // No resource has no name.
        self.others = about("");
    }
}

/// The resources that a policy names; none if it may be about any.
fn plurals(policy: &Policy) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for rule in &policy.matching.rules {
        all.extend(rule.plurals()?.into_iter().map(str::to_owned));
    }
    Some(all)
}
