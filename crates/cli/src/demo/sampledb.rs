//! The second story: SampleDB, and what becomes of acknowledged rows when its primary is killed.

use super::environment::{Cluster, Environment};
use super::load::{CLIENTS, Database, Load};
use super::postgres::{self, Postgres};
use super::processes;
use super::screen::Screen;
use super::waiting::{since, until};
use crate::apply::Objects;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sampledb_operator::api::v1alpha1::{Role, SampleDB, SampleDBInstance};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::Client;
use windlass_clock::Clock;

const NAME: &str = "ledger";
const INSTANCES: usize = 3;
/// How long rows are written before the primary is killed, and after another has taken over.
const WRITES_BEFORE: Duration = Duration::from_secs(4);
const WRITES_AFTER: Duration = Duration::from_secs(2);

/// Runs its stages.
pub(super) async fn run(
    screen: &mut Screen,
    environment: &mut Environment,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    screen.stage("A database: three instances of PostgreSQL");
    if !environment.is_real() {
        screen.say("skipped: a simulated server keeps no rows");
        return Ok(());
    }
    let postgres = match postgres::find(screen, environment).await {
        Ok(postgres) => postgres,
        Err(why) => {
            screen.warn(&format!("skipped for want of PostgreSQL: {why}"));
            return Ok(());
        }
    };
    a_database(screen, environment, cluster, &postgres).await?;
    let database = Database::of(cluster, NAME).await?;
    connected(&database).await?.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY)").await?;
    let load = Load::of(&database);
    let stages = async {
        let told = under_load(screen, cluster, &load, &database).await;
        load.stop();
        told
    };
    let (told, ()) = tokio::join!(stages, load.run());
    told?;
    every_row_is_there(screen, &database, load).await?;
    the_database_is_deleted(screen, cluster).await
}

/// A connection. As clients do, it tries again: a node learns of a Service's endpoints a moment after they were written.
async fn connected(database: &Database) -> anyhow::Result<Client> {
    until("a client connects", || async { Ok(database.connect().await.ok()) }).await
}

async fn under_load(
    screen: &mut Screen,
    cluster: &Cluster,
    load: &Load<'_>,
    database: &Database,
) -> anyhow::Result<()> {
    rows_are_written(screen, load, database).await?;
    the_primary_is_killed(screen, cluster, load).await
}

/// What to try while it stays up.
pub(super) fn commands(environment: &Environment) -> Vec<String> {
    let Some(version) = &environment.postgres else { return Vec::new() };
    vec![
        format!(
            "kubectl create -f - <<< '{{apiVersion: db.windlass.dev/v1alpha1, kind: SampleDB, metadata: {{name: db}}, \
             spec: {{version: \"{version}\", instances: 3, storage: {{size: 1Gi}}}}}}'"
        ),
        "kubectl get sampledbs,sampledbinstances --watch".to_owned(),
        "kubectl delete pod db-0".to_owned(),
    ]
}

async fn a_database(
    screen: &mut Screen,
    environment: &mut Environment,
    cluster: &Cluster,
    postgres: &Postgres,
) -> anyhow::Result<()> {
    screen.say(&format!("PostgreSQL {} from {}", postgres.version, postgres.origin));
    let mut objects = Objects::of(cluster.client.clone());
    for crd in sampledb_operator::crds() {
        objects.apply(&serde_json::to_value(crd)?).await?;
    }
    environment.postgres = Some(postgres.major().to_owned());
    let id = environment.start_sampledb_operator()?;
    screen.say(&format!("sampledb-operator runs as process {id}"));
    let spec = json!({ "version": postgres.major(), "instances": INSTANCES, "storage": { "size": "1Gi" } });
    screen.command(&format!("kubectl create -f {NAME}.yaml    # kind: SampleDB, spec: {spec}"));
    let begun = Clock::real().moment();
    let wanted = json!({
        "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB", "metadata": { "name": NAME }, "spec": spec,
    });
    cluster.api::<SampleDB>().create(&Default::default(), &serde_json::from_value(wanted)?).await?;
    let primary = until("it takes writes", || primary(cluster)).await?;
    screen.say(&format!("{} ms later it takes writes: {primary} is primary", since(begun)));
    until("all instances are ready", || is_whole(cluster)).await?;
    screen.say(&format!("{} ms later all instances are ready, each with a volume", since(begun)));
    show_instances(screen, cluster).await?;
    screen.proved("Real servers, made and kept by their operator: the replicas follow the primary.");
    Ok(())
}

