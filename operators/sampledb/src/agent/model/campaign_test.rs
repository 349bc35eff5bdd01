//! The operator is killed before and after every write of a database's life, and disturbed in other ways: it ends the same each time,
//! and no row is lost. Who is primary in the end may differ.
//!
//! By default it is killed at some of its writes. `WINDLASS_FAULTS=crashes` kills it at every one, and `WINDLASS_FAULTS=all` disturbs
//! it at every one in all other ways, too.

use super::instances::Instances;
use crate::api::v1alpha1::SampleDB;
use crate::leadership::Leadership;
use anyhow::{Context, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::time::Duration;
use windlass::clock::Clock;
use windlass_testing::TestCluster;
use windlass_testing::campaign::{Campaign, Fault};
use windlass_testing::faulty_client::ClientFault;

/// The longest, by the machine's clock, that agents go on: after the end of a life its cluster is still looked at.
const AGENTS_LIVE: Duration = Duration::from_secs(300);
/// The longest that anything may take, by the clock of the cluster.
const PATIENCE: Duration = Duration::from_secs(300);
const STEP: Duration = Duration::from_millis(50);

pub(super) struct Database {
    pub(super) cluster: TestCluster,
    pub(super) instances: Instances,
}

impl Database {
    /// A database of three instances that is ready.
    pub(super) async fn create(cluster: TestCluster) -> anyhow::Result<Self> {
        let agents = "agents";
        let all = || vec!["*".to_owned()];
        let rule = PolicyRule {
            api_groups: Some(all()),
            resources: Some(all()),
            verbs: all(),
            ..PolicyRule::default()
        };
        cluster.allow(agents, [rule]).await?;
        let instances = Instances::of("db", cluster.client_as(agents), cluster.clock().clone());
        let (there, wall) = (instances.clone(), Clock::real());
        tokio::spawn(async move {
            tokio::select! {
                () = there.clone().run() => {}
                () = wall.sleep(AGENTS_LIVE) => {}
            }
            there.end();
        });
        let spec =
            json!({"version": "15", "instances": 3, "storage": {"size": "1Gi"}, "leaseDurationSeconds": 5});
        cluster.create(SampleDB::new("db", serde_json::from_value(spec)?)).await?;
        let database = Self { cluster, instances };
        database.is_ready("3/3").await?;
        Ok(database)
    }

    /// Waits until something holds, while the clock runs faster than on the wall.
    pub(super) async fn until<F>(&self, what: &str, holds: impl Fn() -> F) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<bool>>,
    {
        let began = self.cluster.clock().moment();
        while !holds().await? {
            let (database, lease) =
                (self.cluster.find::<SampleDB>("db").await?, self.cluster.find::<Lease>("db").await?);
            ensure!(
                self.cluster.clock().moment().since(began) < PATIENCE,
                "{what}: {} {}",
                json!(database.and_then(|database| database.status)),
                json!(lease),
            );
            self.cluster.run_clock_while(Clock::real().sleep(Duration::from_millis(1))).await;
            self.cluster.advance(STEP).await;
        }
        Ok(())
    }

    pub(super) async fn is_ready(&self, ready: &str) -> anyhow::Result<()> {
        self.until(&format!("{ready} are ready"), || async {
            let database = self.cluster.get::<SampleDB>("db").await?;
            let status = database.status.unwrap_or_default();
            let is_ready = status.conditions.iter().any(|one| {
                one.type_ == "Ready"
                    && one.status == "True"
                    && one.observed_generation == database.metadata.generation
            });
            Ok(is_ready && status.ready.as_deref() == Some(ready))
        })
        .await
    }

    /// Waits until some more rows are acknowledged.
    pub(super) async fn write(&self) -> anyhow::Result<()> {
        for _ in 0..5 {
            self.until("a row is acknowledged", || async { Ok(self.instances.servers.commit()) }).await?;
        }
        Ok(())
    }

    pub(super) async fn primary(&self) -> anyhow::Result<String> {
        let status = self.cluster.get::<SampleDB>("db").await?.status.unwrap_or_default();
        status.primary.context("there is no primary")
    }

    async fn change(&self, spec: Value) -> anyhow::Result<()> {
        self.cluster.patch::<SampleDB>("db", json!({ "spec": spec })).await.map(drop)
    }

    /// As `windlass sampledb switchover` does.
    pub(super) async fn switch_over_to(&self, target: &str) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client(), "default");
        self.until("a switchover is asked for", || async {
            let mut lease = leases.get("db").await?;
            let mut leadership = Leadership::of(&lease)?;
            if leadership.holder.is_none() {
                return Ok(false);
            }
            leadership.switchover_to = Some(target.to_owned());
            leadership.write(&mut lease);
            Ok(leases.replace("db", &PostParams::default(), &lease).await.is_ok())
        })
        .await?;
        self.until("the switchover is done", || async {
            Ok(Leadership::of(&leases.get("db").await?)?.switchover_to.is_none())
        })
        .await
    }
}

