//! The sample at size: how long 10,000 vaults take from their creation to open, in process on the embedded API, how many
//! writes that costs, and what a restart costs when nothing is to be done.

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, PostParams};
use std::time::Duration;
use windlass::Manager;
use windlass_clock::Clock;
use windlass_harness::Usage;
use windlass_harness::bench::{Bench, Better};
use windlass_testing::TestCluster;
use windlass_testing::faulty_client::FaultyClient;
use windlass_tests::sample::{self, Vault, VaultSpec};

const VAULTS: usize = 10_000;
const SUBJECT: &str = "windlass";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("converge", &[SUBJECT]);
    let cluster = TestCluster::start_in_real_time();
    cluster.install(sample::crds()).await?;
    let vaults: Api<Vault> = Api::namespaced(cluster.client(), cluster.namespace());
    let clock = Clock::real();

    bench.progress(&format!("creating {VAULTS} vaults"));
    let made = stream::iter(0..VAULTS).map(|number| {
        let vaults = vaults.clone();
        let vault = Vault::new(&format!("vault-{number:05}"), VaultSpec { shards: 1, region: None });
        async move { vaults.create(&PostParams::default(), &vault).await.map(drop) }
    });
    let (made, took) = bench.timed(made.buffer_unordered(16).try_collect::<Vec<()>>()).await;
    made?;
    bench.record(SUBJECT, "create 10,000 resources", took.as_secs_f64(), "s", Better::Lower);

    let counting = FaultyClient::none();
    bench.progress("the operator starts");
    let operator = cluster.run_manager(manager(&cluster, &counting));
    let store = cluster.embedded().context("embedded")?.clone();
    let (open, took) = bench
        .timed(async {
            loop {
                let open = count_open(&store)?;
                if open == VAULTS {
                    return anyhow::Ok(());
                }
                anyhow::ensure!(!operator.has_ended(), "the operator ended");
                bench.progress(&format!("{open} open"));
                clock.sleep(Duration::from_secs(2)).await;
            }
        })
        .await;
    open?;
    bench.record(SUBJECT, "10,000 resources converged", took.as_secs_f64(), "s", Better::Lower);
    clock.sleep(Duration::from_millis(500)).await;
    let writes = counting.writes().len();
    bench.record(SUBJECT, "writes per resource", writes as f64 / VAULTS as f64, "", Better::Lower);
    if let Some(usage) = Usage::of(std::process::id()) {
        let megabytes = usage.peak_memory as f64 / 1e6;
        bench.record(SUBJECT, "peak memory, API and operator", megabytes, "MB", Better::Lower);
    }
    operator.kill().await;

    bench.progress("a restart with nothing to do");
    let again = FaultyClient::none();
    let operator = cluster.run_manager(manager(&cluster, &again));
    clock.sleep(Duration::from_secs(10)).await;
    operator.kill().await;
    bench.record(SUBJECT, "writes after a restart", again.writes().len() as f64, "", Better::Lower);
    Ok(bench.finish()?)
}

fn manager(cluster: &TestCluster, faulty_client: &FaultyClient) -> Manager {
    let client = faulty_client.on(cluster.client_as("operator"));
    sample::operator(Manager::new(client, Clock::real()).namespace(cluster.namespace()))
}

/// How many vaults are open: looked up in the store, so that counting does not compete with the operator for the API.
fn count_open(api: &windlass_apiserver::Api) -> anyhow::Result<usize> {
    let query = windlass_apiserver::store::ListQuery::all("sample.windlass.dev/vaults");
    let page = api.store().list(&query).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(page.items.iter().filter(|entry| is_open(&entry.json())).count())
}

/// Looked for in the bytes: parsing ten thousand objects every other second would be measured too.
fn is_open(json: &[u8]) -> bool {
    const OPEN: &[u8] = b"\"open\":true";
    json.windows(OPEN.len()).any(|window| window == OPEN)
}
