//! The API as a whole: made once, cloned cheaply, asked through services.

use crate::crd::{self, lifecycle};
use crate::faults::Faults;
use crate::flow::Operation;
use crate::flow::authenticate::Identity;
use crate::flow::{decode, managed};
use crate::kinds::services::Taken;
use crate::query::{Strictness, WriteOptions};
use crate::registry::Registry;
use crate::resource::Resource;
use crate::service::ApiService;
use crate::store::{Options, Store};
use crate::verbs::create::store_new;
use futures::FutureExt;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

/// The namespaces that are there from the start.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What an API is made from.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it stamps objects with, and waits by.
    pub clock: Clock,
    /// How much history it keeps.
    pub store: Options,
}

impl Default for Config {
    /// The machine's own time, and as much history as Kubernetes keeps.
    fn default() -> Self {
        Self { clock: Clock::real(), store: Options::default() }
    }
}

/// An embedded Kubernetes API. Clones are the same API.
#[derive(Clone)]
pub struct Api(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) clock: Clock,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) faults: Faults,
    /// The resource of the definitions themselves.
    pub(crate) definitions: Arc<Resource>,
    /// Held while a definition gets its names or goes.
    pub(crate) settling: Mutex<()>,
    pub(crate) own_identity: Identity,
    /// Which addresses and ports Services have.
    pub(crate) taken: Taken,
    /// Cancelled when the API stops: watches end.
    pub(crate) stopped: CancellationToken,
}

impl Api {
    /// A new API with nothing in it but the namespaces that every cluster has.
    pub fn new(config: Config) -> Self {
        let registry = Registry::new();
        let definitions = registry
            .get(crd::GROUP, "v1", "customresourcedefinitions")
            .expect("the definitions' own resource is built in");
        let store = Store::new(config.store, config.clock.clone());
        let inner = Inner {
            faults: Faults::new(store.clone()),
            store,
            clock: config.clock,
            registry,
            definitions,
            settling: Mutex::new(()),
            own_identity: lifecycle::own_identity(),
            taken: Taken::default(),
            stopped: CancellationToken::new(),
        };
        let namespaces = inner.registry.get("", "v1", "namespaces").expect("namespaces are built in");
        for name in NAMESPACES {
            inner.make_namespace(&namespaces, name);
        }
        Self(Arc::new(inner))
    }

    /// The API as `identity` sees it: a service for requests of any body, such as a `kube::Client` is made of.
    pub fn service(&self, identity: Identity) -> ApiService {
        ApiService::new(self.0.clone(), identity, self.0.stopped.clone())
    }

    /// What it stores everything in.
    pub fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    /// What goes wrong on purpose, and the record of writes.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The time that it lives by.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Ends all watches, as a server that goes down does. Requests are answered as before.
    pub fn end_watches(&self) {
        self.0.stopped.cancel();
    }
}

impl Inner {
    fn make_namespace(&self, resource: &Arc<Resource>, name: &str) {
        let operation = Operation {
            api: self,
            identity: &self.own_identity,
            resource: resource.clone(),
            namespace: String::new(),
            name: String::new(),
            subresource: String::new(),
            options: WriteOptions {
                dry_run: false,
                manager: "kube-apiserver".to_owned(),
                strictness: Strictness::Ignore,
                force: false,
                apply: false,
            },
            warnings: Arc::default(),
        };
        let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        let mut object = decode::object(resource, namespace).expect("a namespace needs but a name").value;
        managed::update(&operation, None, &mut object);
        let made = store_new(&operation, object).now_or_never();
        debug_assert!(matches!(made, Some(Ok(_))), "an empty store in memory takes a namespace at once");
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("revision", &self.0.store.revision()).finish_non_exhaustive()
    }
}
