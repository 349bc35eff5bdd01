//! Measures what the tests of a small operator wait for, in the profile that it is built with: an hour on the driven clock, and
//! crash campaigns. `make bench-sdk` runs it in debug, as `cargo test` builds. One line per figure: its name, value and unit,
//! separated by tabs.

use anyhow::Context;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use std::time::Duration;
use windlass::{Controller, Manager, Observed, Plan, Reason, Refusal};
use windlass_clock::Clock;
use windlass_harness::process::Usage;
use windlass_testing::campaign::Campaign;
use windlass_testing::{TestCluster, config_map, secret};

const HOURS: u32 = 5;

/// Two secrets for each configuration map.
fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
    let why = || Reason::new("Pairs", "each map has two secrets");
    let named = |number: u8| secret(format!("{}-{number}", map.name_any()));
    Ok(Plan::new().apply(named(1), why()).apply(named(2), why()))
}

fn operator(manager: Manager) -> Manager {
    manager.namespace("default").controller(Controller::deciding(decide).owns::<Secret>())
}

async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    for name in ["a", "b"] {
        cluster.create(config_map(name)).await?;
        cluster.eventually::<Secret>(&format!("{name}-2")).exists().await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    let before = processor_time()?;
    cluster.advance(HOURS * Duration::from_secs(3600)).await;
    let hour = (processor_time()? - before) / HOURS;
    println!("advance(1h), processor time\t{}\ts", hour.as_secs_f64());
    drop(cluster);
    let whole = Campaign::new(operator, life);
    report("on whole clusters", async { Ok(whole.run().await?.lives) }).await?;
    let api_only = Campaign::new(operator, life).api_only();
    report("api_only", async { Ok(api_only.run().await?.lives) }).await
}

/// Runs a campaign that answers its number of lives.
async fn report(name: &str, campaign: impl Future<Output = anyhow::Result<usize>>) -> anyhow::Result<()> {
    let (clock, before) = (Clock::real(), processor_time()?);
    let begun = clock.moment();
    let lives = u32::try_from(campaign.await?)?;
    let (took, used) = (clock.moment() - begun, processor_time()? - before);
    println!("campaign, {name}, lives per second\t{}\t/s", f64::from(lives) / took.as_secs_f64());
    println!(
        "campaign, {name}, 200 lives, processor time\t{}\ts",
        used.as_secs_f64() * 200.0 / f64::from(lives)
    );
    Ok(())
}

fn processor_time() -> anyhow::Result<Duration> {
    Ok(Usage::of(std::process::id()).context("the kernel does not say what this process used")?.cpu)
}
