//! What get, list and watch requests answer, apart from how they were routed and in which media type they are sent.
//!
//! In come [`ListOptions`] (from the query), a [`Scope`] (which objects), a [`View`] (in which form) and, for watches, a
//! [`WatchControl`] (who may end or hold it back); out come JSON bytes or a [`Status`](crate::Status).
//!
//! Lists and watches are put together from bytes that the store has already; an object is parsed only for a form that
//! differs from the stored one, such as metadata alone or a table. What was encoded for one client is shared with all
//! others that ask for the same form.

mod continue_token;
mod converted;
mod list;
mod message;
mod options;
mod pieces;
mod poll_on_wake;
mod shape;
#[cfg(test)]
mod tests;
mod view;
mod watch;

pub(crate) use converted::EntryConverter;
pub(crate) use list::metadata;
pub use list::{get, list, page};
pub(crate) use message::{METADATA_ONLY, Message};
pub use options::{ListOptions, Match};
pub use pieces::Pieces;
pub(crate) use poll_on_wake::PollOnWake;
pub(crate) use shape::{MetadataOnly, Shape, joined, metadata_of};
pub use view::{Transform, View};
pub use watch::{Hold, WatchBody, WatchControl, watch};

use std::sync::Arc;
use windlass_store::{Entry, Key, ListQuery, Revision, Store};

/// A predicate on objects, such as a label selector.
pub type Filter = Arc<dyn Fn(&Entry) -> bool + Send + Sync>;

/// Which objects a list or a watch is about.
#[derive(Clone, Default)]
pub struct Scope {
    /// As in [`Key::resource`](windlass_store::Key::resource).
    pub resource: Arc<str>,
    /// Only this namespace: from the path, or from a field selector that asks for exactly one.
    pub namespace: Option<Arc<str>>,
    /// Only this name, from a field selector that asks for exactly one; only where it names one object, that is with the
    /// namespace or for what has none. Such a list is never cut into pages.
    pub name: Option<Arc<str>>,
    /// What the selectors accept, all of them together. None if there are none: lists then count what remains.
    pub filter: Option<Filter>,
    /// Answer as if nothing had happened after this revision: a fault, or none.
    pub ceiling: Option<Revision>,
    /// Whether the reference has no cache of it: even lists of any version are then cut into pages.
    pub uncached: bool,
    /// Brings stored objects into the version that is asked for, where that takes more than their bytes. Selectors look at
    /// what they are in that version.
    pub(crate) converter: Option<Arc<dyn EntryConverter>>,
}

impl Scope {
    /// All objects of a resource, or those of one namespace.
    pub fn new(resource: impl Into<Arc<str>>, namespace: Option<&str>) -> Self {
        Self { resource: resource.into(), namespace: namespace.map(Into::into), ..Self::default() }
    }

    /// The same, but only what `filter` accepts.
    #[must_use]
    pub fn with_filter(mut self, filter: Option<Filter>) -> Self {
        self.filter = filter;
        self
    }

    /// The same, but only the object of this name.
    #[must_use]
    pub fn with_name(mut self, name: Option<&str>) -> Self {
        self.name = name.map(Into::into);
        self
    }

    /// The same, as of an older revision.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Option<Revision>) -> Self {
        self.ceiling = ceiling;
        self
    }

    /// The same, of a resource that the reference keeps no cache of.
    #[must_use]
    pub fn without_cache(mut self, uncached: bool) -> Self {
        self.uncached = uncached;
        self
    }

    fn accepts(&self, entry: &Entry) -> bool {
        self.name.as_ref().is_none_or(|name| *name == entry.key().name)
            && self.filter.as_ref().is_none_or(|filter| filter(entry))
    }

    /// The one object that it is about, if it can be only one.
    fn key(&self) -> Option<Key> {
        let namespace = self.namespace.clone().unwrap_or_default();
        Some(Key::new(self.resource.clone(), namespace, self.name.clone()?))
    }

    fn query(&self) -> ListQuery<'_> {
        ListQuery { namespace: self.namespace.as_deref(), ..ListQuery::all(&self.resource) }
    }

    /// The newest revision that this request may see. What is forgotten cannot be shown any more.
    fn newest(&self, store: &Store) -> Revision {
        let newest = store.revision();
        match self.ceiling {
            Some(ceiling) if ceiling < newest => ceiling.max(store.oldest(&self.resource)).min(newest),
            _ => newest,
        }
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope")
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("filtered", &self.filter.is_some())
            .field("ceiling", &self.ceiling)
            .finish()
    }
}
