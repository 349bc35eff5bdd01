//! What is known of a kind's objects, from two sources that race: the watch, and the answers to one's own writes.
//!
//! In come events, lists, bookmarks, write responses and deletions, in any interleaving; out comes one view in which a
//! read after a write is never older than the write. Pure: the [`Store`](super::Store) locks it and tells others.
//!
//! Two facts make it small. Versions are comparable over all objects of a resource, so whatever the watch has passed
//! (`progress`) is old news, whoever tells it. And a UID never comes back, so the deletion of one, whose version the
//! server does not say, can be remembered by UID alone.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Which object, and how new: its UID and its resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The object's UID.
    pub uid: Arc<str>,
    /// The object's resourceVersion, which is a number within one resource.
    pub version: u64,
}

#[derive(Debug)]
struct Entry<T> {
    stamp: Stamp,
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

    /// The stamp of what is known under a name.
    pub fn stamp(&self, name: &N) -> Option<&Stamp> {
        self.entries.get(name).map(|entry| &entry.stamp)
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

    /// Up to which version the watch has been seen.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// The watch shows an object added or modified.
    pub fn shown(&mut self, name: N, stamp: Stamp, value: T) -> Option<Change<N, T>> {
        if stamp.version <= self.progress {
            return None;
        }
        self.progress = stamp.version;
        self.take_newer(name, stamp, value)
    }

    /// The watch shows an object deleted, at the version of its deletion.
    pub fn shown_deleted(&mut self, name: N, stamp: &Stamp) -> Option<Change<N, T>> {
        if stamp.version <= self.progress {
            return None;
        }
        self.progress = stamp.version;
        self.tombstones.remove(&stamp.uid);
        let dies = self.entries.get(&name).is_some_and(|entry| entry.stamp.version < stamp.version);
        dies.then(|| self.remove(name)).flatten()
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
    pub fn listed(&mut self, items: Vec<(N, Stamp, T)>, version: u64) -> Result<Vec<Change<N, T>>, Stale> {
        if version < self.progress {
            return Err(Stale { listed: version, known: self.progress });
        }
        self.progress = version;
        let mut absent: HashMap<N, ()> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.stamp.version <= version)
            .map(|(name, _)| (name.clone(), ()))
            .collect();
        let mut surviving = HashMap::new();
        let mut changes = Vec::new();
        for (name, stamp, value) in items {
            absent.remove(&name);
            if let Some(last) = self.tombstones.get(&stamp.uid) {
                surviving.insert(stamp.uid, *last);
                continue;
            }
            changes.extend(self.take_newer(name, stamp, value));
        }
        changes.extend(absent.into_keys().filter_map(|name| self.remove(name)));
        self.floors.retain(|_, floor| *floor > version);
        // A tombstone has served once a list that is new enough to have shown the object does not.
        self.tombstones.retain(|uid, last| *last > version || surviving.contains_key(uid));
        Ok(changes)
    }

    /// The server answered a write, or a live read, with this state of an object.
    pub fn wrote(&mut self, name: N, stamp: Stamp, value: T) -> Option<Change<N, T>> {
        // What the watch has passed it has shown, this or something newer: perhaps the object's end.
        if stamp.version <= self.progress {
            return None;
        }
        self.take_newer(name, stamp, value)
    }

    /// The server said that an object is gone; `last` is the last stamp it was known with.
    pub fn wrote_gone(&mut self, name: N, last: &Stamp) -> Option<Change<N, T>> {
        let known = self.entries.get(&name).map(|entry| entry.stamp.clone());
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

    fn take_newer(&mut self, name: N, stamp: Stamp, value: T) -> Option<Change<N, T>> {
        let known = self.entries.get(&name).is_some_and(|entry| entry.stamp.version >= stamp.version);
        let before = self.floors.get(&name).is_some_and(|floor| *floor >= stamp.version);
        if known || before || self.tombstones.contains_key(&stamp.uid) {
            return None;
        }
        self.floors.remove(&name);
        let old = self.entries.insert(name.clone(), Entry { stamp, value: value.clone() });
        Some(Change { name, old: old.map(|entry| entry.value), new: Some(value) })
    }

    fn remove(&mut self, name: N) -> Option<Change<N, T>> {
        let old = self.entries.remove(&name)?;
        Some(Change { name, old: Some(old.value), new: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp(uid: &str, version: u64) -> Stamp {
        Stamp { uid: uid.into(), version }
    }

    #[test]
    fn a_write_is_read_back_before_the_watch_shows_it() {
        let mut view = Overlay::default();
        view.listed(vec![("a", stamp("u", 3), 3)], 5).unwrap();
        assert!(view.wrote("a", stamp("u", 7), 7).is_some());
        assert_eq!(view.shown("a", stamp("u", 6), 6), None, "an event older than the write");
        assert_eq!(view.get(&"a"), Some(&7));
        assert_eq!(view.shown("a", stamp("u", 7), 7), None, "the write's own echo");
        assert_eq!(view.shown("a", stamp("u", 9), 9).unwrap().old, Some(7));
    }

    #[test]
    fn a_list_from_before_the_write_does_not_undo_it() {
        let mut view = Overlay::default();
        view.wrote("a", stamp("u", 7), 7);
        view.listed(vec![], 6).unwrap();
        assert_eq!(view.get(&"a"), Some(&7));
        view.listed(vec![], 7).unwrap();
        assert_eq!(view.get(&"a"), None, "a list at the write's version without it means it was deleted");
    }

    #[test]
    fn a_deleted_object_stays_deleted_until_the_watch_agrees() {
        let mut view = Overlay::default();
        view.wrote("a", stamp("u", 7), 7);
        view.wrote_gone("a", &stamp("u", 7));
        assert_eq!(view.shown("a", stamp("u", 7), 7), None, "its creation comes late");
        assert_eq!(view.get(&"a"), None);
        view.shown_deleted("a", &stamp("u", 8));
        assert!(view.shown("a", stamp("v", 9), 9).is_some(), "a new object of that name is another matter");
        assert!(view.tombstones.is_empty());
    }

    #[test]
    fn a_deletion_that_the_watch_showed_first_leaves_no_tombstone() {
        let mut view: Overlay<&str, u64> = Overlay::default();
        view.shown("a", stamp("u", 7), 7);
        view.shown_deleted("a", &stamp("u", 8));
        view.wrote_gone("a", &stamp("u", 7));
        assert!(view.tombstones.is_empty());
    }

    #[test]
    fn a_deleted_object_does_not_bring_its_predecessor_back() {
        let mut view = Overlay::default();
        view.wrote("a", stamp("u", 1), 1);
        view.wrote("a", stamp("v", 3), 3);
        view.wrote_gone("a", &stamp("v", 3));
        assert_eq!(view.shown("a", stamp("u", 1), 1), None, "long replaced by the one that was deleted");
        assert_eq!(view.get(&"a"), None);
        view.bookmark(4);
        assert!(view.floors.is_empty());
    }

    #[test]
    fn a_list_older_than_the_view_is_refused() {
        let mut view = Overlay::default();
        view.shown("a", stamp("u", 7), 7);
        assert_eq!(view.listed(vec![], 6), Err(Stale { listed: 6, known: 7 }));
        assert_eq!(view.get(&"a"), Some(&7));
    }

    /// A server with a history, the way of its events to us, and what we were told by our own writes.
    #[derive(Default)]
    struct World {
        history: Vec<(u8, Stamp, bool)>,
        delivered: usize,
        uids: u64,
    }

    impl World {
        fn live(&self, at: usize) -> HashMap<u8, Stamp> {
            let mut live = HashMap::new();
            for (name, stamp, alive) in &self.history[..at] {
                match alive {
                    true => live.insert(*name, stamp.clone()),
                    false => live.remove(name),
                };
            }
            live
        }

        fn write(&mut self, name: u8) -> Stamp {
            let uid = match self.live(self.history.len()).get(&name) {
                Some(stamp) => stamp.uid.clone(),
                None => {
                    self.uids += 1;
                    format!("uid-{}", self.uids).into()
                }
            };
            let stamp = Stamp { uid, version: self.history.len() as u64 + 1 };
            self.history.push((name, stamp.clone(), true));
            stamp
        }

        /// Deletes it; returns what it was, with the version that our client last knew.
        fn delete(&mut self, name: u8) -> Option<Stamp> {
            let last = self.live(self.history.len()).get(&name)?.clone();
            let version = self.history.len() as u64 + 1;
            self.history.push((name, Stamp { uid: last.uid.clone(), version }, false));
            Some(last)
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        OurWrite(u8),
        OurDelete(u8),
        TheirWrite(u8),
        TheirDelete(u8),
        Deliver(u8),
        /// The watch breaks; a list from so many versions ago is taken, and the watch goes on from there.
        Relist(u8),
        Bookmark,
    }

    fn step() -> impl Strategy<Value = Step> {
        let name = 0u8..3;
        prop_oneof![
            3 => name.clone().prop_map(Step::OurWrite),
            2 => name.clone().prop_map(Step::OurDelete),
            2 => name.clone().prop_map(Step::TheirWrite),
            2 => name.prop_map(Step::TheirDelete),
            4 => (1u8..4).prop_map(Step::Deliver),
            2 => (0u8..6).prop_map(Step::Relist),
            1 => Just(Step::Bookmark),
        ]
    }

    fn deliver(world: &mut World, view: &mut Overlay<u8, Stamp>, count: usize) {
        for _ in 0..count {
            let Some((name, stamp, alive)) = world.history.get(world.delivered).cloned() else { return };
            world.delivered += 1;
            match alive {
                true => view.shown(name, stamp.clone(), stamp),
                false => view.shown_deleted(name, &stamp),
            };
        }
    }

    proptest! {
        #[test]
        fn a_read_after_a_write_is_never_older_than_the_write(steps in prop::collection::vec(step(), 0..60)) {
            let mut world = World::default();
            let mut view: Overlay<u8, Stamp> = Overlay::default();
            let mut told: HashMap<u8, u64> = HashMap::new();
            let mut dead: Vec<Arc<str>> = Vec::new();
            for step in steps {
                match step {
                    Step::OurWrite(name) => {
                        let stamp = world.write(name);
                        told.insert(name, stamp.version);
                        view.wrote(name, stamp.clone(), stamp);
                    }
                    Step::OurDelete(name) => {
                        if let Some(last) = world.delete(name) {
                            told.insert(name, world.history.len() as u64);
                            dead.push(last.uid.clone());
                            view.wrote_gone(name, &last);
                        }
                    }
                    Step::TheirWrite(name) => { world.write(name); }
                    Step::TheirDelete(name) => { world.delete(name); }
                    Step::Deliver(count) => deliver(&mut world, &mut view, count.into()),
                    Step::Relist(back) => {
                        let at = world.history.len().saturating_sub(back.into());
                        let items = world.live(at).into_iter().map(|(name, stamp)| (name, stamp.clone(), stamp));
                        let _ = view.listed(items.collect(), at as u64);
                        world.delivered = at;
                    }
                    Step::Bookmark => view.bookmark(world.delivered as u64),
                }
                for (name, version) in &told {
                    // Absence is right only if the object is really gone by now; presence must be as new as we were told.
                    match view.get(name) {
                        Some(stamp) => prop_assert!(stamp.version >= *version, "{name}: {stamp:?} < {version}"),
                        None => {
                            let ended = world.history[*version as usize - 1..]
                                .iter()
                                .any(|(other, _, alive)| other == name && !alive);
                            prop_assert!(ended, "{name} is missing");
                        }
                    }
                }
                for uid in &dead {
                    prop_assert!(view.iter().all(|(_, stamp)| stamp.uid != *uid), "{uid} came back");
                }
            }
            let rest = world.history.len();
            deliver(&mut world, &mut view, rest);
            let end: HashMap<u8, Stamp> = view.iter().map(|(name, stamp)| (*name, stamp.clone())).collect();
            prop_assert_eq!(end, world.live(world.history.len()));
            prop_assert!(view.tombstones.is_empty(), "the watch has shown every deletion");
        }
    }
}
