//! Serves webhooks over HTTPS. Bounded in every way: a handler that does not end, or a client that sends no end, holds up nobody else.

use super::answer::Answer;
use super::hook::Webhook;
use super::metrics::{self, Counts};
use super::tls::{Shown, acceptor};
use super::versions::Conversions;
use super::{conversion, review};
use crate::controller::panic_text;
use crate::metrics::Page;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use windlass_clock::Clock;

/// Connections at once; others wait until one ends. An API server needs one or two.
const CONNECTIONS: usize = 256;
/// Handlers that run at once; more questions are refused.
const HANDLERS: usize = 64;
/// The time for a TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(120);
/// The most that an API server waits for an answer to a question.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The largest AdmissionReview, as with controller-runtime.
const LARGEST_REVIEW: usize = 7 << 20;
/// The largest ConversionReview: it has the objects of a whole list.
const LARGEST_CONVERSION: usize = 64 << 20;
/// The path of conversions, as with controller-runtime.
pub(super) const CONVERT: &str = "/convert";

/// What is answered at which path.
#[derive(Clone)]
pub(crate) struct Handlers(Arc<Inner>);

struct Inner {
    routes: BTreeMap<String, Arc<Route>>,
    room: Arc<Semaphore>,
}

struct Route {
    handler: Handler,
    counts: Counts,
}

enum Handler {
    Admission(Box<Webhook>),
    Conversion(Vec<Conversions>),
}

impl Handlers {
    pub(crate) fn new(webhooks: &[Webhook], conversions: &[Conversions]) -> Self {
        let admission = webhooks.iter().map(|one| (one.path(), Handler::Admission(Box::new(one.clone()))));
        let conversion = (!conversions.is_empty())
            .then(|| (CONVERT.to_owned(), Handler::Conversion(conversions.to_vec())));
        let route = |(path, handler): (String, Handler)| {
            let counts = Counts::new(&path);
            (path, Arc::new(Route { handler, counts }))
        };
        let routes = admission.chain(conversion).map(route).collect();
        Self(Arc::new(Inner { routes, room: Arc::new(Semaphore::new(HANDLERS)) }))
    }

    /// Writes how often they were asked.
    pub(crate) fn write_metrics(&self, page: &mut Page) {
        metrics::write(page, self.0.routes.values().map(|route| &route.counts));
    }

    async fn answer(&self, request: Request<Incoming>, clock: &Clock) -> Response<Full<Bytes>> {
        let Some(route) = self.0.routes.get(request.uri().path()) else {
            let why = format!("no webhook is at {}", request.uri().path());
            return response(&Answer::Failed(StatusCode::NOT_FOUND, why));
        };
        let began = clock.moment();
        let in_flight = route.counts.begin();
        let answer = self.answer_by(route, request, clock).await;
        drop(in_flight);
        route.counts.ended(answer.status().as_u16(), clock.moment() - began);
        if let Answer::Failed(status, why) = &answer {
            tracing::warn!(webhook = route.counts.path(), status = status.as_u16(), "{why}");
        }
        response(&answer)
    }

