//! The objects of one kind with their indexes, in one place that is locked as a whole.
//!
//! Where several namespaces are watched, each is a `Part` with a watch and an overlay of its own: resourceVersions are
//! compared with the progress of a watch, and the watches of two namespaces progress separately.

use super::decoded_lru::{DecodedLru, Held};
use super::index::{AnyIndex, Filed};
use super::object::{AnyObject, owner_uids};
use super::overlay::{Change, Overlay};
use super::selection::{Select, Selection};
use crate::key::Key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// What is watched on its own, with versions of its own: a namespace, or all of them.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) overlay: Overlay<Key, Held>,
    pub(super) listed: bool,
}

/// The number of objects above which a read counts as a read of all: they will be read again.
const MANY: usize = 32;

#[derive(Debug)]
pub(super) struct View {
    objects: Arc<DecodedLru>,
    pub(super) parts: Vec<Part>,
    /// By the hash of the owner's UID, which takes a third of the memory; what is found is asked whether it is so.
    by_owner: Filed<u64>,
    hasher: RandomState,
    by_label: Option<Filed<String>>,
    by_term: Vec<(AnyIndex, Filed<String>)>,
}

pub(super) type Changes = Change<Key, Held>;

/// The two sides of a change, read.
pub(super) struct Seen {
    pub(super) old: Option<Arc<dyn AnyObject>>,
    pub(super) new: Option<Arc<dyn AnyObject>>,
}

impl View {
    pub(super) fn new(parts: Vec<Option<Arc<str>>>, objects: Arc<DecodedLru>) -> Self {
        let parts = parts.into_iter();
        Self {
            objects,
            parts: parts
                .map(|namespace| Part { namespace, overlay: Overlay::default(), listed: false })
                .collect(),
            by_owner: Filed::default(),
            hasher: RandomState::new(),
            by_label: None,
            by_term: Vec::new(),
        }
    }

    /// The part that an object belongs to, if any.
    pub(super) fn part_of(&self, key: &Key) -> Option<usize> {
        self.parts
            .iter()
            .position(|part| part.namespace.is_none() || part.namespace.as_deref() == key.namespace())
    }

    fn held(&self, key: &Key) -> Option<&Held> {
        self.parts[self.part_of(key)?].overlay.get(key)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>> {
        self.objects.object(self.held(key)?)
    }

    pub(super) fn list(&self) -> Vec<Arc<dyn AnyObject>> {
        self.iter().filter_map(|(_, held)| self.objects.object_of_many(held)).collect()
    }

    /// About how many bytes all of them take.
    pub(super) fn bytes(&self) -> u64 {
        self.iter().map(|(_, held)| held.bytes()).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Held)> {
        self.parts.iter().flat_map(|part| part.overlay.iter())
    }

    /// One after the other, read for this once.
    fn each(&self) -> impl Iterator<Item = (&Key, Arc<dyn AnyObject>)> {
        self.iter().filter_map(|(key, held)| Some((key, self.objects.object(held)?)))
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.overlay.len()).sum()
    }

    pub(super) fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        let mut found = self.all(self.by_owner.get(&self.hasher.hash_one(uid)));
        found.retain(|object| owner_uids(object.meta()).any(|owner| owner == uid));
        found
    }

    pub(super) fn count_owned_by(&self, uid: &str) -> usize {
        self.by_owner.count(&self.hasher.hash_one(uid))
    }

    fn all<'a>(&'a self, keys: impl Iterator<Item = &'a Key>) -> Vec<Arc<dyn AnyObject>> {
        let held: Vec<&Held> = keys.filter_map(|key| self.held(key)).collect();
        let many = held.len() > MANY;
        let object = |held| if many { self.objects.object_of_many(held) } else { self.objects.object(held) };
        held.into_iter().filter_map(object).collect()
    }

    /// What an object was before a change, and what it is now.
    pub(super) fn objects(&self, change: &Changes) -> Seen {
        let object = |held: &Option<Held>| held.as_ref().and_then(|held| self.objects.object(held));
        Seen { old: object(&change.old), new: object(&change.new) }
    }

    /// Whether the object is still as it was after a change.
    pub(super) fn is_current(&self, change: &Changes) -> bool {
        match (self.held(&change.name), &change.new) {
            (Some(held), Some(new)) => held.is(new),
            (held, new) => held.is_none() == new.is_none(),
        }
    }

    /// Makes indexes follow a change.
    pub(super) fn follow(&mut self, key: &Key, seen: &Seen) {
        if let Some(old) = &seen.old {
            let meta = old.meta();
            for uid in owner_uids(meta) {
                self.by_owner.remove(&self.hasher.hash_one(uid), key);
            }
            if let Some(by_label) = &mut self.by_label {
                label_places(meta).for_each(|place| by_label.remove(&place, key));
            }
            for (index, by_term) in &mut self.by_term {
                index.terms(&**old).iter().for_each(|term| by_term.remove(term, key));
            }
        }
        if let Some(new) = &seen.new {
            let meta = new.meta();
            for uid in owner_uids(meta) {
                self.by_owner.insert(self.hasher.hash_one(uid), key);
            }
            if let Some(by_label) = &mut self.by_label {
                label_places(meta).for_each(|place| by_label.insert(place, key));
            }
            for (index, by_term) in &mut self.by_term {
                index.terms(&**new).into_iter().for_each(|term| by_term.insert(term, key));
            }
        }
    }

    /// Makes indexes follow changes, all at once.
    pub(super) fn follow_all(&mut self, changes: &[Changes]) -> Vec<Seen> {
        let follow = |change: &Changes| {
            let seen = self.objects(change);
            self.follow(&change.name, &seen);
            seen
        };
        changes.iter().map(follow).collect()
    }

    /// Files everything by its labels too, from now on and what is there already.
    pub(super) fn index_labels(&mut self) {
        if self.by_label.is_none() {
            let mut by_label = Filed::default();
            for (key, object) in self.each() {
                label_places(object.meta()).for_each(|place| by_label.insert(place, key));
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
            for (key, object) in self.each() {
                index.terms(&*object).into_iter().for_each(|term| by_term.insert(term, key));
            }
            self.by_term.push((index.clone(), by_term));
        }
    }

    /// Those with a term in an index that is there, in order.
    pub(super) fn find(&self, index: &AnyIndex, term: &str) -> Vec<Arc<dyn AnyObject>> {
        let by_term = self.by_term.iter().find(|(known, _)| known == index);
        by_term.map(|(_, by_term)| self.all(by_term.get(term))).unwrap_or_default()
    }

    pub(super) fn select(&self, cluster: &Arc<str>, relation: &Selection) -> Vec<Arc<dyn AnyObject>> {
        let namespace = relation.namespace.as_deref();
        let holds = |object: &Arc<dyn AnyObject>| relation.matches((&**object).into());
        let mut found = match (&relation.select, namespace, &self.by_label) {
            (Select::Names(names), _, _) if names.is_empty() => Vec::new(),
            (Select::Names(names), Some(_), _) => {
                let keys = names.iter().map(|name| Key::new(cluster.clone(), namespace, name));
                keys.filter_map(|key| self.get(&key)).collect()
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
                let near = |key: &Key| namespace.is_none() || namespace == key.namespace();
                let all = self.iter().filter(|(key, _)| near(key));
                let all = all.filter_map(|(key, held)| Some((key, self.objects.object_of_many(held)?)));
                let mut all: Vec<_> = all.filter(|(_, object)| holds(object)).collect();
                all.sort_by_key(|(key, _)| *key);
                return all.into_iter().map(|(_, object)| object).collect();
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
