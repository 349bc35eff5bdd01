//! Runs controllers on one cluster: caches first, then workers, until told to stop; and stops them cleanly.
//!
//! - `connect`: its clients
//! - `commands`: what its binary answers besides running
//! - `find_operator`, `registration`: how `why` finds the operator that runs
//! - `life`: from start to end
//! - `tasks`: what runs beside the controllers
//! - `webhooks`: what it answers the API server
//! - `signals`: how a process is asked to end
//!
//! Dropping the future of [`Manager::run`] is a hard kill, as if the process had died: nothing but the API outlives it.

mod commands;
mod connect;
mod error;
mod find_operator;
mod life;
mod registration;
mod signals;
mod tasks;
mod webhooks;

pub use error::{Error, Result};
pub use tasks::Task;

use crate::cache::{Cache, Namespaces, Store};
use crate::command::CommandError;
use crate::config::{self, Args, Command, CommandLine, InvalidOption, Settings};
use crate::controller::{Controller, Description, Parts, permissions};
use crate::election::Election;
use crate::inspect::Inspector;
use crate::kind::{Cached, Object};
use crate::logs;
use crate::metrics::Page;
use crate::metrics::TaskState;
use crate::serve::Bind;
use connect::Connection;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use signals::Signals;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tower::BoxError;
use windlass_clock::Clock;

type Caching = Box<dyn FnOnce(&Cache) + Send>;
type Clients = Box<dyn Fn(&str) -> Option<Client> + Send>;

/// Runs controllers on one cluster.
#[must_use = "a manager does nothing until it is run"]
pub struct Manager {
    connection: Connection,
    /// Clients of single controllers and tasks, by their names.
    clients: Option<Clients>,
    command: Command,
    /// To be printed, and nothing else done.
    help: Option<String>,
    /// Whether commands print JSON.
    json: bool,
    clock: Clock,
    cluster: Arc<str>,
    namespaces: Vec<String>,
    /// One that others use, too.
    cache: Option<Cache>,
    caching: Vec<Caching>,
    election: Option<Election>,
    rejoin_election: bool,
    definitions: Vec<CustomResourceDefinition>,
    controllers: Vec<Parts>,
    /// Workers by controller, over what the controllers say.
    concurrency: BTreeMap<String, usize>,
    tasks: Vec<tasks::Given>,
    inspector: Inspector,
    metrics_at: Bind,
    health_at: Bind,
    cache_sync_timeout: Duration,
    graceful_shutdown_timeout: Duration,
    webhooks: webhooks::Given,
}

