//! The service of one connection: authenticates each request, and counts those in flight.

use crate::accounts::SecretUse;
use crate::audit::SourceAddress;
use crate::authentication::RequestHeader;
use crate::flow::authenticate::{Authenticator, Certificate};
use crate::flow::authorize::Action;
use crate::http::ApiBody;
use crate::http::response::{failure, warned};
use crate::request::identity::Identity;
use crate::request::path;
use crate::request::query::Query;
use crate::service::ApiService;
use crate::state::ApiState;
use crate::status::Status;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::Service as _;
use windlass_clock::{Clock, Moment};

/// How the requests of a connection are authenticated.
pub(super) enum Authentication {
    /// All of them are made by this identity.
    AsIdentity(Arc<Identity>),
    /// By the client certificate of the connection, or by the token of each request; a front proxy says for whom it asks.
    PerRequest {
        authenticator: Arc<Authenticator>,
        certificate: Certificate,
        proxy: Option<Arc<RequestHeader>>,
    },
}

impl Authentication {
    async fn authenticate(
        &self,
        request: &mut Request<Incoming>,
        used: &mut Option<SecretUse>,
    ) -> Result<Arc<Identity>, Status> {
        match self {
            Self::AsIdentity(identity) => Ok(identity.clone()),
            Self::PerRequest { authenticator, certificate, proxy } => {
                let uri = request.uri().clone();
                let headers = request.headers_mut();
                match proxy.as_ref().and_then(|proxy| proxy.identify(headers)) {
                    Some(identity) => Ok(Arc::new(identity)),
                    None => authenticator.identify(certificate, headers, uri.path(), used).await,
                }
            }
        }
    }
}

pub(super) struct Front(Arc<Connection>);

struct Connection {
    api: Arc<ApiState>,
    authentication: Authentication,
    ended: CancellationToken,
    pulse: Arc<Pulse>,
    /// Where the client is, if that is known.
    peer: Option<IpAddr>,
}

impl Front {
    pub(super) fn new(
        api: Arc<ApiState>,
        authentication: Authentication,
        ended: CancellationToken,
        pulse: Arc<Pulse>,
        peer: Option<IpAddr>,
    ) -> Self {
        Self(Arc::new(Connection { api, authentication, ended, pulse, peer }))
    }
}

impl Connection {
    /// Tells the audit of a request whose sender proved nothing right.
    fn audit_refused(&self, request: Request<Incoming>, status: &Status) {
        let Some(auditor) = &self.api.auditor else { return };
        let (parts, _) = request.into_parts();
        let route = path::route(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        if let Some(action) = Action::of(&parts, &route, &query) {
            auditor.unauthenticated(&action.by(&Identity::anonymous()), &parts, status);
        }
    }
}

impl hyper::service::Service<Request<Incoming>> for Front {
    type Response = Response<Counted>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Counted>>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let connection = self.0.clone();
        let busy = Pulse::begin(&connection.pulse);
        let tells_where = connection.api.auditor.is_some() || connection.api.aggregation.is_used();
        if let Some(peer) = connection.peer.filter(|_| tells_where) {
            request.extensions_mut().insert(SourceAddress(peer));
        }
        Box::pin(async move {
            let mut used = None;
            let authenticated = connection.authentication.authenticate(&mut request, &mut used).await;
            let warning = used.as_ref().and_then(SecretUse::warning).map(str::to_owned);
            if let Some(used) = used.filter(|_| connection.api.auditor.is_some()) {
                request.extensions_mut().insert(used);
            }
            let response = match authenticated {
                Err(status) => {
                    connection.audit_refused(request, &status);
                    failure(&status)
                }
                Ok(identity) => {
                    let (api, ended) = (connection.api.clone(), connection.ended.clone());
                    ApiService::remote(api, identity, ended).call(request).await?
                }
            };
            Ok(warned(response, warning.into_iter()).map(|body| Counted { body, _busy: busy }))
        })
    }
}

/// What a connection has under way, and since when nothing.
pub(super) struct Pulse(Mutex<Beat>);

struct Beat {
    requests: usize,
    last: Moment,
}

impl Pulse {
    pub(super) fn new() -> Self {
        // Sockets are of the world outside, whatever time the API itself lives by.
        Self(Mutex::new(Beat { requests: 0, last: Clock::real().moment() }))
    }

    fn begin(pulse: &Arc<Self>) -> Busy {
        pulse.0.lock().requests += 1;
        Busy(pulse.clone())
    }

    /// Returns when there was no request for so long.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let due = {
                let beat = self.0.lock();
                match beat.requests {
                    0 => beat.last + limit,
                    _ => Clock::real().moment() + limit,
                }
            };
            if due <= Clock::real().moment() {
                return;
            }
            Clock::real().sleep_until(due).await;
        }
    }
}

/// A request under way.
struct Busy(Arc<Pulse>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut beat = self.0.0.lock();
        beat.requests -= 1;
        beat.last = Clock::real().moment();
    }
}

/// An answer's body; its request is under way until it is gone.
pub(super) struct Counted {
    body: ApiBody,
    _busy: Busy,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
