//! What a reconcile would do about an object, as far as the decision and what was observed say: what `plan` shows.
//!
//! It follows `reconcile.rs` step by step, without writing: paused, filtered, the finalizer, the plan, what is pruned.

use super::owning::Parent;
use super::parts::{Decide, Filter, Mode, Parts, Read};
use crate::cache::AnyObject;
use crate::key::Key;
use crate::kind::Kind;
use crate::observed::Observed;
use crate::plan::Plan;
use crate::reason::Reason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A controller, to be asked what it would do without running it.
pub(crate) struct Previewer {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// None where it does not decide purely.
    decide: Option<Decide>,
    cleanup: Option<Decide>,
    filter: Option<Filter>,
    prunes: BTreeSet<Kind>,
    collected: BTreeSet<Kind>,
    finalizer: String,
    pause: String,
    read: Read,
}

/// What a reconcile would come to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Preview {
    /// Nothing, and why.
    Nothing(String),
    /// It is paused, by this annotation.
    Paused(String),
    /// The controller writes by itself, so that nobody knows before.
    NotPure,
    /// It would be refused.
    Refused(Reason),
    /// It would do this.
    Planned(Box<Planned>),
}

/// What a reconcile would do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// What happens to the finalizer of the object.
    pub(crate) finalizer: Option<(String, FinalizerChange)>,
    /// The children that would be deleted because the plan does not want them.
    pub(crate) prunes: Vec<(Kind, Key)>,
    /// Kinds that only an earlier version of the controller made: what is left of them is found and deleted.
    pub(crate) earlier_kinds: Vec<Kind>,
}

/// What happens to a finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalizerChange {
    /// It is added, before anything is made.
    Added,
    /// It is removed, once nothing is left to do: then the object is deleted.
    Removed,
    /// It stays while something is awaited.
    Stays,
}

impl Parts {
    /// What is asked about it without running it.
    pub(crate) fn previewer(&self) -> Previewer {
        let decide = match &self.mode {
            Mode::Deciding(decide) => Some(decide.clone()),
            Mode::Reconciling(_) => None,
        };
        Previewer {
            name: self.name.clone(),
            kind: self.kind.clone(),
            decide,
            cleanup: self.cleanup.clone(),
            filter: self.filter.clone(),
            prunes: self.prunes.clone(),
            collected: self.collected(),
            finalizer: self.finalizer(),
            pause: self.pause.clone(),
            read: self.read,
        }
    }
}

impl Previewer {
    /// What it would do about this object, given what was observed.
    ///
    /// # Errors
    /// A sentence, when the object is none of its kind.
    pub(crate) fn preview(&self, object: Value, observed: &Observed) -> Result<Preview, String> {
        let object = (self.read)(object)
            .map_err(|error| format!("the captured object is no {}: {error}", self.kind))?;
        let meta = object.meta();
        if self.filter.as_ref().is_some_and(|filter| !filter(&*object)) {
            return Ok(Preview::Nothing("the controller's filter leaves it out".to_owned()));
        }
        if is_paused(meta, &self.pause) {
            return Ok(Preview::Paused(self.pause.clone()));
        }
        let parent = Parent {
            kind: self.kind.clone(),
            key: Key::of("".into(), meta),
            uid: meta.uid.clone().unwrap_or_default(),
            controller: self.name.as_str().into(),
            // Nothing is marked here.
            retains: Arc::default(),
        };
        if meta.deletion_timestamp.is_some() {
            return Ok(self.cleanup(&parent, &object, observed));
        }
        let Some(decide) = &self.decide else { return Ok(Preview::NotPure) };
        let plan = match decided(decide, &object, observed) {
            Ok(plan) => plan,
            Err(reason) => return Ok(Preview::Refused(reason)),
        };
        let added = self.holds() && !self.is_held(meta);
        let unwanted = self.prunes.iter().flat_map(|kind| {
            let children = parent.unwanted(kind, observed.objects_of(kind), &plan);
            children.into_iter().map(|child| (kind.clone(), Key::of("".into(), child.meta())))
        });
        let earlier = parent.remembered(meta).into_iter().filter(|kind| !self.prunes.contains(kind));
        Ok(Preview::Planned(Box::new(Planned {
            finalizer: added.then(|| (self.finalizer.clone(), FinalizerChange::Added)),
            prunes: unwanted.collect(),
            earlier_kinds: earlier.filter(|_| plan.is_complete()).collect(),
            plan,
        })))
    }

    /// The object is being deleted.
    fn cleanup(&self, parent: &Parent, object: &Arc<dyn AnyObject>, observed: &Observed) -> Preview {
        if !self.is_held(object.meta()) {
            return Preview::Nothing(
                "it is being deleted, and no finalizer of this controller holds it".to_owned(),
            );
        }
        let plan = match &self.cleanup {
            None => Plan::new(),
            Some(cleanup) => match decided(cleanup, object, observed) {
                Ok(plan) => plan,
                Err(reason) => return Preview::Refused(reason),
            },
        };
        let prunes: Vec<(Kind, Key)> = match plan.is_complete() {
            false => Vec::new(),
            true => self.collected.iter().flat_map(|kind| elsewhere(parent, kind, observed)).collect(),
        };
        let change = if plan.is_complete() { FinalizerChange::Removed } else { FinalizerChange::Stays };
        let finalizer = Some((self.finalizer.clone(), change));
        Preview::Planned(Box::new(Planned { plan, finalizer, prunes, earlier_kinds: Vec::new() }))
    }

    fn holds(&self) -> bool {
        self.cleanup.is_some() || !self.collected.is_empty()
    }

    fn is_held(&self, meta: &ObjectMeta) -> bool {
        meta.finalizers.iter().flatten().any(|finalizer| *finalizer == self.finalizer)
    }
}

fn decided(decide: &Decide, object: &Arc<dyn AnyObject>, observed: &Observed) -> Result<Plan, Reason> {
    let plan = decide(&**object, observed).map_err(|refusal| refusal.reason().clone())?;
    plan.check().map_err(|error| crate::reason::Refusal::from(error).reason().clone())?;
    Ok(plan)
}

/// The children of a kind that the garbage collector does not collect with their parent.
fn elsewhere(parent: &Parent, kind: &Kind, observed: &Observed) -> Vec<(Kind, Key)> {
    let children = observed.objects_of(kind).into_iter().filter(|child| parent.made_elsewhere(child.meta()));
    children.map(|child| (kind.clone(), Key::of("".into(), child.meta()))).collect()
}

/// Whether this annotation pauses an object.
pub(super) fn is_paused(meta: &ObjectMeta, annotation: &str) -> bool {
    let value = meta.annotations.as_ref().and_then(|all| all.get(annotation));
    value.is_some_and(|paused| paused == "true")
}
