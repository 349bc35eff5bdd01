//! A whole cluster: `windlass cluster up` against etcd, kube-apiserver, controller manager and scheduler with their request
//! throttles raised (`crates/harness/src/reference/command_lines.rs` has the flags), our simulated nodes joined to both.
//!
//! Both sync every write to disk. The time from nothing to a running pod, Deployments of many pods made and deleted, and
//! the memory of it all. What takes seconds is done several times, in turns, and the medians count. `-- --pods 1000`
//! measures one size alone.

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_cluster::is_node_ready;
use windlass_harness::bench::{Bench, Better};
use windlass_testing::TestCluster;
use windlass_tests::load::{Server, windlass_program};

const WINDLASS: &str = "windlass";
const REFERENCE: &str = "reference";

/// The number of nodes: each takes 110 pods, as a kubelet does by default, and together they take the largest number of pods.
const NODES: usize = 100;
const SIZES: [usize; 2] = [1_000, 10_000];
/// The number of rounds, for smaller numbers of pods.
const ROUNDS: usize = 5;
const MANY: usize = 5_000;
const REST: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1_200);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("cluster", &[WINDLASS, REFERENCE]);
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let at = arguments.iter().position(|argument| argument == "--pods");
    let sizes: Vec<usize> = match at {
        Some(at) => vec![arguments.get(at + 1).context("--pods needs a number")?.parse().context("--pods")?],
        None => SIZES.to_vec(),
    };
    bench.progress("building the windlass command");
    let program = windlass_program()?;
    in_tests(&mut bench).await?;
    let mut subjects = vec![WINDLASS];
    match windlass_harness::reference::programs() {
        Ok(_) => subjects.push(REFERENCE),
        Err(error) => bench.note(&error.to_string()),
    }
    for _ in 0..ROUNDS {
        for subject in &subjects {
            first(&mut bench, subject, &program).await?;
        }
    }
    for pods in sizes {
        for _ in 0..if pods < MANY { ROUNDS } else { 1 } {
            for subject in &subjects {
                many(&mut bench, subject, &program, pods)
                    .await
                    .with_context(|| format!("{pods} pods on {subject}"))?;
            }
        }
    }
    Ok(bench.finish()?)
}

/// From [`TestCluster::start`] to a running pod of a Deployment: the median of several.
async fn in_tests(bench: &mut Bench) -> anyhow::Result<()> {
    bench.progress("a cluster in a test");
    let mut all = Vec::new();
    for _ in 0..21 {
        let (outcome, took) = bench
            .timed(async {
                let cluster = TestCluster::start();
                cluster.create(deployment("first", 1)?).await?;
                let client = cluster.client();
                cluster.run_clock_while(ready(&client, "first", 1)).await
            })
            .await;
        outcome?;
        all.push(took);
    }
    all.sort();
    bench.record(
        WINDLASS,
        "TestCluster::start to a ready pod, p50",
        all[10].as_secs_f64() * 1e3,
        "ms",
        Better::Lower,
    );
    Ok(())
}

async fn start(subject: &str, program: &Path, nodes: usize) -> anyhow::Result<Server> {
    match subject {
        WINDLASS => Server::windlass_cluster(program, nodes).await,
        _ => Server::reference_cluster(program, nodes).await,
    }
}

/// From nothing to a pod, and what that takes at rest.
async fn first(bench: &mut Bench, subject: &str, program: &Path) -> anyhow::Result<()> {
    bench.progress(&format!("{subject}: from nothing to a pod"));
    let (server, took) = bench
        .timed(async {
            let server = start(subject, program, 1).await?;
            let client = Client::try_from(server.config().clone())?;
            make(&client, deployment("first", 1)?).await?;
            ready(&client, "first", 1).await?;
            anyhow::Ok(server)
        })
        .await;
    let server = server?;
    bench.record(subject, "up to the first ready pod", took.as_secs_f64() * 1e3, "ms", Better::Lower);
    Clock::real().sleep(REST).await;
    let memory = server.usage()?.memory as f64 / 1e6;
    bench.record(subject, "memory at rest, one pod", memory, "MB", Better::Lower);
    Ok(())
}

async fn many(bench: &mut Bench, subject: &str, program: &Path, pods: usize) -> anyhow::Result<()> {
    let server = start(subject, program, NODES).await?;
    let client = Client::try_from(server.config().clone())?;
    let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(client.clone());
    until("the nodes are there", async || {
        let all = nodes.list(&ListParams::default()).await?.items;
        Ok(all.iter().filter(|node| is_node_ready(node)).count() == NODES)
    })
    .await?;
    bench.progress(&format!("{subject}: {pods} pods made"));
    let (made, took) = bench
        .timed(async {
            make(&client, deployment("many", pods)?).await?;
            ready(&client, "many", pods).await
        })
        .await;
    made?;
    let rate = pods as f64 / took.as_secs_f64();
    let usage = server.usage()?;
    let rows = [
        ("created to all ready", took.as_secs_f64(), "s", Better::Lower),
        ("per second", rate, "/s", Better::Higher),
        ("processor time of the cluster", usage.cpu.as_secs_f64(), "s", Better::Lower),
        ("memory with them", usage.memory as f64 / 1e6, "MB", Better::Lower),
    ];
    for (what, value, unit, better) in rows {
        bench.record(subject, &format!("{pods} pods: {what}"), value, unit, better);
    }
    bench.progress(&format!("{subject}: {pods} pods deleted"));
    let (gone, took) = bench
        .timed(async {
            let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
            deployments.delete("many", &DeleteParams::background()).await?;
            all_gone(&client).await
        })
        .await;
    gone?;
    let what = format!("{pods} pods: deleted to all gone");
    bench.record(subject, &what, took.as_secs_f64(), "s", Better::Lower);
    Ok(())
}

fn deployment(name: &str, replicas: usize) -> anyhow::Result<Deployment> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "main", "image": "example.com/app:1", "resources": { "requests": { "cpu": "1m", "memory": "1Mi" } } }],
                },
            },
        },
    }))?)
}

async fn make(client: &Client, deployment: Deployment) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    // A service account must be there before pods are; whoever makes the first Deployment of a cluster may be faster.
    deployments.create(&PostParams::default(), &deployment).await?;
    Ok(())
}

async fn ready(client: &Client, name: &str, pods: usize) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let wanted = i32::try_from(pods)?;
    until("the pods are ready", async || {
        let status = deployments.get(name).await?.status.unwrap_or_default();
        Ok(status.ready_replicas == Some(wanted) && status.updated_replicas == Some(wanted))
    })
    .await
}

async fn all_gone(client: &Client) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    until("the pods are gone", async || {
        Ok(pods.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty())
    })
    .await
}

/// Asks again and again, as seldom as it takes not to weigh on what is measured.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let clock = Clock::real();
    let deadline = clock.moment() + PATIENCE;
    while !holds().await? {
        if clock.moment() > deadline {
            bail!("not after {PATIENCE:?}: {what}");
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
