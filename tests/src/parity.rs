//! Named behaviours: short scripts of requests, run on every target, whose responses must be equal.
//!
//! A behaviour is an `async fn(Script) -> anyhow::Result<Script>`. It has no expectations: the response of
//! the reference is the expected one. It uses responses only to make its next request.

mod admission;
mod aggregation;
mod built_in;
mod cel_costs;
mod cel_rules;
mod conversion;
mod core_kinds;
mod crd_watches;
mod crds;
mod crud;
mod deletion;
mod http;
mod identities;
mod invalid_objects;
mod known_differences;
mod lists;
mod malformed_input;
mod merge;
mod metadata;
mod policies;
mod report;
mod schema_keywords;
mod script;
mod server_side_apply;
mod suspended_jobs;
mod watches;
mod webhooks;
mod writes;

pub use known_differences::{known, known_names};
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
        schema_keywords::behaviours(),
        server_side_apply::behaviours(),
        suspended_jobs::behaviours(),
        deletion::behaviours(),
        cel_costs::behaviours(),
        crd_watches::behaviours(),
        crds::behaviours(),
        http::behaviours(),
        identities::behaviours(),
        watches::behaviours(),
        core_kinds::behaviours(),
        built_in::behaviours(),
        malformed_input::behaviours(),
        admission::behaviours(),
        invalid_objects::behaviours(),
        cel_rules::behaviours(),
        webhooks::behaviours(),
        conversion::behaviours(),
        policies::behaviours(),
        aggregation::behaviours(),
    ]
    .concat()
}
