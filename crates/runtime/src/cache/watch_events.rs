//! What the watch of one part says, and how a store takes it in.
//!
//! An event is read in two steps: first which object it is about and at which version, and only if that is news the object
//! itself. Echoes of our own writes, and what a list repeats, are not decoded.

use super::any_store::AnyStore;
use super::decoded_lru::Held;
use super::decoder::{Identity, Raw};
use super::overlay::{ObjectVersion, Stale};
use super::stats::count;
use super::view::{Changes, Seen};
use crate::key::Key;

/// A list that is on its way in.
pub(super) struct Listing<'a> {
    store: &'a AnyStore,
    part: usize,
    items: Vec<Item>,
}

impl Listing<'_> {
    pub(super) fn show(&mut self, identity: &Identity<'_>, raw: Raw<'_>) {
        self.items.extend(self.store.item(self.part, identity, raw, self.items.len()));
    }

    /// It was deleted while the list was sent.
    pub(super) fn gone(&mut self, uid: &str) {
        self.items.retain(|(_, object_version, _)| *object_version.uid != *uid);
    }

    pub(super) fn end(self, version: u64) -> Result<(), Stale> {
        self.store.listed(self.part, self.items, version)
    }
}

/// An object that a list shows, as it enters the view.
pub(super) type Item = (Key, ObjectVersion, Held);

impl AnyStore {
    /// Begins a list.
    pub(super) fn list_anew(&self, part: usize) -> Listing<'_> {
        Listing { store: self, part, items: Vec::new() }
    }

    /// Up to which version the watch has been seen.
    pub(super) fn progress(&self, part: usize) -> u64 {
        self.view.read().parts[part].overlay.progress()
    }

    pub(super) fn shown(&self, part: usize, identity: &Identity<'_>, raw: Raw<'_>) {
        count(&self.counters.events);
        let Some((key, object_version)) = self.identify(identity) else { return };
        let (news, others) = {
            let view = self.view.read();
            (view.parts[part].overlay.is_news(&key, &object_version), view.len())
        };
        if !news {
            // Mostly the echo of our own write: its answer has been read already.
            self.view.write().parts[part].overlay.passed(object_version.version);
            return;
        }
        match self.decoder.read(&key, raw, others) {
            Ok(held) => {
                self.counters.readable(&key);
                self.change(None, |view| view.parts[part].overlay.shown(key, object_version, held));
            }
            Err(error) => {
                self.pass_over(&key.to_string(), &error);
                self.change(None, |view| view.parts[part].overlay.shown_out(key, &object_version));
            }
        }
    }

    pub(super) fn shown_deleted(&self, part: usize, identity: &Identity<'_>) {
        count(&self.counters.events);
        if let Some((key, object_version)) = self.identify(identity) {
            self.counters.readable(&key);
            self.change(None, |view| view.parts[part].overlay.shown_deleted(key, &object_version));
        }
    }

    pub(super) fn bookmark(&self, part: usize, version: u64) {
        self.view.write().parts[part].overlay.bookmark(version);
    }

    /// Reads an item of a list, given the number of those before it. What is held already at that version is not read again.
    pub(super) fn item(
        &self,
        part: usize,
        identity: &Identity<'_>,
        raw: Raw<'_>,
        others: usize,
    ) -> Option<Item> {
        let (key, object_version) = self.identify(identity)?;
        {
            let view = self.view.read();
            let overlay = &view.parts[part].overlay;
            if let (true, Some(held)) = (overlay.version_of(&key) == Some(&object_version), overlay.get(&key))
            {
                return Some((key, object_version, held.clone()));
            }
        }
        match self.decoder.read(&key, raw, others) {
            Ok(held) => Some((key, object_version, held)),
            Err(error) => {
                self.pass_over(&key.to_string(), &error);
                None
            }
        }
    }

    pub(super) fn listed(&self, part: usize, items: Vec<Item>, version: u64) -> Result<(), Stale> {
        let (changes, mut followed) = {
            let mut view = self.view.write();
            let changes = view.parts[part].overlay.listed(items, version)?;
            let initial = !std::mem::replace(&mut view.parts[part].listed, true);
            // Until the first list is in nobody counts on the indexes. Later on they change with the objects.
            let followed = (!initial).then(|| view.follow_all(&changes).into_iter());
            (changes, followed)
        };
        count(&self.counters.lists);
        let initial = followed.is_none();
        for change in changes {
            // One after the other: all of them, read at once, would take many times what is held.
            let seen =
                followed.as_mut().and_then(Iterator::next).unwrap_or_else(|| self.follow_late(&change));
            self.notify(change.name, seen, None, initial);
        }
        if self.view.read().parts.iter().all(|part| part.listed) {
            self.synced.send_replace(true);
        }
        Ok(())
    }

    fn follow_late(&self, change: &Changes) -> Seen {
        let mut view = self.view.write();
        let seen = view.objects(change);
        // What was written meanwhile has its place already.
        if view.is_current(change) {
            view.follow(&change.name, &seen);
        }
        seen
    }

    /// Forgets everything: the server's history was rewound, or the kind itself is gone.
    pub(super) fn reset(&self, part: usize) {
        let (changes, seen) = {
            let mut view = self.view.write();
            let changes = view.parts[part].overlay.reset();
            let seen = view.follow_all(&changes);
            (changes, seen)
        };
        for (change, seen) in changes.into_iter().zip(seen) {
            self.notify(change.name, seen, None, true);
        }
    }

    fn identify(&self, identity: &Identity<'_>) -> Option<(Key, ObjectVersion)> {
        self.decoder.wants.identify(identity).map_err(|error| self.pass_over("", &error)).ok()
    }
}
