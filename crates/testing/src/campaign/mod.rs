//! The crash campaign: an operator lives a small life, undisturbed and then with one fault at each point of it, and must
//! end in the same state each time.
//!
//! A life is what a user does: create this, wait for that, change it, delete it. The points are the operator's writes: a
//! fault comes before, at or after each of them in turn. The state that is compared is every object of every resource that
//! the operator or the user wrote to, without identities, versions and times. Each life has a whole cluster of its own, with
//! the controllers, a scheduler and a simulated node; [`Campaign::api_only`] leaves those out.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use windlass::{Controller, Manager, Observed, Plan, Reasoned, Refusal};
//! use windlass_testing::{campaign, config_map, secret, TestCluster};
//!
//! #[derive(Debug)]
//! enum Why { MirrorsTheMap }
//! impl Reasoned for Why {}
//!
//! fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
//!     let name = map.metadata.name.clone().unwrap_or_default();
//!     Ok(Plan::new().apply(secret(name), Why::MirrorsTheMap))
//! }
//!
//! fn operator(manager: Manager) -> Manager {
//!     manager.controller(Controller::deciding(decide).owns::<Secret>())
//! }
//!
//! async fn life(cluster: TestCluster) -> anyhow::Result<()> {
//!     cluster.create(config_map("a")).await?;
//!     cluster.eventually::<Secret>("a").exists().await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! let report = campaign::every_fault([], operator, life).await?;
//! assert!(report.writes >= 1 && report.lives > report.writes);
//! # Ok(())
//! # }
//! ```
//!
//! The operator and the user run once without faults, and then once per fault and write. Since the collections to compare
//! are those that somebody wrote to (`collection.rs`), the campaign needs to know nothing of the operator.

mod collection;
mod fault;
mod life;
mod state;

use fault::Disturbance;
pub use fault::Fault;

use crate::TestCluster;
use crate::cluster::DEFAULT_TIMEOUT;
use anyhow::{Context, ensure};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use life::Ended;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windlass::Manager;

/// Injects every fault at every write of the operator, on fresh embedded clusters with controllers and a node. `kinds` are
/// installed before the operator starts.
///
/// # Errors
/// When a life does not end as the undisturbed one did; the error says at which fault, at which write, and what differs.
pub async fn every_fault<O, L, F>(
    kinds: impl IntoIterator<Item = CustomResourceDefinition>,
    operator: O,
    life: L,
) -> anyhow::Result<Report>
where
    O: Fn(Manager) -> Manager + Send + Sync + 'static,
    L: Fn(TestCluster) -> F + Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    Campaign::new(operator, life).kinds(kinds).run().await
}

type OpenCluster = Arc<dyn Fn() -> BoxFuture<'static, anyhow::Result<TestCluster>> + Send + Sync>;

/// A campaign with options: which faults, on which clusters, and what they may cost.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass::{Controller, Manager, Observed, Plan, Reason, Refusal};
/// use windlass_testing::campaign::{Campaign, Fault};
/// use windlass_testing::{TestCluster, config_map, secret};
///
/// fn decide(_: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
///     Ok(Plan::new().apply(secret("made"), Reason::new("Needed", "it is needed")))
/// }
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let operator = |manager: Manager| {
///     manager.namespace("default").controller(Controller::deciding(decide).owns::<Secret>())
/// };
/// let life = |cluster: TestCluster| async move { cluster.create(config_map("a")).await.map(drop) };
/// let campaign = Campaign::new(operator, life).faults([Fault::EventsLate]).most_extra_changes(0);
/// println!("{}", campaign.run().await?);
/// # Ok(())
/// # }
/// ```
#[must_use = "a campaign does nothing until it is run"]
pub struct Campaign<O, L> {
    operator: O,
    life: L,
    kinds: Vec<CustomResourceDefinition>,
    faults: Vec<Fault>,
    open_cluster: OpenCluster,
    at_once: usize,
    timeout: Duration,
    extra_changes: Option<usize>,
    cluster_admin: bool,
    ignored: Ignored,
    step: usize,
}

/// Takes away from an object what is not compared.
type Ignored = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What a campaign found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many writes the operator makes in an undisturbed life: the points at which faults came.
    pub writes: usize,
    /// The number of lives.
    pub lives: usize,
    /// In how many of them the fault did something: one at a write that did not come, or at a moment at which there was no
    /// watch to disturb, does nothing.
    pub effective: usize,
    /// How many more writes a disturbed life had, and how often.
    pub extra: BTreeMap<isize, usize>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { writes, lives, effective, extra } = self;
        write!(
            f,
            "{writes} writes, {lives} lives, {effective} faults took effect, the same end each time; extra writes (how \
             many: how often): {extra:?}"
        )
    }
}

