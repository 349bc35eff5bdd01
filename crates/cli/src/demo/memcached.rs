//! The first story: the Memcached operator, and servers that come and go with it.

use super::environment::{Cluster, Environment};
use super::screen::Screen;
use super::servers::{self, Server};
use super::waiting::{since, until};
use crate::apply::Objects;
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{CustomResourceExt, Resource};
use memcached_operator::api::v1beta1::Memcached;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::time::Duration;
use windlass_clock::Clock;

const NAME: &str = "sample";
/// The number of changed fields of an object that are shown.
const SHOWN_FIELDS: usize = 4;

/// Runs its stages.
pub(super) async fn run(
    screen: &mut Screen,
    environment: &mut Environment,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    a_crd_and_a_custom_resource(screen, cluster).await?;
    the_plan(screen, environment, cluster).await?;
    the_operator_runs(screen, environment, cluster).await?;
    sizes_change(screen, cluster).await?;
    a_server_is_killed(screen, environment, cluster).await?;
    the_operator_is_killed(screen, environment, cluster).await?;
    at_rest(screen, environment).await?;
    the_custom_resource_is_deleted(screen, environment, cluster).await
}

async fn a_crd_and_a_custom_resource(screen: &mut Screen, cluster: &Cluster) -> anyhow::Result<()> {
    screen.stage("A CRD and a custom resource");
    screen.command("kubectl apply --server-side -f config/crd");
    let begun = Clock::real().moment();
    Objects::of(cluster.client.clone()).apply(&serde_json::to_value(Memcached::crd())?).await?;
    screen.say(&format!(
        "{} is served after {} ms",
        Memcached::crd().metadata.name.unwrap_or_default(),
        since(begun)
    ));
    let refused = create(cluster, 1000).await.err().context("a thousand servers were accepted")?;
    screen.say(&format!("size 1000: {}", of_api(&refused)));
    create(cluster, 3).await?;
    screen.say("size 3: created");
    screen.proved("Invalid specs are rejected by schema validation before the operator sees them.");
    Ok(())
}

async fn create(cluster: &Cluster, size: i32) -> Result<Memcached, kube::Error> {
    let sample = json!({
        "apiVersion": Memcached::api_version(&()), "kind": Memcached::kind(&()),
        "metadata": { "name": NAME }, "spec": { "size": size, "image": "memcached:1.6" },
    });
    let sample: Memcached = serde_json::from_value(sample).map_err(kube::Error::SerdeError)?;
    memcacheds(cluster).create(&Default::default(), &sample).await
}

async fn the_plan(screen: &mut Screen, environment: &Environment, cluster: &Cluster) -> anyhow::Result<()> {
    screen.stage("The plan, before the operator runs");
    screen.command(&format!("memcached-operator capture Memcached {NAME} | memcached-operator plan"));
    let plan = environment.plan("Memcached", NAME).await?;
    screen.say(&shortened(&plan));
    ensure!(cluster.list::<Deployment>().await?.is_empty(), "a plan must not write");
    screen.proved("Deciding is a pure function: a plan with its reasons, and nothing was written yet.");
    Ok(())
}

async fn the_operator_runs(
    screen: &mut Screen,
    environment: &mut Environment,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    screen.stage("The operator runs");
    let begun = Clock::real().moment();
    let id = environment.start_memcached_operator().await?;
    let servers = settled(cluster, 3).await?;
    screen.say(&format!("process {id}; {} ms later 3 of 3 servers are ready", since(begun)));
    for server in &servers {
        screen.say(&introduced(server, cluster).await?);
    }
    screen.proved(match environment.is_real() {
        true => "Real memcached processes, found by their Service, speaking their own protocol.",
        false => "A Deployment and a Service follow from the Memcached, and its status from them.",
    });
    Ok(())
}

async fn sizes_change(screen: &mut Screen, cluster: &Cluster) -> anyhow::Result<()> {
    screen.stage("Scale from 3 to 5 to 2");
    for size in [5, 2] {
        screen.command(&format!("kubectl scale memcached {NAME} --replicas {size}"));
        let begun = Clock::real().moment();
        scale(cluster, size).await?;
        let servers = settled(cluster, size).await?;
        let names: Vec<&str> = servers.iter().map(|one| one.pod.as_str()).collect();
        screen.say(&format!("{} ms later: {}", since(begun), names.join(", ")));
    }
    screen.proved("The status lists exactly the servers that are ready, at each step.");
    Ok(())
}

