//! The objects of one kind with their indexes, in one place that is locked as a whole.

use super::index::{AnyIndex, Filed};
use super::intake::Held;
use super::object::{face, owner_uids};
use super::overlay::{Change, Overlay};
use crate::key::Key;
use crate::kind::Cached;
use crate::relation::{Resolved, Select};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;

/// What is watched on its own, with versions of its own: a namespace, or all of them.
#[derive(Debug)]
pub(super) struct Part<K> {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) overlay: Overlay<Key, Held<K>>,
    pub(super) listed: bool,
}

#[derive(Debug)]
pub(super) struct View<K> {
    pub(super) parts: Vec<Part<K>>,
    by_owner: Filed<Box<str>>,
    by_label: Option<Filed<String>>,
    by_term: Vec<(AnyIndex, Filed<String>)>,
    pub(super) bytes: u64,
}

pub(super) type Changes<K> = Change<Key, Held<K>>;

impl<K: Cached> View<K> {
    pub(super) fn new(parts: Vec<Option<Arc<str>>>) -> Self {
        let parts = parts.into_iter();
        Self {
            parts: parts
                .map(|namespace| Part { namespace, overlay: Overlay::default(), listed: false })
                .collect(),
            by_owner: Filed::default(),
            by_label: None,
            by_term: Vec::new(),
            bytes: 0,
        }
    }

    /// The part that an object belongs to, if any.
    pub(super) fn part_of(&self, key: &Key) -> Option<usize> {
        self.parts
            .iter()
            .position(|part| part.namespace.is_none() || part.namespace.as_deref() == key.namespace())
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Held<K>> {
        self.parts[self.part_of(key)?].overlay.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Held<K>)> {
        self.parts.iter().flat_map(|part| part.overlay.iter())
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.overlay.len()).sum()
    }

    pub(super) fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.all(self.by_owner.get(uid))
    }

    pub(super) fn count_owned_by(&self, uid: &str) -> usize {
        self.by_owner.count(uid)
    }

    fn all<'a>(&'a self, keys: impl Iterator<Item = &'a Key>) -> Vec<Arc<K>> {
        keys.filter_map(|key| self.get(key)).map(|held| held.object.clone()).collect()
    }

    /// Makes indexes and weight follow a change.
    pub(super) fn follow(&mut self, change: &Changes<K>) {
        let key = &change.name;
        if let Some(old) = &change.old {
            self.bytes = self.bytes.saturating_sub(old.bytes.into());
            let meta = old.object.meta();
            for uid in owner_uids(meta) {
                self.by_owner.remove(uid, key);
            }
            if let Some(by_label) = &mut self.by_label {
                label_places(meta).for_each(|place| by_label.remove(&place, key));
            }
            for (index, by_term) in &mut self.by_term {
                index.terms(&*old.object).iter().for_each(|term| by_term.remove(term, key));
            }
        }
        if let Some(new) = &change.new {
            self.bytes += u64::from(new.bytes);
            let meta = new.object.meta();
            for uid in owner_uids(meta) {
                self.by_owner.insert(uid.into(), key);
            }
            if let Some(by_label) = &mut self.by_label {
                label_places(meta).for_each(|place| by_label.insert(place, key));
            }
            for (index, by_term) in &mut self.by_term {
                index.terms(&*new.object).into_iter().for_each(|term| by_term.insert(term, key));
            }
        }
    }

    /// Files everything by its labels too, from now on and what is there already.
    pub(super) fn index_labels(&mut self) {
        if self.by_label.is_none() {
            let mut by_label = Filed::default();
            for (key, held) in self.iter() {
                label_places(held.object.meta()).for_each(|place| by_label.insert(place, key));
            }
            self.by_label = Some(by_label);
        }
    }

    pub(super) fn has_index(&self, index: &AnyIndex) -> bool {
        self.by_term.iter().any(|(known, _)| known == index)
    }

    /// Files everything by an index too, from now on and what is there already.
    pub(super) fn index(&mut self, index: &AnyIndex) {
        if !self.has_index(index) {
            let mut by_term = Filed::default();
            for (key, held) in self.iter() {
                index.terms(&*held.object).into_iter().for_each(|term| by_term.insert(term, key));
            }
            self.by_term.push((index.clone(), by_term));
        }
    }

    /// Those with a term in an index that is there, in order.
    pub(super) fn find(&self, index: &AnyIndex, term: &str) -> Vec<Arc<K>> {
        let by_term = self.by_term.iter().find(|(known, _)| known == index);
        by_term.map(|(_, by_term)| self.all(by_term.get(term))).unwrap_or_default()
    }

    pub(super) fn select(&self, cluster: &Arc<str>, relation: &Resolved) -> Vec<Arc<K>> {
        let namespace = relation.namespace.as_deref();
        let holds = |object: &Arc<K>| relation.holds_for(face(&**object));
        let mut found = match (&relation.select, namespace, &self.by_label) {
            (Select::Names(names), _, _) if names.is_empty() => Vec::new(),
            (Select::Names(names), Some(_), _) => {
                let keys = names.iter().map(|name| Key::new(cluster.clone(), namespace, name));
                keys.filter_map(|key| self.get(&key).map(|held| held.object.clone())).collect()
            }
            (Select::Labels(labels), Some(namespace), Some(by_label)) => {
                let Some((key, value)) = labels.iter().next() else { return Vec::new() };
                self.all(by_label.get(&label_place(Some(namespace), key, value)))
            }
            (Select::Selector(selector), Some(namespace), Some(by_label)) if selector.one_of().is_some() => {
                let places = selector.one_of().into_iter().flatten();
                let places = places.map(|(key, value)| label_place(Some(namespace), key, value));
                places.flat_map(|place| self.all(by_label.get(&place))).collect()
            }
            (Select::Term(index, term), _, _) if self.has_index(index) => self.find(index, term),
            _ => {
                let mut all: Vec<_> = self.iter().filter(|(_, held)| holds(&held.object)).collect();
                all.sort_by_key(|(key, _)| *key);
                return all.into_iter().map(|(_, held)| held.object.clone()).collect();
            }
        };
        found.retain(holds);
        found
    }
}

fn label_places(meta: &ObjectMeta) -> impl Iterator<Item = String> + '_ {
    let labels = meta.labels.iter().flatten();
    labels.map(|(key, value)| label_place(meta.namespace.as_deref(), key, value))
}

/// One text for all three: it takes a third of the memory, and none of them can hold what stands between.
fn label_place(namespace: Option<&str>, key: &str, value: &str) -> String {
    format!("{}\0{key}\0{value}", namespace.unwrap_or_default())
}
