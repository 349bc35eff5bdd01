//! The body of an answer: bytes at once or in pieces, or a watch that goes on.

use crate::read::Pieces;
use crate::read::PollOnWake;
use crate::read::WatchBody;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The body of an answer.
pub struct ApiBody {
    kind: Kind,
    /// What is kept until it has ended.
    _kept: Option<Box<dyn Send + Sync>>,
}

enum Kind {
    Full(Bytes),
    Pieces(Pieces),
    Broken(Option<Bytes>),
    Watch(WatchBody, PollOnWake<WaitForCancellationFutureOwned>),
    Passed(Incoming, PollOnWake<WaitForCancellationFutureOwned>),
}

impl ApiBody {
    fn of(kind: Kind) -> Self {
        Self { kind, _kept: None }
    }

    pub(crate) fn full(bytes: Bytes) -> Self {
        Self::of(Kind::Full(bytes))
    }

    /// What is put together while it is sent.
    pub(crate) fn pieces(pieces: Pieces) -> Self {
        Self::of(Kind::Pieces(pieces))
    }

    /// A watch that ends when `ended` says so, if not before.
    pub(crate) fn watch(body: WatchBody, ended: CancellationToken) -> Self {
        Self::of(Kind::Watch(body, PollOnWake::new(ended.cancelled_owned())))
    }

    /// What another server answers, until `ended` says that this one stops.
    pub(crate) fn passed(body: Incoming, ended: CancellationToken) -> Self {
        Self::of(Kind::Passed(body, PollOnWake::new(ended.cancelled_owned())))
    }

    /// The first half of this body, after which it breaks off as a lost connection does.
    pub(crate) fn broken(self) -> Self {
        match self.bytes() {
            Some(bytes) => Self::of(Kind::Broken(Some(bytes.slice(..bytes.len() / 2)))),
            None => self,
        }
    }

    /// Keeps something until this body has ended.
    pub(crate) fn until_end(self, kept: Box<dyn Send + Sync>) -> Self {
        Self { kind: self.kind, _kept: Some(kept) }
    }

    /// Whether it goes on until somebody ends it.
    pub(crate) fn is_watch(&self) -> bool {
        matches!(self.kind, Kind::Watch(..))
    }

    /// Whether it comes from another server.
    pub(crate) fn is_passed(&self) -> bool {
        matches!(self.kind, Kind::Passed(..))
    }

    /// All of it, if it is there already.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        match &self.kind {
            Kind::Full(bytes) => Some(bytes.clone()),
            Kind::Pieces(pieces) => Some(pieces.to_bytes()),
            Kind::Watch(..) | Kind::Passed(..) | Kind::Broken(_) => None,
        }
    }

    /// How many bytes it has, if that is known.
    pub(crate) fn length(&self) -> Option<usize> {
        match &self.kind {
            Kind::Full(bytes) => Some(bytes.len()),
            Kind::Pieces(pieces) => Some(pieces.len()),
            Kind::Watch(..) | Kind::Passed(..) | Kind::Broken(_) => None,
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.kind {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Pieces(pieces) => Poll::Ready(pieces.chunk().map(|chunk| Ok(Frame::data(chunk)))),
            Kind::Broken(half) => Poll::Ready(Some(match half.take() {
                Some(half) if !half.is_empty() => Ok(Frame::data(half)),
                _ => Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection was lost")),
            })),
            Kind::Watch(body, ended) => match Pin::new(ended).poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => Pin::new(body).poll_frame(context),
            },
            Kind::Passed(body, ended) => match Pin::new(ended).poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => Pin::new(body).poll_frame(context).map_err(io::Error::other),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.length() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, |length| SizeHint::with_exact(length as u64))
    }
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Full(bytes) => write!(f, "ApiBody({} bytes)", bytes.len()),
            Kind::Pieces(pieces) => write!(f, "ApiBody({} bytes)", pieces.len()),
            Kind::Watch(..) => f.write_str("ApiBody(watch)"),
            Kind::Passed(..) => f.write_str("ApiBody(passed on)"),
            Kind::Broken(_) => f.write_str("ApiBody(broken)"),
        }
    }
}
