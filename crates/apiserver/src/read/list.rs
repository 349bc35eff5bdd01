//! Gets and lists: which version they show, page by page.

use super::continue_token::Token;
use super::options::{self, ListOptions, Match};
use super::{Scope, View};
use crate::read::Pieces;
use crate::status::Status;
use std::sync::Arc;
use std::time::Duration;
use windlass_store::{At, Entry, Key, ListQuery, Page, Revision, Store};

/// How long a request waits for a version that is not there yet.
const PATIENCE: Duration = Duration::from_secs(3);

const LIST_TOO_OLD: &str = "The resourceVersion for the provided list is too old.";

/// What a client is told whose next page can no longer be of the version of its first.
const PAGE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// One object of `scope`, not older than `resource_version`; none if it is not there.
///
/// # Errors
/// 500 for a version that is none (400 without a cache), 504 for one that does not come.
pub async fn get(
    store: &Store,
    key: &Key,
    resource_version: &str,
    scope: &Scope,
) -> Result<Option<Arc<Entry>>, Status> {
    let wanted = options::version(resource_version).map_err(|why| match scope.uncached {
        true => unreadable_version(&why),
        false => options::bad_version(why),
    })?;
    let found = if scope.ceiling.is_none() && wanted == 0 {
        store.get(key)
    } else {
        wait_for(store, scope, wanted).await?;
        // Compaction may pass between the two calls; then only the newest is left to show.
        store.get_at(key, scope.newest(store)).unwrap_or_else(|_| store.get(key))
    };
    match found {
        Some(entry) => Ok(Some(scope.converted(entry).await?)),
        None => Ok(None),
    }
}

/// A list's body.
///
/// # Errors
/// 400 for versions and tokens that are none, 410 for those that are forgotten, 504 for those that do not come.
pub async fn list(
    store: &Store,
    scope: &Scope,
    options: &ListOptions,
    view: &View,
) -> Result<Pieces, Status> {
    let page = page(store, scope, options).await?;
    Ok(view.list(&metadata(scope, &page, view), &page.items))
}

/// The JSON of a list's metadata.
pub(crate) fn metadata(scope: &Scope, page: &Page, view: &View) -> String {
    let mut metadata = format!(r#"{{"resourceVersion":"{}""#, page.revision);
    if let Some(last) = page.items.last().filter(|_| page.more) {
        let namespace = if scope.namespace.is_some() { "" } else { &*last.key().namespace };
        let after = (namespace.to_owned(), last.key().name.to_string());
        let token = Token { version: Some(page.revision.0), after }.encode();
        metadata.push_str(&format!(r#","continue":"{token}""#));
        if let Some(remaining) = page.remaining {
            metadata.push_str(&format!(r#","remainingItemCount":{remaining}"#));
        }
    } else if view.is_typed() {
        metadata.push_str(r#","continue":"""#);
    }
    metadata.push('}');
    metadata
}

/// The objects that a list shows, for those who do something else with them than send them.
///
/// # Errors
/// As [`list`].
pub async fn page(store: &Store, scope: &Scope, options: &ListOptions) -> Result<Page, Status> {
    let token = match options.continue_token.as_str() {
        "" => None,
        text => Some(
            Token::decode(text)
                .map_err(|why| Status::bad_request(format!("invalid continue token: {why}")))?,
        ),
    };
    let any_version = matches!(options.resource_version.as_str(), "" | "0");
    if token.is_some() && !any_version {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let wanted = options::version(&options.resource_version).map_err(|why| unreadable_version(&why))?;
    // A list of any version is answered whole, whatever its limit, where it comes from a cache.
    let whole = options.resource_version == "0" && !scope.uncached;
    let limit = if whole { 0 } else { usize::try_from(options.limit).unwrap_or(0) };
    let exact = match &token {
        Some(token) => token.version,
        None if options.resource_version_match == Some(Match::Exact) => Some(wanted),
        // A limit and a version without a match mean exactly that version.
        None if options.resource_version_match.is_none() && limit > 0 && wanted > 0 => Some(wanted),
        None => None,
    };
    wait_for(store, scope, exact.unwrap_or(wanted)).await?;
    let at = match (exact, scope.ceiling) {
        (Some(exact), _) => At::Exact(Revision(exact)),
        (None, Some(_)) => At::Exact(scope.newest(store)),
        (None, None) => At::Latest,
    };
    if let Some(key) = scope.key() {
        let page = page_of_one(store, &key, at).ok_or_else(|| Status::expired(LIST_TOO_OLD))?;
        return Ok(Page { items: scope.select(page.items, 0).await?, ..page });
    }
    let accepts = |entry: &Entry| scope.accepts(entry);
    let after = token.as_ref().map(|token| {
        let (namespace, name) = &token.after;
        let namespace = scope.namespace.as_deref().unwrap_or(namespace);
        (namespace, name.as_str())
    });
    // What is selected after it was converted is not selected by the store.
    let selects_later = scope.converter.is_some() && scope.filter.is_some();
    let filter: Option<&(dyn Fn(&Entry) -> bool + Sync)> = match scope.filter {
        Some(_) if !selects_later => Some(&accepts),
        _ => None,
    };
    let at_most = if selects_later { 0 } else { limit };
    let listed = store.list(&ListQuery { at, after, limit: at_most, filter, ..scope.query() });
    let mut page = listed.map_err(|_| match token {
        Some(token) => {
            let mut status = Status::expired(PAGE_TOO_OLD);
            status.continue_token = Token { version: None, after: token.after }.encode();
            status
        }
        None => Status::expired(LIST_TOO_OLD),
    })?;
    if scope.converter.is_some() {
        page.items = scope.select(page.items, limit).await?;
        if selects_later && limit > 0 && page.items.len() > limit {
            page.items.truncate(limit);
            (page.more, page.remaining) = (true, None);
        }
    }
    Ok(page)
}

fn unreadable_version(why: &str) -> Status {
    Status::bad_request(format!("invalid resource version: {why}"))
}

/// A list that can hold one object only, selected or not; none if that version is forgotten.
fn page_of_one(store: &Store, key: &Key, at: At) -> Option<Page> {
    let (mut revision, found) = match at {
        At::Exact(revision) => (revision, store.get_at(key, revision).ok()?),
        At::Latest => {
            let newest = store.revision();
            // Compaction may pass between the two calls; then only the newest is left to show.
            (newest, store.get_at(key, newest).unwrap_or_else(|_| store.get(key)))
        }
    };
    let items: Vec<_> = found.into_iter().collect();
    for entry in &items {
        revision = revision.max(entry.revision());
    }
    Some(Page { revision, items, more: false, remaining: None })
}

/// Waits until `wanted` is there, for as long as a request may.
pub(super) async fn wait_for(store: &Store, scope: &Scope, wanted: u64) -> Result<(), Status> {
    if wanted <= scope.newest(store).0 {
        return Ok(());
    }
    let clock = store.clock();
    // Someone who is shown the past does not see it arrive.
    let arrived = match scope.ceiling {
        Some(_) => {
            clock.sleep(PATIENCE).await;
            false
        }
        None => clock.timeout(PATIENCE, store.wait_for(Revision(wanted))).await.is_ok(),
    };
    if arrived { Ok(()) } else { Err(Status::version_too_large(wanted, scope.newest(store).0)) }
}
