//! `etcd`: the folder that an API server's objects are in. It stores nothing itself: it tells its `kube-apiserver`, which is
//! this program too, where the folder is.

use super::flags::{self, Flag, Flags, Takes};
use crate::signals::Signals;
use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use windlass_clock::Clock;

const FLAGS: &[Flag] = &[
    Flag { name: "data-dir", takes: Takes::Value, help: "The folder that objects are kept in." },
    Flag {
        name: "listen-client-urls",
        takes: Takes::Value,
        help: "Where to listen, such as http://127.0.0.1:2379.",
    },
    Flag {
        name: "unsafe-no-fsync",
        takes: Takes::Bool,
        help: "Do not wait for the disk: what was acknowledged may be lost when the machine stops.",
    },
    // No peers, and nobody else asks: these are what every test environment passes.
    Flag { name: "advertise-client-urls", takes: Takes::Value, help: "Not used." },
    Flag { name: "listen-peer-urls", takes: Takes::Value, help: "Not used." },
    Flag { name: "initial-advertise-peer-urls", takes: Takes::Value, help: "Not used." },
    Flag { name: "initial-cluster", takes: Takes::Value, help: "Not used." },
    Flag { name: "name", takes: Takes::Value, help: "Not used." },
];

/// Where an API server asks for the folder.
const STORE: &str = "/windlass/store";

/// How long an API server waits for its etcd.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long it rests between two tries.
const REST: Duration = Duration::from_millis(20);

/// What an answer is cut at.
const LONGEST: usize = 64 * 1024;

/// The folder of an API server's objects.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoreLocation {
    pub(super) folder: PathBuf,
    pub(super) fsync: bool,
}

pub(super) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let flags = Flags::parse(arguments, FLAGS)?;
    if flags.help {
        let what = "Keeps the objects of the kube-apiserver of `windlass envtest` in a folder.";
        print!("{}", flags::help(what, FLAGS));
        return Ok(ExitCode::SUCCESS);
    }
    if flags.version {
        println!("etcd Version: {} (windlass {})", VERSION, env!("CARGO_PKG_VERSION"));
        return Ok(ExitCode::SUCCESS);
    }
    flags.warn_of_ignored();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&flags))
}

/// The version of etcd that Kubernetes' own tests use.
const VERSION: &str = "3.6.6";

async fn serve(flags: &Flags) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let folder = PathBuf::from(flags.get("data-dir").unwrap_or("default.etcd"));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = folder.canonicalize().with_context(|| format!("cannot look at {}", folder.display()))?;
    let fsync = !flags.parsed("unsafe-no-fsync")?.unwrap_or(false);
    let location = StoreLocation { folder: folder.join("windlass"), fsync };
    let location = Bytes::from(serde_json::to_vec(&location)?);
    let urls = match flags.list("listen-client-urls") {
        urls if urls.is_empty() => vec!["http://127.0.0.1:2379"],
        urls => urls,
    };
    for url in urls {
        let address = address(url)?;
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {url}"))?;
        tokio::spawn(accept(listener, location.clone()));
    }
    signals.next().await;
    Ok(ExitCode::SUCCESS)
}

async fn accept(listener: TcpListener, location: Bytes) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            Clock::real().sleep(REST).await;
            continue;
        };
        let location = location.clone();
        let answering = hyper::server::conn::http1::Builder::new().timer(TokioTimer::new()).serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| {
                let response = answer(&request, &location);
                async move { Ok::<_, Infallible>(response) }
            }),
        );
        tokio::spawn(answering);
    }
}

fn answer(request: &Request<Incoming>, location: &Bytes) -> Response<Full<Bytes>> {
    let (code, body) = match request.uri().path() {
        "/health" => (StatusCode::OK, Bytes::from_static(b"{\"health\":\"true\",\"reason\":\"\"}")),
        "/livez" | "/readyz" => (StatusCode::OK, Bytes::from_static(b"ok\n")),
        "/version" => {
            let version = serde_json::json!({"etcdserver": VERSION, "etcdcluster": VERSION});
            (StatusCode::OK, Bytes::from(version.to_string()))
        }
        STORE => (StatusCode::OK, location.clone()),
        _ => (StatusCode::NOT_FOUND, Bytes::from_static(b"404 page not found\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = code;
    response
}

/// The address of a URL without a path.
fn address(url: &str) -> anyhow::Result<&str> {
    match url.split_once("://") {
        Some(("https", _)) => bail!("{url}: the etcd of `windlass envtest` speaks http:// only"),
        Some(("http", address)) => Ok(address.trim_end_matches('/')),
        _ => bail!("{url:?} is no URL such as http://127.0.0.1:2379"),
    }
}

/// Asks an etcd where the objects of its API server are; waits until it is there.
pub(super) async fn locate(url: &str) -> anyhow::Result<StoreLocation> {
    let address = address(url)?;
    let clock = Clock::real();
    let deadline = clock.moment() + PATIENCE;
    loop {
        match ask(address).await {
            Ok((StatusCode::OK, body)) => {
                return serde_json::from_slice(&body).with_context(|| {
                    format!("{url} does not answer as the etcd of `windlass envtest` does")
                });
            }
            Ok((code, _)) => bail!(
                "{url} is not the etcd of `windlass envtest` (it answers {code}); take both programs from the folder that \
                 `windlass envtest path` prints"
            ),
            Err(error) if clock.moment() > deadline => {
                return Err(error).with_context(|| format!("there is no etcd at {url}"));
            }
            Err(_) => clock.sleep(REST).await,
        }
    }
}

async fn ask(address: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    let asking = async {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::get(STORE).header("host", address).body(Full::<Bytes>::default())?;
        let (parts, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(anyhow::Error::from_boxed)?;
        anyhow::Ok((parts.status, body.to_bytes()))
    };
    Clock::real().timeout(PATIENCE, asking).await.context("no answer")?
}
