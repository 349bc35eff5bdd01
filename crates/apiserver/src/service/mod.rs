//! HTTP in process: a tower service that reads a request, sends it to its verb and builds the response.

mod aggregated;
mod dispatch;
mod request_body;
mod verb;

use crate::aggregation::{self, Registered, Streamed};
use crate::aggregator;
use crate::audit::AuditedRequest;
use crate::connect::{ConnectRequest, Connects, connects};
use crate::discovery;
use crate::faults::{Delivery, RequestInfo, Verdict};
use crate::flow::audit;
use crate::flow::authorize::{Action, NotPermitted, permitted_and_audited};
use crate::flow::connect_admission;
use crate::flow::impersonate::impersonate;
use crate::http::ApiBody;
use crate::http::response::{self, failure, plain, success, warned};
use crate::http::websocket::WebSocketUpgrade;
use crate::metrics::{MetricsRequest, is_metrics};
use crate::openapi;
use crate::operation::{Call, LONGEST_REQUEST, Operation};
use crate::request::Identity;
use crate::request::media::accept::{self, Endpoint};
use crate::request::path::{self, Route, Target};
use crate::request::query::{self, Query};
use crate::resource::Resource;
use crate::state::ApiState;
use crate::status::Status;
use aggregated::Led;
use bytes::Bytes;
use dispatch::{dispatch, reshaped};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use verb::{named_by_path, verb};
use windlass_clock::Clock;
use windlass_schema::{names, quote};

/// How long a body may take to arrive: the reference's limit for a request that is no watch. Bodies come from the world
/// outside, whatever time the API itself lives by.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The API as one client sees it.
#[derive(Clone)]
pub struct ApiService {
    api: Arc<ApiState>,
    identity: Arc<Identity>,
    /// Ends watches.
    ended: CancellationToken,
    /// The request, if it is audited.
    audited: Option<Arc<AuditedRequest>>,
    /// Whether flow control applies: to clients in the same process it does not.
    limited: bool,
}

impl ApiService {
    pub(crate) fn new(api: Arc<ApiState>, identity: Identity, ended: CancellationToken) -> Self {
        Self { api, identity: Arc::new(identity), ended, audited: None, limited: false }
    }

    /// For a client of another process, whose identity others may have too. It is subject to flow control.
    pub(crate) fn remote(api: Arc<ApiState>, identity: Arc<Identity>, ended: CancellationToken) -> Self {
        Self { api, identity, ended, audited: None, limited: true }
    }
}

impl std::fmt::Debug for ApiService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiService").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            if let Some(to) = service.api.aggregation.leads(parts.uri.path()) {
                let body = body.map_err(Into::into).boxed_unsync();
                return service.answer(parts, Payload::Led(to, body)).await;
            }
            // Read before anything is refused: a connection with an unread body could not be used again.
            let body = Clock::real().timeout(BODY_TIME, request_body::read(body)).await;
            let body = body.unwrap_or_else(|_| {
                Err(Status::timeout("request did not complete within the allotted timeout", 0))
            });
            let reads = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
            if reads || !service.api.store.is_durable() {
                return service.answer(parts, Payload::Read(body)).await;
            }
            // A write waits for the disk. A client that leaves meanwhile does not take with it what has to follow.
            let writing = tokio::spawn(async move { service.answer(parts, Payload::Read(body)).await });
            writing.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}

/// What comes with a request's head.
enum Payload {
    /// Its body, whole, if it is one.
    Read(Result<Bytes, Status>),
    /// Its body as it arrives, and to whom it is led.
    Led(Arc<Registered>, Streamed),
}

