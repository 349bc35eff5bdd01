//! The body of an answer: bytes at once, or a watch that goes on.

use crate::read::WatchBody;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer.
pub struct ApiBody(Kind);

enum Kind {
    Full(Bytes),
    Watch(WatchBody),
}

impl ApiBody {
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }

    pub(crate) fn watch(body: WatchBody) -> Self {
        Self(Kind::Watch(body))
    }

    /// How many bytes it has, if that is known.
    pub(crate) fn length(&self) -> Option<usize> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes.len()),
            Kind::Watch(_) => None,
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
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Watch(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Watch(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "ApiBody({} bytes)", bytes.len()),
            Kind::Watch(_) => f.write_str("ApiBody(watch)"),
        }
    }
}
