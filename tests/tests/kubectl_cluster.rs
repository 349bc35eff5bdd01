//! The real kubectl on the embedded cluster and on the reference with a simulated node: the same commands, the same output.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use regex::Regex;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use windlass_harness::{Suite, Target, reference};
use windlass_testing::{TestCluster, named};
use windlass_tests::kubectl::{Kubectl, commands_in};
use windlass_tests::targets::{reference_cluster, whole_cluster};

fn main() -> ExitCode {
    Suite::on([reference_cluster()])
        .limit(Duration::from_secs(900))
        .test("kubectl prints the same on the embedded cluster and on the reference", prints_the_same)
        .run()
}

/// A cluster, kubectl pointed at it, and the name of its node.
struct Scene {
    cluster: TestCluster,
    kubectl: Arc<Kubectl>,
    node: String,
}

impl Scene {
    async fn of(cluster: TestCluster, place: Vec<String>) -> anyhow::Result<Self> {
        let kubectl =
            Kubectl::new(reference::programs()?.join("kubectl"), place, cluster.namespace().to_owned())?;
        cluster.eventually::<ServiceAccount>("default").exists().await?;
        let nodes: Api<Node> = Api::all(cluster.client());
        let node = cluster
            .until(
                "there is a node",
                || async { Ok(nodes.list(&ListParams::default()).await?.items) },
                |nodes: &Vec<Node>| !nodes.is_empty(),
            )
            .await?
            .first()
            .map(ResourceExt::name_any)
            .context("it was there")?;
        Ok(Self { cluster, kubectl: Arc::new(kubectl), node })
    }

    /// What a command prints in the end, without what chance and pace have to do with.
    async fn run(&self, line: &str) -> anyhow::Result<String> {
        let (kubectl, command) = (self.kubectl.clone(), line.replace("NODE", &self.node));
        let run = tokio::task::spawn_blocking(move || kubectl.run(&command));
        // Time passes while it waits.
        let printed = self.cluster.run_clock_while(run).await??;
        let printed = printed.replace(&self.node, "NODE");
        let hashes =
            Regex::new(r"-[bcdfghjklmnpqrstvwxz2456789]{4,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?\b")?;
        let printed = hashes.replace_all(&printed, "-RANDOM");
        let printed = Regex::new(r"pod-template-hash=\w+")?.replace_all(&printed, "pod-template-hash=RANDOM");
        let mut lines: Vec<&str> = printed.lines().collect();
        if line.starts_with("rollout status") {
            // How often it looked is a matter of pace.
            lines.retain(|line| !line.starts_with("Waiting for deployment"));
        }
        if line.starts_with("drain") {
            lines.sort_unstable();
            lines.dedup();
        }
        if let Some(events) = lines.iter().position(|line| line.starts_with("Events:")) {
            // Which of them were put together is a matter of pace.
            lines.truncate(events);
        }
        Ok(lines.join("\n"))
    }
}

async fn prints_the_same(target: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let serving = cluster.embedded().context("it is embedded")?.serve_tcp(listener)?;
    let place = vec!["--kubeconfig=/dev/null".to_owned(), format!("--server=http://{}", serving.address())];
    // On the reference the namespace is the test's own, too.
    cluster.create(named::<Namespace>("shop")).await?;
    let ours = Scene::of(cluster.in_namespace("shop"), place).await?;
    let kubeconfig = target.kubeconfig().context("the reference has a kubeconfig")?;
    let place = vec![format!("--kubeconfig={}", kubeconfig.display())];
    let theirs = Scene::of(whole_cluster(&target).await?, place).await?;
    let mut differences = Vec::new();
    let commands = commands_in("cluster")?;
    for line in &commands {
        let (ours, theirs) = tokio::try_join!(ours.run(line), theirs.run(line))?;
        if ours != theirs {
            differences.push(format!("kubectl {line}\n--- embedded\n{ours}\n--- reference\n{theirs}"));
        }
    }
    println!("{} commands, {} alike", commands.len(), commands.len() - differences.len());
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}
