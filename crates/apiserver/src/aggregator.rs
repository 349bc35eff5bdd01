//! Looks after APIServices that lead to a Service: whether the extension API server behind it is available, and what it says of itself.
//!
//! Each has a task of its own, which begins when the APIService is written and ends when it is gone; without any nothing runs. Servers are of
//! the world outside, whatever time the API itself lives by.

use crate::aggregation::{
    ACCEPT, Condition, Documents, Extension, Registered, Remote, STORAGE, all_of, expected, is_aggregated,
    legacy,
};
use crate::dial::webhook_address;
use crate::flow::api_services::write_condition;
use crate::object::text;
use crate::openapi;
use crate::state::ApiState;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::header::{ACCEPT as ACCEPTED, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode, Uri};
use serde_json::Value;
use std::sync::{Arc, Weak};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_store::{Key, ListQuery, Revision, Store, Watcher};

/// How often a server is asked whether it is available, at least, and how soon again when it was not, at first.
const RECHECK: Duration = Duration::from_secs(30);
const FIRST_RECHECK: Duration = Duration::from_millis(5);

/// How long it may take to say so.
const CHECK: Duration = Duration::from_secs(5);

/// How many endpoints of a Service are tried, and how long after each other.
const ENDPOINTS: u32 = 5;
const STAGGER: Duration = Duration::from_millis(200);

/// How often a server is asked what it serves, and how soon again when it did not say, at first.
const REFRESH: Duration = Duration::from_secs(60);
const FIRST_RETRY: Duration = Duration::from_millis(500);

/// How long it may take to say so, and how much it may say.
const DISCOVERY: Duration = Duration::from_secs(5);
const LARGEST_DISCOVERY: usize = 4 * 1024 * 1024;

/// The same of OpenAPI; how soon it is asked for after a change.
const OPENAPI: Duration = Duration::from_secs(60);
const LARGEST_OPENAPI: usize = 8 * 1024 * 1024;
const SOON: Duration = Duration::from_secs(1);

/// As whom a server is asked what it serves, and for OpenAPI.
const AGGREGATOR: &str = "system:kube-aggregator";
const OPENAPI_AGGREGATOR: &str = "system:aggregator";

/// Looks after all APIServices that lead to a Service and are not looked after yet.
pub(crate) fn follow(api: &Arc<ApiState>) {
    // Whoever drives requests without a runtime of tokio reaches no other server anyway.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let names: Vec<String> = {
        let services = api.aggregation.services();
        services.remotes().map(|registered| registered.name.clone()).collect()
    };
    for name in names {
        api.aggregation.look_after(&name, || {
            runtime.spawn(look_after(Arc::downgrade(api), name.clone())).abort_handle()
        });
    }
}

/// One APIService, until it is gone or the API is.
async fn look_after(api: Weak<ApiState>, name: String) {
    loop {
        tokio::select! {
            () = keep_available(api.clone(), &name) => {}
            () = keep_discovered(api.clone(), &name) => {}
            () = keep_documented(api.clone(), &name) => {}
        }
        // It may lead somewhere again since.
        match api.upgrade() {
            Some(api) if !api.stopped.is_cancelled() && !api.aggregation.let_go(&name) => {}
            _ => return,
        }
    }
}

/// What changes the judgement of an APIService: itself, and where it leads.
struct Watched {
    store: Weak<Store>,
    watchers: Vec<Watcher>,
}

/// The resources that are watched.
const WATCHED: [&str; 3] = [STORAGE, "services", "discovery.k8s.io/endpointslices"];

impl Watched {
    fn begin(store: &Arc<Store>) -> Self {
        let watch = |resource: &&str| store.watch(resource, None, store.revision()).ok();
        Self { store: Arc::downgrade(store), watchers: WATCHED.iter().filter_map(watch).collect() }
    }

