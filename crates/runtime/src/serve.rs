//! The manager's own small HTTP server: `/metrics`, `/healthz`, `/readyz` and `/debug`; and one for programs without a manager, such as
//! an agent beside a server. Bounded in every way.

use crate::inspect::{Inspector, Served};
use crate::metrics;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use windlass_clock::Clock;

/// Connections at once; others wait until one ends.
const CONNECTIONS: usize = 64;
/// The time after which a request that did not arrive, or an idle connection, is dropped.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// No connection lasts longer.
const LONGEST: Duration = Duration::from_secs(300);

/// Where to serve, or not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bind {
    /// Nowhere.
    #[default]
    Off,
    /// Here. Port 0 is any free one.
    At(SocketAddr),
}

/// This is not an address to serve at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an address: write HOST:PORT with a numeric host, :PORT for all interfaces, or 0 for none"
)]
pub struct InvalidAddress(String);

impl FromStr for Bind {
    type Err = InvalidAddress;

    /// As controller-runtime reads it: `0` is off, `:8080` is port 8080 on all interfaces.
    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let wrong = || InvalidAddress(text.to_owned());
        if text == "0" {
            return Ok(Self::Off);
        }
        let all = text.strip_prefix(':').map(|port| format!("0.0.0.0:{port}"));
        let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        all.or(local).as_deref().unwrap_or(text).parse().map(Self::At).map_err(|_| wrong())
    }
}

impl std::fmt::Display for Bind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// Which pages are served at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    /// `/metrics` and `/debug`.
    pub(crate) metrics: bool,
    /// `/healthz` and `/readyz`.
    pub(crate) health: bool,
}

/// A server that is bound and does not answer yet.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    pages: Pages,
}

impl Server {
    /// The servers for metrics and for probes: one, when both are to be at one address.
    pub(crate) async fn bind(metrics: Bind, health: Bind) -> Result<Vec<Self>, (SocketAddr, std::io::Error)> {
        let wanted = match (metrics, health) {
            (Bind::At(one), Bind::At(other)) if one == other && one.port() != 0 => {
                vec![(one, Pages { metrics: true, health: true })]
            }
            (metrics, health) => {
                let both = [
                    (metrics, Pages { metrics: true, health: false }),
                    (health, Pages { metrics: false, health: true }),
                ];
                let bound = |(bind, pages)| match bind {
                    Bind::At(address) => Some((address, pages)),
                    Bind::Off => None,
                };
                both.into_iter().filter_map(bound).collect()
            }
        };
        let mut servers = Vec::new();
        for (address, pages) in wanted {
            let listener = TcpListener::bind(address).await.map_err(|error| (address, error))?;
            let at = listener.local_addr().map_err(|error| (address, error))?;
            tracing::info!(address = %at, metrics = pages.metrics, health = pages.health, "serving");
            servers.push(Self { listener, pages });
        }
        Ok(servers)
    }

    /// Where these servers are.
    pub(crate) fn served(servers: &[Self]) -> Served {
        let of = |has: fn(&Pages) -> bool| {
            let server = servers.iter().find(|server| has(&server.pages))?;
            server.listener.local_addr().ok()
        };
        Served { metrics: of(|pages| pages.metrics), health: of(|pages| pages.health), webhooks: None }
    }

    /// Answers until dropped.
    pub(crate) async fn serve(self, inspector: Inspector, clock: Clock) {
        let pages = self.pages;
        let answering = move |uri: http::Uri| std::future::ready(answer(&inspector, pages, &uri));
        serve(self.listener, clock, answering).await;
    }
}

/// Serves a page of metrics at `/metrics` until it is dropped, made when it is asked for: for a program without a
/// [`Manager`](crate::Manager), whose own metrics are on the manager's page.
///
/// ```
/// # use windlass::{clock::Clock, metrics::{Page, Type}, serve_metrics};
/// # async fn example() -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// serve_metrics(listener, Clock::real(), || async {
///     let mut page = Page::default();
///     page.family("shop_open", Type::Gauge, "Whether the shop is open.").sample(&[], 1.0);
///     page
/// })
/// .await;
/// # Ok(())
/// # }
/// ```
pub async fn serve_metrics<F>(
    listener: TcpListener,
    clock: Clock,
    collect: impl Fn() -> F + Clone + Send + 'static,
) where
    F: Future<Output = metrics::Page> + Send,
{
    let answering = move |uri: http::Uri| {
        let collect = collect.clone();
        async move {
            match uri.path() {
                "/metrics" => page(StatusCode::OK, metrics::CONTENT_TYPE, collect().await.into_text()),
                _ => page(StatusCode::NOT_FOUND, TEXT, NO_SUCH_PAGE.to_owned()),
            }
        }
    };
    serve(listener, clock, answering).await;
}

