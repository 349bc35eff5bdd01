//! A store whose type is forgotten: what observing and acting use.

use super::intake::Unreadable;
use super::object::AnyObject;
use super::overlay::Stamp;
use super::scope::Scope;
use super::stats::Stats;
use super::store::{Listener, Listening, Origin, Store};
use crate::key::Key;
use crate::kind::{Cached, Kind};
use crate::relation::{Resolved, Select};
use std::sync::Arc;
use tokio::sync::watch;

/// A [`Store`] whose type is forgotten.
pub(crate) trait AnyStore: Send + Sync + std::fmt::Debug {
    fn kind(&self) -> &Kind;
    fn scope(&self) -> &Scope;
    fn is_synced(&self) -> bool;
    fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>>;
    fn stamp(&self, key: &Key) -> Option<Stamp>;
    fn cluster(&self) -> &Arc<str>;
    fn keys(&self) -> Vec<Key>;
    fn list(&self) -> Vec<Arc<dyn AnyObject>>;
    fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>>;
    fn count_owned_by(&self, uid: &str) -> usize;
    fn select(&self, relation: &Resolved) -> Vec<Arc<dyn AnyObject>>;
    fn wrote(&self, key: &Key, stamp: &Stamp, text: &[u8], origin: Option<Origin>) -> Result<(), Unreadable>;
    fn wrote_gone(&self, key: &Key, last: &Stamp, origin: Option<Origin>);
    fn listen(&self, listener: Listener);
    fn listen_while(&self, listener: Listener) -> Listening;
    fn index_labels(&self);
    fn stats(&self) -> Stats;
    fn subscribe_synced(&self) -> watch::Receiver<bool>;
}

fn erase<K: Cached>(object: Arc<K>) -> Arc<dyn AnyObject> {
    object
}

impl<K: Cached> AnyStore for Store<K> {
    fn kind(&self) -> &Kind {
        Self::kind(self)
    }

    fn scope(&self) -> &Scope {
        Self::scope(self)
    }

    fn is_synced(&self) -> bool {
        *self.subscribe_synced().borrow()
    }

    fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>> {
        Self::get(self, key).map(erase)
    }

    fn stamp(&self, key: &Key) -> Option<Stamp> {
        Self::stamp(self, key)
    }

    fn cluster(&self) -> &Arc<str> {
        Self::cluster(self)
    }

    fn keys(&self) -> Vec<Key> {
        Self::keys(self)
    }

    fn list(&self) -> Vec<Arc<dyn AnyObject>> {
        Self::list(self).into_iter().map(erase).collect()
    }

    fn count_owned_by(&self, uid: &str) -> usize {
        self.view.read().count_owned_by(uid)
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        Self::owned_by(self, uid).into_iter().map(erase).collect()
    }

    fn select(&self, relation: &Resolved) -> Vec<Arc<dyn AnyObject>> {
        if let Select::Term(index, _) = &relation.select {
            if !index.reads::<K>() {
                let kind = self.kind();
                tracing::error!(%kind, index = index.name(), "the index is for another type: nothing is found");
                return Vec::new();
            }
            self.make_index(index);
        }
        let found = self.view.read().select(self.cluster(), relation);
        found.into_iter().map(erase).collect()
    }

    fn wrote(&self, key: &Key, stamp: &Stamp, text: &[u8], origin: Option<Origin>) -> Result<(), Unreadable> {
        Self::take_text(self, key, stamp, text, origin)
    }

    fn wrote_gone(&self, key: &Key, last: &Stamp, origin: Option<Origin>) {
        Self::wrote_gone(self, key, last, origin);
    }

    fn listen(&self, listener: Listener) {
        Self::listen(self, listener);
    }

    fn listen_while(&self, listener: Listener) -> Listening {
        Self::listen_while(self, listener)
    }

    fn index_labels(&self) {
        self.view.write().index_labels();
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }

    fn subscribe_synced(&self) -> watch::Receiver<bool> {
        Self::subscribe_synced(self)
    }
}
