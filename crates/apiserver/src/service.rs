//! HTTP in process: a tower service that reads a request, sends it to its verb and dresses the answer.

use crate::accept::Endpoint;
use crate::answers::{failure, plain, success, warned};
use crate::api::Inner;
use crate::body::ApiBody;
use crate::connect::{Connecting, Connects, connects};
use crate::crd::conversion;
use crate::faults::{Delivery, RequestInfo, Verdict};
use crate::flow::authenticate::Identity;
use crate::flow::authorize;
use crate::messages::Messages;
use crate::metrics::{Measuring, is_metrics};
use crate::path::{self, Route, Target};
use crate::query::{self, Query};
use crate::read::Leash;
use crate::resource::Resource;
use crate::status::Status;
use crate::verbs::{self, Answer, Call};
use crate::{accept, answers, discovery};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_schema::{names, quote};

/// The largest body of a request.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// How long a body may take to arrive: the reference's limit for a request that is no watch. Bodies come from the world
/// outside, whatever time the API itself lives by.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The API as one client sees it.
#[derive(Clone)]
pub struct ApiService {
    api: Arc<Inner>,
    identity: Arc<Identity>,
    /// Ends watches.
    ended: CancellationToken,
}

impl ApiService {
    pub(crate) fn new(api: Arc<Inner>, identity: Identity, ended: CancellationToken) -> Self {
        Self::shared(api, Arc::new(identity), ended)
    }

    /// For an identity that others have too.
    pub(crate) fn shared(api: Arc<Inner>, identity: Arc<Identity>, ended: CancellationToken) -> Self {
        Self { api, identity, ended }
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
            // Read before anything is refused: a connection with an unread body could not be used again.
            let body = Clock::real().timeout(BODY_TIME, read_body(body)).await;
            let body = body.unwrap_or_else(|_| {
                Err(Status::timeout("request did not complete within the allotted timeout", 0))
            });
            let reads = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
            if reads || !service.api.store.is_durable() {
                return service.answer(parts, body).await;
            }
            // A write waits for the disk. A client that leaves meanwhile does not take with it what has to follow.
            let writing = tokio::spawn(async move { service.answer(parts, body).await });
            writing.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}

impl ApiService {
    /// Answers, indented for those who read along.
    async fn answer(&self, parts: Parts, body: Result<Bytes, Status>) -> io::Result<Response<ApiBody>> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let pretty = accept::pretty(query.get("pretty"), user_agent.unwrap_or_default());
        let accept = parts.headers.get(ACCEPT).cloned();
        let accept = accept.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        let response = self.answer_plainly(parts, body).await?;
        let failed = response.status().as_u16() >= 400 && answers::is_json(&response);
        Ok(match accept::negotiate(accept, Endpoint::Document) {
            // Errors go to everyone: who takes nothing that there is reads them indented.
            Err(_) if failed => answers::indented(response),
            Ok(wanted) if failed => answers::encoded(response, wanted.media, pretty || wanted.pretty),
            Ok(wanted) if wanted.pretty => answers::indented(response),
            _ if pretty => answers::indented(response),
            _ => response,
        })
    }