impl Manager {
    /// A manager on this client and this clock.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self::on(Connection::Given(client), clock)
    }

    /// A manager on the cluster of this config and on this clock, for a program that finds its cluster by itself. It connects
    /// when it runs.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use windlass::{Manager, clock::Clock};
    ///
    /// let mut config = kube::Config::infer().await?;
    /// config.accept_invalid_certs = false;
    /// Manager::connecting(config, Clock::real()).run().await?;
    /// # Ok(()) }
    /// ```
    pub fn connecting(config: kube::Config, clock: Clock) -> Self {
        Self::on(Connection::Configured(Box::new(config)), clock)
    }

    /// A manager as the process was told: by flags, environment variables and a file, all listed by `--help`; see
    /// [`config`](crate::config). It starts logging, and connects when it runs.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when an option that was given is invalid.
    pub fn from_env() -> Result<Self> {
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        match config::parse(&program(), &words.collect::<Vec<_>>())? {
            CommandLine::Args(args) => Self::from_args(*args),
            CommandLine::Help(text) => {
                let mut manager = Self::with_settings(Settings::default());
                manager.help = Some(text);
                Ok(manager)
            }
        }
    }

    /// As [`Manager::from_env`], for a program that parses flags of its own: `args` is flattened into them.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when an option that was given is invalid.
    pub fn from_args(args: Args) -> Result<Self> {
        // What is not text is not for us.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(text).collect();
        let settings = args.settings(&variables, |path| std::fs::read_to_string(path))?;
        let command = args.command.unwrap_or_default();
        if command == Command::Run {
            logs::init(settings.log_format, &settings.log_level)
                .map_err(|message| InvalidOption { place: "--log-level".to_owned(), message })?;
        }
        let mut manager = Self::with_settings(settings);
        manager.command = command;
        Ok(manager)
    }

    /// A manager with these settings, for a program that finds them by itself. It connects when it runs.
    pub fn with_settings(settings: Settings) -> Self {
        let mut manager = Self::on(Connection::Environment(settings.kubeconfig.clone()), Clock::real());
        manager.json = settings.json;
        manager.cluster = settings.cluster_id.as_str().into();
        manager.namespaces = settings.namespaces.clone();
        (manager.metrics_at, manager.health_at) = (settings.metrics, settings.health);
        (manager.cache_sync_timeout, manager.graceful_shutdown_timeout) =
            (settings.cache_sync_timeout, settings.graceful_shutdown_timeout);
        manager.webhooks.server = settings.webhooks.clone();
        manager.rejoin_election = settings.rejoin_election;
        manager.concurrency = settings.concurrency.clone();
        if settings.leader_elect {
            let name = settings.lease.clone().unwrap_or_else(program);
            let election = Election::within(settings.lease_namespace.clone(), name);
            manager.election =
                Some(election.durations(settings.lease_lasts, settings.renew_within, settings.retry));
        }
        manager
    }

    fn scope(&self) -> Namespaces {
        match self.namespaces.is_empty() {
            true => Namespaces::All,
            false => self.namespaces.clone().into(),
        }
    }

    fn on(connection: Connection, clock: Clock) -> Self {
        Self {
            connection,
            clients: None,
            command: Command::Run,
            help: None,
            json: false,
            clock,
            cluster: "local".into(),
            namespaces: Vec::new(),
            cache: None,
            caching: Vec::new(),
            election: None,
            rejoin_election: false,
            definitions: Vec::new(),
            controllers: Vec::new(),
            concurrency: BTreeMap::new(),
            tasks: Vec::new(),
            inspector: Inspector::default(),
            metrics_at: Bind::Off,
            health_at: Bind::Off,
            cache_sync_timeout: Duration::from_secs(120),
            graceful_shutdown_timeout: Duration::from_secs(30),
            webhooks: webhooks::Given::default(),
        }
    }

    /// The cluster's id, which is in every key.
    pub fn cluster(mut self, id: impl Into<Arc<str>>) -> Self {
        self.cluster = id.into();
        self
    }

    /// The clients of controllers and tasks, by their names, so that each can have an identity and rights of its own. Who has
    /// none here has the manager's, as have the caches, the events and the election.
    ///
    /// ```
    /// # fn operator(manager: windlass::Manager, auditor: kube::Client) -> windlass::Manager {
    /// manager.clients(move |name| (name == "auditor").then(|| auditor.clone()))
    /// # }
    /// ```
    pub fn clients(mut self, clients: impl Fn(&str) -> Option<Client> + Send + 'static) -> Self {
        self.clients = Some(Box::new(clients));
        self
    }

    /// Does this with the cache before anything is watched: says what is not to be held, or keeps a clone of it, by which
    /// kinds are opened and closed while the manager runs.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn operator(manager: windlass::Manager) -> windlass::Manager {
    /// manager.caching(|cache| cache.transform(|pod: &mut Pod| pod.status = None))
    /// # }
    /// ```
    pub fn caching(mut self, with: impl FnOnce(&Cache) + Send + 'static) -> Self {
        self.caching.push(Box::new(with));
        self
    }

    /// Fills and uses this cache, which others in the program use too: what is held and watched for them all is so once. Its
    /// cluster and its namespaces count, over those of the manager.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn operator(manager: windlass::Manager) -> windlass::Manager {
    /// use windlass::cache::{Cache, Namespaces};
    ///
    /// let cache = Cache::new("local".into(), Namespaces::All);
    /// let pods = cache.store::<Pod>();
    /// manager.sharing(cache)
    /// # }
    /// ```
    pub fn sharing(mut self, cache: Cache) -> Self {
        self.cluster = cache.cluster().clone();
        self.cache = Some(cache);
        self
    }

    /// Watches this namespace only; said again, this one too.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// Works only while it holds this lease. Until then it stands by with its caches full, and it gives the lease back when
    /// it is stopped. Once it loses the lease it sends no more writes, and ends with [`Error::NotLeading`]: a new process is
    /// sure to remember nothing. See [`Manager::rejoin_election`].
    pub fn leader_election(mut self, election: Election) -> Self {
        self.election = Some(election);
        self
    }

    /// When it loses its lease, it cuts its work off and stands by again, with its caches full, instead of ending.
    pub fn rejoin_election(mut self) -> Self {
        self.rejoin_election = true;
        self
    }

    /// Runs this beside the controllers, once the caches are full, and only on the replica that leads. It ends when it is
    /// done; after an error or a panic it begins again, a little later each time, and nothing else is disturbed.
    ///
    /// ```
    /// # use windlass::Manager;
    /// # fn example(manager: Manager) -> Manager {
    /// manager.task("greeter", |task| async move {
    ///     task.stopped().await;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn task<F, W>(self, name: impl Into<String>, work: W) -> Self
    where
        W: Fn(Task) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.with_task(name.into(), true, work)
    }

    /// As [`Manager::task`], on every replica, whether it leads or stands by. Its writes are not sent while it stands by.
    pub fn task_on_every_replica<F, W>(self, name: impl Into<String>, work: W) -> Self
    where
        W: Fn(Task) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.with_task(name.into(), false, work)
    }

    fn with_task<F, W>(mut self, name: String, leading: bool, work: W) -> Self
    where
        W: Fn(Task) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let state = Arc::new(TaskState::new(&name));
        let work: tasks::Work = Arc::new(move |task| Box::pin(work(task)));
        self.tasks.push(tasks::Given { name, work, leading, state });
        self
    }

    /// The kinds that this operator defines, as `describe` tells them: what installs it makes them.
    ///
    /// ```
    /// # use kube::{CustomResource, CustomResourceExt};
    /// # use schemars::JsonSchema;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    /// # #[kube(group = "example.dev", version = "v1", kind = "Website")]
    /// # struct WebsiteSpec {}
    /// # fn operator(manager: windlass::Manager) -> windlass::Manager {
    /// manager.crds([Website::crd()])
    /// # }
    /// ```
    pub fn crds(mut self, definitions: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        self.definitions.extend(definitions);
        self
    }

    /// Runs this controller too.
    pub fn controller<K: Cached>(mut self, controller: Controller<K>) -> Self {
        self.controllers.push(controller.parts);
        self
    }

    /// The RBAC rules that it needs: for what its controllers declare that they watch, own and write, for its lease where a leader
    /// is elected, and for its webhooks where they are served. The same as `windlass generate` writes into the operator's roles.
    pub fn rules(&self) -> Vec<PolicyRule> {
        let controllers: Vec<Description> = self.controllers.iter().map(Parts::describe).collect();
        let mut rules = permissions::rules(&controllers);
        if self.election.is_some() {
            rules.extend(permissions::election_rules());
        }
        rules.extend(self.webhooks.rules());
        let rule = |rule| serde_json::from_value(rule).expect("rules are written as Kubernetes' are");
        rules.into_iter().map(rule).collect()
    }

    /// Serves `/metrics` and `/debug` there while it runs. It has no lock: whoever reaches it may read it.
    pub fn serve_metrics(mut self, at: Bind) -> Self {
        self.metrics_at = at;
        self
    }

    /// Serves `/healthz` and `/readyz` there while it runs.
    pub fn serve_health(mut self, at: Bind) -> Self {
        self.health_at = at;
        self
    }

    /// Shows metrics of one's own on the page too.
    ///
    /// ```
    /// # use windlass::{Manager, metrics::Type};
    /// # fn example(manager: Manager) -> Manager {
    /// manager.metrics(|page| {
    ///     page.family("shop_open", Type::Gauge, "Whether the shop is open.").sample(&[], 1.0);
    /// })
    /// # }
    /// ```
    pub fn metrics(self, collector: impl Fn(&mut Page) + Send + Sync + 'static) -> Self {
        self.inspector.collect(Box::new(collector));
        self
    }

    /// Shows metrics that follow from all objects of a kind, as the cache has them when the page is asked for.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use std::sync::Arc;
    /// # use windlass::metrics::{Page, Type};
    /// fn pods(pods: &[Arc<Pod>], page: &mut Page) {
    ///     page.family("pods", Type::Gauge, "Pods that there are.").sample(&[], pods.len() as f64);
    /// }
    /// # fn example(manager: windlass::Manager) -> windlass::Manager {
    /// manager.measures(pods)
    /// # }
    /// ```
    pub fn measures<K: Object>(self, measure: impl Fn(&[Arc<K>], &mut Page) + Send + Sync + 'static) -> Self {
        let held: Arc<OnceLock<Arc<Store<K>>>> = Arc::default();
        let filled = held.clone();
        self.caching(move |cache| drop(filled.set(cache.store::<K>()))).metrics(move |page| {
            if let Some(store) = held.get() {
                measure(&store.list(), page);
            }
        })
    }

    /// A check that `/healthz` makes: when it fails for long, the process is to be started anew.
    pub fn healthz_check(
        self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.inspector.check_live(name.into(), Box::new(check));
        self
    }

    /// A check that `/readyz` makes, besides that every cache had its first list.
    pub fn readyz_check(
        self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.inspector.check_ready(name.into(), Box::new(check));
        self
    }

    /// Looks into it while it runs: for a program that has an HTTP server of its own.
    pub fn inspector(&self) -> Inspector {
        self.inspector.clone()
    }

    /// How long the first lists may take.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.cache_sync_timeout = limit;
        self
    }

    /// How long reconciles and tasks may take to end when it is stopped.
    pub fn graceful_shutdown_timeout(mut self, limit: Duration) -> Self {
        self.graceful_shutdown_timeout = limit;
        self
    }

    /// Runs until the process is asked to end (Ctrl-C, or SIGTERM). Asked a second time, it ends at once. Where the command
    /// line asks for something else (`describe`, `capture`, `plan`, `why`, `--help`), that is answered instead.
    ///
    /// # Errors
    /// As [`Manager::run_until`].
    pub async fn run(mut self) -> Result<()> {
        if let Some(answer) = self.answer().await? {
            return match std::io::stdout().write_all(answer.as_bytes()) {
                // Whoever closed it has read enough.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    Err(CommandError(format!("the answer cannot be written: {error}")).into())
                }
                _ => Ok(()),
            };
        }
        let signals = Signals::new();
        let (first, second) = (signals.asked(1), signals.asked(2));
        tokio::select! {
            done = self.run_until(first) => done,
            () = second => Err(Error::SecondSignal),
            () = signals.listen() => Ok(()),
        }
    }
}

/// What this program is called.
fn program() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = path.as_ref().and_then(|path| path.file_name()?.to_str());
    name.unwrap_or("operator").to_owned()
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let controllers: Vec<&str> = self.controllers.iter().map(|controller| controller.name()).collect();
        f.debug_struct("Manager")
            .field("cluster", &self.cluster)
            .field("controllers", &controllers)
            .finish_non_exhaustive()
    }
}