    /// Returns when something may have changed. What is forgotten may have been a change.
    async fn changed(&mut self) {
        let waiting = self.watchers.iter_mut().map(|watcher| Box::pin(watcher.next()));
        if waiting.len() == 0 {
            return std::future::pending().await;
        }
        let lagged = futures::future::select_all(waiting).await.0.is_err();
        if lagged && let Some(store) = self.store.upgrade() {
            *self = Self::begin(&store);
        }
        for watcher in &mut self.watchers {
            while let Ok(Some(_)) = watcher.try_next() {}
        }
    }
}

/// An APIService that leads somewhere, as it is now.
fn current(api: &ApiState, name: &str) -> Option<Arc<Registered>> {
    if api.stopped.is_cancelled() {
        return None;
    }
    api.aggregation.services().remote(name).cloned()
}

/// What an APIService and what it leads to are stored as, so that a change is seen.
fn seen(api: &ApiState, registered: &Registered, of_service: bool) -> Vec<Revision> {
    let of = |key: Key| api.store.get(&key).map(|entry| entry.revision());
    let mut seen: Vec<Revision> = Vec::new();
    let Some(remote) = &registered.remote else { return seen };
    if of_service {
        seen.extend(of(Key::new("services", remote.namespace.as_str(), remote.service.as_str())));
        seen.extend(slices(api, remote).into_iter().map(|(revision, _)| revision));
    } else {
        seen.extend(of(Key::new(STORAGE, "", registered.name.as_str())));
    }
    seen
}

/// Waits for a time, or until what is looked at changes.
async fn wait(
    api: &Weak<ApiState>,
    name: &str,
    watched: &mut Watched,
    (time, since): (Duration, Vec<Revision>),
    of_service: bool,
    before: &Arc<Registered>,
) -> bool {
    let clock = Clock::real();
    let until = clock.moment() + time;
    loop {
        let due = tokio::select! {
            () = clock.sleep_until(until) => true,
            () = watched.changed() => false,
        };
        if due {
            return false;
        }
        let Some(api) = api.upgrade() else { return false };
        let Some(now) = current(&api, name) else { return false };
        let same_way = match (&now.remote, &before.remote) {
            (Some(now), Some(before)) => now.is_reached_as(before),
            _ => false,
        };
        if !same_way || seen(&api, &now, of_service) != since {
            return true;
        }
    }
}

/// Twice as long each time, up to a limit.
fn backoff(first: Duration, failures: u32, limit: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(failures.min(20)).unwrap_or(u32::MAX)).min(limit)
}

async fn keep_available(api: Weak<ApiState>, name: &str) {
    let Some(mut watched) = api.upgrade().map(|api| Watched::begin(&api.store)) else { return };
    let mut failures = 0;
    loop {
        let (registered, since, failed) = {
            let Some(api) = api.upgrade() else { return };
            let Some(registered) = current(&api, name) else { return };
            let since = seen(&api, &registered, true);
            (registered.clone(), since, judge(&api, &registered).await)
        };
        failures = if failed { failures + 1 } else { 0 };
        let time = if failed { backoff(FIRST_RECHECK, failures - 1, RECHECK) } else { RECHECK };
        if wait(&api, name, &mut watched, (time, since), true, &registered).await {
            failures = 0;
        }
    }
}

/// Judges whether an APIService is available, and writes that down. Says whether its server is to be asked soon again.
async fn judge(api: &ApiState, registered: &Registered) -> bool {
    let Some(remote) = &registered.remote else { return false };
    let key = Key::new("services", remote.namespace.as_str(), remote.service.as_str());
    let service = api.store.get(&key).map(|entry| entry.value());
    let slices: Vec<Value> = slices(api, remote).into_iter().map(|(_, slice)| slice).collect();
    let condition = match expected(remote, service.as_ref(), &slices) {
        Some(condition) => condition,
        None => match ask(api, registered, remote).await {
            Some(condition) => condition,
            None => return true,
        },
    };
    let failed = condition.reason == "FailedDiscoveryCheck";
    let is_still = |object: &Value| {
        let at = |field| text(object, &["spec", "service", field]);
        at("namespace") == remote.namespace && at("name") == remote.service
    };
    write_condition(api, &registered.name, &condition, is_still).await;
    failed
}