impl<O, L, F> Campaign<O, L>
where
    O: Fn(Manager) -> Manager + Send + Sync + 'static,
    L: Fn(TestCluster) -> F + Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    /// The operator, as what it adds to a manager, and the life that is lived with it.
    pub fn new(operator: O, life: L) -> Self {
        Self {
            operator,
            life,
            kinds: Vec::new(),
            faults: Fault::ALL.to_vec(),
            open_cluster: Arc::new(|| Box::pin(async { Ok(TestCluster::start()) })),
            at_once: 6,
            timeout: DEFAULT_TIMEOUT,
            extra_changes: None,
            cluster_admin: false,
            ignored: Arc::new(|_| ()),
            step: 1,
        }
    }

    /// Installs these CRDs before the operator starts.
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// Only these faults, instead of all.
    pub fn faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.faults = faults.into_iter().collect();
        self
    }

    /// On the API alone, without controllers, scheduler and node: faster, for an operator whose life does not need pods to run
    /// or owners to take their dependents along.
    pub fn api_only(mut self) -> Self {
        self.open_cluster = Arc::new(|| Box::pin(async { Ok(TestCluster::api_only()) }));
        self
    }

    /// On clusters that this function opens, one per life, instead of fresh embedded ones. Only faults that the client injects
    /// work there: see [`Fault::is_by_client`].
    pub fn on<W, Fut>(mut self, open_cluster: W) -> Self
    where
        W: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<TestCluster>> + Send + 'static,
    {
        self.open_cluster = Arc::new(move || Box::pin(open_cluster()));
        self
    }

    /// Lets the operator do everything, instead of what its own role allows ([`Manager::rules`]).
    pub fn cluster_admin(mut self) -> Self {
        self.cluster_admin = true;
        self
    }

    /// What this function takes away from objects is not compared: what may rightly end in several ways, such as who leads.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::{Controller, Manager, Plan};
    /// # use windlass_testing::campaign::Campaign;
    /// # use windlass_testing::{TestCluster, config_map};
    /// # let operator = |manager: Manager| manager.controller(Controller::deciding(|_: &ConfigMap, _| Ok(Plan::new())));
    /// # let life = |cluster: TestCluster| async move { cluster.create(config_map("a")).await.map(drop) };
    /// let campaign = Campaign::new(operator, life).ignoring(|object| drop(object["status"]["leader"].take()));
    /// # drop(campaign);
    /// ```
    pub fn ignoring(mut self, ignored: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.ignored = Arc::new(ignored);
        self
    }

    /// Only at each such write, such as every tenth: for an operator with many writes, whose whole campaign is run now and then.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::{Controller, Manager, Plan, Reason};
    /// # use windlass_testing::campaign::{Campaign, Fault};
    /// # use windlass_testing::{TestCluster, config_map, secret};
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let decide = |_: &ConfigMap, _: &_| {
    /// #     let why = || Reason::new("Needed", "it is needed");
    /// #     Ok(Plan::new().apply(secret("a"), why()).apply(secret("b"), why()).apply(secret("c"), why()))
    /// # };
    /// # let operator = move |manager: Manager| manager.namespace("default").controller(Controller::deciding(decide).owns::<Secret>());
    /// # let life = |cluster: TestCluster| async move {
    /// #     cluster.create(config_map("m")).await?;
    /// #     cluster.eventually::<Secret>("c").exists().await.map(drop)
    /// # };
    /// let report = Campaign::new(operator, life).api_only().faults([Fault::WatchesDropped]).every_nth_write(2).run().await?;
    /// assert_eq!(report.lives, 1 + report.writes.div_ceil(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn every_nth_write(mut self, step: usize) -> Self {
        self.step = step.max(1);
        self
    }

    /// The most lives at once.
    pub fn at_once(mut self, lives: usize) -> Self {
        self.at_once = lives.max(1);
        self
    }

    /// How long, by the machine's clock, the state may take to become that of the undisturbed life, and each wait in a life may
    /// take; 20 s by default.
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The most changes that a fault may cause beyond those of the undisturbed life. Status updates do not count: how many of
    /// them are needed is a matter of timing.
    pub fn most_extra_changes(mut self, most: usize) -> Self {
        self.extra_changes = Some(most);
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// When a life does not end as the undisturbed one did, or cost too much.
    pub async fn run(self) -> anyhow::Result<Report> {
        let undisturbed = self.live(None, None).await.context("the undisturbed life")?;
        let writes = undisturbed.writes.len();
        ensure!(
            writes > 0,
            "the operator writes nothing in this life: there is no point at which to disturb it"
        );
        let at_once = self.at_once;
        let watched = Arc::new(undisturbed.watched.clone());
        let (this, expected) = (Arc::new(self), Arc::new(undisturbed));
        let mut lives = Vec::new();
        for fault in &this.faults {
            let points = if *fault == Fault::KindLags { watched.len() } else { writes };
            let step = if *fault == Fault::KindLags { 1 } else { this.step };
            for number in (1..=points).step_by(step) {
                let disturbance = Disturbance::new(*fault, number, watched.clone());
                lives.push(this.clone().disturbed(disturbance, expected.clone()).boxed());
            }
        }
        let ended: Vec<(isize, bool)> = stream::iter(lives).buffer_unordered(at_once).try_collect().await?;
        let effective = ended.iter().filter(|(_, took_effect)| *took_effect).count();
        let mut report = Report { writes, lives: ended.len() + 1, effective, extra: BTreeMap::new() };
        for (more, _) in ended {
            *report.extra.entry(more).or_default() += 1;
        }
        Ok(report)
    }

    /// One life with one fault: how many more writes it had than the undisturbed one, and whether the fault did something.
    async fn disturbed(
        self: Arc<Self>,
        disturbance: Disturbance,
        expected: Arc<Ended>,
    ) -> anyhow::Result<(isize, bool)> {
        let at = || {
            let Disturbance { fault, number, .. } = &disturbance;
            if let Some(resource) = disturbance.lagging() {
                return format!("{fault}: {resource}");
            }
            let (writes, write) = (expected.writes.len(), &expected.writes[number - 1]);
            format!("{fault} at write {number} of {writes} ({write})")
        };
        let ended = self.live(Some(&disturbance), Some(&expected.state)).await.with_context(at)?;
        Ok((self.judge(&expected, &ended).with_context(at)?, ended.took_effect))
    }

    /// How many more writes it had than it should.
    fn judge(&self, undisturbed: &Ended, ended: &Ended) -> anyhow::Result<isize> {
        let more = |count: fn(&[String]) -> usize| {
            count(&ended.writes).cast_signed() - count(&undisturbed.writes).cast_signed()
        };
        if let Some(most) = self.extra_changes {
            let changes = more(changes);
            let cost = format!(
                "{changes} more changes:\n  undisturbed: {:?}\n  disturbed: {:?}",
                undisturbed.writes, ended.writes
            );
            ensure!(changes <= most.cast_signed(), cost);
        }
        Ok(more(<[String]>::len))
    }
}

fn changes(writes: &[String]) -> usize {
    writes.iter().filter(|write| !write.ends_with("/status")).count()
}

impl<O, L> std::fmt::Debug for Campaign<O, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Campaign").field("faults", &self.faults).finish_non_exhaustive()
    }
}
