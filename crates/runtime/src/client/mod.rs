//! A short way to an API server: HTTP/1.1 connections, each driven by whoever waits for its answer.
//!
//! In comes a [`kube::Config`], out comes a service for [`kube::Client`]. The usual client hands every request to a task of
//! the pool's and another of the connection's, and wraps it in a dozen layers; an operator is at that half of its time.
//! Names, certificates, tokens and their renewal are kube's all the same. What a config asks beyond that (a proxy, a limit
//! on silence) is left to kube's own client.
//!
//! The library's own requests also skip the queue of `kube::Client` (`direct.rs`). A request is sent again only if it never
//! left, because the server had closed an idle connection.

mod connection;
mod direct;

pub(crate) use direct::DirectClient;

use connection::{Answered, Connection, Stream};
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use kube::Config;
use kube::client::{Body, ConfigExt};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{BoxError, Layer, Service, ServiceExt};
use windlass_clock::{Clock, Moment};

/// The number of idle connections that are kept; more were a burst.
const IDLE: usize = 16;
/// Servers close what is idle for a minute and a half. What is older than this may be gone by the time a request is there.
const IDLE_FOR: Duration = Duration::from_secs(45);

/// Whether a config asks for nothing that only kube's own client has.
pub(crate) fn can_connect_directly(config: &Config) -> bool {
    config.proxy_url.is_none() && config.read_timeout.is_none() && !config.default_retry
}

/// A service that takes requests to the server of `config`.
///
/// # Errors
/// When its address, certificates or credentials cannot be used.
pub(crate) fn direct_service(
    config: &Config,
    clock: &Clock,
) -> Result<
    impl Service<
        Request<Body>,
        Response = Response<impl http_body::Body<Data = bytes::Bytes, Error = hyper::Error> + Send + 'static>,
        Error = BoxError,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static,
    kube::Error,
> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    // A request is written in one piece: nothing is gained by waiting for more.
    connector.set_nodelay(true);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let service = DirectService::by(connector, config, clock)?;
    let headers = config.extra_headers_layer()?;
    let auth = tower::util::option_layer(config.auth_layer()?);
    Ok(auth.layer(headers.layer(service)))
}

/// Where the server is.
struct Address {
    url: Uri,
    host: HeaderValue,
    /// Before every path, where the server is not at the root.
    prefix: String,
}

impl Address {
    fn of(url: &Uri) -> Result<Self, kube::Error> {
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let host = HeaderValue::from_str(authority.rsplit('@').next().unwrap_or_default());
        let host = host.map_err(|error| kube::Error::HttpError(error.into()))?;
        Ok(Self { url: url.clone(), host, prefix: url.path().trim_end_matches('/').to_owned() })
    }

    /// What the request says of where it goes, as a connection to a server wants it.
    fn put_on<B>(&self, request: &mut Request<B>) -> Result<(), BoxError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        if !self.prefix.is_empty() {
            *request.uri_mut() = format!("{}{path}", self.prefix).parse()?;
        } else if request.uri().authority().is_some() {
            *request.uri_mut() = path.parse()?;
        }
        request.headers_mut().entry(http::header::HOST).or_insert_with(|| self.host.clone());
        Ok(())
    }
}

struct Shared<C> {
    connector: C,
    address: Address,
    connect_within: Option<Duration>,
    clock: Clock,
    /// The one that was used last is the last.
    idle: Mutex<Vec<(Moment, Connection)>>,
}

struct DirectService<C>(Arc<Shared<C>>);

impl<C> Clone for DirectService<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> DirectService<C> {
    fn by(connector: C, config: &Config, clock: &Clock) -> Result<Self, kube::Error> {
        Ok(Self(Arc::new(Shared {
            connector,
            address: Address::of(&config.cluster_url)?,
            connect_within: config.connect_timeout,
            clock: clock.clone(),
            idle: Mutex::default(),
        })))
    }
}

impl<C> Service<Request<Body>> for DirectService<C>
where
    C: Service<Uri, Response: Stream, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
{
    type Response = Response<Answered>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move { shared.ask(request).await })
    }
}

impl<C> Shared<C>
where
    C: Service<Uri, Response: Stream, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
{
    async fn ask(self: Arc<Self>, mut request: Request<Body>) -> Result<Response<Answered>, BoxError> {
        self.address.put_on(&mut request)?;
        loop {
            let (mut line, fresh) = match self.take_idle().await {
                Some(line) => (line, false),
                // Boxed, for it is large and rare: every request would carry room for it.
                None => (Box::pin(self.connect()).await?, true),
            };
            match line.ask(request).await {
                Ok(response) => {
                    let keep = self.clone();
                    return Ok(line.answered(response, move |line| keep.keep(line)));
                }
                // It never left: the server had closed the connection just then.
                Err((_, Some(unsent))) if !fresh => request = unsent,
                Err((error, _)) => return Err(error.into()),
            }
        }
    }

    async fn take_idle(&self) -> Option<Connection> {
        loop {
            let (since, mut line) = self.idle.lock().pop()?;
            // Asked once: one that is not free by now is not waited for.
            let free = poll_fn(|context| Poll::Ready(line.poll_free(context) == Poll::Ready(true))).await;
            if free && self.clock.moment() - since < IDLE_FOR {
                return Some(line);
            }
        }
    }

    async fn connect(&self) -> Result<Connection, BoxError> {
        let connecting = async {
            let stream = self.connector.clone().oneshot(self.address.url.clone());
            Connection::on(stream.await.map_err(Into::into)?).await.map_err(BoxError::from)
        };
        match self.connect_within {
            Some(limit) => self.clock.timeout(limit, connecting).await?,
            None => connecting.await,
        }
    }

    fn keep(&self, line: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() >= IDLE {
            idle.remove(0);
        }
        idle.push((self.clock.moment(), line));
    }
}

#[cfg(test)]
mod tests;
