//! Ways to find objects by what is in them: indexes that users declare, and the compact sets that all indexes are made of.

use super::object::AnyObject;
use crate::key::Key;
use crate::kind::Cached;
use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Finds objects by terms that a function reads from them. A constant: its name says which it is.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass::cache::Index;
///
/// const BY_NODE: Index<Pod> =
///     Index::new("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
///
/// assert_eq!(BY_NODE.name(), "node");
/// ```
///
/// Asked of a store with [`Store::find`](super::Store::find), and of a relation with
/// [`Relation::indexed`](crate::Relation::indexed). The first to ask makes it; from then on it follows every change.
pub struct Index<K> {
    name: &'static str,
    terms: fn(&K) -> Vec<String>,
}

impl<K: Cached> Index<K> {
    /// An index called `name`. Two of one name on one type are taken for the same.
    pub const fn new(name: &'static str, terms: fn(&K) -> Vec<String>) -> Self {
        Self { name, terms }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The same, whose type is forgotten.
    pub(crate) fn erase(self) -> AnyIndex {
        let Self { name, terms } = self;
        let of =
            move |object: &dyn AnyObject| object.as_any().downcast_ref::<K>().map(terms).unwrap_or_default();
        AnyIndex { name, of_type: TypeId::of::<K>(), terms: Arc::new(of) }
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Index<K> {}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({})", self.name)
    }
}

/// An [`Index`] whose type is forgotten: what relations carry.
#[derive(Clone)]
pub(crate) struct AnyIndex {
    name: &'static str,
    of_type: TypeId,
    terms: AnyTerms,
}

type AnyTerms = Arc<dyn Fn(&dyn AnyObject) -> Vec<String> + Send + Sync>;

impl AnyIndex {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The terms of an object; none if it is of another type.
    pub(crate) fn terms(&self, object: &dyn AnyObject) -> Vec<String> {
        // It is the operator's code, run where the watch is read: a panic must not end that.
        catch_unwind(AssertUnwindSafe(|| (self.terms)(object))).unwrap_or_else(|_| {
            tracing::error!(index = self.name, object = ?object.meta().name, "the index's function panicked");
            Vec::new()
        })
    }

    /// Whether it reads objects of this type.
    pub(super) fn reads(&self, of_type: TypeId) -> bool {
        self.of_type == of_type
    }
}

impl PartialEq for AnyIndex {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.of_type) == (other.name, other.of_type)
    }
}

impl Eq for AnyIndex {}

impl fmt::Debug for AnyIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({})", self.name)
    }
}

/// From a property to those that have it. Most properties have one or few objects, so a single one needs no set.
#[derive(Debug)]
pub(crate) struct Filed<P> {
    places: HashMap<P, Keys>,
}

#[derive(Debug)]
enum Keys {
    One(Key),
    Many(BTreeSet<Key>),
}

impl<P> Default for Filed<P> {
    fn default() -> Self {
        Self { places: HashMap::new() }
    }
}

impl<P: Eq + Hash> Filed<P> {
    pub(crate) fn insert(&mut self, place: P, key: &Key) {
        match self.places.entry(place) {
            std::collections::hash_map::Entry::Vacant(vacant) => drop(vacant.insert(Keys::One(key.clone()))),
            std::collections::hash_map::Entry::Occupied(mut occupied) => match occupied.get_mut() {
                Keys::One(one) if one == key => {}
                Keys::One(one) => {
                    let both = BTreeSet::from([one.clone(), key.clone()]);
                    occupied.insert(Keys::Many(both));
                }
                Keys::Many(many) => drop(many.insert(key.clone())),
            },
        }
    }

    pub(crate) fn remove<Q>(&mut self, place: &Q, key: &Key)
    where
        P: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let empty = match self.places.get_mut(place) {
            None => false,
            Some(Keys::One(one)) => one == key,
            Some(Keys::Many(many)) => {
                many.remove(key);
                many.is_empty()
            }
        };
        if empty {
            self.places.remove(place);
            // Memory that a crowd needed is given back when it has gone.
            if self.places.len() * 4 < self.places.capacity() {
                self.places.shrink_to_fit();
            }
        }
    }

    /// Whether nothing is filed.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many are under a property.
    pub(crate) fn count<Q>(&self, place: &Q) -> usize
    where
        P: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.places.get(place) {
            None => 0,
            Some(Keys::One(_)) => 1,
            Some(Keys::Many(many)) => many.len(),
        }
    }

    /// Those under a property, in order.
    pub(crate) fn get<Q>(&self, place: &Q) -> impl Iterator<Item = &Key> + use<'_, P, Q>
    where
        P: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let (one, many) = match self.places.get(place) {
            None => (None, None),
            Some(Keys::One(one)) => (Some(one), None),
            Some(Keys::Many(many)) => (None, Some(many)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("c".into(), None, name)
    }

    #[test]
    fn what_is_filed_is_found_until_it_is_taken_out() {
        let mut filed: Filed<String> = Filed::default();
        for name in ["b", "a", "a"] {
            filed.insert("x".into(), &key(name));
        }
        let names =
            |filed: &Filed<String>| -> Vec<String> { filed.get("x").map(ToString::to_string).collect() };
        assert_eq!(names(&filed), ["a", "b"]);
        filed.remove("x", &key("a"));
        filed.remove("x", &key("c"));
        filed.remove("y", &key("b"));
        assert_eq!(names(&filed), ["b"]);
        filed.remove("x", &key("b"));
        assert!(names(&filed).is_empty() && filed.is_empty());
    }
}