    async fn answer_by(&self, route: &Arc<Route>, request: Request<Incoming>, clock: &Clock) -> Answer {
        if request.method() != Method::POST {
            return Answer::Failed(StatusCode::METHOD_NOT_ALLOWED, "only POST".to_owned());
        }
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_json =
            |kind: &str| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
        if !content_type.is_some_and(is_json) {
            let why = format!("expected application/json, found {content_type:?}");
            return Answer::Failed(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
        let within = within(request.uri().query().unwrap_or_default());
        let began = clock.moment();
        let largest = match route.handler {
            Handler::Admission(_) => LARGEST_REVIEW,
            Handler::Conversion(_) => LARGEST_CONVERSION,
        };
        let body = match clock.timeout(within, Limited::new(request.into_body(), largest).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let why = format!("the review is larger than {largest} bytes");
                return Answer::Failed(StatusCode::PAYLOAD_TOO_LARGE, why);
            }
            Ok(Err(error)) => return Answer::bad(format!("the review did not arrive: {error}")),
            Err(_) => {
                return Answer::Failed(
                    StatusCode::REQUEST_TIMEOUT,
                    "the review did not arrive in time".to_owned(),
                );
            }
        };
        let Ok(place) = self.0.room.clone().try_acquire_owned() else {
            let why = format!("{HANDLERS} handlers run already");
            return Answer::Failed(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        let (done, outcome) = oneshot::channel();
        let asked = route.clone();
        // On a thread of its own: a handler may compute for long, or for ever, and nothing can end it but the process.
        let thread = std::thread::Builder::new().name("webhook".to_owned()).spawn(move || {
            let answered = std::panic::catch_unwind(AssertUnwindSafe(|| match &asked.handler {
                Handler::Admission(webhook) => review::answer(webhook, &body),
                Handler::Conversion(conversions) => conversion::answer(conversions, &body),
            }));
            let _ = done.send(answered.unwrap_or_else(|panic| {
                asked.counts.panicked();
                let why = format!("the handler panicked: {}", panic_text(&*panic));
                Answer::Failed(StatusCode::INTERNAL_SERVER_ERROR, why)
            }));
            drop(place);
        });
        if let Err(error) = thread {
            let why = format!("no thread for the handler: {error}");
            return Answer::Failed(StatusCode::SERVICE_UNAVAILABLE, why);
        }
        let late = || format!("the handler did not answer within {} s", within.as_secs());
        match clock.timeout(within.saturating_sub(clock.moment() - began), outcome).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Answer::Failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the handler ended without an answer".to_owned(),
            ),
            Err(_) => Answer::Failed(StatusCode::GATEWAY_TIMEOUT, late()),
        }
    }
}

/// How long the API server waits, as it says in `?timeout=10s`.
fn within(query: &str) -> Duration {
    let said =
        query.split('&').find_map(|pair| pair.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    said.map_or(ANSWER_WITHIN, Duration::from_secs).min(ANSWER_WITHIN)
}

fn response(answer: &Answer) -> Response<Full<Bytes>> {
    let (kind, body) = match answer {
        Answer::Review(review) => ("application/json", review.to_string()),
        Answer::Failed(_, why) => ("text/plain; charset=utf-8", format!("{why}\n")),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = answer.status();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// A server that is bound and does not answer yet.
pub(crate) struct Listening {
    listener: TcpListener,
    pub(super) shown: Arc<Shown>,
    acceptor: TlsAcceptor,
}

impl Listening {
    pub(crate) async fn bind(at: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let shown = Arc::new(Shown::default());
        let acceptor = acceptor(shown.clone()).map_err(std::io::Error::other)?;
        Ok(Self { listener, shown, acceptor })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until dropped.
    pub(crate) async fn serve(self, handlers: Handlers) {
        // Clients and certificates know no other time.
        let clock = Clock::real();
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(place) = room.clone().acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: later there may be some.
                    tracing::debug!("a connection was not accepted: {error}");
                    clock.sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (acceptor, handlers, clock) = (self.acceptor.clone(), handlers.clone(), clock.clone());
            connections.spawn(async move {
                connection(stream, &acceptor, handlers, clock).await;
                drop(place);
            });
        }
    }
}

/// Answers what is asked on a connection.
async fn connection(stream: TcpStream, acceptor: &TlsAcceptor, handlers: Handlers, clock: Clock) {
    let _ = stream.set_nodelay(true);
    let stream = match clock.timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        // Whoever trusts another authority says so, and so does the API server.
        Ok(Err(error)) => return tracing::debug!("no TLS: {error}"),
        Err(_) => return,
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let answering = hyper::service::service_fn(move |request: Request<Incoming>| {
        let (handlers, clock) = (handlers.clone(), clock.clone());
        async move { Ok::<_, Infallible>(handlers.answer(request, &clock).await) }
    });
    let stream = TokioIo::new(stream);
    // Whoever hangs up, or sends what is no HTTP, has had its answer.
    if is_http2 {
        let _ = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(HANDLERS as u32)
            .keep_alive_interval(Some(IDLE))
            .serve_connection(stream, answering)
            .await;
    } else {
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(64 * 1024)
            .serve_connection(stream, answering)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_says_how_long_it_waits() {
        assert_eq!(within("timeout=3s"), Duration::from_secs(3));
        assert_eq!(within("a=b&timeout=10s"), Duration::from_secs(10));
        for other in ["", "timeout=", "timeout=99999999999s", "timeout=90s", "timeout=-1s"] {
            assert_eq!(within(other), ANSWER_WITHIN, "{other}");
        }
    }
}
