//! A tap on the way to the server: counts a client's writes, and turns one of them into a fault.

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;
use tower::service_fn;

/// What happens to one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operator dies right before it is sent.
    KillBefore,
    /// The operator dies right after it took effect, without an answer.
    KillAfter,
    /// It takes effect, and the answer is lost.
    LoseAnswer,
    /// It does not take effect, and the answer is a conflict.
    Conflict,
}

/// The tap; clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Tap(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    killed: Notify,
}

#[derive(Debug, Default)]
struct State {
    writes: Vec<String>,
    fault: Option<(usize, Fault)>,
    dead: bool,
}

impl Tap {
    /// A tap that makes the `number`th write, from one, a fault.
    pub fn with_fault(number: usize, fault: Fault) -> Self {
        let tap = Self::default();
        tap.0.state.lock().fault = Some((number, fault));
        tap
    }

    /// What was written so far: method and path of each, events left out.
    pub fn writes(&self) -> Vec<String> {
        self.0.state.lock().writes.clone()
    }

    /// Waits until the operator is to die.
    pub async fn killed(&self) {
        let killed = self.0.killed.notified();
        if !self.0.state.lock().dead {
            killed.await;
        }
    }

    /// The same client with the tap in its way.
    pub fn on(&self, client: Client) -> Client {
        let tap = self.clone();
        let namespace = client.default_namespace().to_owned();
        let service =
            service_fn(move |request: Request<Body>| -> BoxFuture<'static, kube::Result<Response<Body>>> {
                Box::pin(tap.clone().pass(client.clone(), request))
            });
        Client::new(service, namespace)
    }

    async fn pass(self, client: Client, request: Request<Body>) -> kube::Result<Response<Body>> {
        match self.fault_for(&request) {
            None => client.send(request).await,
            Some(Fault::KillBefore) => self.die().await,
            Some(Fault::KillAfter) => {
                // Awaited to its end: the write is done, whatever becomes of us.
                let _ = client.send(request).await;
                self.die().await
            }
            Some(Fault::LoseAnswer) => {
                let _ = client.send(request).await;
                Err(kube::Error::Service("the answer was lost".into()))
            }
            Some(Fault::Conflict) => {
                let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made up","reason":"Conflict","code":409}"#;
                let answer = Response::builder().status(409).body(Body::from(status.as_bytes().to_vec()));
                answer.map_err(kube::Error::HttpError)
            }
        }
    }

    /// Counts a write, and says whether it is the one.
    fn fault_for(&self, request: &Request<Body>) -> Option<Fault> {
        let path = request.uri().path();
        if request.method() == Method::GET || path.contains("/events") {
            return None;
        }
        let mut state = self.0.state.lock();
        if state.dead {
            return Some(Fault::KillBefore);
        }
        state.writes.push(format!("{} {path}", request.method()));
        let (number, fault) = state.fault?;
        (state.writes.len() == number).then_some(fault)
    }

    /// Never answers again.
    async fn die(&self) -> kube::Result<Response<Body>> {
        self.0.state.lock().dead = true;
        self.0.killed.notify_waiters();
        std::future::pending().await
    }
}
