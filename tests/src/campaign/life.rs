//! One life of the sample: it grows, changes and loses a member, with an operator that may be killed and started again.

use super::{Orphans, State, until};
use crate::grounds::operator_client;
use crate::sabotage::Sabotage;
use crate::sample::{self, Tenant, TenantSpec, Vault, VaultSpec};
use anyhow::Context;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use std::time::Duration;
use windlass::Manager;
use windlass_clock::Clock;
use windlass_harness::Target;

/// How a life ended.
#[derive(Debug)]
pub struct Ended {
    /// What was there at the end.
    pub state: State,
    /// The operator's writes, over all its incarnations, as `METHOD path`.
    pub writes: Vec<String>,
}

/// The names by which the embedded API knows the operator: before a crash, and after it.
pub const OPERATORS: [&str; 2] = ["operator", "operator again"];

/// How long the operator must be silent for its work to count as done.
const SILENCE: Duration = Duration::from_millis(150);

/// Lives once. With `expected`, waits for that state instead of for silence alone.
///
/// # Errors
/// When the world does not become what it should.
pub async fn live(
    target: &Target,
    namespace: &str,
    sabotage: Sabotage,
    expected: Option<&State>,
    orphans: Orphans,
) -> anyhow::Result<Ended> {
    let after_a_crash = Sabotage::none();
    let operator = async {
        let first = run_operator(target, namespace, OPERATORS[0], &sabotage);
        tokio::select! {
            ended = first => return ended,
            () = sabotage.killed() => {}
        }
        run_operator(target, namespace, OPERATORS[1], &after_a_crash).await
    };
    let operators = [&sabotage, &after_a_crash];
    let user = user(target, namespace, &operators, expected, orphans);
    let state = tokio::select! {
        ended = operator => {
            ended?;
            anyhow::bail!("the operator ended by itself")
        }
        state = user => state?,
    };
    let writes = [sabotage.writes(), after_a_crash.writes()].concat();
    Ok(Ended { state, writes })
}

/// Runs the operator until it is dropped.
///
/// # Errors
/// When it ends by itself.
pub async fn run_operator(
    target: &Target,
    namespace: &str,
    name: &str,
    sabotage: &Sabotage,
) -> anyhow::Result<()> {
    let manager = Manager::new(operator_client(target, name, sabotage), Clock::real()).namespace(namespace);
    Ok(sample::operator(manager).run_until(std::future::pending()).await?)
}

/// What the user does, and what they wait for.
async fn user(
    target: &Target,
    namespace: &str,
    operators: &[&Sabotage],
    expected: Option<&State>,
    orphans: Orphans,
) -> anyhow::Result<State> {
    let client = target.client();
    let vaults: Api<Vault> = Api::namespaced(client.clone(), namespace);
    let tenants: Api<Tenant> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);

    // It grows: the tenants are there before their vault.
    for name in ["stayer", "leaver"] {
        let tenant = Tenant::new(name, TenantSpec { vault: "v".into(), quota: 7 });
        tenants.create(&PostParams::default(), &tenant).await?;
    }
    let vault = Vault::new("v", VaultSpec { shards: 3, region: None });
    vaults.create(&PostParams::default(), &vault).await?;
    let admitted = |tenant: Tenant| tenant.status.is_some_and(|status| status.admitted_to.is_some());
    for name in ["stayer", "leaver"] {
        until(&format!("tenant {name} is admitted"), || async { Ok(admitted(tenants.get(name).await?)) })
            .await?;
    }
    let password = secrets.get("v-password").await?.data.context("a password")?;

    // It changes and loses a member.
    let change = serde_json::json!({"spec": {"shards": 2, "region": "north"}});
    vaults.patch("v", &PatchParams::default(), &Patch::Merge(change)).await?;
    tenants.delete("leaver", &DeleteParams::default()).await?;
    until("the leaver is gone", || async { Ok(tenants.get_opt("leaver").await?.is_none()) }).await?;
    until("the third shard is pruned", || async { Ok(maps.get_opt("v-shard-2").await?.is_none()) }).await?;
    until("the region reached the shards", || async {
        let data = maps.get("v-shard-1").await?.data.unwrap_or_default();
        Ok(data.get("region").is_some_and(|region| region == "north"))
    })
    .await?;
    if let Some(expected) = expected {
        let reached = until("the state is that of the undisturbed life", || async {
            Ok(State::observe(&client, namespace, orphans).await? == *expected)
        });
        if let Err(error) = reached.await {
            let state = State::observe(&client, namespace, orphans).await?;
            let difference = crate::compare::first_difference(&state.0, &expected.0, "");
            return Err(
                error.context(format!("first difference, this life against the undisturbed: {difference}"))
            );
        }
    }
    wait_for_silence(operators).await;
    anyhow::ensure!(
        secrets.get("v-password").await?.data.context("a password")? == password,
        "another password"
    );
    let state = State::observe(&client, namespace, orphans).await?;
    if let Some(expected) = expected {
        let difference = crate::compare::first_difference(&state.0, &expected.0, "");
        anyhow::ensure!(state == *expected, "it did not stay that way: {difference}");
    }
    Ok(state)
}

async fn wait_for_silence(operators: &[&Sabotage]) {
    let clock = Clock::real();
    let count = || operators.iter().map(|operator| operator.writes().len()).sum::<usize>();
    loop {
        let before = count();
        clock.sleep(SILENCE).await;
        if count() == before {
            return;
        }
    }
}