/// The slices of endpoints of the Service that an APIService leads to.
fn slices(api: &ApiState, remote: &Remote) -> Vec<(Revision, Value)> {
    let namespace = Some(remote.namespace.as_str());
    let query = ListQuery { namespace, ..ListQuery::all("discovery.k8s.io/endpointslices") };
    let all = api.store.list(&query).map(|page| page.items).unwrap_or_default();
    let own = all.iter().filter(|entry| entry.label("kubernetes.io/service-name") == Some(&remote.service));
    own.map(|entry| (entry.revision(), entry.value())).collect()
}

/// Asks a server for what it must serve, at several of its endpoints if need be. None if nobody can be asked.
async fn ask(api: &ApiState, registered: &Registered, remote: &Remote) -> Option<Condition> {
    let extension = api.aggregation.extension(remote, || api.proxy_client()).ok()?;
    let attempt = |turn: u32| async move {
        Clock::real().sleep(STAGGER * turn).await;
        let url = url(api, remote, &registered.path())?;
        let failed = |why: String| format!("failing or missing response from {url}: {why}");
        let asking = extension.get(&url, as_user(AGGREGATOR, &["system:masters"]), LARGEST_DISCOVERY);
        let answered = Clock::real().timeout(CHECK, asking).await;
        let answered = answered.map_err(|_| {
            failed(format!(
                "Get \"{url}\": net/http: request canceled (Client.Timeout exceeded while awaiting headers)"
            ))
        })?;
        let answered = answered.map_err(|error| failed(format!("Get \"{url}\": {}", error.0)))?;
        match answered.status().is_success() {
            true => Ok(()),
            false => Err(failed(format!("bad status from {url}: {}", answered.status().as_u16()))),
        }
    };
    let mut attempts: FuturesUnordered<_> = (0..ENDPOINTS).map(attempt).collect();
    let mut last = String::new();
    while let Some(answered) = attempts.next().await {
        match answered {
            Ok(()) => return Some(Condition::passed()),
            Err(why) => last = why,
        }
    }
    Some(Condition::failed(last))
}

/// The URL of a path of a server, at one of its endpoints.
fn url(api: &ApiState, remote: &Remote, path: &str) -> Result<Uri, String> {
    let network = &api.aggregation.network;
    let address =
        webhook_address((&network.store, &network.dialer), (&remote.namespace, &remote.service), remote.port);
    let address = address.map_err(|status| status.message)?;
    format!("https://{}{path}", address.authority())
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())
}

/// The headers by which the server believes that somebody asks.
fn as_user(user: &'static str, groups: &[&'static str]) -> Vec<(HeaderName, HeaderValue)> {
    let user = (HeaderName::from_static("x-remote-user"), HeaderValue::from_static(user));
    let group =
        |group: &&'static str| (HeaderName::from_static("x-remote-group"), HeaderValue::from_static(group));
    std::iter::once(user).chain(groups.iter().map(group)).collect()
}

async fn keep_discovered(api: Weak<ApiState>, name: &str) {
    let Some(mut watched) = api.upgrade().map(|api| Watched::begin(&api.store)) else { return };
    let mut failures = 0;
    loop {
        let (registered, since, failed) = {
            let Some(api) = api.upgrade() else { return };
            let Some(registered) = current(&api, name) else { return };
            let since = seen(&api, &registered, false);
            let discovered = Clock::real().timeout(2 * DISCOVERY, discover(&api, &registered)).await;
            let discovered = discovered.unwrap_or_else(|_| Err("request timed out".to_owned()));
            let failed = discovered.is_err();
            let mut entry = discovered.unwrap_or_else(|why| {
                tracing::debug!(name, why, "an extension API server does not say what it serves");
                serde_json::json!({"version": registered.version})
            });
            entry["freshness"] = Value::from(if failed { "Stale" } else { "Current" });
            api.aggregation.learn(name, |documents| documents.discovery = Some(Arc::new(entry)));
            (registered.clone(), since, failed)
        };
        failures = if failed { failures + 1 } else { 0 };
        let time = if failed { backoff(FIRST_RETRY, failures - 1, REFRESH) } else { REFRESH };
        if wait(&api, name, &mut watched, (time, since), false, &registered).await {
            failures = 0;
        }
    }
}

