//! Pods as processes: from creation to ready, many at once, exec, logs, Services and memory; beside it, for scale, how long runc
//! alone, and containerd with it, take to start the same program.
//!
//! Run by `make bench-node`. The cluster is the embedded one, in this process. Two starts are measured: that of a sandbox and a
//! container in it without the API, which is what runc does, and that of a pod from its creation in the API until it is ready.

mod peers;
mod sandbox;

use anyhow::Context;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_apiserver::{Config, Identity};
use windlass_clock::Clock;
use windlass_cluster::{Cluster, Settings};
use windlass_harness::bench::{Bench, Better};
use windlass_node::Program;
use windlass_node::images::Catalogue;
use windlass_node::net::Network;
use windlass_node::shim::{Exec, Shim};
use windlass_node::{EvictionConfig, Kubelet, Options};

const PODS: &str = "process pod";
/// A container starts: what all of them are asked.
const START: &str = "start of a container, p50";
const TIMES: usize = 20;
const AT_ONCE: usize = 50;
const ROUNDS: usize = 500;
const LOGGED: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    if let Some(code) = windlass_node::run_hidden_subcommand(std::env::args_os().skip(1)) {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<()> {
    let mut bench = Bench::start("node", &[PODS, peers::RUNC, peers::CONTAINERD]);
    let api = windlass_apiserver::Api::open(Config::default()).await?;
    let cluster = Cluster::start(&api, Settings::default());
    cluster.settled(&api).await?;
    let client = Client::new(api.service(Identity::admin()), "default");
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let root = folder.path().join("node");
    let at = |name: &str| folder.path().join(name);
    let options = Options {
        name: "process-1".to_owned(),
        program: Program::current()?,
        api: None,
        labels: Default::default(),
        taints: Vec::new(),
        client_ca: api.credentials()?.ca_certificate().to_owned(),
        images: Catalogue::new(at("images"), at("recipes.yaml"), root.join("images")),
        root: root.clone(),
        eviction: EvictionConfig::never(),
    };
    let node = Kubelet::join(client.clone(), Clock::real(), options).await?;
    let fixture = Fixture { client, root, clock: Clock::real() };
    // Whatever goes wrong, nothing is left running.
    let measured = measure(&mut bench, &fixture).await;
    node.leave().await?;
    cluster.stop().await?;
    measured?;
    peers::measure(&mut bench, folder.path()).await?;
    Ok(bench.finish()?)
}

struct Fixture {
    client: Client,
    root: PathBuf,
    clock: Clock,
}

impl Fixture {
    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    async fn make(&self, name: &str, image: &str, command: Value) -> anyhow::Result<Pod> {
        let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": image, "command": command}]}});
        Ok(self.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?)
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let due = self.clock.moment() + PATIENCE;
        while !holds().await? {
            anyhow::ensure!(self.clock.moment() < due, "in vain: {what}");
            self.clock.sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn ready(&self, name: &str) -> anyhow::Result<()> {
        self.until(name, async || Ok(is(&self.pods().get(name).await?, "Ready"))).await
    }

    async fn gone(&self) -> anyhow::Result<()> {
        self.pods().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        self.until("all are gone", async || {
            Ok(self.pods().list(&ListParams::default()).await?.items.is_empty())
        })
        .await
    }

    async fn shim(&self, name: &str) -> anyhow::Result<Shim> {
        let uid = self.pods().get(name).await?.uid().context("a pod has a UID")?;
        Shim::find(&self.root.join("pods").join(uid)).await.context("it has a shim")
    }
}

fn is(pod: &Pod, condition: &str) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == condition && found.status == "True")
}

fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    all[all.len() / 2].as_secs_f64()
}

