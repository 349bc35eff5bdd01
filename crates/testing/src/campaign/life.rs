//! One life: the operator, which may be killed and started again, and the user.

use super::collection::Collection;
use super::state::State;
use super::{Campaign, Disturbance, Fault};
use crate::TestCluster;
use crate::difference;
use crate::faulty_client::FaultyClient;
use anyhow::{Context, bail, ensure};
use k8s_openapi::api::rbac::v1::PolicyRule;
use std::collections::BTreeSet;
use std::time::Duration;
use windlass::Manager;
use windlass_clock::Clock;

/// How a life ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The state at the end.
    pub(super) state: State,
    /// The operator's writes, before and after a crash, as `METHOD path`.
    pub(super) writes: Vec<String>,
    /// The resources that it watched.
    pub(super) watched: Vec<String>,
    /// Whether the fault did something.
    pub(super) took_effect: bool,
}

/// The user names of the operator: before a crash, and after it.
pub(super) const OPERATORS: [&str; 2] = ["operator", "operator again"];

/// How long the operator must write nothing to count as done; longer where there is no expected state to wait for.
const SILENCE: Duration = Duration::from_millis(80);
const LONG_SILENCE: Duration = Duration::from_millis(300);

impl<O, L, F> Campaign<O, L>
where
    O: Fn(Manager) -> Manager + Send + Sync + 'static,
    L: Fn(TestCluster) -> F + Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    /// Runs the life once. With `expected`, waits for that state instead of only for silence.
    pub(super) async fn live(
        &self,
        disturbance: Option<&Disturbance>,
        expected: Option<&State>,
    ) -> anyhow::Result<Ended> {
        let cluster = (self.open_cluster)().await?;
        cluster.install(self.kinds.clone()).await?;
        let faulty_client =
            disturbance.map_or_else(FaultyClient::none, |disturbance| disturbance.faulty_client(&cluster));
        let (after_a_crash, of_the_user) = (FaultyClient::none(), FaultyClient::none());
        let operator = async {
            tokio::select! {
                ended = self.operate(&cluster, OPERATORS[0], &faulty_client) => return ended,
                () = faulty_client.killed() => {}
            }
            self.operate(&cluster, OPERATORS[1], &after_a_crash).await
        };
        let past = async {
            if let Some(disturbance) = disturbance {
                disturbance.run_beside(&cluster, &faulty_client).await;
            }
            std::future::pending().await
        };
        let all = [&faulty_client, &after_a_crash, &of_the_user];
        let user = async {
            let own = cluster.with_client(of_the_user.on(cluster.client())).timeout(self.timeout);
            (self.life)(own).await?;
            let past = disturbance.filter(|one| one.fault == Fault::PastAfterCrash);
            if let Some(disturbance) = past {
                // Until the past is over, the operator may change what is as expected already.
                silence(&cluster, &all, SILENCE).await;
                disturbance.until_over(&cluster, &faulty_client).await;
            }
            let may_return = disturbance.is_some_and(|one| one.fault.shows_the_past());
            self.end(&cluster, &all, expected, may_return).await
        };
        let state = tokio::select! {
            // First, so that the fault is in place before any request.
            biased;
            never = past => never,
            ended = operator => {
                ended.context("the operator ended by itself")?;
                bail!("the operator ended by itself")
            }
            state = user => state?,
        };
        let watched = faulty_client.watches();
        let watched: BTreeSet<String> = watched
            .iter()
            .filter_map(|path| Some(Collection::of(&format!("GET {path}"))?.resource()))
            .collect();
        Ok(Ended {
            took_effect: disturbance.is_some_and(|disturbance| disturbance.took_effect(&faulty_client)),
            state,
            watched: watched.into_iter().collect(),
            writes: [faulty_client.writes(), after_a_crash.writes()].concat(),
        })
    }

    async fn operate(
        &self,
        cluster: &TestCluster,
        name: &str,
        faulty_client: &FaultyClient,
    ) -> anyhow::Result<()> {
        let client = faulty_client.on(cluster.client_as(name));
        let manager = Manager::new(client, cluster.clock().clone());
        let manager = match cluster.embedded() {
            Some(_) => manager,
            None => manager.namespace(cluster.namespace()),
        };
        let manager = (self.operator)(manager);
        let rules = if self.cluster_admin { every_rule() } else { manager.rules() };
        // Both, whether there is a crash or not: roles may be among what is compared.
        for operator in OPERATORS {
            cluster.allow(operator, rules.clone()).await?;
        }
        Ok(manager.run_until(std::future::pending()).await?)
    }

    /// Waits until the operator is done, and reads the state. One that was shown the past may act on it later, and then has
    /// to find the way back in time.
    async fn end(
        &self,
        cluster: &TestCluster,
        writers: &[&FaultyClient],
        expected: Option<&State>,
        may_return: bool,
    ) -> anyhow::Result<State> {
        let look = || async {
            let collections: BTreeSet<Collection> = writers
                .iter()
                .flat_map(|writer| writer.writes())
                .filter_map(|write| Collection::of(&write))
                .collect();
            let collections =
                collections.into_iter().chain(expected.into_iter().flat_map(State::collections)).collect();
            State::observe(cluster, &collections, &self.ignored).await
        };
        let Some(expected) = expected else {
            silence(cluster, writers, LONG_SILENCE).await;
            let mut state = look().await?;
            // The cluster's controllers may still be at it.
            loop {
                silence(cluster, writers, LONG_SILENCE).await;
                let again = look().await?;
                if again == state {
                    return Ok(state);
                }
                state = again;
            }
        };
        let deadline = Clock::real().moment() + self.timeout;
        loop {
            let what = "the state is that of the undisturbed life";
            let as_expected = cluster.until_within(self.timeout, what, look, |state| state == expected);
            if let Err(error) = as_expected.await {
                let differences = difference::between(&expected.to_json(), &look().await?.to_json());
                let why = error.to_string().lines().next().unwrap_or_default().to_owned();
                bail!("{why}, which is what it should be like:\n  {}", differences.join("\n  "));
            }
            silence(cluster, writers, SILENCE).await;
            let state = look().await?;
            if state == *expected {
                return Ok(state);
            }
            let differences = difference::between(&expected.to_json(), &state.to_json());
            ensure!(
                may_return && Clock::real().moment() < deadline,
                "it did not stay that way:\n  {}",
                differences.join("\n  ")
            );
        }
    }
}

async fn silence(cluster: &TestCluster, writers: &[&FaultyClient], duration: Duration) {
    let count = || writers.iter().map(|writer| writer.writes().len()).sum::<usize>();
    loop {
        let before = count();
        cluster.run_clock_while(Clock::real().sleep(duration)).await;
        if count() == before {
            return;
        }
    }
}

/// Whoever has it may do everything.
fn every_rule() -> Vec<PolicyRule> {
    let all = || vec!["*".to_owned()];
    vec![PolicyRule {
        api_groups: Some(all()),
        resources: Some(all()),
        verbs: all(),
        ..PolicyRule::default()
    }]
}
