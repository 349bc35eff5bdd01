//! HTTP in process: a tower service that reads a request, sends it to its verb and dresses the answer.

use crate::api::Inner;
use crate::body::ApiBody;
use crate::flow::authenticate::Identity;
use crate::flow::authorize;
use crate::path::{self, Route, Target};
use crate::query::Query;
use crate::read::Leash;
use crate::resource::Resource;
use crate::status::Status;
use crate::verbs::{self, Answer, Call};
use crate::{discovery, negotiate};
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

/// The largest body of a request.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// The API as one client sees it.
#[derive(Clone)]
pub struct ApiService {
    api: Arc<Inner>,
    identity: Arc<Identity>,
}

impl ApiService {
    pub(crate) fn new(api: Arc<Inner>, identity: Identity) -> Self {
        Self { api, identity: Arc::new(identity) }
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
            Ok(service.answer(parts, body).await)
        })
    }
}

impl ApiService {
    async fn answer<B>(&self, parts: Parts, body: B) -> Response<ApiBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // Read before anything is refused: a connection with an unread body could not be used again.
        let body = read_body(body).await;
        let target = match path::route(parts.uri.path()) {
            Route::Malformed => return plain(StatusCode::BAD_REQUEST, "400 Bad Request"),
            Route::Other(segments) => return discovery::answer(&self.api, &parts, &segments),
            Route::Resource(target) => target,
        };
        let served = self.api.registry.served();
        if served.versions(&target.group).iter().all(|version| *version != target.version) {
            return plain(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        let Some(resource) = served.get(&target.group, &target.version, &target.plural) else {
            return failure(&Status::no_such_resource());
        };
        let misplaced = match (&target.namespace, &target.name) {
            (Some(_), _) => !resource.namespaced,
            (None, Some(_)) => resource.namespaced,
            (None, None) => false,
        };
        if misplaced {
            return match resource.custom {
                true => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
                false => failure(&Status::no_such_resource()),
            };
        }
        let deprecation = resource.deprecation.clone();
        match self.run(resource, target, &parts, body).await {
            Ok(mut answer) => {
                answer.warnings.splice(0..0, deprecation);
                success(answer)
            }
            Err(status) => failure(&status),
        }
    }

    async fn run(
        &self,
        resource: Arc<Resource>,
        target: Target,
        parts: &Parts,
        body: Result<Bytes, Status>,
    ) -> Result<Answer, Status> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let verb = verb(&resource, &target, &parts.method, &query)?;
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        negotiate::accept(header(ACCEPT), verb == "watch")?;
        authorize::check(&self.identity, verb, &target)?;
        let leash = Leash { ended: self.api.stopped.child_token(), ..Leash::default() };
        let mut call = Call {
            api: &self.api,
            identity: &self.identity,
            resource,
            target,
            query,
            user_agent: header(USER_AGENT).to_owned(),
            content_type: header(CONTENT_TYPE).to_owned(),
            body: Bytes::new(),
            ceiling: None,
            leash,
        };
        if !matches!(verb, "get" | "list" | "watch") {
            call.body = body?;
        }
        match verb {
            "get" => verbs::read::get(&call).await,
            "list" | "watch" => verbs::read::list_or_watch(&call).await,
            "create" => verbs::create::create(&call).await,
            "update" => verbs::update::update(&call).await,
            "patch" => verbs::patch::patch(&call).await,
            "delete" => verbs::delete::delete(&call).await,
            _ => verbs::delete::delete_collection(&call).await,
        }
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
        (&Method::GET, true) => "get",
        (&Method::GET, false) if query.flag("watch") => "watch",
        (&Method::GET, false) => "list",
        (&Method::POST, false) => "create",
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
    let everywhere = resource.namespaced && target.namespace.is_none();
    let known = verbs.iter().any(|known| known == verb);
    if !known || (everywhere && !matches!(verb, "list" | "watch")) {
        return Err(Status::method_not_allowed());
    }
    Ok(verb)
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

fn respond(code: StatusCode, content_type: &'static str, body: ApiBody) -> Response<ApiBody> {
    let length = body.length();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(length) = length {
        headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn success(answer: Answer) -> Response<ApiBody> {
    let code = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::OK);
    let mut response = respond(code, "application/json", answer.body);
    for warning in answer.warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        let text: String = text.chars().filter(|character| !character.is_control()).collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}

pub(crate) fn failure(status: &Status) -> Response<ApiBody> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(code, "application/json", ApiBody::full(status.to_bytes().into()));
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) fn plain(code: StatusCode, text: &'static str) -> Response<ApiBody> {
    respond(code, "text/plain; charset=utf-8", ApiBody::full(Bytes::from_static(text.as_bytes())))
}

/// A document, such as discovery answers.
pub(crate) fn document(value: &serde_json::Value) -> Response<ApiBody> {
    let body = windlass_schema::json::write(value);
    respond(StatusCode::OK, "application/json", ApiBody::full(body.into()))
}
