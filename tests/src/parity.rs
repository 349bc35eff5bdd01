//! Named behaviours: small scripts of requests, run on every ground, whose answers must be equal.
//!
//! A behaviour is an `async fn(Script) -> anyhow::Result<Script>`. It decides nothing about right and wrong: what the
//! reference answers is right. It may only look at answers to make its next request.

mod crud;
mod report;

pub use report::{Report, Row};

use crate::compare::{Answer, Request, Server, Side};
use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_clock::Clock;
use windlass_harness::Target;

/// A behaviour's body.
pub type Body = Arc<dyn Fn(Script) -> BoxFuture<'static, anyhow::Result<Script>> + Send + Sync>;

/// A named behaviour.
#[derive(Clone)]
pub struct Behaviour {
    /// A sentence that says what holds.
    pub name: String,
    body: Body,
}

impl Behaviour {
    /// A behaviour of this name.
    pub fn new<F, Fut>(name: impl Into<String>, body: F) -> Self
    where
        F: Fn(Script) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<Script>> + Send + 'static,
    {
        Self { name: name.into(), body: Arc::new(move |script| body(script).boxed()) }
    }

    /// Runs it on a target, and gives back everything that was asked and answered, in comparable form.
    ///
    /// # Errors
    /// When the target did not answer.
    pub async fn transcript(&self, target: &Target) -> anyhow::Result<Value> {
        let script = Script::begin(target).await?;
        let script = (self.body)(script).await.with_context(|| self.name.clone())?;
        Ok(Value::Array(script.transcript))
    }
}

/// Every behaviour there is.
pub fn behaviours() -> Vec<Behaviour> {
    [crud::behaviours()].concat()
}

/// Sends requests to one server and writes down what comes back.
pub struct Script {
    side: Side,
    namespace: String,
    transcript: Vec<Value>,
}

impl Script {
    async fn begin(target: &Target) -> anyhow::Result<Self> {
        let mut side = Side::new(Server::new(target.ground(), target.client()));
        let namespace = target.namespace().await?;
        side.normaliser.named(&namespace, "namespace");
        Ok(Self { side, namespace, transcript: Vec::new() })
    }

    /// The path of a namespaced collection, such as `/api/v1` and `configmaps`.
    pub fn path(&self, prefix: &str, plural: &str) -> String {
        format!("{prefix}/namespaces/{}/{plural}", self.namespace)
    }

    /// The behaviour's own namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Sends a request; the answer is part of what is compared.
    ///
    /// # Errors
    /// When there was no answer.
    pub async fn send(&mut self, request: Request) -> anyhow::Result<Answer> {
        let answer = self.side.ask(&request).await?;
        let shown = request.to_string().replace(&self.namespace, "<namespace>");
        self.transcript.push(json!({
            "request": shown, "status": answer.status, "warnings": answer.warnings, "body": answer.body,
        }));
        Ok(answer)
    }

    /// Reads a watch until `count` events came, or it ended.
    ///
    /// # Errors
    /// When there was no answer, or the events did not come within ten seconds.
    pub async fn watch(&mut self, request: Request, count: usize) -> anyhow::Result<()> {
        let mut events = self.side.server.watch(&self.side.normaliser.concrete(&request)).await?;
        let read = async {
            let mut told = Vec::new();
            while told.len() < count
                && let Some(event) = events.next().await?
            {
                told.push(event);
            }
            anyhow::Ok(told)
        };
        let mut told = Clock::real().timeout(std::time::Duration::from_secs(10), read).await??;
        told.iter_mut().for_each(|event| self.side.normaliser.value(event, ""));
        self.transcript.push(json!({"watch": told}));
        Ok(())
    }
}
