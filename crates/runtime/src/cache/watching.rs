//! Keeps a part of a store fed: a streamed first list, then the watch, for ever, over every interruption.
//!
//! It speaks to the client directly, one level below `kube::runtime::watcher`, for the sake of what that one keeps to
//! itself: reading one's own writes needs the version of a list, and bookmarks; an object that cannot be read must not
//! end a watch; and an event that is no news need not be read at all. And its waiting is on our clock.

use super::any_store::AnyStore;
use super::decoder::{Identity, Raw};
use super::overlay::Stale;
use super::stats::count;
use super::watch_events::Listing;
use super::wire::{Event, Lines, NextLine, Page, escape, read_event, request};
use futures::AsyncBufRead;
use kube::Client;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// How long the server is asked to keep a watch open; and when a test drives the clock, whose hours would otherwise consist of watches that
/// begin anew.
const WATCH_SECONDS: u64 = 290;
const DRIVEN_WATCH_SECONDS: u64 = 2_900;
/// After the server should have ended a watch, how long to wait for it to say so before the connection counts as dead.
const GRACE: Duration = Duration::from_secs(15);
/// Objects per page where a server cannot stream a list.
const PAGE: usize = 500;
/// The number of lists in a row from before what is known that mean that the server's history was rewound, not that a replica lags.
const STALE_LISTS_TO_BELIEVE: u32 = 8;
/// The number of times in a row that the server must say that it has no such kind before its objects count as gone: one that just
/// started may not know all its kinds yet.
const MISSES_TO_BELIEVE: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A kind that is not there yet is often on its way, and asking for it costs the server nothing.
const LONGEST_PAUSE_FOR_KIND: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
enum Interrupted {
    #[error("the watch's version is too old; listing again")]
    Expired,
    #[error("the server does not stream lists; listing in pages")]
    NoStreaming,
    #[error("the list is older ({0:?}) than what is known; asking again")]
    Stale(Stale),
    #[error("the server has no such kind")]
    Missing,
    #[error("the server ended the watch with an error: {0}")]
    Server(String),
    #[error("the watch was silent for too long")]
    Silent,
    #[error("the list ended before it was complete")]
    Cut,
    #[error("the request failed")]
    Request(#[source] Box<kube::Error>),
    #[error("the connection broke")]
    Broken(#[source] std::io::Error),
}

/// Feeds the part of a store that is of `namespace` until dropped.
pub(super) async fn keep_watching(
    client: Client,
    clock: Clock,
    store: Arc<AnyStore>,
    part: usize,
    namespace: Option<Arc<str>>,
) {
    let watching = Watching { client, clock, store, part, namespace };
    let mut state = State { streams: true, listed: false, stale_lists: 0, misses: 0, pause: FIRST_PAUSE };
    loop {
        watching.once(&mut state).await;
    }
}

struct State {
    /// Whether the server streams lists, as far as is known.
    streams: bool,
    listed: bool,
    stale_lists: u32,
    misses: u32,
    pause: Duration,
}

struct Watching {
    client: Client,
    clock: Clock,
    store: Arc<AnyStore>,
    part: usize,
    namespace: Option<Arc<str>>,
}

type Body = Pin<Box<dyn AsyncBufRead + Send>>;

impl Watching {
    /// Lists if need be, watches until that ends, and waits before the next time.
    async fn once(&self, state: &mut State) {
        let began = self.clock.moment();
        let before = self.store.progress(self.part);
        let ended = match (state.listed, state.streams) {
            (true, _) => self.watch().await,
            (false, true) => self.list_by_streaming(&mut state.listed).await,
            (false, false) => self.list_in_pages(&mut state.listed).await,
        };
        if state.listed {
            state.stale_lists = 0;
        }
        let took = self.clock.moment() - began;
        if self.store.progress(self.part) > before || took > LONGEST_PAUSE {
            state.pause = FIRST_PAUSE;
        }
        state.misses = if matches!(ended, Err(Interrupted::Missing)) { state.misses + 1 } else { 0 };
        let mut longest = LONGEST_PAUSE;
        match ended {
            // The usual end of a watch; one that ends at once, again and again, is slowed down all the same.
            Ok(()) if took > FIRST_PAUSE => return,
            Ok(()) => {}
            Err(Interrupted::NoStreaming) => {
                state.streams = false;
                return;
            }
            Err(Interrupted::Expired) => state.listed = false,
            Err(Interrupted::Stale(stale)) => {
                state.stale_lists += 1;
                if state.stale_lists >= STALE_LISTS_TO_BELIEVE {
                    tracing::warn!(kind = %self.store.kind(), ?stale, "the server's history was rewound; starting anew");
                    self.store.reset(self.part);
                    state.stale_lists = 0;
                }
            }
            Err(error) => {
                self.interrupted(&error);
                if matches!(error, Interrupted::Missing) {
                    longest = LONGEST_PAUSE_FOR_KIND;
                    if state.misses >= MISSES_TO_BELIEVE && state.listed {
                        tracing::warn!(kind = %self.store.kind(), "the server has no such kind any more; nor have we its objects");
                        self.store.reset(self.part);
                        state.listed = false;
                    }
                }
            }
        }
        self.clock.sleep(state.pause.min(longest)).await;
        state.pause = (state.pause * 2).min(longest);
    }

    fn interrupted(&self, error: &Interrupted) {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::debug!(kind = %self.store.kind(), cause, "watch interrupted: {error}");
        count(&self.store.counters.disconnects);
        let why = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        self.store.counters.trouble(self.namespace.as_deref(), Some(why));
    }

    /// Lists by a watch that begins with what is there, and goes on watching.
    async fn list_by_streaming(&self, listed: &mut bool) -> Result<(), Interrupted> {
        let seconds = self.watch_seconds();
        let query = format!(
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds={seconds}"
        );
        let mut lines = self.lines(&query).await.map_err(|error| match error {
            // 422: the server knows the parameter and has it switched off; 400: it knows it not.
            Interrupted::Request(error) if matches!(&*error, kube::Error::Api(status) if matches!(status.code, 400 | 422)) => {
                Interrupted::NoStreaming
            }
            other => other,
        })?;
        self.store.counters.forget_unreadable(self.namespace.as_deref());
        let mut list = self.store.list_anew(self.part);
        while self.next(&mut lines).await? {
            match self.event(&lines) {
                Event::Shown(identity) => list.show(&identity, Raw::Event(lines.line())),
                Event::Deleted(gone) => list.gone(&gone.uid),
                Event::Bookmark(version, true) => {
                    take_list(list, version)?;
                    *listed = true;
                    return self.follow(lines).await;
                }
                Event::Bookmark(..) | Event::Nonsense => {}
                Event::Error(code, message) => return Err(ended_by(code, message)),
            }
        }
        Err(Interrupted::Cut)
    }

    async fn list_in_pages(&self, listed: &mut bool) -> Result<(), Interrupted> {
        self.store.counters.forget_unreadable(self.namespace.as_deref());
        let mut list = self.store.list_anew(self.part);
        let mut next = String::new();
        loop {
            let mut query = format!("limit={PAGE}");
            if !next.is_empty() {
                query.push_str("&continue=");
                query.push_str(&escape(&next));
            }
            let page: Page = self.client.request(self.request(&query)?).await.map_err(failed)?;
            for object in &page.items {
                list.show(&Identity::of(object), Raw::Json(object));
            }
            next = page.metadata.next;
            if next.is_empty() {
                take_list(list, page.metadata.resource_version.parse().unwrap_or_default())?;
                *listed = true;
                return self.watch().await;
            }
        }
    }

    /// Watches from where the store is.
    async fn watch(&self) -> Result<(), Interrupted> {
        let from = self.store.progress(self.part);
        let seconds = self.watch_seconds();
        let query =
            format!("watch=true&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds={seconds}");
        let lines = self.lines(&query).await?;
        self.follow(lines).await
    }

    async fn follow(&self, mut lines: Lines<Body>) -> Result<(), Interrupted> {
        self.store.counters.trouble(self.namespace.as_deref(), None);
        while self.next(&mut lines).await? {
            match self.event(&lines) {
                Event::Shown(identity) => self.store.shown(self.part, &identity, Raw::Event(lines.line())),
                Event::Deleted(identity) => self.store.shown_deleted(self.part, &identity),
                Event::Bookmark(version, _) => self.store.bookmark(self.part, version),
                Event::Nonsense => {}
                Event::Error(code, message) => return Err(ended_by(code, message)),
            }
        }
        Ok(())
    }

    fn watch_seconds(&self) -> u64 {
        if self.clock.is_driven() { DRIVEN_WATCH_SECONDS } else { WATCH_SECONDS }
    }

    /// Whether there is another line.
    async fn next(&self, lines: &mut Lines<Body>) -> Result<bool, Interrupted> {
        let limit = Duration::from_secs(self.watch_seconds()) + GRACE;
        loop {
            let next = self.clock.timeout(limit, lines.next()).await.map_err(|_| Interrupted::Silent)?;
            match next.map_err(Interrupted::Broken)? {
                NextLine::End => return Ok(false),
                NextLine::Whole => return Ok(true),
                NextLine::TooLong => {
                    let error = std::io::Error::other("an event is longer than any object may be");
                    self.store.pass_over("", &error);
                }
            }
        }
    }

    /// The event in a line. What is none is passed over.
    fn event<'a>(&self, lines: &'a Lines<Body>) -> Event<'a> {
        read_event(lines.line()).unwrap_or_else(|error| {
            self.store.pass_over("", &error);
            Event::Nonsense
        })
    }

    async fn lines(&self, query: &str) -> Result<Lines<Body>, Interrupted> {
        let body = self.client.request_stream(self.request(query)?).await.map_err(failed)?;
        Ok(Lines::new(Box::pin(body)))
    }

    fn request(&self, query: &str) -> Result<http::Request<Vec<u8>>, Interrupted> {
        let query = format!("{query}{}", self.store.scope().query());
        request(self.store.kind(), self.namespace.as_deref(), &query, self.store.decoder.wants.partial)
            .map_err(failed)
    }
}

fn take_list(list: Listing<'_>, version: u64) -> Result<(), Interrupted> {
    if version == 0 {
        return Err(Interrupted::Cut);
    }
    list.end(version).map_err(Interrupted::Stale)
}

fn failed(error: kube::Error) -> Interrupted {
    match &error {
        kube::Error::Api(status) if status.code == 410 => Interrupted::Expired,
        kube::Error::Api(status) if status.code == 404 => Interrupted::Missing,
        _ => Interrupted::Request(Box::new(error)),
    }
}

fn ended_by(code: u16, message: String) -> Interrupted {
    match code {
        410 => Interrupted::Expired,
        _ => Interrupted::Server(message),
    }
}
