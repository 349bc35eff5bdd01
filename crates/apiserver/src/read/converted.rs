//! Objects that must be brought into the version of a request before they can be selected and shown: which takes time, and may fail.

use super::Scope;
use super::view::Told;
use crate::status::Status;
use futures::future::BoxFuture;
use std::sync::Arc;
use windlass_store::{Entry, Event, Kind};

/// How many objects are converted before it is looked whether they are enough.
const SOME: usize = 500;

/// Brings stored entries into the version of a request.
pub(crate) trait EntryConverter: Send + Sync {
    /// The entries in that version, in their order.
    fn convert<'a>(&'a self, entries: &'a [Arc<Entry>]) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Status>>;
}

impl Scope {
    /// The same, of objects that are stored in another version than they are shown in.
    #[must_use]
    pub(crate) fn with_converter(mut self, converter: Option<Arc<dyn EntryConverter>>) -> Self {
        self.converter = converter;
        self
    }

    /// An entry as it is shown.
    pub(super) async fn converted(&self, entry: Arc<Entry>) -> Result<Arc<Entry>, Status> {
        match &self.converter {
            None => Ok(entry),
            Some(converter) => {
                let mut converted = converter.convert(std::slice::from_ref(&entry)).await?;
                converted.pop().ok_or_else(|| Status::internal("an object is lost in conversion"))
            }
        }
    }

    /// Of stored entries those that are in the scope, as they are shown; one more than `limit` at most, if that is not 0.
    pub(super) async fn select(
        &self,
        entries: Vec<Arc<Entry>>,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, Status> {
        let Some(converter) = &self.converter else {
            return Ok(entries.into_iter().filter(|entry| self.accepts(entry)).collect());
        };
        let mut selected = Vec::new();
        for some in entries.chunks(SOME) {
            let converted = converter.convert(some).await?;
            selected.extend(converted.into_iter().filter(|entry| self.accepts(entry)));
            if limit > 0 && selected.len() > limit {
                selected.truncate(limit + 1);
                break;
            }
        }
        Ok(selected)
    }

    /// What a watcher is told of an event, and of which object; nothing if it does not concern it.
    pub(super) async fn told(&self, event: &Event) -> Result<Option<(Told, Arc<Entry>)>, Status> {
        let deleted = event.kind == Kind::Deleted;
        let is_named = self.name.as_ref().is_none_or(|name| *name == event.entry.key().name);
        if !is_named {
            return Ok(None);
        }
        // What it was matters only if it may have been selected or not.
        let before = match &event.before {
            Some(before) if deleted || self.filter.is_some() => Some(self.converted(before.clone()).await?),
            _ => None,
        };
        let now = match deleted {
            true => None,
            false => Some(self.converted(event.entry.clone()).await?),
        };
        let was = match &before {
            Some(before) => self.accepts(before),
            None => event.before.is_some(),
        };
        let is = now.as_ref().is_some_and(|now| self.accepts(now));
        let last = || before.as_ref().map(|before| Arc::new(before.at(event.revision())));
        Ok(match (was, is, now) {
            (false, true, Some(now)) => Some((Told::Added, now)),
            (true, true, Some(now)) => Some((Told::Modified, now)),
            (true, false, _) if deleted => last().map(|last| (Told::Deleted, last)),
            (true, false, _) => last().map(|last| (Told::Left, last)),
            _ => None,
        })
    }
}