/// Create, change, switchover, scale and failover.
async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    let database = Database::create(cluster).await?;
    database.write().await?;
    database.change(json!({"parameters": {"shared_buffers": "64MB"}})).await?;
    database
        .until("all have restarted", || async {
            let names = ["db-0", "db-1", "db-2"];
            let given = |name: &str| {
                database.instances.servers.with(name, |machine| {
                    machine
                        .server
                        .as_ref()
                        .is_some_and(|server| server.parameters.contains_key("shared_buffers"))
                })
            };
            Ok(names.iter().all(|name| given(name)))
        })
        .await?;
    database.is_ready("3/3").await?;
    database.write().await?;
    let primary = database.primary().await?;
    let target = if primary == "db-2" { "db-1" } else { "db-2" };
    database.switch_over_to(target).await?;
    database.is_ready("3/3").await?;
    database.write().await?;
    database.change(json!({"instances": 2})).await?;
    database.is_ready("2/2").await?;
    database.write().await?;
    database.change(json!({"instances": 3})).await?;
    database.is_ready("3/3").await?;
    let primary = database.primary().await?;
    database.instances.crash(&primary);
    database.write().await?;
    database.is_ready("3/3").await?;
    let (lost, acknowledged) = database.instances.servers.lost();
    ensure!(lost.is_empty() && acknowledged >= 25, "lost {lost:?} of {acknowledged}");
    Ok(())
}

/// Who is primary, and what the agents say.
fn ignored(object: &mut Value) {
    let is_instance =
        object.pointer("/spec/database").is_some() && object.pointer("/spec/durability").is_some();
    if is_instance {
        object["status"].take();
        // How often it was restarted on the way.
        object["spec"]["restart"].take();
        object["metadata"]["managedFields"].take();
    }
    if let Some(primary) = object.pointer_mut("/status/primary") {
        primary.take();
    }
    if let Some(label) = object.pointer_mut("/metadata/labels/db.windlass.dev~1role") {
        label.take();
    }
    for endpoint in object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        endpoint["targetRef"].take();
    }
}

#[tokio::test]
async fn the_operator_may_be_killed_at_every_write() -> anyhow::Result<()> {
    let operator = |manager| crate::operator(manager, "sampledb-operator:test");
    let campaign = Campaign::new(operator, life)
        .kinds(crate::crds())
        .ignoring(ignored)
        .at_once(4)
        .within(Duration::from_secs(60));
    let crashes = [Fault::Client(ClientFault::KillBefore), Fault::Client(ClientFault::KillAfter)];
    let campaign = match std::env::var("WINDLASS_FAULTS").as_deref() {
        Ok("all") => campaign,
        Ok("crashes") => campaign.faults(crashes),
        _ => campaign.faults(crashes).every_nth_write(24),
    };
    let report = campaign.run().await?;
    println!("{report}");
    ensure!(report.effective > report.lives / 2, "{report}");
    Ok(())
}
