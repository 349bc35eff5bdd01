//! The cluster of one test.
//!
//! Its clock stands still except while the test waits; then it runs as on the wall, so that what backs off does so.
//! Timestamps are otherwise the same in every run.

use crate::operator::{Operator, Operators, Running};
use anyhow::Context;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use std::sync::Arc;
use std::time::Duration;
use windlass::Manager;
use windlass::webhook::WebhookServer;
use windlass_apiserver::faults::Faults;
use windlass_apiserver::{Config, Identity};
use windlass_clock::{Clock, Timestamp};
use windlass_cluster::{Cluster, Settings, Time};

/// The default timeout: long enough for a busy machine, since only failures take it.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// The user name of the operators that [`TestCluster::run`] starts; rules of [`faults`](crate::faults) can match it.
pub(crate) const OPERATOR: &str = "operator";

/// A cluster for one test, in process: the embedded Kubernetes API with its controllers, its scheduler and a simulated node,
/// new and empty, with a clock of its own. Clones are the same cluster.
///
/// ```
/// use windlass_testing::{Data, TestCluster, config_map};
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let cluster = TestCluster::start();
/// cluster.create(config_map("a").data("k", "v")).await?;
/// assert_eq!(cluster.get::<k8s_openapi::api::core::v1::ConfigMap>("a").await?.data.unwrap()["k"], "v");
/// # Ok(())
/// # }
/// ```
///
/// Controllers and a simulated node act on what is declared:
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass_testing::{TestCluster, deployment};
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let cluster = TestCluster::start();
/// cluster.create(deployment("web", "nginx")).await?;
/// cluster.eventually::<Deployment>("web").has_condition("Available", true).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TestCluster {
    api: Option<windlass_apiserver::Api>,
    /// The controllers, scheduler and nodes, unless it is the API alone.
    running: Option<Arc<Cluster>>,
    client: Client,
    time: Time,
    namespace: Arc<str>,
    /// How long waits may take, by the machine's clock.
    pub(crate) timeout: Duration,
    /// The operators that were run on it.
    operators: Operators,
}

/// Webhooks of this process, for an API server of this process.
fn local_webhooks() -> WebhookServer {
    WebhookServer::at_url("https://127.0.0.1:0").expect("it is written as URLs of webhooks are")
}

/// A driven clock, starting at a time that no test can mistake for now.
fn driven() -> Time {
    Time::driven("2026-01-01T00:00:00Z".parse().expect("it is written as times are"))
}

impl TestCluster {
    /// Starts a cluster, in a millisecond or two. It is dropped with its last clone.
    ///
    /// # Panics
    /// Outside of a tokio runtime, such as `#[tokio::test]` makes.
    pub fn start() -> Self {
        Self::with(driven()).with_controllers()
    }

    /// Starts the API alone, without controllers: nothing changes but by the test and its operators.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// let cluster = TestCluster::api_only();
    /// assert!(cluster.find::<k8s_openapi::api::core::v1::ServiceAccount>("default").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a tokio runtime, such as `#[tokio::test]` makes.
    pub fn api_only() -> Self {
        Self::with(driven())
    }

    /// Starts a cluster with a scheduler and a node but without controllers: for tests of such controllers.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// let cluster = TestCluster::without_controllers();
    /// cluster.eventually::<k8s_openapi::api::core::v1::Node>("node-1").has_condition("Ready", true).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a tokio runtime, such as `#[tokio::test]` makes.
    pub fn without_controllers() -> Self {
        let settings = Settings { simulated_nodes: 1, without_controllers: true, ..Settings::default() };
        Self::with(driven()).running(settings)
    }

    /// Starts a cluster on the machine's clock: for benches, demonstrations, and programs that know no other clock.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// let cluster = windlass_testing::TestCluster::start_in_real_time();
    /// assert_ne!(cluster.clock().now().to_string(), "2026-01-01T00:00:00Z");
    /// # }
    /// ```
    pub fn start_in_real_time() -> Self {
        Self::with(Time::real()).with_controllers()
    }

