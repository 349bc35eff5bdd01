//! Container logs as files: read from their end, since a time, and along with whoever writes them.
//!
//! Each line of a file is `TIME STREAM TAG TEXT`, as a container runtime writes it: the time as RFC 3339 with nanoseconds,
//! `stdout` or `stderr`, `F` for a whole line or the end of one and `P` for a part that goes on. The newest file has the
//! name that the log has (`0.log`, by the number of restarts); one that was rotated out has a time behind its name
//! (`0.log.20261115-100000`), so that names sort by age.
//!
//! Unlike a kubelet, a reader begins with the files that were rotated out, so that nothing disappears in the moment of a
//! rotation. A follower tells files apart by device and inode, and misses none in between.

mod files;
mod line;
mod reader;
mod tail;

use bytes::Bytes;
use jiff::Timestamp;
use reader::Reader;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How many chunks wait for a caller who reads slowly.
const CHUNKS: usize = 4;

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Which part of a log is wanted, and how it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on until the container ends.
    pub follow: bool,
    /// Of the container's run before this one.
    pub previous: bool,
    /// Only what was written at this time or later.
    pub since: Option<Timestamp>,
    /// Only so many lines at the end; of those, what `since` lets through.
    pub tail: Option<u64>,
    /// No more bytes than this.
    pub limit_bytes: Option<u64>,
    /// Each line begins with its time.
    pub timestamps: bool,
}

/// A log as it is sent. Dropping it ends the reading.
#[derive(Debug)]
pub struct LogStream(mpsc::Receiver<io::Result<Bytes>>);

impl LogStream {
    /// What comes out of a channel; a bounded one, so that the writer is held up by a slow reader.
    pub fn new(receiver: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self(receiver)
    }

    /// A log with nothing in it.
    pub fn empty() -> Self {
        Self(mpsc::channel(1).1)
    }

    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        self.0.recv().await
    }
}

/// Reads the log that has its newest file at `path`, with what was rotated out before. A log that is followed goes on across
/// rotations until `ended` says that its container did, and then to its end.
pub fn read(path: PathBuf, options: LogOptions, ended: CancellationToken, clock: Clock) -> LogStream {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    tokio::spawn(async move {
        if let Err(error) = send(path, options, ended, clock, &sender).await {
            // Whoever does not listen any more needs no error either.
            let _ = sender.send(Err(error)).await;
        }
    });
    LogStream(receiver)
}

async fn send(
    path: PathBuf,
    options: LogOptions,
    ended: CancellationToken,
    clock: Clock,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let follow = options.follow;
    let mut reader = blocking(move || Reader::open(path, &options)).await?;
    loop {
        // Looked at before reading: what was written before the end is read after it.
        let last = !follow || ended.is_cancelled();
        let (again, chunk) = blocking(move || {
            let chunk = reader.chunk()?;
            Ok((reader, chunk))
        })
        .await?;
        reader = again;
        if !chunk.is_empty() {
            if sender.send(Ok(chunk)).await.is_err() {
                return Ok(());
            }
        } else if last || reader.is_full() {
            return Ok(());
        } else {
            tokio::select! {
                () = sender.closed() => return Ok(()),
                () = ended.cancelled() => {}
                () = clock.sleep(LOOK) => {}
            }
        }
    }
}

/// Files have no other way to be read without holding up everyone else.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