/// What a server says that it serves of its group and version.
async fn discover(api: &ApiState, registered: &Registered) -> Result<Value, String> {
    let accept = (ACCEPTED, HeaderValue::from_static(ACCEPT));
    let headers = as_user(AGGREGATOR, &["system:masters"]).into_iter().chain([accept]);
    let answered = get(api, registered, "/apis", headers, (DISCOVERY, LARGEST_DISCOVERY)).await?;
    match answered.status() {
        StatusCode::SERVICE_UNAVAILABLE => return Err("non-success response code: 503".to_owned()),
        StatusCode::OK if is_aggregated(content_type(&answered)) => {
            return all_of(answered.body(), &registered.group, &registered.version);
        }
        _ => {}
    }
    let accept = (ACCEPTED, HeaderValue::from_static("application/json"));
    let headers = as_user(AGGREGATOR, &[]).into_iter().chain([accept]);
    let answered = get(api, registered, &registered.path(), headers, (DISCOVERY, LARGEST_DISCOVERY)).await?;
    match answered.status() {
        StatusCode::OK => legacy(answered.body(), &registered.version),
        other => Err(format!("failed to download legacy discovery: {other}")),
    }
}

fn content_type(answered: &Response<Bytes>) -> &str {
    answered.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn get(
    api: &ApiState,
    registered: &Registered,
    path: &str,
    headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    (time, most): (Duration, usize),
) -> Result<Response<Bytes>, String> {
    let remote = registered.remote.as_ref().ok_or("it leads nowhere")?;
    let extension: &Extension = api.aggregation.extension(remote, || api.proxy_client())?;
    let url = url(api, remote, path)?;
    let asking = extension.get(&url, headers, most);
    let answered = Clock::real().timeout(time, asking).await;
    let answered = answered.map_err(|_| "request timed out".to_owned())?;
    answered.map_err(|error| error.0)
}

async fn keep_documented(api: Weak<ApiState>, name: &str) {
    let Some(mut watched) = api.upgrade().map(|api| Watched::begin(&api.store)) else { return };
    let mut due = SOON;
    loop {
        // Changes come together, and a server that has just come to be available is asked once.
        Clock::real().sleep(due.min(SOON)).await;
        let (registered, since) = {
            let Some(api) = api.upgrade() else { return };
            let Some(registered) = current(&api, name) else { return };
            let since = seen(&api, &registered, false);
            if registered.remote.as_ref().is_some_and(|remote| remote.available) {
                document(&api, &registered).await;
            }
            (registered.clone(), since)
        };
        wait(&api, name, &mut watched, (REFRESH, since), false, &registered).await;
        due = SOON;
    }
}

/// Asks a server for OpenAPI, in both versions. What it said before holds while it says nothing.
async fn document(api: &ApiState, registered: &Registered) {
    let headers = || {
        let accept = (ACCEPTED, HeaderValue::from_static("application/json"));
        as_user(OPENAPI_AGGREGATOR, &[]).into_iter().chain([accept])
    };
    let ok = |answered: Result<Response<Bytes>, String>| {
        answered.ok().filter(|answered| answered.status() == StatusCode::OK).map(Response::into_body)
    };
    let v2 = ok(get(api, registered, "/openapi/v2", headers(), (OPENAPI, LARGEST_OPENAPI)).await);
    let v2 = v2.and_then(|body| openapi::of_paths(&body, &format!("{}/", registered.path())));
    let v3 = ok(get(api, registered, "/openapi/v3", headers(), (OPENAPI, LARGEST_OPENAPI)).await);
    let v3 = v3.and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    let v3 = v3.and_then(|mut root| match root.get_mut("paths").map(Value::take) {
        Some(Value::Object(paths)) => Some(Arc::new(paths)),
        _ => None,
    });
    api.aggregation.learn(&registered.name, |documents: &mut Documents| {
        documents.openapi_v2 = v2.or(documents.openapi_v2.take());
        documents.openapi_v3 = v3.or(documents.openapi_v3.take());
    });
}
