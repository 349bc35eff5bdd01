//! One connection, driven by whoever waits for its answer and by nobody while it is idle.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use kube::client::Body;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// As much as one TLS record holds: more is not read at once anyhow.
const READ_AT_ONCE: usize = 16 << 10;

/// What bytes go over.
pub(super) trait Stream: Read + Write + Unpin + Send + 'static {}

impl<T: Read + Write + Unpin + Send + 'static> Stream for T {}

/// A connection.
pub(super) struct Connection {
    sender: SendRequest<Body>,
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
    ended: bool,
}

type Refused = (hyper::Error, Option<Request<Body>>);

impl Connection {
    pub(super) async fn on(stream: impl Stream) -> hyper::Result<Self> {
        let mut builder = http1::Builder::new();
        builder.read_buf_exact_size(Some(READ_AT_ONCE));
        let (sender, connection) = builder.handshake(stream).await?;
        Ok(Self { sender, connection: Box::pin(connection.with_upgrades()), ended: false })
    }

    /// Whether it can take a request. Looking at it notices that the server has closed it.
    pub(super) fn poll_free(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.drive(context) {
            return Poll::Ready(false);
        }
        self.sender.poll_ready(context).map(|ready| ready.is_ok())
    }

    /// Lets it read and write; whether it has ended.
    fn drive(&mut self, context: &mut Context<'_>) -> bool {
        self.ended = self.ended || self.connection.as_mut().poll(context).is_ready();
        self.ended
    }

    /// Sends a request and waits for the head of the answer. A request that was not sent comes back.
    pub(super) async fn ask(&mut self, request: Request<Body>) -> Result<Response<Incoming>, Refused> {
        let mut answer = Box::pin(self.sender.try_send_request(request));
        let answer = poll_fn(|context| {
            // A connection that has ended has answered, or has given up what it was to send.
            self.drive(context);
            answer.as_mut().poll(context)
        });
        answer.await.map_err(|mut error| {
            let unsent = error.take_message();
            (error.into_error(), unsent)
        })
    }

    /// The answer, whose body drives the connection and gives it back at its end.
    pub(super) fn answered(
        self,
        response: Response<Incoming>,
        keep: impl FnOnce(Self) + Send + 'static,
    ) -> Response<Answered> {
        let mut answered = response.map(|body| Answered { body, line: None });
        if answered.status() == StatusCode::SWITCHING_PROTOCOLS {
            // It is another protocol's from here on, and whoever speaks that does not hold this body.
            if !self.ended {
                tokio::spawn(self.connection);
            }
        } else if answered.body().body.is_end_stream() {
            keep(self);
        } else {
            answered.body_mut().line = Some((self, Box::new(keep)));
        }
        answered
    }
}

type Keep = Box<dyn FnOnce(Connection) + Send>;

/// The body of an answer. Dropped before its end, it closes the connection.
pub(super) struct Answered {
    body: Incoming,
    line: Option<(Connection, Keep)>,
}

impl Answered {
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(Ok(_))) if !self.body.is_end_stream() => {}
            Poll::Ready(Some(Err(_))) => self.line = None,
            Poll::Ready(_) => self.give_back(),
            Poll::Pending => {}
        }
        frame
    }

    fn give_back(&mut self) {
        if let Some((line, keep)) = self.line.take() {
            keep(line);
        }
    }
}

impl http_body::Body for Answered {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = self.poll_body(context);
        if frame.is_ready() {
            return frame;
        }
        if let Some((line, _)) = &mut self.line
            && line.drive(context)
        {
            // What it brought is in the body.
            self.line = None;
        }
        self.poll_body(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
