//! Where tests run: an environment opens a fresh target for each of them.

use crate::reference::{self, Builder, Reference};
use anyhow::{Context, anyhow};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use parking_lot::Mutex;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names a kubeconfig whose cluster is the reference, instead of one that is started.
pub const KUBECONFIG_VARIABLE: &str = "WINDLASS_REFERENCE_KUBECONFIG";

/// When set, tests do not run on the reference even if it is there.
pub const SKIP_VARIABLE: &str = "WINDLASS_SKIP_REFERENCE";

/// When set, a test that cannot run for want of a reference fails instead of being skipped.
pub const REQUIRE_VARIABLE: &str = "WINDLASS_REQUIRE_REFERENCE";

type Open = dyn Fn() -> BoxFuture<'static, anyhow::Result<Target>> + Send + Sync;
type Close = dyn Fn() + Send + Sync;

/// A kind of Kubernetes that tests run on.
#[derive(Clone)]
pub struct Environment {
    name: &'static str,
    available: Result<(), String>,
    required: bool,
    open: Arc<Open>,
    close: Arc<Close>,
}

/// A Kubernetes for one test to use.
#[derive(Clone)]
pub struct Target {
    environment: &'static str,
    client: kube::Client,
    kubeconfig: Option<PathBuf>,
    extra: Option<Arc<dyn Any + Send + Sync>>,
}

impl Target {
    /// A target reached by `client`, on the environment of this name.
    pub fn new(environment: &'static str, client: kube::Client) -> Self {
        Self { environment, client, kubeconfig: None, extra: None }
    }

    /// With something that only this environment has: tests ask for it by type.
    #[must_use]
    pub fn with(mut self, extra: impl Any + Send + Sync) -> Self {
        self.extra = Some(Arc::new(extra));
        self
    }

