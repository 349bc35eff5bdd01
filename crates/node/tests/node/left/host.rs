//! The process that is killed: a cluster with a node, which does what it is told line by line.

use super::super::fixture::{is_ready, status};
use super::{LIMIT, SLEEPS};
use anyhow::{bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use windlass_apiserver::{Config, Identity};
use windlass_clock::Clock;
use windlass_cluster::{Cluster, Settings};
use windlass_node::Program;
use windlass_node::images::Catalogue;
use windlass_node::{EvictionConfig, Kubelet, Options};

/// Is one, until it is told to leave or killed.
pub(crate) fn host(arguments: &[String]) -> ExitCode {
    let Some(folder) = arguments.first() else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let ended = runtime.block_on(serve(Path::new(folder)));
        // A thread may wait for a line that never comes.
        runtime.shutdown_background();
        ended
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(folder: &Path) -> anyhow::Result<()> {
    let config = Config { data_dir: Some(folder.join("data")), ..Config::default() };
    let api = windlass_apiserver::Api::open(config).await?;
    let client = Client::new(api.service(Identity::admin()), "default");
    let cluster = Cluster::start(&api, Settings::default());
    cluster.settled(&api).await?;
    let root = folder.join("node");
    let options = Options {
        name: "process-1".to_owned(),
        program: Program::current()?,
        api: None,
        labels: Default::default(),
        taints: Vec::new(),
        client_ca: String::new(),
        images: Catalogue::new(folder.join("images"), folder.join("recipes.yaml"), root.join("images")),
        root,
        eviction: EvictionConfig::never(),
    };
    let node = Kubelet::join(client.clone(), Clock::real(), options).await?;
    println!("done");
    let pods: Api<Pod> = Api::default_namespaced(client);
    loop {
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let line = line.await??;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["run", number] => run(&pods, number.parse()?).await?,
            ["ready", number, restarts] => ready(&pods, number, restarts).await?,
            ["leave"] => {
                for pod in pods.list(&Default::default()).await? {
                    pods.delete(&pod.name_any(), &Default::default()).await?;
                }
                node.leave().await?;
                cluster.stop().await?;
                drop(api);
                println!("done");
                return Ok(());
            }
            _ => bail!("{line:?} is not understood"),
        }
        println!("done");
    }
}

/// A pod with memory of its own and a program that leaves another behind.
async fn run(pods: &Api<Pod>, number: u32) -> anyhow::Result<()> {
    let sleeps = SLEEPS + number;
    let script = format!("sleep {sleeps} & exec sleep {sleeps}");
    let pod = json!({"metadata": {"name": format!("pod-{number}")}, "spec": {
        "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
        "volumes": [{"name": "memory", "emptyDir": {"medium": "Memory"}}],
        "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "memory", "mountPath": "/memory"}]}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(())
}

async fn ready(pods: &Api<Pod>, number: &str, restarts: &str) -> anyhow::Result<()> {
    let clock = Clock::real();
    let due = clock.moment() + LIMIT;
    loop {
        let pod = pods.get(&format!("pod-{number}")).await?;
        let restarted = status(&pod, "main").restart_count.to_string();
        if is_ready(&pod) && (restarts == "*" || restarts == restarted) {
            return Ok(());
        }
        ensure!(clock.moment() < due, "it is not ready: {:?}", pod.status);
        clock.sleep(Duration::from_millis(20)).await;
    }
}
