//! Passes requests on, and then bytes both ways.

use super::kubelet::Kubelets;
use super::place::{Kubelet, Scheme, Somewhere};
use crate::api::Inner;
use crate::body::ApiBody;
use crate::status::{Details, Named, Status};
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::io;
use tokio_util::sync::CancellationToken;

/// How much of a refusal is read.
const REFUSAL: usize = 50_000;

/// What is between two neighbours only.
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, UPGRADE, TE, TRAILER, TRANSFER_ENCODING, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION];

/// What passing on needs.
pub(super) struct Passing<'a> {
    pub(super) kubelets: &'a Kubelets,
    pub(super) api: &'a Inner,
    /// Ends what goes on when the server stops.
    pub(super) ended: CancellationToken,
}

impl Passing<'_> {
    /// Asks a kubelet.
    pub(super) async fn get(&self, kubelet: &Kubelet, path: &str) -> Result<Response<Incoming>, Status> {
        let to = somewhere(kubelet);
        let failed = |error: io::Error| {
            Status::plain(format!("Get \"https://{}{path}\": {}", to.authority(), told(&to, &error)))
        };
        self.send(&to, Method::GET, path, HeaderMap::new(), Bytes::new()).await.map_err(failed)
    }

    /// Asks a kubelet to speak something else, and lets it and the client do so.
    pub(super) async fn upgrade(
        &self,
        kubelet: &Kubelet,
        path: &str,
        parts: &Parts,
        client: OnUpgrade,
    ) -> Result<Response<ApiBody>, Status> {
        self.switch(&somewhere(kubelet), path, parts, client).await
    }

    /// Passes a request on as it is, and what is answered.
    pub(super) async fn proxy(
        &self,
        to: &Somewhere,
        path: &str,
        parts: &Parts,
        body: Bytes,
        client: Option<OnUpgrade>,
    ) -> Result<Response<ApiBody>, Status> {
        if let Some(client) = client.filter(|_| parts.headers.contains_key(UPGRADE)) {
            return self.switch(to, path, parts, client).await;
        }
        let mut headers = forwarded(&parts.headers);
        for name in &HOP_BY_HOP {
            headers.remove(name);
        }
        let response = self.send(to, parts.method.clone(), path, headers, body).await.map_err(|error| {
            Status::unavailable(format!("error trying to reach service: {}", told(to, &error)))
        })?;
        Ok(self.passed(response))
    }

    async fn switch(
        &self,
        to: &Somewhere,
        path: &str,
        parts: &Parts,
        client: OnUpgrade,
    ) -> Result<Response<ApiBody>, Status> {
        let Ok(place) = self.kubelets.places.clone().try_acquire_owned() else {
            return Err(Status::too_many_requests("too many streams are open, please try again later", 1));
        };
        let dialing =
            |error: io::Error| Status::internal(format!("error dialing backend: {}", told(to, &error)));
        let headers = forwarded(&parts.headers);
        let sent = self.send(to, parts.method.clone(), path, headers, Bytes::new()).await;
        let mut response = sent.map_err(dialing)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(self.passed(response));
        }
        let backend = hyper::upgrade::on(&mut response);
        let ended = self.ended.clone();
        tokio::spawn(async move {
            let _place = place;
            let joining = async {
                let (client, backend) = tokio::try_join!(client, backend).map_err(io::Error::other)?;
                tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(backend)).await
            };
            let over = tokio::select! {
                () = ended.cancelled() => return,
                over = joining => over,
            };
            if let Err(error) = over {
                tracing::debug!(%error, "a stream to a node broke off");
            }
        });
        let (head, _) = response.into_parts();
        let mut response = Response::new(ApiBody::full(Bytes::new()));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        Ok(response)
    }

    /// Sends a request on a connection of its own.
    async fn send(
        &self,
        to: &Somewhere,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> io::Result<Response<Incoming>> {
        let credentials = || self.api.credentials().cloned();
        let wire = self.kubelets.connect(to, credentials).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(wire)).await.map_err(io::Error::other)?;
        let ended = self.ended.clone();
        tokio::spawn(async move {
            // It ends when its answer was read or dropped, or becomes what it is upgraded to.
            tokio::select! {
                () = ended.cancelled() => {}
                over = connection.with_upgrades() => if let Err(error) = over {
                    tracing::debug!(%error, "a connection to a node broke off");
                }
            }
        });
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(io::Error::other)?;
        *request.headers_mut() = headers;
        let host = HeaderValue::try_from(to.authority()).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, host);
        sender.send_request(request).await.map_err(io::Error::other)
    }

    /// An answer as it came, its body as it comes.
    fn passed(&self, response: Response<Incoming>) -> Response<ApiBody> {
        let mut response = response.map(|body| ApiBody::passed(body, self.ended.clone()));
        for name in &HOP_BY_HOP {
            response.headers_mut().remove(name);
        }
        response
    }
}

fn somewhere(kubelet: &Kubelet) -> Somewhere {
    Somewhere { scheme: Scheme::Kubelet, host: kubelet.host.clone(), port: kubelet.port }
}

/// What is passed on of a request's headers: not who sent it, which is for the API server alone.
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [AUTHORIZATION, HOST, CONTENT_LENGTH] {
        headers.remove(name);
    }
    headers
}

/// Why somewhere could not be reached.
fn told(to: &Somewhere, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {}: connect: connection refused", to.authority())
        }
        _ => error.to_string(),
    }
}

/// What a kubelet refused, in the API's form.
pub(super) async fn refused(resource: &str, name: &str, response: Response<Incoming>) -> Status {
    let code = response.status().as_u16();
    let body = Limited::new(response.into_body(), REFUSAL).collect().await;
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(error) => return Status::internal(error),
    };
    let text = String::from_utf8_lossy(&body);
    let text = text.trim_end();
    match code {
        500 => Status::internal(text),
        400 => Status::bad_request(text),
        _ => Status::of_server(code, Named { group: "", kind: resource }, name, text),
    }
}

impl Status {
    /// What another server answered, which did not say it as Kubernetes does.
    fn of_server(code: u16, resource: Named<'_>, name: &str, text: &str) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
            403 => ("Forbidden", text),
            404 => ("NotFound", "the server could not find the requested resource"),
            405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
            422 => ("Invalid", "the server rejected our request due to an error in our request"),
            503 => ("ServiceUnavailable", text),
            _ => ("Unknown", "the server responded with the status code but did not return more information"),
        };
        let message = format!("{message} ( {} {name})", resource.kind);
        let details = Details { name: name.to_owned(), kind: resource.kind.to_owned(), ..Details::default() };
        Self { code, reason, message, details: Some(Box::new(details)), continue_token: String::new() }
    }
}
