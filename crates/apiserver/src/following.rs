//! Indexes that follow the store: before they are read they take in what has changed, so that a write counts from the next
//! request on.

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use windlass_store::{Entry, Kind, ListQuery, Store, Watcher};

/// What is known of some stored objects.
pub(crate) trait Index: Default {
    /// The resources that are followed, by their keys in the store.
    const RESOURCES: &'static [&'static str];

    /// Takes in an object, or that it is gone.
    fn take(&mut self, entry: &Entry, gone: bool);
}

/// An index, and the store that it follows.
pub(crate) struct Following<I> {
    store: Arc<Store>,
    followed: RwLock<Followed<I>>,
}

#[derive(Default)]
struct Followed<I> {
    index: I,
    /// Empty before it is first read.
    watchers: Vec<Watcher>,
}

impl<I: Index> Following<I> {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, followed: RwLock::default() }
    }

    /// The index of what is stored now.
    pub(crate) fn current(&self) -> MappedRwLockReadGuard<'_, I> {
        let followed = self.followed.read();
        if followed.is_current() {
            return RwLockReadGuard::map(followed, |followed| &followed.index);
        }
        drop(followed);
        let mut followed = self.followed.write();
        followed.catch_up(&self.store);
        RwLockReadGuard::map(RwLockWriteGuard::downgrade(followed), |followed| &followed.index)
    }
}

impl<I: Index> Followed<I> {
    fn is_current(&self) -> bool {
        !self.watchers.is_empty() && self.watchers.iter().all(|watcher| !watcher.is_behind())
    }

    fn catch_up(&mut self, store: &Store) {
        let mut watchers = std::mem::take(&mut self.watchers);
        let behind = watchers.is_empty() || watchers.iter_mut().any(|watcher| self.follow(watcher).is_none());
        self.watchers = if behind { self.read_all(store) } else { watchers };
    }

    /// Takes in what has changed; none if that is forgotten.
    fn follow(&mut self, watcher: &mut Watcher) -> Option<()> {
        while let Some(event) = watcher.try_next().ok()? {
            self.index.take(&event.entry, event.kind == Kind::Deleted);
        }
        Some(())
    }

    /// Begins anew with what is there.
    fn read_all(&mut self, store: &Store) -> Vec<Watcher> {
        self.index = I::default();
        let mut watchers = Vec::new();
        for resource in I::RESOURCES {
            // Between the two history may be forgotten, so that there is nothing to go on from; then it is read again.
            loop {
                let Ok(page) = store.list(&ListQuery::all(resource)) else { continue };
                let Ok(watcher) = store.watch(resource, None, page.revision) else { continue };
                page.items.iter().for_each(|entry| self.index.take(entry, false));
                watchers.push(watcher);
                break;
            }
        }
        watchers
    }
}
