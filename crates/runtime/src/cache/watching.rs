//! Keeps a store fed: a streamed first list, then the watch, for ever, over every interruption.
//!
//! It speaks to the client directly, one level below `kube::runtime::watcher`, for the sake of the two things which
//! that one keeps to itself and reading one's own writes needs: the version of a list, and bookmarks. And its waiting is
//! on our clock.

use super::overlay::Stale;
use super::store::Store;
use crate::kind::Object;
use futures::{Stream, StreamExt};
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::Value;
use std::pin::pin;
use std::time::Duration;
use windlass_clock::Clock;

/// How long the server is asked to keep a watch open.
const WATCH_SECONDS: u64 = 290;
/// After the server should have ended a watch, how long to wait for it to say so before the connection counts as dead.
const GRACE: Duration = Duration::from_secs(15);
/// Objects per page where a server cannot stream a list.
const PAGE: usize = 500;
/// So many lists in a row from before what is known mean that the server's history was rewound, not that a replica lags.
const STALE_LISTS_TO_BELIEVE: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Marks the bookmark that ends a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

#[derive(Debug, thiserror::Error)]
enum Interrupted {
    #[error("the watch's version is too old; listing again")]
    Expired,
    #[error("the server does not stream lists; listing in pages")]
    NoStreaming,
    #[error("the list is older ({0:?}) than what is known; asking again")]
    Stale(Stale),
    #[error("the server ended the watch with an error: {0}")]
    Server(String),
    #[error("the watch was silent for too long")]
    Silent,
    #[error("the list ended before it was complete")]
    Cut,
    #[error("the request failed")]
    Request(#[source] Box<kube::Error>),
}

/// Feeds `store` until dropped.
pub(crate) async fn keep_watching<K: Object>(client: Client, clock: Clock, store: std::sync::Arc<Store<K>>) {
    let watching = Watching { client, clock, store };
    let mut streams = true;
    let mut listed = false;
    let mut stale_lists = 0;
    let mut pause = FIRST_PAUSE;
    loop {
        let began = watching.clock.moment();
        let before = watching.store.progress();
        let ended = match (listed, streams) {
            (true, _) => watching.watch().await,
            (false, true) => watching.list_by_streaming(&mut listed).await,
            (false, false) => watching.list_in_pages(&mut listed).await,
        };
        if listed {
            stale_lists = 0;
        }
        if watching.store.progress() > before || watching.clock.moment() - began > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        match ended {
            // The usual end of a watch; one that ends at once, again and again, is slowed down all the same.
            Ok(()) if watching.clock.moment() - began > FIRST_PAUSE => continue,
            Ok(()) => {}
            Err(Interrupted::NoStreaming) => {
                streams = false;
                continue;
            }
            Err(Interrupted::Expired) => listed = false,
            Err(Interrupted::Stale(stale)) => {
                stale_lists += 1;
                if stale_lists >= STALE_LISTS_TO_BELIEVE {
                    tracing::warn!(kind = %watching.store.kind(), ?stale, "the server's history was rewound; starting anew");
                    watching.store.reset();
                    stale_lists = 0;
                }
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::debug!(kind = %watching.store.kind(), cause, "watch interrupted: {error}");
            }
        }
        watching.clock.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

struct Watching<K> {
    client: Client,
    clock: Clock,
    store: std::sync::Arc<Store<K>>,
}

/// A page of a list, with its items unread.
#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

impl<K: Object> Watching<K> {
    /// Lists by a watch that begins with what is there, and goes on watching.
    async fn list_by_streaming(&self, listed: &mut bool) -> Result<(), Interrupted> {
        let query = format!(
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds={WATCH_SECONDS}"
        );
        let events = self.events(&query).await.map_err(|error| match error {
            // 422: the server knows the parameter and has it switched off; 400: it knows it not.
            Interrupted::Request(error) if matches!(&*error, kube::Error::Api(status) if matches!(status.code, 400 | 422)) => {
                Interrupted::NoStreaming
            }
            other => other,
        })?;
        let mut events = pin!(events);
        let mut objects = Vec::new();
        loop {
            match self.next(&mut events).await? {
                None => return Err(Interrupted::Cut),
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => objects.push(object),
                Some(WatchEvent::Deleted(gone)) => {
                    let uid = gone.pointer("/metadata/uid");
                    objects.retain(|object| object.pointer("/metadata/uid") != uid);
                }
                Some(WatchEvent::Bookmark(mark)) => {
                    if mark.metadata.annotations.contains_key(INITIAL_EVENTS_END) {
                        self.take_list(objects, &mark.metadata.resource_version)?;
                        *listed = true;
                        return self.follow(&mut events).await;
                    }
                }
                Some(WatchEvent::Error(status)) => return Err(ended_by(&status)),
            }
        }
    }

    async fn list_in_pages(&self, listed: &mut bool) -> Result<(), Interrupted> {
        let mut objects = Vec::new();
        let mut next = String::new();
        loop {
            let mut query = format!("limit={PAGE}");
            if !next.is_empty() {
                query.push_str("&continue=");
                query.push_str(&escape(&next));
            }
            let page: Page = self.client.request(self.request(&query)?).await.map_err(failed)?;
            objects.extend(page.items);
            next = page.metadata.next;
            if next.is_empty() {
                self.take_list(objects, &page.metadata.resource_version)?;
                *listed = true;
                return self.watch().await;
            }
        }
    }

    fn take_list(&self, objects: Vec<Value>, version: &str) -> Result<(), Interrupted> {
        let version = version.parse().map_err(|_| Interrupted::Cut)?;
        self.store.listed(objects, version).map_err(Interrupted::Stale)
    }

    /// Watches from where the store is.
    async fn watch(&self) -> Result<(), Interrupted> {
        let from = self.store.progress();
        let query = format!(
            "watch=true&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds={WATCH_SECONDS}"
        );
        let mut events = pin!(self.events(&query).await?);
        self.follow(&mut events).await
    }

    async fn follow<S>(&self, events: &mut S) -> Result<(), Interrupted>
    where
        S: Stream<Item = kube::Result<WatchEvent<Value>>> + Unpin,
    {
        while let Some(event) = self.next(events).await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => self.store.shown(object),
                WatchEvent::Deleted(object) => self.store.shown_deleted(&object),
                WatchEvent::Bookmark(mark) => {
                    if let Ok(version) = mark.metadata.resource_version.parse() {
                        self.store.bookmark(version);
                    }
                }
                WatchEvent::Error(status) => return Err(ended_by(&status)),
            }
        }
        Ok(())
    }

    async fn next<S>(&self, events: &mut S) -> Result<Option<WatchEvent<Value>>, Interrupted>
    where
        S: Stream<Item = kube::Result<WatchEvent<Value>>> + Unpin,
    {
        let limit = Duration::from_secs(WATCH_SECONDS) + GRACE;
        match self.clock.timeout(limit, events.next()).await {
            Ok(Some(event)) => event.map(Some).map_err(failed),
            Ok(None) => Ok(None),
            Err(_) => Err(Interrupted::Silent),
        }
    }

    async fn events(
        &self,
        query: &str,
    ) -> Result<impl Stream<Item = kube::Result<WatchEvent<Value>>> + Unpin + use<K>, Interrupted> {
        let events = self.client.request_events::<Value>(self.request(query)?).await.map_err(failed)?;
        Ok(Box::pin(events))
    }

    fn request(&self, query: &str) -> Result<http::Request<Vec<u8>>, Interrupted> {
        let path = self.store.kind().collection_path(self.store.namespace());
        http::Request::get(format!("{path}?{query}"))
            .body(Vec::new())
            .map_err(|error| Interrupted::Request(Box::new(kube::Error::HttpError(error))))
    }
}

fn failed(error: kube::Error) -> Interrupted {
    match &error {
        kube::Error::Api(status) if status.code == 410 => Interrupted::Expired,
        _ => Interrupted::Request(Box::new(error)),
    }
}

fn ended_by(status: &kube::core::Status) -> Interrupted {
    match status.code {
        410 => Interrupted::Expired,
        _ => Interrupted::Server(status.message.clone()),
    }
}

/// Percent-encodes what a continue token may hold beyond the unreserved characters.
fn escape(token: &str) -> String {
    let mut escaped = String::with_capacity(token.len());
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