impl ApiService {
    /// Answers, indented for those who read along.
    async fn answer(&self, parts: Parts, body: Payload) -> io::Result<Response<ApiBody>> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let pretty = accept::pretty(query.get("pretty"), user_agent.unwrap_or_default());
        let accept = parts.headers.get(ACCEPT).cloned();
        let accept = accept.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        let response = self.answer_plainly(parts, query, body).await?;
        let failed = response.status().as_u16() >= 400 && response::is_json(&response);
        Ok(match accept::negotiate(accept, Endpoint::Document) {
            // Errors go to everyone: who takes nothing that there is reads them indented.
            Err(_) if failed => response::indented(response),
            Ok(wanted) if failed => response::encoded(response, wanted.media, pretty || wanted.pretty),
            Ok(wanted) if wanted.pretty => response::indented(response),
            _ if pretty => response::indented(response),
            _ => response,
        })
    }

    async fn answer_plainly(
        &self,
        mut parts: Parts,
        query: Query,
        body: Payload,
    ) -> io::Result<Response<ApiBody>> {
        let route = path::route(parts.uri.path());
        let watches = query.flag("watch") || matches!(&route, Route::Resource(target) if target.watch);
        if let Err(status) = if watches { Ok(()) } else { query::check_timeout(&query) } {
            return Ok(failure(&status));
        }
        let action = Action::of(&parts, &route, &query);
        let audited = match (&self.api.auditor, &action) {
            (Some(auditor), Some(action)) => auditor.begin(&action.by(&self.identity), &parts).map(Arc::new),
            _ => None,
        };
        let Some(action) = &action else {
            return self.answer_authorized(parts, route, query, body).await;
        };
        let other = match self.impersonate(&mut parts.headers, action, audited.as_deref()).await {
            Ok(other) => other.map(Arc::new),
            Err(status) => return Ok(respond_audited(audited, failure(&status))),
        };
        let identity = other.as_ref().unwrap_or(&self.identity);
        let flow = match self.limited && !is_long_running(&route) {
            true => self.api.flow_control.classify(&action.by(identity)),
            false => None,
        };
        let seat = match &flow {
            Some(flow) => Some(flow.seat().await),
            None => None,
        };
        let response = match &seat {
            Some(Err(_)) => too_many_requests(),
            _ => {
                let asked = action.by(identity);
                match permitted_and_audited(&self.api.authorizer, &asked, audited.as_deref()).await {
                    Err(NotPermitted::Forbidden(status)) => failure(&status),
                    Err(NotPermitted::Failed(why)) => internal_server_error(&parts, &why),
                    Ok(()) if other.is_none() && audited.is_none() => {
                        self.answer_authorized(parts, route, query, body).await?
                    }
                    Ok(()) => {
                        let (identity, audited) = (identity.clone(), audited.clone());
                        let acting = Self { identity, audited, ..self.clone() };
                        acting.answer_authorized(parts, route, query, body).await?
                    }
                }
            }
        };
        let mut response = respond_audited(audited, response);
        if let Some(flow) = &flow {
            flow.mark(response.headers_mut());
        }
        Ok(response)
    }

    /// Who sends the request, if it is not who proved to.
    async fn impersonate(
        &self,
        headers: &mut HeaderMap,
        action: &Action<'_>,
        audited: Option<&AuditedRequest>,
    ) -> Result<Option<Identity>, Status> {
        let other = impersonate(&self.api.authorizer, &self.identity, headers, action).await?;
        if let (Some(audited), Some(other)) = (audited, &other) {
            audited.impersonates(&other.identity, other.constraint.as_deref());
        }
        Ok(other.map(|other| other.identity))
    }

    async fn answer_authorized(
        &self,
        parts: Parts,
        route: Route,
        query: Query,
        body: Payload,
    ) -> io::Result<Response<ApiBody>> {
        let body = match body {
            Payload::Read(body) => body,
            Payload::Led(to, body) => return Ok(self.lead(parts, &route, &query, &to, body).await),
        };
        let target = match route {
            Route::Malformed => return Ok(plain(StatusCode::BAD_REQUEST, "400 Bad Request")),
            Route::Other(segments) => {
                return Ok(match openapi::elsewhere(&self.api, &segments) {
                    Some(to) => {
                        let body = Full::new(body.unwrap_or_default()).map_err(|never| match never {});
                        let route = Route::Other(segments);
                        self.lead(parts, &route, &query, &to, body.boxed_unsync()).await
                    }
                    None => discovery::answer(&self.api, &parts, &query, &segments),
                });
            }
            Route::Resource(target) => target,
        };
        let served = self.api.registry.served();
        let Some(resource) = served.get(&target.group, &target.version, &target.plural) else {
            // Two slashes after the other are no version.
            let known = !target.version.is_empty()
                && served.all().any(|known| !known.custom && known.group == target.group);
            return Ok(not_found(!known));
        };
        let (target, query) = match named_by_path(target, query) {
            Ok(read) => read,
            Err(status) => return Ok(failure(&status)),
        };
        let misplaced = match (&target.namespace, &target.name) {
            (Some(_), _) => !resource.namespaced,
            (None, Some(_)) => resource.namespaced,
            (None, None) => false,
        };
        if misplaced {
            return Ok(not_found(resource.custom));
        }
        if is_metrics(&resource) {
            let (api, ended) = (&self.api, self.ended.clone());
            return Ok(MetricsRequest { api, target: &target, query: &query, ended }.answer(&parts).await);
        }
        if let Some(what) = connects(&resource, &target) {
            let query = match self.admit_connection(what, &resource, &target, query).await {
                Ok(query) => query,
                Err(refused) => return Ok(*refused),
            };
            let (api, ended) = (&self.api, self.ended.clone());
            let messages = (what == Connects::Log).then(|| WebSocketUpgrade::requested(&parts)).flatten();
            let connecting = ConnectRequest { api, target: &target, query: &query, ended };
            return Ok(over_websocket(messages, connecting.answer(what, parts, body).await));
        }
        match self.call(resource, target, query, &parts, body) {
            Ok((verb, call)) => {
                Ok(over_websocket(WebSocketUpgrade::requested(&parts), self.carry_out(verb, call).await?))
            }
            Err(status) => Ok(failure(&status)),
        }
    }

    /// Leads a request to an extension API server.
    async fn lead(
        &self,
        parts: Parts,
        route: &Route,
        query: &Query,
        to: &Registered,
        body: Streamed,
    ) -> Response<ApiBody> {
        let watches = match route {
            Route::Resource(target) => query.flag("watch") || target.watch || is_long_running(route),
            _ => false,
        };
        let limit = aggregated::limit(watches, parts.uri.path(), query);
        let (api, identity, ended) = (&self.api, &*self.identity, self.ended.clone());
        Led { api, identity, query, to, limit, ended }.answer(parts, body).await
    }

    /// Asks webhooks about what leads to a node; the query as they left it.
    async fn admit_connection(
        &self,
        what: Connects,
        resource: &Arc<Resource>,
        target: &Target,
        query: Query,
    ) -> Result<Query, Box<Response<ApiBody>>> {
        if what == Connects::Log {
            return Ok(query);
        }
        let (namespace, name) = (target.namespace.as_deref(), target.name.as_deref());
        let subresource = target.subresource.as_deref().unwrap_or_default();
        let (subresource, path) = match subresource.split_once('/') {
            Some((subresource, path)) => (subresource, Some(path)),
            None => (subresource, None),
        };
        let operation = Operation {
            identity: &self.identity,
            subresource: subresource.to_owned(),
            audited: self.audited.clone(),
            asks_webhooks: true,
            ..Operation::of_server(
                &self.api,
                resource.clone(),
                namespace.unwrap_or_default(),
                name.unwrap_or_default(),
            )
        };
        let admitted = connect_admission::connect(&operation, path, &query).await;
        let warnings = std::mem::take(&mut *operation.warnings.lock());
        match admitted {
            Ok(changed) => Ok(changed.unwrap_or(query)),
            Err(status) => Err(Box::new(warned(failure(&status), warnings.into_iter()))),
        }
    }

    /// The request as its verb wants it, if it may be asked at all.
    fn call(
        &self,
        resource: Arc<Resource>,
        target: Target,
        query: Query,
        parts: &Parts,
        body: Result<Bytes, Status>,
    ) -> Result<(&'static str, Call<'_>), Status> {
        let verb = verb(&resource, &target, &parts.method, &query)?;
        let name = target.name.as_deref().unwrap_or_default();
        let wrong = names::path_segment(name, false);
        if !wrong.is_empty() {
            let why = wrong.join(";");
            return Err(Status::bad_request(format!("Name parameter invalid: {}: {why}", quote(name))));
        }
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let collection = parts.method == Method::GET && target.name.is_none();
        let watch = verb == "watch";
        let endpoint = match resource.custom {
            true => Endpoint::Custom { watch },
            false => Endpoint::BuiltIn { collection, watch, table: has_table(&target) },
        };
        let negotiated = accept::negotiate(header(ACCEPT), endpoint)?;
        let reads = matches!(verb, "get" | "list" | "watch");
        let deadline = Clock::real().moment() + query::timeout(&query).min(LONGEST_REQUEST);
        let call = Call {
            api: &self.api,
            identity: &self.identity,
            resource,
            target,
            query,
            user_agent: header(USER_AGENT).to_owned(),
            content_type: header(CONTENT_TYPE).to_owned(),
            body: if reads { Bytes::new() } else { body? },
            negotiated,
            ceiling: None,
            warnings: Arc::default(),
            ended: self.ended.clone(),
            control: None,
            mutations: Vec::new(),
            audited: self.audited.clone(),
            deadline,
        };
        Ok((verb, call))
    }

    /// Does what is asked, as far as faults let it, and answers, likewise.
    async fn carry_out(&self, verb: &'static str, mut call: Call<'_>) -> io::Result<Response<ApiBody>> {
        let (api, target) = (&self.api, &call.target);
        let storage = call.resource.storage_key();
        let mut info = RequestInfo {
            verb,
            resource: &storage,
            subresource: target.subresource.as_deref().unwrap_or_default(),
            namespace: target.namespace.as_deref().unwrap_or_default(),
            name: target.name.as_deref().unwrap_or_default(),
            user: &self.identity.user,
            user_agent: &call.user_agent,
            dry_run: call.query.get("dryRun").is_some(),
        };
        let mut decision = api.faults.before(&info);
        api.clock.sleep(decision.delay).await;
        match &decision.verdict {
            Verdict::Proceed => {}
            Verdict::Refuse(status) => return Ok(failure(status)),
            Verdict::Lose => return Err(lost()),
        }
        call.ceiling = decision.ceiling;
        call.mutations = std::mem::take(&mut decision.mutations);
        call.control = (verb == "watch").then(|| decision.control.clone());
        if let Some(audited) = &self.audited {
            audit::request(audited, verb, &call);
        }
        let answered = dispatch(verb, &call).await;
        if call.resource.group == aggregation::GROUP
            && answered.is_ok()
            && !matches!(verb, "get" | "list" | "watch")
        {
            aggregator::follow(api);
        }
        if let Some(audited) = &self.audited {
            audit::response(audited, &answered);
        }
        let (code, name) = match &answered {
            Ok(answer) => (answer.code, answer.name.clone()),
            Err(status) => (status.code, String::new()),
        };
        if info.name.is_empty() {
            info.name = &name;
        }
        let outcome = api.faults.after(&info, &decision, code);
        api.clock.sleep(outcome.delay).await;
        // What is read from the store has its form already; a Scale is made of what is read.
        let shaped =
            matches!(verb, "get" | "list" | "watch") && call.target.subresource.as_deref() != Some("scale");
        let answered = answered.and_then(|answer| if shaped { Ok(answer) } else { reshaped(&call, answer) });
        let response = match answered {
            Ok(answer) => success(answer, call.negotiated.media, verb == "watch"),
            Err(status) => failure(&status),
        };
        let given = std::mem::take(&mut *call.warnings.lock());
        let response = warned(response, call.resource.deprecation.clone().into_iter().chain(given));
        match outcome.delivery {
            Delivery::Deliver => Ok(response),
            Delivery::Lose => Err(lost()),
            Delivery::Cut => Ok(response.map(ApiBody::broken)),
        }
    }
}