async fn a_server_is_killed(
    screen: &mut Screen,
    environment: &Environment,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    screen.stage("A server is killed");
    let servers = settled(cluster, 2).await?;
    let victim = servers.first().context("no server")?;
    if environment.is_real() {
        // Which of them are left, old or new, is up to the cluster.
        for server in &servers {
            server.talk(cluster).await?.set("who", &server.pod).await?;
        }
    }
    let begun = Clock::real().moment();
    if environment.is_real() {
        let id = victim.process().context("its process is not found")?;
        screen.command(&format!("kill -9 {id}    # {}", victim.pod));
        kill(Pid::from_raw(id), Signal::SIGKILL).context("cannot kill it")?;
        let (again, lost) = until("the server is back", || async {
            let Some(now) = victim.process().filter(|now| *now != id) else { return Ok(None) };
            let Ok(mut talk) = victim.talk(cluster).await else { return Ok(None) };
            Ok(Some((now, talk.get("who").await?.is_none())))
        })
        .await?;
        ensure!(lost, "a cache that was killed remembers");
        screen.say(&format!("{} ms later it answers again, as process {again}, and empty", since(begun)));
        let mut other = servers.last().context("no other server")?.talk(cluster).await?;
        ensure!(other.get("who").await?.is_some(), "the other server forgot");
        screen.say("the other server still has its data");
        // Until the cluster has heard of it, its status is still that of before.
        let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
        until("the cluster says so too", || async {
            let status =
                pods.get_status(&victim.pod).await?.status.and_then(|status| status.container_statuses);
            Ok(status.unwrap_or_default().iter().any(|one| one.restart_count > 0 && one.ready).then_some(()))
        })
        .await?;
    } else {
        screen.command(&format!("kubectl delete pod {}", victim.pod));
        let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
        pods.delete(&victim.pod, &DeleteParams::default()).await?;
        until("another server", || async {
            let now = servers::ready(cluster, NAME).await?;
            Ok((now.len() == 2 && now.iter().all(|one| one.uid != victim.uid)).then_some(()))
        })
        .await?;
        screen.say(&format!("{} ms later another serves in its place", since(begun)));
    }
    settled(cluster, 2).await?;
    screen.proved("A failed server is restarted or replaced, and the status is right again.");
    Ok(())
}

async fn the_operator_is_killed(
    screen: &mut Screen,
    environment: &mut Environment,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    screen.stage("The operator is killed");
    screen.command("kill -9 OPERATOR");
    environment.kill_memcached_operator().await?;
    let servers = servers::ready(cluster, NAME).await?;
    ensure!(servers.len() == 2, "servers went with their operator");
    for server in &servers {
        screen.say(&introduced(server, cluster).await?);
    }
    screen.command(&format!("kubectl scale memcached {NAME} --replicas 3"));
    scale(cluster, 3).await?;
    Clock::real().sleep(Duration::from_millis(300)).await;
    let made =
        cluster.list::<Deployment>().await?.into_iter().filter_map(|one| one.spec?.replicas).sum::<i32>();
    ensure!(made == 2, "somebody else acted: {made} replicas");
    screen.say("nobody reconciles it: spec.size is 3, and 2 servers run");
    let begun = Clock::real().moment();
    let id = environment.start_memcached_operator().await?;
    settled(cluster, 3).await?;
    screen.say(&format!("a new operator, process {id}: 3 of 3 ready {} ms after its start", since(begun)));
    screen.proved("The operator keeps no state of its own: it observes the cluster and continues.");
    Ok(())
}

async fn at_rest(screen: &mut Screen, environment: &Environment) -> anyhow::Result<()> {
    screen.stage("At rest");
    let clock = Clock::real();
    // What was under way settles first.
    clock.sleep(Duration::from_millis(500)).await;
    let sent = |method| environment.metric("rest_client_requests_total", method);
    let writes = || async { anyhow::Ok(sent("PATCH").await? + sent("POST").await? + sent("PUT").await?) };
    let before = writes().await?;
    clock.sleep(Duration::from_secs(1)).await;
    let after = writes().await?;
    let reconciles = environment.metric("controller_runtime_reconcile_total", "").await?;
    let ready = environment.metric("memcached_servers", "ready").await?;
    screen.command(&format!("curl {}/metrics", environment.metrics_address()));
    screen.say(&format!(
        "{reconciles} reconciles and {after} writes since its start; {ready} servers are ready"
    ));
    ensure!(after == before, "{} writes at rest", after - before);
    screen.proved("In a second without changes, the operator wrote nothing.");
    Ok(())
}

