//! Forwards requests to kubelets, pods and Services, and then bytes both ways.

use super::links::Links;
use super::location::Kubelet;
use crate::dial::Dialer;
use crate::dial::{Address, Scheme};
use crate::http::ApiBody;
use crate::state::ApiState;
use crate::status::{Details, Named, Status};
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONNECTION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
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

/// How large a page may be whose links are rewritten.
const LARGEST_PAGE: usize = 16 * 1024 * 1024;

/// Which path a client asked for.
const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Whom a server allows to read what it answers: here it is not the one that is asked.
const ALLOWED: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// What is between two neighbours only.
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, UPGRADE, TE, TRAILER, TRANSFER_ENCODING, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION];

/// What passing on needs.
pub(super) struct Forwarding<'a> {
    pub(super) dialer: &'a Dialer,
    pub(super) api: &'a ApiState,
    /// Ends what goes on when the server stops.
    pub(super) ended: CancellationToken,
}

impl Forwarding<'_> {
    /// Asks a kubelet.
    pub(super) async fn get(&self, kubelet: &Kubelet, path: &str) -> Result<Response<Incoming>, Status> {
        let to = somewhere(kubelet);
        let failed = |error: io::Error| {
            Status::plain(format!("Get \"https://{}{path}\": {}", to.authority(), dial_error(&to, &error)))
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

    /// Passes a request on as it is, and what is answered, with links that lead back through the same path.
    pub(super) async fn proxy(
        &self,
        to: &Address,
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
        // What is packed could not be rewritten, and pods are near.
        headers.remove(ACCEPT_ENCODING);
        if let Ok(asked) = HeaderValue::try_from(parts.uri.path()) {
            headers.insert(FORWARDED, asked);
        }
        let asked = asked_host(parts);
        if let Some(host) = HeaderValue::try_from(asked).ok().filter(|host| !host.is_empty()) {
            headers.insert(HOST, host);
        }
        let response = self.send(to, parts.method.clone(), path, headers, body).await.map_err(|error| {
            Status::unavailable(format!("error trying to reach service: {}", dial_error(to, &error)))
        })?;
        let behind = path.split('?').next().unwrap_or_default();
        let prefix = parts.uri.path().strip_suffix(behind).unwrap_or(parts.uri.path());
        let links = Links { prefix: prefix.to_owned(), server: to.authority(), asked: asked.to_owned() };
        self.linked(response, &parts.method, &links).await
    }

    /// An answer with links that lead through the proxy.
    async fn linked(
        &self,
        mut response: Response<Incoming>,
        method: &Method,
        links: &Links,
    ) -> Result<Response<ApiBody>, Status> {
        for name in &ALLOWED {
            response.headers_mut().remove(name);
        }
        let header = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(location) = header(LOCATION) {
            let location = links.rewritten(location).and_then(|to| HeaderValue::try_from(to).ok());
            if let Some(location) = location {
                response.headers_mut().insert(LOCATION, location);
            }
            return Ok(self.passed(response));
        }
        let kind = header(CONTENT_TYPE).and_then(|kind| kind.split(';').next()).unwrap_or_default();
        let length = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let readable =
            header(CONTENT_ENCODING).is_none() && length.is_none_or(|length| LARGEST_PAGE >= length);
        if kind.trim() != "text/html" || method == Method::HEAD || !readable {
            return Ok(self.passed(response));
        }
        let (mut head, body) = response.into_parts();
        let page = Limited::new(body, LARGEST_PAGE).collect();
        let page = tokio::select! {
            () = self.ended.cancelled() => return Err(Status::unavailable("the server is about to stop")),
            page = page => page.map_err(|error| Status::internal(format!("a page was not read: {error}")))?,
        };
        for name in HOP_BY_HOP.iter().chain([&CONTENT_LENGTH]) {
            head.headers.remove(name);
        }
        Ok(Response::from_parts(head, ApiBody::full(links.page(&page.to_bytes()).into())))
    }

    async fn switch(
        &self,
        to: &Address,
        path: &str,
        parts: &Parts,
        client: OnUpgrade,
    ) -> Result<Response<ApiBody>, Status> {
        let Ok(place) = self.dialer.streams.clone().try_acquire_owned() else {
            return Err(Status::too_many_requests("too many streams are open, please try again later", 1));
        };
        let dialing =
            |error: io::Error| Status::internal(format!("error dialing backend: {}", dial_error(to, &error)));
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
        to: &Address,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> io::Result<Response<Incoming>> {
        let credentials = || self.api.credentials().cloned();
        let wire = self.dialer.connect(to, credentials).await?;
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
        request.headers_mut().entry(HOST).or_insert(host);
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

fn somewhere(kubelet: &Kubelet) -> Address {
    Address { scheme: Scheme::Kubelet, host: kubelet.host.clone(), port: kubelet.port }
}

/// What is passed on of a request's headers: not who sent it, which is for the API server alone.
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [AUTHORIZATION, HOST, CONTENT_LENGTH] {
        headers.remove(name);
    }
    headers
}

/// By which host this server was asked; HTTP/2 has it beside the path.
fn asked_host(parts: &Parts) -> &str {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default()
}

/// Why somewhere could not be reached.
fn dial_error(to: &Address, error: &io::Error) -> String {
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
        let details = Some(Box::new(details));
        Self { code, reason: reason.into(), message, details, continue_token: String::new() }
    }
}
