//! Lists: a consistent view of one resource at one revision, read in pieces so that no writer waits for a long one.

use super::key::{Revision, path};
use super::{Compacted, Entry, Store};
use std::ops::Bound;
use std::sync::Arc;

/// Which state to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The newest.
    Latest,
    /// What it was at this revision; one that is still to come means the newest.
    Exact(Revision),
}

/// What to list.
#[derive(Clone, Copy)]
pub struct ListQuery<'a> {
    /// As in [`Key::resource`](super::Key::resource).
    pub resource: &'a str,
    /// Only this namespace.
    pub namespace: Option<&'a str>,
    /// At which revision.
    pub at: At,
    /// Only what comes after this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// The largest number of objects; 0 for all.
    pub limit: usize,
    /// Only what this accepts. It runs outside the lock.
    pub filter: Option<&'a (dyn Fn(&Entry) -> bool + Sync)>,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The revision that it shows.
    pub revision: Revision,
    /// What was found, in order.
    pub items: Vec<Arc<Entry>>,
    /// Does anything follow, whether the filter would accept it or not?
    pub more: bool,
    /// How many follow, if there is no filter.
    pub remaining: Option<usize>,
}

impl<'a> ListQuery<'a> {
    /// Everything of `resource`, as it is.
    pub fn all(resource: &'a str) -> Self {
        Self { resource, namespace: None, at: At::Latest, after: None, limit: 0, filter: None }
    }
}

/// How many keys are looked at before the lock is given back.
const CHUNK: usize = 2048;

/// How often a list of the newest state starts over because compaction passed it by, before it holds the lock throughout.
const ATTEMPTS: usize = 3;

impl Store {
    /// Lists objects.
    ///
    /// # Errors
    /// [`Compacted`] when that revision is forgotten.
    pub fn list(&self, query: &ListQuery<'_>) -> Result<Page, Compacted> {
        match query.at {
            At::Exact(revision) => self.read_page(query, revision.min(self.revision()), CHUNK),
            At::Latest => {
                for _ in 0..ATTEMPTS {
                    if let Ok(page) = self.read_page(query, self.revision(), CHUNK) {
                        return Ok(page);
                    }
                }
                self.read_page(query, Revision(u64::MAX), usize::MAX)
            }
        }
    }

    /// `u64::MAX` stands for whatever is newest when the lock is first held.
    fn read_page(&self, query: &ListQuery<'_>, revision: Revision, chunk: usize) -> Result<Page, Compacted> {
        let (mut from, to) = bounds(query);
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        let mut page = Page { revision, items: Vec::new(), more: false, remaining: None };
        let mut following = 0;
        loop {
            let (entries, last) = {
                let resources = self.state.resources.read();
                page.revision.0 = page.revision.0.min(resources.revision);
                Compacted::check(page.revision, resources.oldest(query.resource))?;
                match resources.by_resource.get(query.resource) {
                    Some(objects) => {
                        let range = (from.as_ref().map(String::as_str), to.as_ref().map(String::as_str));
                        objects.scan(range, page.revision, chunk)
                    }
                    None => (Vec::new(), None),
                }
            };
            for entry in entries {
                if page.items.len() == limit {
                    following += 1;
                } else if query.filter.is_none_or(|accepts| accepts(&entry)) {
                    page.items.push(entry);
                }
            }
            let counted = following > 0 && query.filter.is_some();
            match last {
                Some(last) if !counted => from = Bound::Excluded(last.as_ref().to_owned()),
                _ => break,
            }
        }
        page.more = following > 0;
        page.remaining = query.filter.is_none().then_some(following);
        Ok(page)
    }
}

fn bounds(query: &ListQuery<'_>) -> (Bound<String>, Bound<String>) {
    let namespace = query.namespace.filter(|namespace| !namespace.is_empty());
    let (mut from, to) = match namespace {
        // What starts with `namespace/` comes before `namespace0`: 0 is the character after the slash.
        Some(namespace) => {
            (Bound::Included(format!("{namespace}/")), Bound::Excluded(format!("{namespace}0")))
        }
        None => (Bound::Unbounded, Bound::Unbounded),
    };
    if let Some((namespace, name)) = query.after {
        let after = path(namespace, name);
        let later = match &from {
            Bound::Included(first) => after >= *first,
            _ => true,
        };
        if later {
            from = Bound::Excluded(after);
        }
    }
    // An inverted range makes BTreeMap panic; a client may have forged the token that this comes from.
    if let (Bound::Excluded(first), Bound::Excluded(end)) = (&from, &to)
        && first >= end
    {
        from = Bound::Included(end.clone());
    }
    (from, to)
}