async fn rows_are_written(screen: &mut Screen, load: &Load<'_>, database: &Database) -> anyhow::Result<()> {
    screen.stage("Rows are written");
    screen.say(&format!(
        "{CLIENTS} clients of the Service {} ({}) with the password of the Secret {NAME}-credentials",
        database.service, database.address
    ));
    write_for(screen, load, WRITES_BEFORE).await?;
    screen.say(&format!("{} rows are acknowledged; the demo remembers their ids itself", load.count()));
    screen.proved("Clients find the primary by the Service for writes, and a commit waits for a replica.");
    Ok(())
}

/// Shows the row counter for a while.
async fn write_for(screen: &mut Screen, load: &Load<'_>, time: Duration) -> anyhow::Result<()> {
    let clock = Clock::real();
    let (begun, before) = (clock.moment(), load.count());
    while clock.moment() - begun < time {
        clock.sleep(screen.progress_interval()).await;
        screen.progress(&load.counter());
    }
    ensure!(load.count() > before, "nothing was written for {time:?}");
    Ok(())
}

async fn the_primary_is_killed(
    screen: &mut Screen,
    cluster: &Cluster,
    load: &Load<'_>,
) -> anyhow::Result<()> {
    screen.stage("The primary is killed, under load");
    let victim = primary(cluster).await?.context("there is no primary")?;
    let server = load.last_server().context("nothing was written")?;
    let pod = cluster.api::<Pod>().get(&victim).await?;
    let id = until("its process is found", || async { Ok(first_process(&pod)) }).await?;
    screen.command(&format!("kill -9 {id}    # the first process of {victim}, with its server below it"));
    let killed = Clock::real().moment();
    kill(Pid::from_raw(id), Signal::SIGKILL).context("cannot kill it")?;
    let again = until("it is written again", || async { Ok(load.first_by_other(&server)) });
    let (other, first) = counted(screen, load, again).await?;
    let last = load.last_by(&server).context("the killed primary acknowledged nothing")?;
    let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let pods = pods(cluster).await?;
    let next = pods.iter().find(|pod| address(pod).as_deref() == Some(other.address.as_str()));
    let next = next.context("somebody else acknowledges rows")?.name_any();
    // A container that was back before anybody was elected may be: it has everything, too.
    let how = if next == victim { "primary again" } else { "primary" };
    screen.say(&format!(
        "{next} is {how}: {} ms between the last commit before and the first one after",
        (first - last).as_millis()
    ));
    write_for(screen, load, WRITES_AFTER).await?;
    counted(screen, load, until("all instances are ready again", || is_whole(cluster))).await?;
    screen.say(&format!("{} ms after the kill all instances are ready again", since(killed)));
    show_instances(screen, cluster).await?;
    screen.proved("The operator elected a primary that has every acknowledged commit; clients connect to the same Service.");
    Ok(())
}

/// Shows the row counter until something is so.
async fn counted<T>(
    screen: &mut Screen,
    load: &Load<'_>,
    waiting: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let clock = Clock::real();
    let mut waiting = std::pin::pin!(waiting);
    loop {
        tokio::select! {
            found = &mut waiting => return found,
            () = clock.sleep(screen.progress_interval()) => {
                screen.progress(&load.counter());
            }
        }
    }
}

