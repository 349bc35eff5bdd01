//! The stages of the demo, in two stories on one cluster. Each stage does one thing, shows what is observed, and says what that
//! proves; all figures are measured.

use super::environment::{Cluster, Ended, Environment, Simulated};
use super::screen::Screen;
use super::waiting::since;
use super::{memcached, sampledb};
use windlass_clock::Clock;

/// Runs all stages.
pub(super) async fn run(screen: &mut Screen, environment: &mut Environment) -> anyhow::Result<()> {
    let cluster = a_cluster(screen, environment).await?;
    memcached::run(screen, environment, &cluster).await?;
    sampledb::run(screen, environment, &cluster).await
}

async fn a_cluster(screen: &mut Screen, environment: &mut Environment) -> anyhow::Result<Cluster> {
    screen.stage("An embedded cluster");
    match &environment.simulated {
        Some(Simulated::Asked) => screen.say("Servers are simulated here, as --simulate asks."),
        Some(Simulated::Lacking(lacking)) => {
            screen.warn("Servers are simulated here: NO MEMCACHED RUNS, and nobody answers. For real ones this machine lacks:");
            screen.warn(&lacking.join("\n"));
        }
        None => {}
    }
    screen.command(&format!("windlass cluster up --nodes {}", environment.nodes()));
    let begun = Clock::real().moment();
    let cluster = environment.start_cluster().await?;
    screen.say(&format!("{} (process {}; {} ms with its start)", cluster.ready, cluster.id, since(begun)));
    screen.say("In another terminal:");
    screen.say(&format!("  kubectl --kubeconfig {} get all", environment.kubeconfig().display()));
    let who = if nix::unistd::geteuid().is_root() { "run by root" } else { "without root" };
    let pods = if environment.is_real() {
        "whose pods are processes, without a container runtime"
    } else {
        "that simulates pods"
    };
    let version = cluster.client.apiserver_version().await?.git_version;
    screen.proved(&format!("A Kubernetes {version} with a node {pods}, {who}."));
    Ok(cluster)
}

/// What to try while it stays up.
pub(super) fn invite(screen: &mut Screen, environment: &Environment) {
    screen.stage("It stays up until Ctrl-C. Try, in another terminal");
    screen.say(&format!("export KUBECONFIG={}", environment.kubeconfig().display()));
    for line in memcached::commands(environment).into_iter().chain(sampledb::commands(environment)) {
        screen.say(&line);
    }
}

/// How it ended.
pub(super) fn close(screen: &mut Screen, environment: &Environment, ended: &Ended) {
    screen.stage("Clean-up");
    screen.say(&format!(
        "operators, node and cluster ended in {} ms; {} processes and {} folders are left",
        ended.took.as_millis(),
        ended.left.len(),
        ended.folders
    ));
    if let Some(Simulated::Lacking(_)) = environment.simulated {
        screen
            .warn("The servers were simulated. The first stage says what this machine lacks for real ones.");
    }
}
