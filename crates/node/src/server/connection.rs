//! One connection: its handshake, its requests, and what it is upgraded to.

use super::auth::{self, Auth, Caller};
use super::backend::{Backend, HttpError};
use super::remote_command::{self, Work};
use super::response::{self, Body};
use super::route::{self, Asked, Wants};
use super::upgrade::{self, PORT_FORWARD, Protocol, REMOTE_COMMAND};
use super::{ContainerRef, PodRef, port_forward, tls};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long the head of a request may take, also on a connection that was used before.
const HEAD: Duration = Duration::from_secs(90);

/// How large a head may be: commands are part of it.
const HEAD_SIZE: usize = 128 * 1024;

/// The largest message of a WebSocket: clients send pieces of 32 KiB.
const MESSAGE: usize = 1024 * 1024;

/// What connections have in common.
pub(super) struct Connections<B> {
    pub(super) acceptor: TlsAcceptor,
    pub(super) auth: Arc<dyn Auth>,
    pub(super) clock: Clock,
    pub(super) backend: Arc<B>,
    pub(super) stop: CancellationToken,
}

impl<B: Backend> Connections<B> {
    /// Serves one to its end; the place is taken as long as anything of it goes on.
    pub(super) async fn serve(self: Arc<Self>, stream: TcpStream, place: Arc<OwnedSemaphorePermit>) {
        let clock = Clock::real();
        let shaken = tokio::select! {
            () = self.stop.cancelled() => return,
            shaken = clock.timeout(HANDSHAKE, self.acceptor.accept(stream)) => shaken,
        };
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return,
        };
        let certificate = Arc::new(tls::caller(stream.get_ref().1.peer_certificates()));
        let service = service_fn(|request| {
            let (connections, certificate, place) = (self.clone(), certificate.clone(), place.clone());
            async move {
                Ok::<_, Infallible>(connections.answer(request, certificate.as_ref().as_ref(), place).await)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_SIZE)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::select! {
            () = self.stop.cancelled() => {}
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }

    async fn answer(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        certificate: Option<&Caller>,
        place: Arc<OwnedSemaphorePermit>,
    ) -> Response<Body> {
        let (method, path) = (request.method(), request.uri().path());
        let Some(caller) = auth::identify(&*self.auth, certificate, request.headers()).await else {
            return response::refused(&HttpError { code: 401, message: "Unauthorized".to_owned() });
        };
        let subresources = route::subresources(path);
        if !auth::may(&*self.auth, &caller, method, subresources).await {
            let message = format!(
                "Forbidden (user={}, verb={}, resource=nodes, subresource(s)={subresources:?})",
                caller.user,
                if *method == http::Method::POST { "create" } else { "get" },
            );
            return response::refused(&HttpError { code: 403, message });
        }
        let query = request.uri().query().unwrap_or_default();
        let asked = match route::route(method, path, query, self.clock.now()) {
            Ok(asked) => asked,
            Err(refusal) => return response::refused(&refusal),
        };
        let upgrade = hyper::upgrade::on(&mut request);
        match self.give(asked, request, upgrade, place).await {
            Ok(response) => response,
            Err(refusal) => response::refused(&refusal),
        }
    }

    async fn give(
        self: Arc<Self>,
        asked: Asked,
        request: Request<Incoming>,
        upgrade: OnUpgrade,
        place: Arc<OwnedSemaphorePermit>,
    ) -> Result<Response<Body>, HttpError> {
        let json = |text: String| response::full(StatusCode::OK, response::JSON, text);
        Ok(match asked {
            Asked::Health => response::full(StatusCode::OK, response::TEXT, "ok"),
            Asked::Pods => json(self.backend.pods().await.to_string()),
            Asked::Summary => {
                let summary = self.backend.stats().await;
                json(serde_json::to_string(&summary).map_err(HttpError::internal)?)
            }
            Asked::Metrics => {
                let metrics = self.backend.stats().await.metrics();
                response::full(StatusCode::OK, response::METRICS, metrics)
            }
            Asked::Logs(container, options) => {
                self.backend.find(&container).await?;
                response::log(self.backend.logs(&container, options).await?)
            }
            Asked::Exec(container, command, wants) => {
                self.remote(&request, upgrade, place, container, wants, Work::Exec(command)).await?
            }
            Asked::Attach(container, wants) => {
                self.remote(&request, upgrade, place, container, wants, Work::Attach).await?
            }
            Asked::Forward(pod, ports) => self.forward(&request, upgrade, place, pod, ports).await?,
        })
    }

    async fn remote(
        self: Arc<Self>,
        request: &Request<Incoming>,
        upgrade: OnUpgrade,
        place: Arc<OwnedSemaphorePermit>,
        container: ContainerRef,
        wants: Wants,
        work: Work,
    ) -> Result<Response<Body>, HttpError> {
        let agreed = upgrade::agree(request.headers(), &REMOTE_COMMAND)?;
        self.backend.find(&container).await?;
        let (protocol, backend) = (agreed.protocol, self.backend.clone());
        self.carry(upgrade, place, move |io| async move {
            match protocol {
                Protocol::Spdy => remote_command::over_spdy(io, wants, &*backend, &container, work).await,
                _ => {
                    let socket = websocket(io).await;
                    remote_command::over_websocket(socket, protocol, wants, &*backend, &container, work)
                        .await;
                }
            }
        });
        Ok(response::switched(agreed.response))
    }

    async fn forward(
        self: Arc<Self>,
        request: &Request<Incoming>,
        upgrade: OnUpgrade,
        place: Arc<OwnedSemaphorePermit>,
        pod: PodRef,
        ports: Vec<u16>,
    ) -> Result<Response<Body>, HttpError> {
        let agreed = upgrade::agree(request.headers(), &PORT_FORWARD)?;
        if agreed.protocol == Protocol::ChannelsV4 && ports.is_empty() {
            return Err(HttpError::bad_request("query parameter \"port\" is required"));
        }
        self.backend.find_pod(&pod).await?;
        let (protocol, backend) = (agreed.protocol, self.backend.clone());
        self.carry(upgrade, place, move |io| async move {
            match protocol {
                Protocol::Spdy => port_forward::over_spdy(io, backend, pod).await,
                Protocol::Tunnel => port_forward::tunnelled(websocket(io).await, backend, pod).await,
                _ => port_forward::over_websocket(websocket(io).await, ports, backend, pod).await,
            }
        });
        Ok(response::switched(agreed.response))
    }

    /// Carries on with what a connection becomes, until that or the server ends.
    fn carry<F, Carried>(&self, upgrade: OnUpgrade, place: Arc<OwnedSemaphorePermit>, what: F)
    where
        F: FnOnce(TokioIo<Upgraded>) -> Carried + Send + 'static,
        Carried: Future<Output = ()> + Send,
    {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let _place = place;
            let carrying = async {
                match upgrade.await {
                    Ok(upgraded) => what(TokioIo::new(upgraded)).await,
                    Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = carrying => {}
            }
        });
    }
}

async fn websocket(io: TokioIo<Upgraded>) -> WebSocketStream<TokioIo<Upgraded>> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE))
        .max_write_buffer_size(4 * MESSAGE);
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}