/// Answers requests to read, until it is dropped.
async fn serve<A>(
    listener: TcpListener,
    clock: Clock,
    answer: impl Fn(http::Uri) -> A + Clone + Send + 'static,
) where
    A: Future<Output = Response<Full<Bytes>>> + Send,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: later there may be some.
                tracing::debug!("a connection was not accepted: {error}");
                clock.sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (answer, clock) = (answer.clone(), clock.clone());
        connections.spawn(async move {
            let answering = hyper::service::service_fn(move |request: Request<Incoming>| {
                let reads = matches!(*request.method(), Method::GET | Method::HEAD);
                let (answer, uri) = (answer.clone(), request.uri().clone());
                async move {
                    Ok::<_, Infallible>(match reads {
                        true => answer(uri).await,
                        false => page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned()),
                    })
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS_WITHIN)
                .max_buf_size(16 * 1024)
                .serve_connection(TokioIo::new(stream), answering);
            // Whoever hangs up, or sends what is no HTTP, has had its answer.
            let _ = clock.timeout(LONGEST, connection).await;
            drop(place);
        });
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const NO_SUCH_PAGE: &str = "no such page\n";

/// The answer to one request to read.
fn answer(inspector: &Inspector, pages: Pages, uri: &http::Uri) -> Response<Full<Bytes>> {
    let query = uri.query().unwrap_or_default();
    let asked =
        |name: &str| query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name));
    let verbose = query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="));
    let probe = |name: &str, health: crate::inspect::Health| {
        let code = if health.is_fine() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        page(code, TEXT, health.show(name, verbose))
    };
    match uri.path() {
        "/metrics" if pages.metrics => page(StatusCode::OK, metrics::CONTENT_TYPE, inspector.metrics()),
        "/debug" if pages.metrics => {
            let told = match (asked("kind"), asked("name")) {
                (Some((_, kind)), Some((_, name))) => {
                    inspector.object(kind, asked("namespace").map(|(_, namespace)| namespace), name)
                }
                _ => inspector.debug(),
            };
            page(StatusCode::OK, "application/json", format!("{told:#}\n"))
        }
        "/healthz" if pages.health => probe("healthz", inspector.live()),
        "/readyz" if pages.health => probe("readyz", inspector.ready()),
        _ => page(StatusCode::NOT_FOUND, TEXT, NO_SUCH_PAGE.to_owned()),
    }
}

fn page(code: StatusCode, of: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(of));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_controller_runtime_reads_it() {
        let at = |text: &str| Bind::At(text.parse().unwrap());
        assert_eq!("0".parse(), Ok(Bind::Off));
        assert_eq!(":8080".parse(), Ok(at("0.0.0.0:8080")));
        assert_eq!("localhost:1".parse(), Ok(at("127.0.0.1:1")));
        assert_eq!("[::1]:8080".parse(), Ok(at("[::1]:8080")));
        for nonsense in ["", "8080", ":", "host", "host:1", "1.2.3.4", ":99999"] {
            assert!(nonsense.parse::<Bind>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn each_address_has_its_own_pages() {
        let ask = |pages: Pages, path: &'static str| {
            answer(&Inspector::default(), pages, &http::Uri::from_static(path)).status()
        };
        let (metrics, health) =
            (Pages { metrics: true, health: false }, Pages { metrics: false, health: true });
        assert_eq!(
            [ask(metrics, "/metrics"), ask(metrics, "/readyz")],
            [StatusCode::OK, StatusCode::NOT_FOUND]
        );
        assert_eq!([ask(health, "/healthz"), ask(health, "/debug")], [StatusCode::OK, StatusCode::NOT_FOUND]);
        assert_eq!(ask(health, "/readyz"), StatusCode::INTERNAL_SERVER_ERROR, "nothing runs");
    }
}