    fn with(time: Time) -> Self {
        let api = windlass_apiserver::Api::new(Config { clock: time.clock().clone(), ..Config::default() });
        let client = Client::new(api.service(Identity::admin()), "default");
        Self {
            api: Some(api),
            running: None,
            client,
            time,
            namespace: "default".into(),
            timeout: DEFAULT_TIMEOUT,
            operators: Operators::default(),
        }
    }

    fn with_controllers(self) -> Self {
        self.running(Settings { simulated_nodes: 1, ..Settings::default() })
    }

    fn running(mut self, settings: Settings) -> Self {
        self.running = self.api.as_ref().map(|api| Arc::new(Cluster::start(api, settings)));
        self
    }

    /// Connects to an existing cluster, in a namespace created for the test: the same test runs there. Its clock is the
    /// machine's, and faults cannot be injected into its API.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let yours = cluster.client(); // or kube::Client::try_default().await?
    /// let here = TestCluster::connect(yours).await?;
    /// assert!(here.namespace().starts_with("test-"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When no namespace can be created.
    pub async fn connect(client: Client) -> anyhow::Result<Self> {
        let metadata = ObjectMeta { generate_name: Some("test-".into()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await;
        let namespace = made.context("making a namespace for the test")?.name_any();
        let (time, namespace) = (Time::real(), namespace.into());
        let (timeout, operators) = (DEFAULT_TIMEOUT, Operators::default());
        Ok(Self { api: None, running: None, client, time, namespace, timeout, operators })
    }

    /// A client with every permission.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let maps: kube::Api<ConfigMap> = kube::Api::namespaced(cluster.client(), "default");
    /// assert!(maps.get_opt("a").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client with this user name, who may do what roles allow; see [`TestCluster::allow`]. On an existing cluster, the client
    /// that it was connected with.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let maps: kube::Api<ConfigMap> = kube::Api::namespaced(cluster.client_as("ann"), "default");
    /// let refused = maps.create(&Default::default(), &config_map("a")).await.unwrap_err();
    /// assert!(refused.to_string().contains("User \"ann\" cannot create resource \"configmaps\""));
    /// # Ok(())
    /// # }
    /// ```
    pub fn client_as(&self, user: &str) -> Client {
        match &self.api {
            Some(api) => Client::new(api.service(Identity::user(user)), &*self.namespace),
            None => self.client.clone(),
        }
    }

    /// Lets a user do what these rules say, in all namespaces, by a ClusterRole and a binding. On an existing cluster it does
    /// nothing: there the test's own client is used.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use k8s_openapi::api::rbac::v1::PolicyRule;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let all = || vec!["*".to_owned()];
    /// let rule = PolicyRule { api_groups: Some(all()), resources: Some(all()), verbs: all(), ..Default::default() };
    /// cluster.allow("ann", [rule]).await?;
    /// let maps: kube::Api<ConfigMap> = kube::Api::namespaced(cluster.client_as("ann"), "default");
    /// maps.create(&Default::default(), &config_map("a")).await?;
    /// assert_eq!(cluster.faults().audit().count(|record| record.user == "ann"), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the roles cannot be stored.
    pub async fn allow(&self, user: &str, rules: impl IntoIterator<Item = PolicyRule>) -> anyhow::Result<()> {
        match &self.api {
            Some(api) => allow(api, user, rules.into_iter().collect()).await,
            None => Ok(()),
        }
    }

    /// The namespace that the test works in; `default` unless set.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The same cluster, working in this namespace.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// cluster.create(named::<k8s_openapi::api::core::v1::Namespace>("shop")).await?;
    /// cluster.in_namespace("shop").create(config_map("a")).await?;
    /// assert!(cluster.find::<ConfigMap>("a").await?.is_none(), "it is not in default");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { namespace: namespace.into(), ..self.clone() }
    }

    /// The same cluster with another timeout for waits, by the machine's clock; the default is 20 s. For slow clusters and
    /// busy machines.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use std::time::Duration;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// let cluster = TestCluster::start().timeout(Duration::from_secs(120));
    /// cluster.eventually::<k8s_openapi::api::core::v1::Node>("node-1").exists().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// The same cluster with another client.
    pub(crate) fn with_client(&self, client: Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// The embedded API, for what only its owner can do; `None` on an existing cluster.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// let api = windlass_testing::TestCluster::start().embedded().cloned().unwrap();
    /// api.store().compact(api.store().revision()); // who watches from before must list again
    /// # }
    /// ```
    pub fn embedded(&self) -> Option<&windlass_apiserver::Api> {
        self.api.as_ref()
    }

    /// Whether somebody deletes what has lost its owners: the controllers of the cluster, or those that the test is about. With
    /// the API alone, nobody does.
    pub(crate) fn has_garbage_collector(&self) -> bool {
        self.api.is_none() || self.running.is_some()
    }

    /// The faults that are injected into the API, and the audit record of writes.
    ///
    /// ```
    /// use windlass_testing::faults::{Act, Pattern, Which};
    /// use windlass_testing::{TestCluster, config_map};
    /// # #[tokio::main]
    /// # async fn main() {
    /// let cluster = TestCluster::start();
    /// cluster.faults().add(Pattern::writes().then(Which::Nth(2), Act::LoseResponse));
    /// assert!(cluster.create(config_map("a")).await.is_ok());
    /// assert!(cluster.create(config_map("b")).await.is_err());
    /// assert_eq!(cluster.faults().audit().total(), 2);
    /// # }
    /// ```
    ///
    /// # Panics
    /// On an existing cluster, which has none.
    pub fn faults(&self) -> &Faults {
        self.api
            .as_ref()
            .expect("faults can be injected only into a cluster that TestCluster::start made")
            .faults()
    }

    // === time ===

    /// The clock of everything in the cluster.
    pub fn clock(&self) -> &Clock {
        self.time.clock()
    }

    /// Advances the clock by `duration`, running everything that falls due on the way: an hour takes about a millisecond per
    /// moment at which something is due. On an existing cluster it takes an hour. Work that was started may still be running
    /// when it returns: wait for its outcome with [`TestCluster::eventually`].
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// let cluster = windlass_testing::TestCluster::start();
    /// cluster.advance(std::time::Duration::from_secs(3600)).await;
    /// assert_eq!(cluster.clock().now().to_string(), "2026-01-01T01:00:00Z");
    /// # }
    /// ```
    pub async fn advance(&self, duration: Duration) {
        self.time.advance(duration).await;
    }

    /// Awaits a future while the clock runs in real time, as [`Eventually`](crate::Eventually) does.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let clock = cluster.clock().clone();
    /// cluster.run_clock_while(clock.sleep(std::time::Duration::from_millis(5))).await; // would never end by itself
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_clock_while<F: Future>(&self, future: F) -> F::Output {
        self.time.run_clock_while(future).await
    }

    /// Sets the wall clock, forward or back, as an administrator or a time server would.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// let cluster = windlass_testing::TestCluster::start();
    /// cluster.set_wall_clock("2031-05-06T00:00:00Z".parse().unwrap());
    /// assert_eq!(cluster.clock().now().to_string(), "2031-05-06T00:00:00Z");
    /// # }
    /// ```
    ///
    /// # Panics
    /// When its clock is the machine's.
    pub fn set_wall_clock(&self, wall: Timestamp) {
        let driver = self.time.driver().expect("the clock of the machine cannot be set by a test");
        driver.set_wall(wall);
    }

    // === operators ===

    /// A manager on this cluster and its clock, as the user `operator`, who may do nothing until it is run. On an existing
    /// cluster it watches the test's namespace only. Its webhooks are served to the cluster, except to an existing one, which may be
    /// elsewhere.
    pub fn manager(&self) -> Manager {
        let manager = Manager::new(self.client_as(OPERATOR), self.clock().clone());
        match &self.api {
            Some(_) => manager.serve_webhooks(local_webhooks()),
            None => manager.namespace(&*self.namespace),
        }
    }

    /// Runs a controller, or whatever a function adds to the manager, until the handle stops or kills it, or is dropped.
    ///
    /// It may do exactly what the role allows that `windlass generate` writes for it ([`Manager::rules`]): an operator that does
    /// more than it declares is refused, as on a real cluster.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::{Controller, Manager, Plan};
    /// # use windlass_testing::TestCluster;
    /// # fn vaults() -> Controller<ConfigMap> { Controller::deciding(|_, _| Ok(Plan::new())) }
    /// # fn tenants() -> Controller<Secret> { Controller::deciding(|_, _| Ok(Plan::new())) }
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// let one = cluster.run(vaults());
    /// let both = cluster.run(|manager: Manager| manager.controller(vaults()).controller(tenants()));
    /// # one.stop().await?;
    /// # both.stop().await
    /// # }
    /// ```
    pub fn run(&self, operator: impl Operator) -> Running {
        self.run_manager(operator.on(self.manager()))
    }

    /// Runs a manager that you made yourself. Its rules are those of the user `operator`, from now on.
    pub fn run_manager(&self, manager: Manager) -> Running {
        self.operators.add(manager.inspector());
        let (cluster, rules, inspector) = (self.clone(), manager.rules(), manager.inspector());
        let allowed = async move { cluster.allow(OPERATOR, rules).await };
        Running::start(manager, allowed, inspector, self.time.clone(), self.timeout)
    }

    /// What its operators wait for, refuse and fail at, one line each: what a wait that failed says besides.
    pub(crate) fn trouble(&self) -> Vec<String> {
        self.operators.trouble()
    }

    // === kinds ===

    /// Installs these CRDs, and waits until they are established.
    ///
    /// ```
    /// # use windlass_testing::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let cluster = TestCluster::start();
    /// # use kube::{CustomResource, CustomResourceExt};
    /// #[derive(CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// #[kube(group = "example.dev", version = "v1", kind = "Site", namespaced)]
    /// struct SiteSpec { image: String }
    ///
    /// cluster.install([Site::crd()]).await?;
    /// cluster.create(Site::new("s", SiteSpec { image: "nginx".into() })).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the API refuses one, or does not serve it.
    pub async fn install(
        &self,
        kinds: impl IntoIterator<Item = CustomResourceDefinition>,
    ) -> anyhow::Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client());
        for kind in kinds {
            let name = kind.name_any();
            let params = PatchParams::apply("tester").force();
            definitions.patch(&name, &params, &Patch::Apply(&kind)).await?;
            self.eventually::<CustomResourceDefinition>(&name).has_condition("Established", true).await?;
        }
        Ok(())
    }
}