async fn the_custom_resource_is_deleted(
    screen: &mut Screen,
    environment: &mut Environment,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    screen.stage("The custom resource is deleted");
    let servers = settled(cluster, 3).await?;
    screen.command(&format!("kubectl delete memcached {NAME}"));
    let begun = Clock::real().moment();
    memcacheds(cluster).delete(NAME, &DeleteParams::default()).await?;
    until("everything of it is gone", || async {
        let left = cluster.list::<Deployment>().await?.len()
            + cluster.list::<Pod>().await?.len()
            + cluster
                .list::<Service>()
                .await?
                .iter()
                .filter(|one| one.metadata.name.as_deref() == Some(NAME))
                .count();
        let processes = servers.iter().filter(|one| one.process().is_some()).count();
        Ok((left + processes == 0).then_some(()))
    })
    .await?;
    let with = if environment.is_real() { ", and no memcached runs" } else { "" };
    screen.say(&format!("{} ms later: no Deployment, no Service, no pod{with}", since(begun)));
    screen.proved("Owned objects are garbage-collected with their owner.");
    Ok(())
}

/// What to try while it stays up.
pub(super) fn commands(environment: &Environment) -> Vec<String> {
    let operator = environment.memcached_operator();
    vec![
        "kubectl create -f - <<< '{apiVersion: cache.example.com/v1beta1, kind: Memcached, metadata: {name: mine}, spec: {size: 2}}'".to_owned(),
        "kubectl get memcacheds,pods --watch".to_owned(),
        "kubectl scale memcached mine --replicas 4".to_owned(),
        "kubectl port-forward deployment/mine 11211".to_owned(),
        format!(
            "windlass why --operator {} Memcached mine --metrics-bind-address {}",
            operator.display(),
            environment.metrics_address()
        ),
    ]
}

/// One line about a server: who it is, and that it keeps what it is told.
async fn introduced(server: &Server, cluster: &Cluster) -> anyhow::Result<String> {
    if cluster.network.is_none() {
        return Ok(format!("{}  {}  simulated", server.pod, server.address));
    }
    let process = server.process().context("its process is not found")?;
    let mut talk = server.talk(cluster).await?;
    let version = talk.version().await?;
    let begun = Clock::real().moment();
    let before = talk.get("who").await?;
    talk.set("who", &server.pod).await?;
    ensure!(
        talk.get("who").await?.as_deref() == Some(&server.pod),
        "{} does not keep what it is told",
        server.pod
    );
    let took = (Clock::real().moment() - begun).as_micros();
    let remembers = if before.as_deref() == Some(&server.pod) { ", as before" } else { "" };
    Ok(format!(
        "{}  {}  process {process}  memcached {version}: set and get in {took} us{remembers}",
        server.pod, server.address
    ))
}

/// Waits until this number of servers is ready, and the status says so.
async fn settled(cluster: &Cluster, size: i32) -> anyhow::Result<Vec<Server>> {
    until(&format!("{size} servers"), || async {
        let memcached = memcacheds(cluster).get(NAME).await?;
        let (generation, status) = (memcached.metadata.generation, memcached.status.unwrap_or_default());
        let is_ready = status
            .conditions
            .iter()
            .any(|one| one.type_ == "Ready" && one.status == "True" && one.observed_generation == generation);
        let servers = servers::ready(cluster, NAME).await?;
        let names: Vec<&str> = servers.iter().map(|one| one.pod.as_str()).collect();
        let nodes: Vec<&str> = status.nodes.iter().map(String::as_str).collect();
        Ok((is_ready && status.ready == size && names == nodes).then_some(servers))
    })
    .await
}

async fn scale(cluster: &Cluster, size: i32) -> anyhow::Result<()> {
    let patch = json!({ "spec": { "replicas": size } });
    memcacheds(cluster).patch_scale(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn memcacheds(cluster: &Cluster) -> Api<Memcached> {
    Api::default_namespaced(cluster.client.clone())
}

/// What the API says was wrong, without what every refusal begins with.
fn of_api(error: &kube::Error) -> String {
    let text = match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    };
    text.split_once(": ").map_or(text.clone(), |(_, why)| why.to_owned())
}

/// A plan with the first few fields of each object.
fn shortened(plan: &str) -> String {
    let (mut lines, mut fields) = (Vec::new(), 0);
    let more = |fields: usize| format!("    and {} more fields", fields - SHOWN_FIELDS);
    for line in plan.lines() {
        let is_field = line.starts_with("    + ") || line.starts_with("    ~ ");
        if !is_field && fields > SHOWN_FIELDS {
            lines.push(more(fields));
        }
        fields = if is_field { fields + 1 } else { 0 };
        if fields <= SHOWN_FIELDS {
            lines.push(line.to_owned());
        }
    }
    if fields > SHOWN_FIELDS {
        lines.push(more(fields));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_plans_are_cut_and_say_so() {
        let fields = |count: usize| "    + a: 1\n".repeat(count);
        let plan = format!("title\nDeployment is made\n{}Service is made\n{}", fields(6), fields(2));
        let shown = shortened(&plan);
        assert_eq!(shown.matches("+ a").count(), 6);
        assert!(shown.contains("and 2 more fields\nService"), "{shown}");
    }
}