    async fn answer_plainly(
        &self,
        parts: Parts,
        body: Result<Bytes, Status>,
    ) -> io::Result<Response<ApiBody>> {
        let route = path::route(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let watches = query.flag("watch") || matches!(&route, Route::Resource(target) if target.watch);
        if let Err(status) = if watches { Ok(()) } else { query::check_timeout(&query) } {
            return Ok(failure(&status));
        }
        if let Err(status) = authorize::check(&self.identity, &parts, &route) {
            return Ok(failure(&status));
        }
        let target = match route {
            Route::Malformed => return Ok(plain(StatusCode::BAD_REQUEST, "400 Bad Request")),
            Route::Other(segments) => return Ok(discovery::answer(&self.api, &parts, &segments)),
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
            return Ok(Measuring { api, target: &target, query: &query, ended }.answer(&parts).await);
        }
        if let Some(what) = connects(&resource, &target) {
            let (api, ended) = (&self.api, self.ended.clone());
            let messages = (what == Connects::Log).then(|| Messages::wanted(&parts)).flatten();
            let connecting = Connecting { api, target: &target, query: &query, ended };
            return Ok(in_messages(messages, connecting.answer(what, parts, body).await));
        }
        match self.call(resource, target, query, &parts, body) {
            Ok((verb, call)) => Ok(in_messages(Messages::wanted(&parts), self.carry_out(verb, &call).await?)),
            Err(status) => Ok(failure(&status)),
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
            false => Endpoint::BuiltIn { collection, watch },
        };
        let wanted = accept::negotiate(header(ACCEPT), endpoint)?;
        let reads = matches!(verb, "get" | "list" | "watch");
        let call = Call {
            api: &self.api,
            identity: &self.identity,
            resource,
            target,
            query,
            user_agent: header(USER_AGENT).to_owned(),
            content_type: header(CONTENT_TYPE).to_owned(),
            body: if reads { Bytes::new() } else { body? },
            wanted,
            ceiling: None,
            warnings: Arc::default(),
            ended: self.ended.clone(),
            leash: Leash::default(),
            mutations: Vec::new(),
        };
        Ok((verb, call))
    }

    /// Does what is asked, as far as faults let it, and answers, likewise.
    async fn carry_out(&self, verb: &'static str, call: &Call<'_>) -> io::Result<Response<ApiBody>> {
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
        let decision = api.faults.before(&info);
        api.clock.sleep(decision.delay).await;
        match &decision.verdict {
            Verdict::Proceed => {}
            Verdict::Refuse(status) => return Ok(failure(status)),
            Verdict::Lose => return Err(lost()),
        }
        let (ceiling, leash, mutations) =
            (decision.ceiling, decision.leash.clone(), decision.mutations.clone());
        let call = Call { ceiling, leash, mutations, ..call.clone() };
        let answered = dispatch(verb, &call).await;
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
            Ok(answer) => success(answer, call.wanted.media, verb == "watch"),
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

/// What is below the old path of watches, as the parameters of a watch: a name is a selector.
fn named_by_path(mut target: Target, mut query: Query) -> Result<(Target, Query), Status> {
    if target.watch {
        if let Some(name) = target.name.take() {
            let wanted = format!("metadata.name={name}");
            match query.get("fieldSelector").unwrap_or_default() {
                "" => query.push("fieldSelector", &wanted),
                given if given == wanted => {}
                _ => {
                    let why = "fieldSelector metadata.name doesn't match requested name";
                    return Err(Status::bad_request(why));
                }
            }
        }
        if !query.flag("watch") {
            query.push("watch", "true");
        }
    }
    Ok((target, query))
}

/// What a write answers, in the form that was asked for. A Status stays what it is.
fn reshaped(call: &Call<'_>, answer: Answer) -> Result<Answer, Status> {
    if call.wanted.form == accept::Form::Plain {
        return Ok(answer);
    }
    let Some(bytes) = answer.body.bytes() else { return Ok(answer) };
    let Ok(mut value) = windlass_schema::json::read_own(&bytes) else { return Ok(answer) };
    if value.get("kind").and_then(Value::as_str) == Some("Status") {
        return Ok(answer);
    }
    let items = value.get_mut("items").filter(|_| call.target.name.is_none() && answer.code == 200);
    let items = items.and_then(Value::as_array_mut).map(std::mem::take);
    let Some(shape) = verbs::read::shape(call, items.is_some())? else { return Ok(answer) };
    let body = match items {
        Some(items) => {
            let items: Vec<Bytes> = items.into_iter().map(|item| shape.item(item)).collect();
            let metadata = value.get("metadata").map_or_else(|| "{}".to_owned(), Value::to_string);
            shape.list(&metadata, &items)
        }
        None => shape.object(value, true),
    };
    Ok(Answer { body: ApiBody::full(body), ..answer })
}

async fn dispatch(verb: &str, call: &Call<'_>) -> Result<Answer, Status> {
    conversion::check(call)?;
    if call.target.subresource.as_deref() == Some("scale") {
        return match verb {
            "get" => verbs::scale::get(call).await,
            "update" => verbs::scale::update(call).await,
            _ => verbs::scale::patch(call).await,
        };
    }
    match verb {
        "get" => verbs::read::get(call).await,
        "list" | "watch" => verbs::read::list_or_watch(call).await,
        "create" => match question(&call.resource, call.target.subresource.as_deref()) {
            Some(Question::Eviction) => verbs::eviction::create(call).await,
            Some(Question::Binding) => verbs::binding::create(call).await,
            Some(Question::TokenRequest) => verbs::token_request::create(call).await,
            Some(Question::TokenReview) => verbs::token_review::create(call).await,
            Some(Question::SelfSubjectReview) => verbs::self_review::create(call).await,
            Some(Question::AccessReview) => verbs::review::answer(call),
            None => verbs::create::create(call).await,
        },
        "update" => verbs::update::update(call).await,
        "patch" => verbs::patch::patch(call).await,
        "delete" => verbs::delete::delete(call).await,
        _ => verbs::delete::delete_collection(call).await,
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

/// What a method means on a path; refuses what the resource does not have.
fn verb(
    resource: &Resource,
    target: &Target,
    method: &Method,
    query: &Query,
) -> Result<&'static str, Status> {
    let named = target.name.is_some();
    let verb = match (method, named) {
        (method, _) if target.watch && method != Method::GET => return Err(Status::method_not_allowed()),
        (&Method::GET, true) => "get",
        (&Method::GET, false) if query.flag("watch") => "watch",
        (&Method::GET, false) => "list",
        (&Method::POST, false) => "create",
        (&Method::POST, true) if target.subresource.is_some() => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return Err(Status::method_not_allowed()),
    };
    let verbs = match &target.subresource {
        None => &resource.verbs,
        Some(name) => match resource.subresources.iter().find(|subresource| subresource.name == *name) {
            Some(subresource) => &subresource.verbs,
            None if resource.custom => {
                return Err(Status::not_found(resource.named(), target.name.as_deref().unwrap_or_default()));
            }
            None => return Err(Status::no_such_resource()),
        },
    };
    if !is_answered(resource, target.subresource.as_deref()) {
        return Err(Status::method_not_allowed());
    }
    let everywhere = resource.namespaced && target.namespace.is_none();
    let known = verbs.iter().any(|known| known == verb);
    if !known || (everywhere && !matches!(verb, "list" | "watch")) {
        return Err(Status::method_not_allowed());
    }
    Ok(verb)
}

/// Is there an answer to it here? Those that lead to a node were found before.
fn is_answered(resource: &Resource, subresource: Option<&str>) -> bool {
    question(resource, subresource).is_some() || is_object(resource, subresource)
}

fn is_object(resource: &Resource, subresource: Option<&str>) -> bool {
    match subresource {
        None => resource.is_stored(),
        Some(name) => {
            resource.custom
                || matches!(
                    name,
                    "scale" | "status" | "finalize" | "approval" | "ephemeralcontainers" | "resize"
                )
        }
    }
}

/// What is posted to be answered, not stored.
enum Question {
    Eviction,
    Binding,
    TokenRequest,
    SelfSubjectReview,
    TokenReview,
    AccessReview,
}

fn question(resource: &Resource, subresource: Option<&str>) -> Option<Question> {
    match (resource.group.as_str(), resource.plural.as_str(), subresource) {
        ("", "pods", Some("eviction")) => Some(Question::Eviction),
        ("", "pods", Some("binding")) | ("", "bindings", None) => Some(Question::Binding),
        ("", "serviceaccounts", Some("token")) => Some(Question::TokenRequest),
        ("authentication.k8s.io", "selfsubjectreviews", None) => Some(Question::SelfSubjectReview),
        ("authentication.k8s.io", "tokenreviews", None) => Some(Question::TokenReview),
        ("authorization.k8s.io", _, None) => Some(Question::AccessReview),
        _ => None,
    }
}

/// An answer as its client wants it.
fn in_messages(messages: Option<Messages>, response: Response<ApiBody>) -> Response<ApiBody> {
    match messages {
        Some(messages) => messages.answer(response),
        None => response,
    }
}

async fn read_body<B>(body: B) -> Result<Bytes, Status>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = pin!(body);
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return Err(Status::too_large(LARGEST_BODY));
    }
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body ended early: {}", error.into())))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.as_ref().map_or(0, Bytes::len) + all.len() + data.len() > LARGEST_BODY {
            return Err(Status::too_large(LARGEST_BODY));
        }
        match (&first, all.is_empty()) {
            // Bodies of one piece are not copied.
            (None, true) => first = Some(data),
            (Some(head), true) => {
                all.extend_from_slice(head);
                all.extend_from_slice(&data);
                first = None;
            }
            _ => all.extend_from_slice(&data),
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}
