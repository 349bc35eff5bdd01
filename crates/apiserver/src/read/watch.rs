//! Watches: a stream of JSON lines that begins with what is there or with what happened since, and goes on.
//!
//! A watch holds a place in the store's log and makes its next chunk when its reader asks for one: a reader that stops
//! reading costs nothing, until history has moved on without it and the stream ends.

use super::options::{self, ListOptions};
use super::view::Told;
use super::{Scope, View, list};
use crate::read::PollOnWake;
use crate::status::Status;
use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::future::BoxFuture;
use http_body::Frame;
use std::any::Any;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;
use windlass_clock::Moment;
use windlass_store::{At, Entry, Event, ListQuery, Revision, Store, Watcher};

/// What may end a watch or hold it back.
#[derive(Clone, Default)]
pub struct WatchControl {
    /// Ends the stream: the resource is no longer served as it was, or the server stops.
    pub ended: CancellationToken,
    /// Breaks the stream off, as a lost connection does.
    pub cut: CancellationToken,
    /// Holds events back while it says so.
    pub hold: Option<Receiver<Hold>>,
    /// Dropped with the watch: lets its owner see that it is over.
    pub alive: Option<Arc<dyn Any + Send + Sync>>,
}

/// How events are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hold {
    /// Nothing after this revision is told.
    pub ceiling: Option<Revision>,
    /// Everything is told this much later than it happened.
    pub delay: Duration,
}

/// The body of a watch: JSON lines, until it ends.
pub struct WatchBody(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>);

/// Chunks are filled up to about this size while there is something to tell.
const CHUNK: usize = 32 << 10;

/// How often a bookmark is sent.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// The same on a driven clock: a test that lets hours pass does not want to spend its time on bookmarks.
const DRIVEN_BOOKMARK_EVERY: Duration = Duration::from_secs(300);

/// How long before its end a watch sends a last bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long it takes until an object that was not converted is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long a watch lasts that did not say: this, and up to as much again, so that not all come back at once.
const LASTS: Duration = Duration::from_secs(1800);

/// Begins a watch. What is wrong with its version is told as an ERROR event, as the reference does.
///
/// # Errors
/// 500 for a version that is none.
pub async fn watch(
    store: &Arc<Store>,
    scope: Scope,
    options: &ListOptions,
    view: Arc<View>,
    control: WatchControl,
) -> Result<WatchBody, Status> {
    let wanted = options::version(&options.resource_version).map_err(options::bad_version)?;
    let started = store.clock().moment();
    let lasts = match options.timeout_seconds {
        None | Some(0) => {
            let part = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
            LASTS.mul_f64(1.0 + part)
        }
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
    };
    let mut watching = Watching {
        store: store.clone(),
        scope,
        view,
        over: over(&control),
        ended: false,
        hold: control.hold,
        _alive: control.alive,
        due: None,
        initial: Vec::new().into_iter(),
        then: None,
        watcher: None,
        pending: None,
        from: Revision(wanted),
        bookmarks: options.allow_watch_bookmarks,
        untold: true,
        deadline: started + lasts,
        next_bookmark: Moment::NEVER,
    };
    watching.schedule_bookmark(started);
    if let Err(status) = watching.begin(options, wanted).await {
        watching.then = Some(watching.view.error(&status));
    }
    Ok(WatchBody(Box::pin(futures::stream::unfold(Box::new(watching), |mut watching| async move {
        let chunk = watching.next().await?;
        if chunk.is_err() {
            watching.finish();
        }
        Some((chunk, watching))
    }))))
}

/// How a watch is ended from outside.
#[derive(Debug, Clone, Copy)]
enum End {
    Done,
    BrokenOff,
}

fn over(control: &WatchControl) -> PollOnWake<BoxFuture<'static, End>> {
    let (cut, ended) = (control.cut.clone(), control.ended.clone());
    PollOnWake::new(Box::pin(async move {
        tokio::select! {
            biased;
            () = cut.cancelled() => End::BrokenOff,
            () = ended.cancelled() => End::Done,
        }
    }))
}

