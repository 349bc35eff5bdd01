//! Actions and facts of a controller: how they are declared, what they reach the world outside with, and how they say that
//! it failed.

use super::Controller;
use super::actions::Do;
use super::facts::Poller;
use crate::cache::typed;
use crate::key::Key;
use crate::kind::{Cached, Kind, Object};
use futures::future::BoxFuture;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;

/// What an action or a poller is given besides its object.
#[derive(Clone)]
pub struct Context {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) key: Key,
}

impl Context {
    /// A client on the controller's cluster. Where there is an election, it writes only while this process leads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Which object it is for.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Why an action or a poll failed: any error, by the question mark, or a sentence.
///
/// ```
/// use windlass::Failure;
/// fn read(text: &str) -> Result<u32, Failure> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(read("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(Failure::new("no answer").to_string(), "no answer");
/// ```
// Not an error itself: then it could not be made from all others.
pub struct Failure(Box<dyn std::error::Error + Send + Sync>);

impl Failure {
    /// Failed for this reason.
    pub fn new(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(why.into())
    }

    /// With its causes.
    pub(super) fn chain(&self) -> String {
        crate::error_chain::chain(&*self.0)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K: Cached> Controller<K> {
    /// An action that its plans may ask for by this name: an idempotent function, given the object as it is when it starts
    /// and the plan's arguments. It runs beside the reconciles, which go on, and is cut off when the controller stops or no longer
    /// leads. See [`Action`](crate::Action).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::{Controller, Plan};
    /// # use std::sync::Arc;
    /// # fn decide(_: &ConfigMap, _: &windlass::Observed) -> Result<Plan, windlass::Refusal> { Ok(Plan::new()) }
    /// async fn dump(database: &str) -> Result<usize, std::io::Error> {
    ///     Ok(database.len()) // and so on
    /// }
    /// let controller = Controller::deciding(decide).action("backup", |map: Arc<ConfigMap>, _args, _context| async move {
    ///     Ok(dump(map.metadata.name.as_deref().unwrap_or_default()).await?)
    /// });
    /// ```
    pub fn action<A, F, T>(mut self, name: impl Into<String>, action: A) -> Self
    where
        A: Fn(Arc<K>, Value, Context) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Serialize,
    {
        let action: Do = Arc::new(move |object, args, context| {
            let done = action(typed(object), args, context);
            Box::pin(async move { Ok(serde_json::to_value(done.await?)?) })
        });
        self.parts.actions.insert(name.into(), action);
        self
    }

    /// The guards of its actions look at objects of this kind, besides its own ([`Guard::of`](crate::Guard::of)): they are read
    /// live when an action starts.
    pub fn guards<C: Object>(mut self) -> Self {
        self.parts.guards.insert(Kind::of::<C>());
        self
    }

    /// How many runs of each action there are at once, over all objects; by default four. Actions do not wait for each other.
    pub fn action_concurrency(mut self, workers: usize) -> Self {
        self.parts.action_concurrency = workers.max(1);
        self
    }

    /// A fact about the world outside the cluster, found out by a function with this timeout. Decisions read it by
    /// [`Observed::fact`](crate::Observed::fact): for an object whose last decision did, it is polled at this interval, and when
    /// it changes there is a reconcile. Nobody is asked about what no decision reads.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::{Controller, Fact, Observed, Plan, Reason, Refusal};
    /// # use std::{sync::Arc, time::Duration};
    /// fn decide(_: &ConfigMap, observed: &Observed) -> Result<Plan, Refusal> {
    ///     Ok(match observed.fact::<u64>("lag")? {
    ///         Fact::Known { value, .. } => Plan::new().status(serde_json::json!({ "lag": value })),
    ///         Fact::Unknown { why } => Plan::waiting(Reason::new("LagUnknown", why)),
    ///     })
    /// }
    /// let controller = Controller::deciding(decide).fact(
    ///     "lag",
    ///     |_map: Arc<ConfigMap>, _context| async { Ok(7u64) }, // asks the database, and so on
    ///     Duration::from_secs(10),
    ///     Duration::from_secs(2),
    /// );
    /// ```
    pub fn fact<T, P, F>(
        mut self,
        name: impl Into<String>,
        poll: P,
        every: Duration,
        within: Duration,
    ) -> Self
    where
        T: Serialize,
        P: Fn(Arc<K>, Context) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let poll = move |object, context| {
            let polled = poll(typed(object), context);
            Box::pin(async move { Ok(serde_json::to_value(polled.await?)?) }) as BoxFuture<'static, _>
        };
        // At once and for ever would be a loop that does nothing else.
        let every = every.max(Duration::from_millis(1));
        self.parts.facts.insert(name.into(), Poller { poll: Arc::new(poll), every, within });
        self
    }

    /// How many polls of each fact run at once, over all objects; by default eight. Facts do not wait for each other.
    pub fn fact_concurrency(mut self, workers: usize) -> Self {
        self.parts.fact_concurrency = workers.max(1);
        self
    }
}
