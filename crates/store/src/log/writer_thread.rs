//! The writer's thread: takes whatever has come while the last batch was synced, and makes that the next.

use super::mark::MarkThread;
use super::snapshot::Snapshot;
use super::writer::{Outcome, Writer};
use crate::{Change, CommitError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use tokio::sync::{mpsc, oneshot};

/// How many changes wait before those who bring more have to wait as well.
const WAITING: usize = 1024;

#[derive(Debug)]
struct Proposal {
    change: Change,
    reply: oneshot::Sender<Outcome>,
}

/// The way to the writer. Dropping it lets the writer finish what it does, and waits for that: the directory is free then.
#[derive(Debug)]
pub(crate) struct WriterThread {
    proposals: Option<mpsc::Sender<Proposal>>,
    thread: Option<JoinHandle<()>>,
    /// Goes after the writer.
    _mark: Option<MarkThread>,
}

impl WriterThread {
    pub(super) fn start(writer: Writer) -> io::Result<Self> {
        let (proposals, waiting) = mpsc::channel(WAITING);
        let mark = writer.mark().cloned().map(MarkThread::start).transpose()?;
        let thread = Builder::new().name("store-log".to_owned()).spawn(move || run(writer, waiting))?;
        Ok(Self { proposals: Some(proposals), thread: Some(thread), _mark: mark })
    }

    /// Returns when the change is durable and visible, or is neither.
    pub(crate) async fn commit(&self, change: Change) -> Outcome {
        let stopped = || CommitError::NotStored(Arc::new(io::Error::other("the store has stopped writing")));
        let proposals = self.proposals.as_ref().ok_or_else(stopped)?;
        let (reply, answer) = oneshot::channel();
        proposals.send(Proposal { change, reply }).await.map_err(|_| stopped())?;
        let entry = answer.await.map_err(|_| stopped())??;
        // The JSON is wanted by whoever made the change and by every watcher; the writer has other things to do.
        entry.json();
        Ok(entry)
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.proposals = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, that was told where it happened.
            let _ = thread.join();
        }
    }
}

fn run(mut writer: Writer, mut waiting: mpsc::Receiver<Proposal>) {
    let mut snapshots = Snapshots::default();
    while let Some(first) = waiting.blocking_recv() {
        let (mut changes, mut replies, mut size) = (Vec::new(), Vec::new(), 0);
        let mut next = Some(first);
        while let Some(Proposal { change, reply }) = next {
            size += change.size();
            changes.push(change);
            replies.push(reply);
            let full = changes.len() >= writer.limits().batch || size >= writer.limits().batch_bytes;
            next = if full { None } else { waiting.try_recv().ok() };
        }
        for (reply, outcome) in replies.into_iter().zip(writer.commit(changes)) {
            // Who no longer waits finds out by looking.
            let _ = reply.send(outcome);
        }
        snapshots.look_after(&mut writer);
    }
}

/// At most one snapshot at a time, on a thread of its own.
#[derive(Debug, Default)]
struct Snapshots {
    running: Option<JoinHandle<Option<u64>>>,
    stop: Arc<AtomicBool>,
}

impl Snapshots {
    fn look_after(&mut self, writer: &mut Writer) {
        if let Some(done) = self.running.take_if(|running| running.is_finished())
            && let Ok(Some(size)) = done.join()
        {
            writer.finished_snapshot(size);
        }
        if self.running.is_some() || !writer.wants_snapshot() {
            return;
        }
        let stop = self.stop.clone();
        let started = writer.begin_snapshot().and_then(|snapshot| {
            Builder::new().name("store-snapshot".to_owned()).spawn(move || write(snapshot, &stop))
        });
        match started {
            Ok(running) => self.running = Some(running),
            Err(error) => not_written(&error),
        }
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

/// Writes it to its end, unless the store is closed before; returns its size.
fn write(mut snapshot: Snapshot, stop: &AtomicBool) -> Option<u64> {
    while !stop.load(Ordering::Relaxed) {
        match snapshot.step() {
            Ok(true) => return Some(snapshot.size()),
            Ok(false) => {}
            Err(error) => {
                not_written(&error);
                break;
            }
        }
    }
    snapshot.abandon();
    None
}

fn not_written(error: &io::Error) {
    tracing::warn!(%error, "a snapshot of the store could not be written: its log stays until one can");
}