    /// The name of its environment.
    pub fn environment(&self) -> &'static str {
        self.environment
    }

    /// A client with every permission.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A client that shows this bearer token instead of the administrator's credentials.
    ///
    /// # Errors
    /// When the target cannot be reached by a kubeconfig.
    pub async fn client_with_token(&self, token: &str) -> anyhow::Result<kube::Client> {
        let path = self.kubeconfig().context("this target has no kubeconfig")?;
        let kubeconfig = kube::config::Kubeconfig::read_from(path)?;
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
        config.auth_info = serde_json::from_value(serde_json::json!({"token": token}))?;
        Ok(kube::Client::try_from(config)?)
    }

    /// The kubeconfig file, where the target can be reached by other programs.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// What was put in by [`Target::with`], if it is a `T`.
    pub fn extra<T: 'static>(&self) -> Option<&T> {
        self.extra.as_ref().and_then(|extra| extra.downcast_ref())
    }

    /// Makes a namespace that no other test uses.
    ///
    /// # Errors
    /// When the API refuses.
    pub async fn namespace(&self) -> anyhow::Result<String> {
        let namespace = Namespace {
            metadata: ObjectMeta { generate_name: Some("test-".into()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(self.client()).create(&PostParams::default(), &namespace).await;
        made.context("making a namespace for the test")?
            .metadata
            .name
            .context("a created namespace has a name")
    }
}

impl Environment {
    /// A environment that is always there.
    pub fn new<F, Fut>(name: &'static str, open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<Target>> + Send + 'static,
    {
        Self {
            name,
            available: Ok(()),
            required: false,
            open: Arc::new(move || open().boxed()),
            close: Arc::new(|| ()),
        }
    }

    /// The reference Kubernetes: the cluster that [`KUBECONFIG_VARIABLE`] names, or a control plane that is started once,
    /// when the first test needs it.
    pub fn reference() -> Self {
        Self::of_reference("reference", Reference::builder())
    }

    /// The reference as it is started by this builder.
    pub fn reference_of(builder: Builder) -> Self {
        Self::of_reference("reference", builder)
    }

    /// The same with its controller manager and its scheduler: whatever is declared is made, as far as it needs no node.
    pub fn reference_cluster() -> Self {
        Self::of_reference("reference", Reference::builder().controllers())
    }

    /// The same environment with something that runs beside it: started with the first target that is opened, and dropped when the
    /// environment is closed, before it.
    #[must_use]
    pub fn beside<T, F>(self, start: F) -> Self
    where
        T: Send + 'static,
        F: Fn(&Target) -> anyhow::Result<T> + Send + Sync + 'static,
    {
        let running: Arc<Mutex<Option<T>>> = Arc::default();
        let (started, start) = (running.clone(), Arc::new(start));
        let (open, close) = (self.open.clone(), self.close.clone());
        let open = move || {
            let (open, started, start) = (open.clone(), started.clone(), start.clone());
            async move {
                let target = open().await?;
                let mut running = started.lock();
                if running.is_none() {
                    *running = Some(start(&target)?);
                }
                drop(running);
                Ok(target)
            }
            .boxed()
        };
        let close = move || {
            drop(running.lock().take());
            close();
        };
        Self { open: Arc::new(open), close: Arc::new(close), ..self }
    }

    /// The same environment where this is there: without it its tests are skipped, and say why.
    #[must_use]
    pub fn needing<T, E: ToString>(self, what: Result<T, E>) -> Self {
        let available = self.available.clone().and(what.map(|_| ()).map_err(|error| error.to_string()));
        Self { available, ..self }
    }

    fn of_reference(name: &'static str, builder: Builder) -> Self {
        let required = std::env::var_os(REQUIRE_VARIABLE).is_some();
        if let Some(path) = std::env::var_os(KUBECONFIG_VARIABLE).map(PathBuf::from) {
            let open = move || {
                let path = path.clone();
                async move { target(name, path).await }.boxed()
            };
            return Self { name, available: Ok(()), required, open: Arc::new(open), close: Arc::new(|| ()) };
        }
        let shared = Arc::new(Shared { builder, outcome: Default::default(), running: Mutex::default() });
        let opened = shared.clone();
        let open = move || {
            let shared = opened.clone();
            async move { target(name, shared.kubeconfig().await?).await }.boxed()
        };
        Self {
            name,
            available: match std::env::var_os(SKIP_VARIABLE) {
                Some(_) => Err(format!("{SKIP_VARIABLE} is set")),
                None => reference::programs().map(|_| ()).map_err(|error| error.to_string()),
            },
            required,
            open: Arc::new(open),
            close: Arc::new(move || shared.close()),
        }
    }

    /// Its name, as tests show it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it can be opened, or why not and how to get it.
    ///
    /// # Errors
    /// The sentence that says so.
    pub fn available(&self) -> Result<(), &str> {
        match &self.available {
            Ok(()) => Ok(()),
            Err(why) => Err(why),
        }
    }

    pub(crate) fn required(&self) -> bool {
        self.required
    }

    /// A fresh target.
    ///
    /// # Errors
    /// When it cannot be started or reached.
    pub async fn open(&self) -> anyhow::Result<Target> {
        (self.open)().await
    }

    /// Ends what it started. Whoever still uses it loses its connection.
    pub fn close(&self) {
        (self.close)();
    }
}

async fn target(environment: &'static str, kubeconfig: PathBuf) -> anyhow::Result<Target> {
    let client = reference::client_from(&kubeconfig).await.map_err(|reason| anyhow!(reason))?;
    client
        .apiserver_version()
        .await
        .with_context(|| format!("the Kubernetes that {} names does not answer", kubeconfig.display()))?;
    Ok(Target { kubeconfig: Some(kubeconfig), ..Target::new(environment, client) })
}

/// One reference for all tests of a binary, started by the first that needs it.
struct Shared {
    builder: Builder,
    /// Held while it starts, so that the others wait for it; keeps the outcome, so that a failure is told to all at once.
    outcome: tokio::sync::OnceCell<Result<PathBuf, String>>,
    running: Mutex<Option<Reference>>,
}

impl Shared {
    async fn kubeconfig(&self) -> anyhow::Result<PathBuf> {
        let start = || async {
            let started = self
                .builder
                .clone()
                .start()
                .await
                .map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
            let kubeconfig = started.kubeconfig();
            *self.running.lock() = Some(started);
            Ok(kubeconfig)
        };
        self.outcome.get_or_init(start).await.clone().map_err(|reason| anyhow!(reason))
    }

    fn close(&self) {
        drop(self.running.lock().take());
    }
}
