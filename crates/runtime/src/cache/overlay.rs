//! What is known of a kind's objects, from two sources that race: the watch, and the answers to one's own writes.
//!
//! In come events, lists, bookmarks, write responses and deletions, in any interleaving; out comes one view in which a
//! read after a write is never older than the write. Pure: the [`Store`](super::Store) locks it and tells others.
//!
//! Two facts make it small. Versions are comparable over all objects of a resource, so whatever the watch has passed
//! (`progress`) is old news, whoever tells it. And a UID never comes back, so the deletion of one, whose version the
//! server does not say, can be remembered by UID alone.
//!
//! An answer to a write enters by UID and version; older events and lists are dropped, and deletions leave tombstones.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Which object, and how new: its UID and its resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    /// The object's UID.
    pub uid: Arc<str>,
    /// The object's resourceVersion, which is a number within one resource.
    pub version: u64,
}

#[derive(Debug)]
struct Entry<T> {
    object_version: ObjectVersion,
    value: T,
}

/// How one name's object changed in the view.
#[derive(Debug, PartialEq, Eq)]
pub struct Change<N, T> {
    /// Whose.
    pub name: N,
    /// What the view held before.
    pub old: Option<T>,
    /// What it holds now.
    pub new: Option<T>,
}

/// A list that is older than what the view already knows; it was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// The list's version.
    pub listed: u64,
    /// How far the view is.
    pub known: u64,
}

/// The merged view of one resource, by name.
#[derive(Debug)]
pub struct Overlay<N, T> {
    entries: HashMap<N, Entry<T>>,
    /// UIDs known to be deleted whose deletion the watch has not shown yet, each with the last version it had.
    tombstones: HashMap<Arc<str>, u64>,
    /// By name of a deleted object: what is not newer than this was there before it, and is history.
    floors: HashMap<N, u64>,
    /// Everything up to this version has been seen from the watch.
    progress: u64,
}

impl<N, T> Default for Overlay<N, T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), tombstones: HashMap::new(), floors: HashMap::new(), progress: 0 }
    }
}

impl<N: Clone + Eq + Hash, T: Clone> Overlay<N, T> {
    /// What is known under a name.
    pub fn get(&self, name: &N) -> Option<&T> {
        self.entries.get(name).map(|entry| &entry.value)
    }

    /// The version of what is known under a name.
    pub fn version_of(&self, name: &N) -> Option<&ObjectVersion> {
        self.entries.get(name).map(|entry| &entry.object_version)
    }

    /// Everything known.
    pub fn iter(&self) -> impl Iterator<Item = (&N, &T)> {
        self.entries.iter().map(|(name, entry)| (name, &entry.value))
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many tombstones and floors there are.
    #[cfg(test)]
    pub(super) fn remembers(&self) -> (usize, usize) {
        (self.tombstones.len(), self.floors.len())
    }

    /// Up to which version the watch has been seen.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// Whether the watch has anything new to say with this: what is older than the watch, than what is known or than what
    /// was deleted need not even be read.
    pub fn is_news(&self, name: &N, object_version: &ObjectVersion) -> bool {
        object_version.version > self.progress && self.is_newer(name, object_version)
    }

    /// The watch shows something that changes nothing here.
    pub fn passed(&mut self, version: u64) {
        self.progress = self.progress.max(version);
    }

    /// The watch shows an object added or modified.
    pub fn shown(&mut self, name: N, object_version: ObjectVersion, value: T) -> Option<Change<N, T>> {
        if object_version.version <= self.progress {
            return None;
        }
        self.progress = object_version.version;
        self.take_newer(name, object_version, value)
    }

    /// The watch shows an object deleted, at the version of its deletion.
    pub fn shown_deleted(&mut self, name: N, object_version: &ObjectVersion) -> Option<Change<N, T>> {
        if object_version.version <= self.progress {
            return None;
        }
        self.progress = object_version.version;
        // An object that left the view and came back was deleted later than the watch says here.
        if self.tombstones.get(&object_version.uid).is_some_and(|last| *last < object_version.version) {
            self.tombstones.remove(&object_version.uid);
        }
        self.remove_older(name, object_version)
    }

    /// The watch shows an object that cannot be held: an older state of it is not the truth any more.
    pub fn shown_out(&mut self, name: N, object_version: &ObjectVersion) -> Option<Change<N, T>> {
        if object_version.version <= self.progress {
            return None;
        }
        self.progress = object_version.version;
        self.remove_older(name, object_version)
    }

    /// The watch says that nothing else happened up to this version.
    pub fn bookmark(&mut self, version: u64) {
        self.progress = self.progress.max(version);
        self.floors.retain(|_, floor| *floor > version);
    }

    /// A complete list, at its version. Refused when the view is further: the watch that follows it repeats what is
    /// known, and that is dropped.
    ///
    /// # Errors
    /// [`Stale`] when it was refused.
    pub fn listed(
        &mut self,
        items: Vec<(N, ObjectVersion, T)>,
        version: u64,
    ) -> Result<Vec<Change<N, T>>, Stale> {
        if version < self.progress {
            return Err(Stale { listed: version, known: self.progress });
        }
        self.progress = version;
        let mut absent: HashMap<N, ()> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.object_version.version <= version)
            .map(|(name, _)| (name.clone(), ()))
            .collect();
        let mut surviving = HashMap::new();
        let mut changes = Vec::new();
        for (name, object_version, value) in items {
            absent.remove(&name);
            if let Some(last) = self.tombstones.get(&object_version.uid) {
                surviving.insert(object_version.uid, *last);
                continue;
            }
            changes.extend(self.take_newer(name, object_version, value));
        }
        changes.extend(absent.into_keys().filter_map(|name| self.remove(name)));
        self.floors.retain(|_, floor| *floor > version);
        // A tombstone has served once a list that is new enough to have shown the object does not.
        self.tombstones.retain(|uid, last| *last > version || surviving.contains_key(uid));
        Ok(changes)
    }

