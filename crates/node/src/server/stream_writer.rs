//! A stream that is written to, as messages in a queue that others share.

use bytes::Bytes;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

/// The largest piece.
const PIECE: usize = 32 * 1024;

/// A message of a piece of the stream, or of its end; none if that goes without saying.
type Message<T> = Box<dyn Fn(Bytes, bool) -> Option<T> + Send + Sync>;

/// Writes pieces of a stream into a queue; a full queue holds up the writer.
pub(super) struct StreamWriter<T> {
    sender: PollSender<T>,
    message: Message<T>,
    ended: bool,
    /// Its end is told by someone else.
    quiet: bool,
}

impl<T: Send + 'static> StreamWriter<T> {
    pub(super) fn new(
        sender: mpsc::Sender<T>,
        message: impl Fn(Bytes, bool) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        Self { sender: PollSender::new(sender), message: Box::new(message), ended: false, quiet: false }
    }

    /// Was its end told?
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// The same, except that its end is not told: what a process wrote last may come after its own end is known.
    pub(super) fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }
}

impl<T: Send + 'static> AsyncWrite for StreamWriter<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let length = data.len().min(PIECE);
        if length == 0 {
            return Poll::Ready(Ok(0));
        }
        ready!(self.sender.poll_reserve(context)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        if let Some(message) = (self.message)(Bytes::copy_from_slice(&data[..length]), false) {
            self.sender.send_item(message).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        let message = if self.quiet { None } else { (self.message)(Bytes::new(), true) };
        if let Some(message) = message {
            ready!(self.sender.poll_reserve(context)).map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.sender.send_item(message).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        self.ended = true;
        Poll::Ready(Ok(()))
    }
}

impl<T> fmt::Debug for StreamWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamWriter").field("ended", &self.ended).finish_non_exhaustive()
    }
}