async fn every_row_is_there(screen: &mut Screen, database: &Database, load: Load<'_>) -> anyhow::Result<()> {
    screen.stage("Every acknowledged row is there");
    let (acknowledged, unanswered) = load.into_rows();
    screen.command("psql --command 'SELECT id FROM orders'    # on the primary, by the same Service");
    let client = connected(database).await?;
    let rows = client.query("SELECT id FROM orders", &[]).await?;
    let there: BTreeSet<i64> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let (found, missing): (Vec<i64>, Vec<i64>) = acknowledged.iter().partition(|id| there.contains(id));
    screen.say(&format!("acknowledged {}, found {}", acknowledged.len(), found.len()));
    if !unanswered.is_empty() {
        let committed = unanswered.iter().filter(|id| there.contains(id)).count();
        screen.say(&format!(
            "{} more were sent and got no answer when the primary was killed: {committed} of them are there",
            unanswered.len()
        ));
    }
    ensure!(missing.is_empty(), "{} ACKNOWLEDGED ROWS ARE LOST: {missing:?}", missing.len());
    screen.proved("No acknowledged commit was lost.");
    Ok(())
}

async fn the_database_is_deleted(screen: &mut Screen, cluster: &Cluster) -> anyhow::Result<()> {
    screen.stage("The database is deleted");
    let pods = pods(cluster).await?;
    screen.command(&format!("kubectl delete sampledb {NAME}"));
    let begun = Clock::real().moment();
    cluster.api::<SampleDB>().delete(NAME, &DeleteParams::default()).await?;
    until("its pods are gone", || async {
        let runs = pods.iter().filter_map(|pod| pod.metadata.uid.as_deref());
        let servers = runs.filter(|uid| !processes::in_pod(uid, "postgres").is_empty()).count();
        Ok((servers + self::pods(cluster).await?.len() == 0).then_some(()))
    })
    .await?;
    let volumes: Vec<String> =
        cluster.list::<PersistentVolumeClaim>().await?.iter().map(ResourceExt::name_any).collect();
    screen.say(&format!("{} ms later: no pod, and no PostgreSQL runs", since(begun)));
    screen.say(&format!("its PersistentVolumeClaims stay: {}", volumes.join(", ")));
    screen.proved("A database's servers go with it, and its data does not.");
    Ok(())
}

/// The instance that takes writes.
async fn primary(cluster: &Cluster) -> anyhow::Result<Option<String>> {
    let database = cluster.api::<SampleDB>().get(NAME).await?;
    Ok(database.status.and_then(|status| status.primary))
}

/// Whether every instance is ready, one of them as primary.
async fn is_whole(cluster: &Cluster) -> anyhow::Result<Option<()>> {
    let status = cluster.api::<SampleDB>().get(NAME).await?.status.unwrap_or_default();
    let whole = status.primary.is_some() && status.ready == Some(format!("{INSTANCES}/{INSTANCES}"));
    Ok(whole.then_some(()))
}

async fn pods(cluster: &Cluster) -> anyhow::Result<Vec<Pod>> {
    let all = cluster.list::<Pod>().await?;
    Ok(all.into_iter().filter(|pod| pod.name_any().starts_with(&format!("{NAME}-"))).collect())
}

async fn show_instances(screen: &mut Screen, cluster: &Cluster) -> anyhow::Result<()> {
    let pods = pods(cluster).await?;
    for instance in cluster.list::<SampleDBInstance>().await? {
        let name = instance.name_any();
        let status = instance.status.unwrap_or_default();
        let role = match status.role {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Stopped => "stopped",
        };
        let pod = pods.iter().find(|pod| pod.name_any() == name).context("an instance has no pod")?;
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or("-");
        // On a machine that is very busy its container may just be starting again.
        let process = first_process(pod).map_or_else(|| "-".to_owned(), |id| id.to_string());
        let timeline = status.timeline;
        screen.say(&format!("{name}  {address}  process {process}  {role}, timeline {timeline}"));
    }
    Ok(())
}

/// The first process of an instance's container, which ends with all others in it.
fn first_process(pod: &Pod) -> Option<i32> {
    let of_pod = processes::in_pod(pod.metadata.uid.as_deref()?, super::operator::AGENT);
    of_pod.iter().find(|one| one.line.ends_with(" run")).map(|one| one.id)
}