    /// The server answered a write, or a live read, with this state of an object.
    pub fn wrote(&mut self, name: N, object_version: ObjectVersion, value: T) -> Option<Change<N, T>> {
        // What the watch has passed it has shown, this or something newer: perhaps the object's end.
        if object_version.version <= self.progress {
            return None;
        }
        self.take_newer(name, object_version, value)
    }

    /// The server answered a write with a state of an object that is none of this view's: it left, and the watch will say
    /// so.
    pub fn wrote_out(&mut self, name: N, object_version: &ObjectVersion) -> Option<Change<N, T>> {
        if !self.is_news(&name, object_version) {
            return None;
        }
        self.floors.insert(name.clone(), object_version.version);
        self.remove_older(name, object_version)
    }

    /// The server said that an object is gone; `last` is the last version it was known with.
    pub fn wrote_gone(&mut self, name: N, last: &ObjectVersion) -> Option<Change<N, T>> {
        let known = self.entries.get(&name).map(|entry| entry.object_version.clone());
        let present = known.as_ref().is_some_and(|known| known.uid == last.uid);
        // An older object of that name is gone too: its successor was.
        let older = known.is_some_and(|known| known.version < last.version);
        if last.version > self.progress {
            self.floors.insert(name.clone(), last.version);
        }
        if present || last.version > self.progress {
            self.tombstones.insert(last.uid.clone(), last.version);
        }
        (present || older).then(|| self.remove(name)).flatten()
    }

    /// Forgets everything: the server's history was rewound, as after a restore from a backup.
    pub fn reset(&mut self) -> Vec<Change<N, T>> {
        let names: Vec<N> = self.entries.keys().cloned().collect();
        let changes = names.into_iter().filter_map(|name| self.remove(name)).collect();
        *self = Self::default();
        changes
    }

    fn is_newer(&self, name: &N, object_version: &ObjectVersion) -> bool {
        let known = self
            .entries
            .get(name)
            .is_some_and(|entry| entry.object_version.version >= object_version.version);
        let before = self.floors.get(name).is_some_and(|floor| *floor >= object_version.version);
        !known && !before && !self.tombstones.contains_key(&object_version.uid)
    }

    fn take_newer(&mut self, name: N, object_version: ObjectVersion, value: T) -> Option<Change<N, T>> {
        if !self.is_newer(&name, &object_version) {
            return None;
        }
        self.floors.remove(&name);
        let old = self.entries.insert(name.clone(), Entry { object_version, value: value.clone() });
        Some(Change { name, old: old.map(|entry| entry.value), new: Some(value) })
    }

    fn remove_older(&mut self, name: N, object_version: &ObjectVersion) -> Option<Change<N, T>> {
        let dies = self
            .entries
            .get(&name)
            .is_some_and(|entry| entry.object_version.version < object_version.version);
        dies.then(|| self.remove(name)).flatten()
    }

    fn remove(&mut self, name: N) -> Option<Change<N, T>> {
        let old = self.entries.remove(&name)?;
        // Memory that a crowd needed is given back when it has gone.
        if self.entries.len() * 4 < self.entries.capacity() {
            self.entries.shrink_to_fit();
        }
        Some(Change { name, old: Some(old.value), new: None })
    }
}