/// Whether a request may go on for as long as its client likes, without being a watch.
fn is_long_running(route: &Route) -> bool {
    let Route::Resource(target) = route else { return false };
    let subresource = target.subresource.as_deref().unwrap_or_default();
    ["attach", "exec", "log", "portforward", "proxy"].contains(&subresource)
}

/// What flow control answers to those who are too many.
fn too_many_requests() -> Response<ApiBody> {
    let text = "Too many requests, please try again later.\n";
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// What is answered when an authorizer fails.
fn internal_server_error(parts: &Parts, why: &str) -> Response<ApiBody> {
    let uri = parts.uri.path_and_query().map_or("", |uri| uri.as_str());
    let text = format!("Internal Server Error: {uri:?}: {why}\n");
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    plain(StatusCode::INTERNAL_SERVER_ERROR, text)
}

fn respond_audited(audited: Option<Arc<AuditedRequest>>, response: Response<ApiBody>) -> Response<ApiBody> {
    match audited {
        Some(audited) => audited.respond(response),
        None => response,
    }
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was lost")
}

/// 404: in plain text for what no part of the API claims.
fn not_found(unclaimed: bool) -> Response<ApiBody> {
    match unclaimed {
        true => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        false => failure(&Status::no_such_resource()),
    }
}

/// An answer as its client wants it.
fn over_websocket(messages: Option<WebSocketUpgrade>, response: Response<ApiBody>) -> Response<ApiBody> {
    match messages {
        Some(messages) => messages.answer(response),
        None => response,
    }
}

/// Whether a resource can be told in rows and columns: what is only answered, and stored nowhere, cannot.
fn has_table(target: &Target) -> bool {
    let is_review = matches!(target.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io");
    let is_act = matches!(target.subresource.as_deref(), Some("binding" | "eviction" | "token"));
    !is_review && !is_act && (target.group.as_str(), target.plural.as_str()) != ("", "bindings")
}
