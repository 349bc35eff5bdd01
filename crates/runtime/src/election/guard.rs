//! Whether we lead, and a client that stops writing when we do not.
//!
//! The guard is asked once per request, so the client below it must not retry by itself: nobody would ask about the retry.
//! Where an idle connection is at hand, nothing waits between the check and the socket; a write that has to connect first,
//! or to renew its token, is sent when that is done.

use futures::future::{Either, Ready, ready};
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{BoxError, Layer, Service};
use windlass_clock::{Clock, Moment};

/// Whether a candidate leads. Clones agree.
#[derive(Debug, Clone)]
pub struct Leadership {
    clock: Clock,
    /// No write starts from here on; nothing while another one leads.
    until: Arc<Mutex<Option<Moment>>>,
}

/// A write that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: another replica may be leading by now")]
pub struct NotLeading;

impl Leadership {
    pub(super) fn none(clock: Clock) -> Self {
        Self { clock, until: Arc::default() }
    }

    pub(super) fn lead_until(&self, deadline: Moment) {
        *self.until.lock() = Some(deadline);
    }

    pub(super) fn end(&self) {
        *self.until.lock() = None;
    }

    /// When it ends unless it is renewed; in the past for one who does not lead.
    pub(super) fn deadline(&self) -> Moment {
        self.until.lock().unwrap_or_default()
    }

    /// Does it lead at this moment?
    pub fn leads(&self) -> bool {
        self.clock.moment() < self.deadline()
    }

    /// The same client, but that it starts no write while another one may lead. Reads go through.
    ///
    /// The client itself must not try again on its own: what it sent again later would not be asked about. Make it with
    /// `default_retry` off in its [`kube::Config`].
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let sending = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        Client::new(Guard(Some(self.clone())).layer(sending), namespace)
    }
}

/// The layer of a client that starts no write while another one may lead; without an election, it does nothing.
#[derive(Debug, Clone)]
pub(crate) struct Guard(pub(crate) Option<Leadership>);

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, leadership: self.0.clone() }
    }
}

/// A service behind a [`Guard`].
#[derive(Debug, Clone)]
pub(crate) struct Guarded<S> {
    inner: S,
    leadership: Option<Leadership>,
}

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        // Asked for at the last moment: whatever made it wait, it does not start too late.
        match &self.leadership {
            Some(leadership) if !reads && !leadership.leads() => Either::Right(ready(Err(NotLeading.into()))),
            _ => Either::Left(self.inner.call(request)),
        }
    }
}