async fn measure(bench: &mut Bench, fixture: &Fixture) -> anyhow::Result<()> {
    let sleeps = json!(["sleep", "1000"]);
    bench.progress("one pod after the other");
    let mut all = Vec::new();
    for number in 0..TIMES {
        let name = format!("one-{number}");
        let began = fixture.clock.moment();
        fixture.make(&name, "busybox", sleeps.clone()).await?;
        fixture.ready(&name).await?;
        all.push(fixture.clock.moment() - began);
    }
    bench.record(PODS, "pod from creation to ready, p50", median(all) * 1e3, "ms", Better::Lower);
    let mut memory = 0;
    for number in 0..TIMES {
        memory += private(fixture, &format!("one-{number}")).await?;
    }
    bench.record(PODS, "memory of a pod's shim", memory as f64 / TIMES as f64 / 1e6, "MB", Better::Lower);
    bench.progress("exec");
    let shim = fixture.shim("one-0").await?;
    let mut all = Vec::new();
    for _ in 0..TIMES {
        let began = fixture.clock.moment();
        let exec = Exec { command: vec!["true".to_owned()], ..Exec::default() };
        let code = shim.exec("main", exec).await?.control.wait().await?;
        anyhow::ensure!(code == 0, "it ended with {code}");
        all.push(fixture.clock.moment() - began);
    }
    bench.record(PODS, "exec of `true`, p50", median(all) * 1e3, "ms", Better::Lower);
    fixture.gone().await?;
    bench.progress("a sandbox and a container, without the API");
    bench.record(PODS, START, median(sandbox::starts(&fixture.root).await?) * 1e3, "ms", Better::Lower);
    bench.progress("many pods at once");
    let began = fixture.clock.moment();
    for number in 0..AT_ONCE {
        fixture.make(&format!("many-{number}"), "busybox", sleeps.clone()).await?;
    }
    let ready = async || {
        let all = fixture.pods().list(&ListParams::default()).await?.items;
        Ok(all.iter().filter(|pod| is(pod, "Ready")).count() == AT_ONCE)
    };
    fixture.until("all are ready", ready).await?;
    let took = fixture.clock.moment() - began;
    bench.record(PODS, &format!("{AT_ONCE} pods at once"), took.as_secs_f64() * 1e3, "ms", Better::Lower);
    fixture.gone().await?;
    logs(bench, fixture).await?;
    services(bench, fixture).await
}

/// What the shim of a pod has for itself alone.
async fn private(fixture: &Fixture, name: &str) -> anyhow::Result<u64> {
    let uid = fixture.pods().get(name).await?.uid().context("a pod has a UID")?;
    let record = std::fs::read(fixture.root.join("pods").join(uid).join("shim.json"))?;
    let record: Value = serde_json::from_slice(&record)?;
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", record["pid"]))?;
    let kilobytes = text
        .lines()
        .filter(|line| line.starts_with("Private_"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    Ok(kilobytes.sum::<u64>() * 1024)
}

async fn logs(bench: &mut Bench, fixture: &Fixture) -> anyhow::Result<()> {
    bench.progress("logs");
    let line = "a line of about eighty characters, as programs write them into their log all day";
    let script = format!("yes '{line}' | head -c {LOGGED}");
    let began = fixture.clock.moment();
    fixture.make("writes", "busybox", json!(["sh", "-c", script])).await?;
    let ended = async || {
        let phase = fixture.pods().get("writes").await?.status.and_then(|status| status.phase);
        Ok(phase.as_deref() == Some("Succeeded"))
    };
    fixture.until("it has written", ended).await?;
    let took = (fixture.clock.moment() - began).as_secs_f64();
    bench.record(PODS, "log throughput", LOGGED as f64 / took / 1e6, "MB/s", Better::Higher);
    fixture.gone().await
}

async fn services(bench: &mut Bench, fixture: &Fixture) -> anyhow::Result<()> {
    bench.progress("a Service");
    let service = json!({"metadata": {"name": "cache"},
        "spec": {"selector": {"app": "cache"}, "ports": [{"port": 11211}]}});
    let all: Api<Service> = Api::default_namespaced(fixture.client.clone());
    let service = all.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
    let at = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
    if let Err(why) = Catalogue::new("/nowhere", "/nowhere", "/nowhere").resolve("memcached") {
        bench.note(&format!("no Service is measured: {why}"));
        return Ok(());
    }
    fixture.make("cache", "memcached", json!(["memcached"])).await?;
    fixture.ready("cache").await?;
    let direct =
        fixture.pods().get("cache").await?.status.and_then(|status| status.pod_ip).unwrap_or_default();
    let network = Network::find(&fixture.root.join("network")).await.context("the node has a network")?;
    for (metric, address) in [("round trip, direct, p50", direct), ("round trip, by its Service, p50", at)] {
        let address = SocketAddrV4::new(address.parse::<Ipv4Addr>()?, 11211);
        let connects = async || Ok(network.connect(address).await.is_ok());
        fixture.until("somebody answers", connects).await?;
        let mut stream = network.connect(address).await?;
        let (mut all, mut buffer) = (Vec::new(), [0; 64]);
        for _ in 0..ROUNDS {
            let began = fixture.clock.moment();
            stream.write_all(b"version\r\n").await?;
            anyhow::ensure!(stream.read(&mut buffer).await? > 0, "it hung up");
            all.push(fixture.clock.moment() - began);
        }
        bench.record(PODS, metric, median(all) * 1e6, "us", Better::Lower);
    }
    fixture.gone().await
}