struct Watching {
    store: Arc<Store>,
    scope: Scope,
    view: Arc<View>,
    /// Says that the watch is over, and how.
    over: PollOnWake<BoxFuture<'static, End>>,
    /// It has said so.
    ended: bool,
    hold: Option<Receiver<Hold>>,
    _alive: Option<Arc<dyn Any + Send + Sync>>,
    /// Wakes when the next bookmark or the end is due; none when they were not looked at yet.
    due: Option<PollOnWake<BoxFuture<'static, ()>>>,
    /// What was there at the beginning and is still to be told.
    initial: std::vec::IntoIter<Arc<Entry>>,
    /// The line to tell after that: the bookmark that ends it, or an error.
    then: Option<Bytes>,
    /// None when nothing more will come.
    watcher: Option<Watcher>,
    /// An event that is held back.
    pending: Option<Arc<Event>>,
    from: Revision,
    bookmarks: bool,
    /// Nothing was told yet: what comes first says what all have in common.
    untold: bool,
    deadline: Moment,
    next_bookmark: Moment,
}

impl Watching {
    async fn begin(&mut self, options: &ListOptions, wanted: u64) -> Result<(), Status> {
        if options.send_initial_events == Some(true) {
            list::wait_for(&self.store, &self.scope, wanted).await?;
            return self.begin_with_what_is_there(options).await;
        }
        self.from = match wanted {
            0 => self.scope.newest(&self.store),
            _ => Revision(wanted),
        };
        let namespace = self.scope.namespace.as_deref();
        let watcher = self.store.watch(&self.scope.resource, namespace, self.from);
        let too_old = |oldest: Revision| Status::too_old(wanted, oldest.0);
        self.watcher = Some(watcher.map_err(|compacted| too_old(compacted.oldest))?);
        Ok(())
    }

    async fn begin_with_what_is_there(&mut self, options: &ListOptions) -> Result<(), Status> {
        let scope = &self.scope;
        let accepts = |entry: &Entry| scope.converter.is_some() || scope.accepts(entry);
        let mut oldest = Revision(0);
        // Compaction may pass between the list and the watch; then the list is too old to go on from.
        for _ in 0..3 {
            let at = match scope.ceiling {
                Some(_) => At::Exact(scope.newest(&self.store)),
                None => At::Latest,
            };
            let query = ListQuery { at, filter: Some(&accepts), ..scope.query() };
            let watched = self.store.list(&query).and_then(|page| {
                let namespace = scope.namespace.as_deref();
                Ok((self.store.watch(&scope.resource, namespace, page.revision)?, page))
            });
            match watched {
                Ok((watcher, mut page)) => {
                    if scope.converter.is_some() {
                        let oldest = page.items.iter().map(|entry| entry.revision().0).min().unwrap_or(0);
                        page.items = scope.select(page.items, 0).await.map_err(|status| {
                            tracing::debug!(%status, "a watch does not begin: an object is not converted");
                            // The reference's cache has not come as far as that.
                            Status::version_too_large(page.revision.0, oldest.saturating_sub(1))
                        })?;
                    }
                    if options.allow_watch_bookmarks {
                        let first = page.items.is_empty() && std::mem::take(&mut self.untold);
                        self.then = Some(self.view.bookmark(page.revision.0, true, first));
                    }
                    self.from = page.revision;
                    self.initial = page.items.into_iter();
                    self.watcher = Some(watcher);
                    return Ok(());
                }
                Err(compacted) => oldest = compacted.oldest,
            }
        }
        Err(Status::too_old(self.scope.newest(&self.store).0, oldest.0))
    }

