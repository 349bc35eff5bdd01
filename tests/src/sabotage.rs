//! A client that breaks at a chosen write: the crash and the lost answer, from the operator's side of the wire, so that they
//! work on every Kubernetes alike.

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::client::Body;
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tower::{BoxError, Layer, Service};

/// What happens at the chosen write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// The process dies before the write leaves it.
    KillBefore,
    /// The process dies after the write took effect, before it learns so.
    KillAfter,
    /// The request is lost on its way: the client gets an error, and nothing happened.
    LoseRequest,
    /// The answer is lost on its way: the client gets an error, and the write took effect.
    LoseAnswer,
}

/// Counts a client's writes and breaks one of them.
#[derive(Debug, Clone, Default)]
pub struct Sabotage(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    killed: Notify,
}

#[derive(Debug, Default)]
struct State {
    writes: Vec<String>,
    plan: Option<(usize, Break)>,
    dead: bool,
}

impl Sabotage {
    /// Only counts.
    pub fn none() -> Self {
        Self::default()
    }

    /// Breaks the write of this number, counted from one.
    pub fn at(number: usize, how: Break) -> Self {
        let sabotage = Self::default();
        sabotage.0.state.lock().plan = Some((number, how));
        sabotage
    }

    /// The writes that were tried so far, as `METHOD path`.
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

    /// What to do with this request: nothing special unless it is the chosen write.
    fn decide(&self, request: &http::Request<Body>) -> Fate {
        let mut state = self.0.state.lock();
        if state.dead {
            return Fate::Dead;
        }
        let writes = matches!(request.method().as_str(), "POST" | "PUT" | "PATCH" | "DELETE");
        if !writes || is_event(request.uri().path()) {
            return Fate::Passes;
        }
        state.writes.push(format!("{} {}", request.method(), request.uri().path()));
        match state.plan {
            Some((number, how)) if number == state.writes.len() => Fate::Breaks(how),
            _ => Fate::Passes,
        }
    }

    fn kill(&self) {
        self.0.state.lock().dead = true;
        self.0.killed.notify_waiters();
    }
}

/// Events are told best-effort and at their own pace; they are no part of the state that must converge.
fn is_event(path: &str) -> bool {
    path.ends_with("/events") || path.contains("/events/")
}

enum Fate {
    Passes,
    Breaks(Break),
    Dead,
}

impl<S> Layer<S> for Sabotage {
    type Service = Sabotaged<S>;

    fn layer(&self, inner: S) -> Sabotaged<S> {
        Sabotaged { sabotage: self.clone(), inner }
    }
}

/// See [`Sabotage`].
#[derive(Clone)]
pub struct Sabotaged<S> {
    sabotage: Sabotage,
    inner: S,
}

impl<S, B> Service<http::Request<Body>> for Sabotaged<S>
where
    S: Service<http::Request<Body>, Response = http::Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = http::Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let sabotage = self.sabotage.clone();
        match sabotage.decide(&request) {
            Fate::Passes => self.inner.call(request).map(|result| result.map_err(Into::into)).boxed(),
            // A dead process sends nothing and hears nothing.
            Fate::Dead => std::future::pending().boxed(),
            Fate::Breaks(Break::KillBefore) => async move {
                sabotage.kill();
                std::future::pending().await
            }
            .boxed(),
            Fate::Breaks(Break::LoseRequest) => async { Err("the request was lost".into()) }.boxed(),
            Fate::Breaks(how) => {
                let sent = self.inner.call(request);
                async move {
                    // Whatever came back, nobody hears of it.
                    let _ = sent.await;
                    if how == Break::LoseAnswer {
                        return Err("the answer was lost".into());
                    }
                    sabotage.kill();
                    std::future::pending().await
                }
                .boxed()
            }
        }
    }
}
