//! A client that fails at a chosen write: crashes and lost responses from the operator's side of the connection, so that they
//! work on every Kubernetes alike.

use kube::client::Body;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Notify;

/// What happens at the chosen write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFault {
    /// The process dies before the write leaves it.
    KillBefore,
    /// The process dies after the write took effect, before it learns so.
    KillAfter,
    /// The request is lost on its way: the client gets an error, and nothing happened.
    LoseRequest,
    /// The response is lost on its way: the client gets an error, and the write took effect.
    LoseResponse,
    /// The API answers with a conflict, and nothing happened.
    Conflict,
}

/// Counts a client's writes and injects a fault into one of them.
///
/// ```
/// use windlass_testing::faulty_client::{ClientFault, FaultyClient};
/// use windlass_testing::{TestCluster, config_map};
/// # #[tokio::main]
/// # async fn main() {
/// let cluster = TestCluster::api_only();
/// let faulty_client = FaultyClient::at(1, ClientFault::LoseResponse);
/// let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
///     kube::Api::namespaced(faulty_client.on(cluster.client()), "default");
/// assert!(maps.create(&Default::default(), &config_map("a")).await.is_err(), "the response was lost");
/// assert!(maps.get("a").await.is_ok(), "and the write took effect");
/// assert_eq!(faulty_client.writes(), ["POST /api/v1/namespaces/default/configmaps"]);
/// # }
/// ```
#[derive(Clone, Default)]
pub struct FaultyClient(Arc<Shared>);

type Then = Arc<dyn Fn() + Send + Sync>;
type Before = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    killed: Notify,
}

#[derive(Default)]
struct State {
    writes: Vec<String>,
    /// The collections that were watched, by their paths.
    watches: BTreeSet<String>,
    /// From which write to which, counted from one, and how.
    plan: Option<(usize, usize, ClientFault)>,
    after: Option<(usize, Then)>,
    before: Option<(usize, Before)>,
    dead: bool,
}

impl FaultyClient {
    /// Only counts.
    pub fn none() -> Self {
        Self::default()
    }

    /// Injects the fault into the write with this number, counted from one.
    pub fn at(number: usize, how: ClientFault) -> Self {
        Self::between(number, number, how)
    }

    /// Injects the fault into the first `count` writes.
    pub fn first(count: usize, how: ClientFault) -> Self {
        Self::between(1, count, how)
    }

    fn between(first: usize, last: usize, how: ClientFault) -> Self {
        let faulty_client = Self::default();
        faulty_client.0.state.lock().plan = Some((first, last, how));
        faulty_client
    }

    /// Calls `then` once the write with this number took effect, before its response is returned.
    pub fn after(number: usize, then: impl Fn() + Send + Sync + 'static) -> Self {
        let faulty_client = Self::default();
        faulty_client.0.state.lock().after = Some((number, Arc::new(then)));
        faulty_client
    }

    /// Calls `then` with the write with this number, as `METHOD path`, before it is sent.
    pub fn before(number: usize, then: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let faulty_client = Self::default();
        faulty_client.0.state.lock().before = Some((number, Arc::new(then)));
        faulty_client
    }

    /// The collections that were watched so far, by their paths.
    pub fn watches(&self) -> BTreeSet<String> {
        self.0.state.lock().watches.clone()
    }

    /// The writes that were attempted so far, as `METHOD path`.
    pub fn writes(&self) -> Vec<String> {
        self.0.state.lock().writes.clone()
    }

    /// Resolves when the chosen write killed the process: whoever awaits it drops the operator.
    pub async fn killed(&self) {
        let notified = self.0.killed.notified();
        if self.0.state.lock().dead {
            return;
        }
        notified.await;
    }

    /// The same client, through which requests pass this one first.
    pub fn on(&self, client: kube::Client) -> kube::Client {
        let faulty_client = self.clone();
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (faulty_client, client) = (faulty_client.clone(), client.clone());
            async move { faulty_client.pass(&client, request).await }
        });
        kube::Client::new(service, namespace)
    }

    async fn pass(
        &self,
        client: &kube::Client,
        request: http::Request<Body>,
    ) -> kube::Result<http::Response<Body>> {
        let lost = |what: &str| Err(kube::Error::Service(what.into()));
        match self.decide(&request) {
            Action::Send => client.send(request).await,
            Action::SendThen(then) => {
                let answer = client.send(request).await;
                then();
                answer
            }
            // A dead process sends nothing and hears nothing.
            Action::Hang => std::future::pending().await,
            Action::Fail(ClientFault::KillBefore) => self.die().await,
            Action::Fail(ClientFault::KillAfter) => {
                // Awaited to its end: the write is done, whatever becomes of us.
                let _ = client.send(request).await;
                self.die().await
            }
            Action::Fail(ClientFault::LoseRequest) => lost("the request was lost"),
            Action::Fail(ClientFault::LoseResponse) => {
                let _ = client.send(request).await;
                lost("the response was lost")
            }
            Action::Fail(ClientFault::Conflict) => http::Response::builder()
                .status(409)
                .body(Body::from(CONFLICT.as_bytes().to_vec()))
                .map_err(kube::Error::HttpError),
        }
    }

    /// Never answers again.
    async fn die(&self) -> kube::Result<http::Response<Body>> {
        self.0.state.lock().dead = true;
        self.0.killed.notify_waiters();
        std::future::pending().await
    }

    /// What to do with this request: nothing special unless it is the chosen write.
    fn decide(&self, request: &http::Request<Body>) -> Action {
        let mut state = self.0.state.lock();
        if state.dead {
            return Action::Hang;
        }
        let writes = matches!(request.method().as_str(), "POST" | "PUT" | "PATCH" | "DELETE");
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            state.watches.insert(request.uri().path().to_owned());
        }
        if !writes || is_event(request.uri().path()) {
            return Action::Send;
        }
        let write = format!("{} {}", request.method(), request.uri().path());
        state.writes.push(write.clone());
        let number = state.writes.len();
        if let Some((_, then)) = state.before.take_if(|(at, _)| *at == number) {
            drop(state);
            then(&write);
            return Action::Send;
        }
        match (&state.plan, &state.after) {
            (Some((first, last, how)), _) if (*first..=*last).contains(&number) => Action::Fail(*how),
            (_, Some((at, then))) if *at == number => Action::SendThen(then.clone()),
            _ => Action::Send,
        }
    }
}

/// Events are sent best-effort and asynchronously; they are no part of the state that must converge.
fn is_event(path: &str) -> bool {
    path.ends_with("/events") || path.contains("/events/")
}

impl std::fmt::Debug for FaultyClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("FaultyClient")
            .field("plan", &state.plan)
            .field("writes", &state.writes)
            .finish_non_exhaustive()
    }
}

enum Action {
    Send,
    SendThen(Then),
    Fail(ClientFault),
    Hang,
}

/// The response of the API to a conflicting update.
const CONFLICT: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"someone else was faster","reason":"Conflict","code":409}"#;