    /// The next chunk; none when the watch is over.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.ended {
            return None;
        }
        if let Poll::Ready(end) = futures::poll!(&mut self.over) {
            return self.end(end).await;
        }
        if let Some(chunk) = self.initial_chunk() {
            return Some(Ok(chunk));
        }
        if let Some(line) = self.then.take() {
            return Some(Ok(line));
        }
        loop {
            if let Some(event) = self.pending.take() {
                match self.held_until(&event) {
                    None if self.scope.converter.is_some() => match self.converted_line(&event).await {
                        Ok(Some(line)) => return Some(Ok(line)),
                        Ok(None) => continue,
                        // What cannot be shown is waited for, and all that came after it, as by the reference's cache.
                        Err(status) => {
                            tracing::debug!(%status, "a watch waits: an object is not converted");
                            self.pending = Some(event);
                            if let Some(end) = self.wait_to_retry().await {
                                return self.end(end).await;
                            }
                        }
                    },
                    None => match self.tell(&event) {
                        Some(chunk) => return Some(Ok(chunk)),
                        None => continue,
                    },
                    Some(until) => {
                        self.pending = Some(event);
                        if let Some(end) = self.wait_for_release(until).await {
                            return self.end(end).await;
                        }
                    }
                }
            }
            if self.due.is_none() {
                let now = self.store.clock().moment();
                if now >= self.deadline {
                    return None;
                }
                if now >= self.next_bookmark {
                    self.schedule_bookmark(now);
                    if let Some(line) = self.bookmark() {
                        return Some(Ok(line));
                    }
                }
            }
            if self.pending.is_some() {
                continue;
            }
            let (clock, when) = (self.store.clock(), self.deadline.min(self.next_bookmark));
            let due = self.due.get_or_insert_with(|| {
                let clock = clock.clone();
                PollOnWake::new(Box::pin(async move { clock.sleep_until(when).await }))
            });
            let watcher = self.watcher.as_mut()?;
            tokio::select! {
                biased;
                end = &mut self.over => return self.end(end).await,
                () = due => self.due = None,
                // A reader that was too slow sees the end and comes back with the last version it saw.
                event = watcher.next() => self.pending = Some(event.ok()?),
            }
        }
    }

    /// The last chunk of a watch that is ended.
    async fn end(&mut self, how: End) -> Option<io::Result<Bytes>> {
        self.ended = true;
        match how {
            End::Done => self.last_chunk().await.map(Ok),
            End::BrokenOff => {
                Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the watch was broken off")))
            }
        }
    }

    /// What happened before the watch was ended and is not told yet, such as that the objects went with their definition.
    async fn last_chunk(&mut self) -> Option<Bytes> {
        let mut watcher = self.watcher.take().filter(|_| self.initial.len() == 0)?;
        let last = self.scope.newest(&self.store);
        let mut lines = Vec::new();
        let mut next = self.pending.take().or_else(|| watcher.try_next().ok().flatten());
        while let Some(event) = next
            && event.revision() <= last
            && self.held_until(&event).is_none()
        {
            match self.scope.converter {
                None => lines.extend(self.line(&event)),
                Some(_) => lines.extend(self.converted_line(&event).await.ok().flatten()),
            }
            next = watcher.try_next().ok().flatten();
        }
        (!lines.is_empty()).then(|| lines.concat().into())
    }

    fn initial_chunk(&mut self) -> Option<Bytes> {
        let mut chunk = BytesMut::new();
        while chunk.len() < CHUNK
            && let Some(entry) = self.initial.next()
        {
            let first = std::mem::take(&mut self.untold);
            self.view.put_initial(&mut chunk, &entry, first);
        }
        (!chunk.is_empty()).then(|| chunk.freeze())
    }

    fn line(&mut self, event: &Event) -> Option<Bytes> {
        let told = Told::of(event, |entry| self.scope.accepts(entry))?;
        let first = std::mem::take(&mut self.untold);
        Some(self.view.line(event, told, first))
    }

    /// The line of an event of what must be converted first.
    async fn converted_line(&mut self, event: &Event) -> Result<Option<Bytes>, Status> {
        let Some((told, entry)) = self.scope.told(event).await? else { return Ok(None) };
        let first = std::mem::take(&mut self.untold);
        Ok(Some(self.view.line_of(told, &entry, first)))
    }

    /// The lines of `event` and of what follows it already, as far as a chunk goes. One line alone is not copied.
    fn tell(&mut self, event: &Event) -> Option<Bytes> {
        let first = self.line(event);
        if self.hold.as_ref().is_some_and(|hold| *hold.borrow() != Hold::default()) {
            return first;
        }
        let mut lines: Vec<Bytes> = first.into_iter().collect();
        let mut size = lines.iter().map(Bytes::len).sum::<usize>();
        while size < CHUNK
            && let Some(watcher) = &mut self.watcher
            && let Ok(Some(event)) = watcher.try_next()
        {
            let line = self.line(&event);
            size += line.as_ref().map_or(0, Bytes::len);
            lines.extend(line);
        }
        match lines.len() {
            0 => None,
            1 => lines.pop(),
            _ => Some(lines.concat().into()),
        }
    }

    /// Until when an event must not be told; none if it may be told now.
    fn held_until(&self, event: &Event) -> Option<Moment> {
        let hold = *self.hold.as_ref()?.borrow();
        if hold == Hold::default() {
            return None;
        }
        if hold.ceiling.is_some_and(|ceiling| event.revision() > ceiling) {
            return Some(Moment::NEVER);
        }
        let due = event.at + hold.delay;
        (due > self.store.clock().moment()).then_some(due)
    }

    /// Waits until the hold changes or time passes; says how the watch ended, if it did.
    async fn wait_for_release(&mut self, until: Moment) -> Option<End> {
        let hold = self.hold.as_mut()?;
        let due = until.min(self.deadline).min(self.next_bookmark);
        tokio::select! {
            biased;
            end = &mut self.over => return Some(end),
            changed = hold.changed() => {
                if changed.is_err() {
                    // Nobody is left who could let go.
                    self.hold = None;
                }
            }
            () = self.store.clock().sleep_until(due) => self.due = None,
        }
        None
    }

    /// Waits until what failed may be tried again; says how the watch ended, if it did.
    async fn wait_to_retry(&mut self) -> Option<End> {
        let clock = self.store.clock();
        let due = (clock.moment() + RETRY).min(self.deadline);
        tokio::select! {
            biased;
            end = &mut self.over => return Some(end),
            () = clock.sleep_until(due) => self.due = None,
        }
        None
    }

    fn schedule_bookmark(&mut self, now: Moment) {
        let left = self.deadline.since(now);
        self.next_bookmark = if self.bookmarks && left > BOOKMARK_BEFORE_END {
            let every = if self.store.clock().is_driven() { DRIVEN_BOOKMARK_EVERY } else { BOOKMARK_EVERY };
            // At a full second, so that the bookmarks of watches that began together come together.
            (now + every).whole_seconds().min(now + (left - BOOKMARK_BEFORE_END))
        } else {
            Moment::NEVER
        };
    }

    /// A bookmark of what was told, unless something is held back or the watch starts in the future.
    fn bookmark(&mut self) -> Option<Bytes> {
        if self.pending.is_some() || self.store.revision() < self.from {
            return None;
        }
        let told = self.watcher.as_ref()?.progress();
        let ceiling = self.hold.as_ref().and_then(|hold| hold.borrow().ceiling);
        let version = ceiling.map_or(told, |ceiling| told.min(ceiling));
        if version < self.from {
            return None;
        }
        let first = std::mem::take(&mut self.untold);
        Some(self.view.bookmark(version.0, false, first))
    }

    fn finish(&mut self) {
        self.watcher = None;
        self.initial = Vec::new().into_iter();
        self.then = None;
        self.pending = None;
        // What broke off does not break off again.
        self.over = over(&WatchControl::default());
    }
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.as_mut().poll_next(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

impl std::fmt::Debug for WatchBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchBody")
    }
}

impl std::fmt::Debug for WatchControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchControl").field("held", &self.hold.is_some()).finish()
    }
}
