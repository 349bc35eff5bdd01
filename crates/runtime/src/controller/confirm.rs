//! Before a step that cannot be undone: whatever the reconcile may look at is listed live, once, and decided on again.
//!
//! To prune a child, to delete an object or to remove a finalizer rests on something not having been observed, and a cache may
//! lag behind the others. So the caches first take in live lists, and then there is another pass: what it observes is at
//! least as new as those lists, and only if it comes to the same step, the step is done. To compare the lists with the caches
//! would not do: a cache may have caught up since the pass looked at it. No author has to think of it.

use super::owning::Parent;
use super::parts::Mode;
use super::running::Running;
use crate::cache::{AnyObject, AnyStore, Select, Selection};
use crate::kind::Kind;
use crate::labels::CONTROLLER_LABEL;
use crate::write::{Listed, WriteError};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what a pass observes was confirmed by live lists: once is enough for all that it removes.
#[derive(Debug, Default)]
pub(super) struct Confirmed {
    /// Before the pass.
    before: bool,
    /// In the pass, so that the next one is.
    listed: AtomicBool,
}

impl Confirmed {
    /// For the pass that follows at once.
    pub(super) fn next(&self) -> Self {
        Self { before: self.listed.load(Ordering::Relaxed), listed: AtomicBool::new(false) }
    }
}

impl Running {
    /// Whether all that the pass observed is at least as new as live lists of it.
    ///
    /// # Errors
    /// [`WriteError::Unconfirmed`] when it may not be: the caches have taken in live lists now, and there is another pass.
    pub(super) async fn confirm(
        &self,
        confirmed: &Confirmed,
        parent: &Parent,
        object: &dyn AnyObject,
    ) -> Result<(), WriteError> {
        if confirmed.before {
            return Ok(());
        }
        for (kind, which) in self.looked_at(parent, object) {
            self.writer.refresh(&kind, &which, &parent.key).await?;
        }
        confirmed.listed.store(true, Ordering::Relaxed);
        Err(WriteError::Unconfirmed)
    }

    /// Everything that a reconcile of this object may look at.
    fn looked_at(&self, parent: &Parent, object: &dyn AnyObject) -> Vec<(Kind, Listed)> {
        let itself = Listed {
            namespace: parent.key.namespace().map(str::to_owned),
            field_selector: format!("metadata.name={}", parent.key.name()),
            ..Listed::default()
        };
        let mut all = vec![(self.kind.clone(), itself)];
        for (kind, store) in &self.owned {
            let namespace =
                parent.key.namespace().filter(|_| kind.namespaced && !self.anywhere.contains(kind));
            // What a plan makes carries the controller's label; what a reconciler makes by hand need not.
            let label_selector = match &self.mode {
                Mode::Deciding(_) => format!("{CONTROLLER_LABEL}={}", self.name),
                Mode::Reconciling(_) => String::new(),
            };
            let which = Listed { label_selector, ..Listed::default() };
            all.extend(within(store, namespace, &which).map(|which| (kind.clone(), which)));
        }
        for related in self.related.iter() {
            let relation = related.of(object);
            for which in selected(&relation) {
                let namespace = relation.namespace.as_deref();
                all.extend(
                    within(&related.store, namespace, &which).map(|which| (related.kind.clone(), which)),
                );
            }
        }
        all
    }
}

/// In one namespace, or wherever the store looks.
fn within<'a>(
    store: &'a AnyStore,
    namespace: Option<&'a str>,
    which: &'a Listed,
) -> impl Iterator<Item = Listed> + 'a {
    let namespaces = match namespace {
        Some(namespace) => vec![Some(namespace.to_owned())],
        None => store.namespaces(),
    };
    namespaces.into_iter().map(|namespace| Listed { namespace, ..which.clone() })
}

/// How the server selects what a relation selects; more where it cannot.
fn selected(relation: &Selection) -> Vec<Listed> {
    let labelled = |label_selector| Listed { label_selector, ..Listed::default() };
    match &relation.select {
        Select::Names(names) => names
            .iter()
            .map(|name| Listed { field_selector: format!("metadata.name={name}"), ..Listed::default() })
            .collect(),
        Select::Labels(labels) => {
            let terms: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            vec![labelled(terms.join(","))]
        }
        Select::Selector(selector) => vec![labelled(selector.to_string())],
        Select::Term(..) | Select::All => vec![Listed::default()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relation::Relation;

    #[test]
    fn a_relation_is_listed_by_what_the_server_can_select() {
        let listed = |relation: Relation| selected(&relation.resolve(Some("shop"), true));
        let by_name = listed(Relation::names(["a", "b"]));
        assert_eq!(by_name.len(), 2);
        assert_eq!(by_name[0].field_selector, "metadata.name=a");
        assert_eq!(
            listed(Relation::labelled([("app", "web"), ("tier", "db")]))[0].label_selector,
            "app=web,tier=db"
        );
        assert_eq!(listed(Relation::all()), [Listed::default()]);
        assert!(listed(Relation::nothing()).is_empty());
    }
}