/// Stores a role and its binding, or adds to those of the user, as a part of the cluster does: faults and records do not mean it.
async fn allow(api: &windlass_apiserver::Api, user: &str, rules: Vec<PolicyRule>) -> anyhow::Result<()> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let client = Client::new(api.service(Identity::privileged("system:apiserver")), "default");
    let name = user.replace(' ', "-");
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let params = PostParams::default();
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    loop {
        let written = match roles.get_opt(&name).await? {
            None => {
                let rules = Some(rules.clone());
                let role = ClusterRole { metadata: metadata.clone(), rules, ..ClusterRole::default() };
                roles.create(&params, &role).await
            }
            Some(mut role) => {
                let known = role.rules.get_or_insert_default();
                let new: Vec<PolicyRule> =
                    rules.iter().filter(|rule| !known.contains(rule)).cloned().collect();
                known.extend(new);
                roles.replace(&name, &params, &role).await
            }
        };
        match written {
            // Another operator that was started at the same time came first.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            written => break drop(written?),
        }
    }
    let subject = Subject {
        api_group: Some(GROUP.to_owned()),
        kind: "User".to_owned(),
        name: user.to_owned(),
        namespace: None,
    };
    let role_ref = RoleRef { api_group: Some(GROUP.to_owned()), kind: "ClusterRole".to_owned(), name };
    let binding = ClusterRoleBinding { metadata, role_ref, subjects: Some(vec![subject]) };
    match Api::all(client).create(&params, &binding).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        made => Ok(made.map(drop)?),
    }
}

impl std::fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCluster")
            .field("namespace", &self.namespace)
            .field("now", &self.clock().now().to_string())
            .finish_non_exhaustive()
    }
}
