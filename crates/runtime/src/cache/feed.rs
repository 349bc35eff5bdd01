//! What the watch of one part says, and how a store takes it in.

use super::intake::{Held, Identity, Raw};
use super::overlay::{Stale, Stamp};
use super::stats::count;
use super::store::Store;
use crate::key::Key;
use crate::kind::Cached;

/// An object that a list shows, as it enters the view.
pub(super) type Item<K> = (Key, Stamp, Held<K>);

impl<K: Cached> Store<K> {
    /// Up to which version the watch has been seen.
    pub(super) fn progress(&self, part: usize) -> u64 {
        self.view.read().parts[part].overlay.progress()
    }

    pub(super) fn shown(&self, part: usize, identity: &Identity<'_>, raw: Raw<'_>) {
        count(&self.counters.events);
        let Some((key, stamp)) = self.identify(identity) else { return };
        if !self.view.read().parts[part].overlay.is_news(&key, &stamp) {
            // Mostly the echo of our own write: its answer has been read already.
            self.view.write().parts[part].overlay.passed(stamp.version);
            return;
        }
        match self.intake.read(&key, raw) {
            Ok(held) => {
                self.counters.readable(&key);
                self.change(None, |view| view.parts[part].overlay.shown(key, stamp, held));
            }
            Err(error) => {
                self.pass_over(&key.to_string(), &error);
                self.change(None, |view| view.parts[part].overlay.shown_out(key, &stamp));
            }
        }
    }

    pub(super) fn shown_deleted(&self, part: usize, identity: &Identity<'_>) {
        count(&self.counters.events);
        if let Some((key, stamp)) = self.identify(identity) {
            self.counters.readable(&key);
            self.change(None, |view| view.parts[part].overlay.shown_deleted(key, &stamp));
        }
    }

    pub(super) fn bookmark(&self, part: usize, version: u64) {
        self.view.write().parts[part].overlay.bookmark(version);
    }

    /// Reads what a list shows. What is held already at that version is not read again.
    pub(super) fn item(&self, part: usize, identity: &Identity<'_>, raw: Raw<'_>) -> Option<Item<K>> {
        let (key, stamp) = self.identify(identity)?;
        {
            let view = self.view.read();
            let overlay = &view.parts[part].overlay;
            if let (true, Some(held)) = (overlay.stamp(&key) == Some(&stamp), overlay.get(&key)) {
                return Some((key, stamp, held.clone()));
            }
        }
        match self.intake.read(&key, raw) {
            Ok(held) => Some((key, stamp, held)),
            Err(error) => {
                self.pass_over(&key.to_string(), &error);
                None
            }
        }
    }

    pub(super) fn listed(&self, part: usize, items: Vec<Item<K>>, version: u64) -> Result<(), Stale> {
        let (changes, initial, complete) = {
            let mut view = self.view.write();
            let changes = view.parts[part].overlay.listed(items, version)?;
            changes.iter().for_each(|change| view.follow(change));
            let initial = !std::mem::replace(&mut view.parts[part].listed, true);
            (changes, initial, view.parts.iter().all(|part| part.listed))
        };
        count(&self.counters.lists);
        if complete {
            self.synced.send_replace(true);
        }
        for change in changes {
            self.tell(change, None, initial);
        }
        Ok(())
    }

    /// Forgets everything: the server's history was rewound, or the kind itself is gone.
    pub(super) fn reset(&self, part: usize) {
        let changes = {
            let mut view = self.view.write();
            let changes = view.parts[part].overlay.reset();
            changes.iter().for_each(|change| view.follow(change));
            changes
        };
        for change in changes {
            self.tell(change, None, true);
        }
    }

    fn identify(&self, identity: &Identity<'_>) -> Option<(Key, Stamp)> {
        self.intake.identify(identity).map_err(|error| self.pass_over("", &error)).ok()
    }
}
