//! Named behaviours: small scripts of requests, run on every ground, whose answers must be equal.
//!
//! A behaviour is an `async fn(Script) -> anyhow::Result<Script>`. It decides nothing about right and wrong: what the
//! reference answers is right. It may only look at answers to make its next request.

mod admission;
mod applying;
mod bad_input;
mod bad_objects;
mod built_in;
mod costs;
mod crud;
mod definition_watches;
mod definitions;
mod deleting;
mod expressions;
mod keywords;
mod known;
mod lists;
mod metadata;
mod report;
mod rules;
mod script;
mod surface;
mod watching;
mod writes;

pub use known::{known, known_names};
pub use report::{Report, Row};
pub use script::{Definition, Script};

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::Target;

/// No behaviour needs longer.
const LIMIT: Duration = Duration::from_secs(30);

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
        let played = Clock::real().timeout(LIMIT, (self.body)(script)).await;
        played.context("it did not end in time").flatten().with_context(|| self.name.clone())?.end().await
    }
}

/// Every behaviour there is.
pub fn behaviours() -> Vec<Behaviour> {
    [
        crud::behaviours(),
        lists::behaviours(),
        writes::behaviours(),
        metadata::behaviours(),
        keywords::behaviours(),
        applying::behaviours(),
        deleting::behaviours(),
        costs::behaviours(),
        definition_watches::behaviours(),
        definitions::behaviours(),
        surface::behaviours(),
        watching::behaviours(),
        rules::behaviours(),
        built_in::behaviours(),
        bad_input::behaviours(),
        admission::behaviours(),
        bad_objects::behaviours(),
        expressions::behaviours(),
    ]
    .concat()
}
