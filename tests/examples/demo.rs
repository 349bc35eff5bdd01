//! `make demo`: an operator on an embedded Kubernetes, killed in the middle of its work and started again.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use std::time::Duration;
use windlass::{Manager, Seen};
use windlass_clock::Clock;
use windlass_testing::sabotage::{Break, Sabotage};
use windlass_testing::{Running, TestCluster};
use windlass_tests::sample::vault::decide;
use windlass_tests::sample::{self, Tenant, TenantSpec, Vault, VaultSpec};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let clock = Clock::real();
    let start = clock.moment();
    let cluster = TestCluster::start_in_real_time();
    cluster.install(sample::crds()).await?;
    let ready = clock.moment() - start;
    println!(
        "An embedded Kubernetes with the sample's kinds is ready after {:.1} ms.\n",
        ready.as_secs_f64() * 1e3
    );

    let vault = Vault::new("treasury", VaultSpec { shards: 3, region: Some("north".into()) });
    println!(
        "Deciding is a pure function. What the operator would do for a Vault with three shards, seeing nothing yet:"
    );
    println!("{}\n", indented(&decide(&vault, &Seen::nothing())?.to_string()));

    cluster.create(vault).await?;
    cluster.create(Tenant::new("alice", TenantSpec { vault: "treasury".into(), quota: 10 })).await?;
    println!(
        "Created Vault treasury and Tenant alice, who waits for the vault to open. The operator starts,"
    );
    println!("and is killed right after its fifth write, before it hears of it:");
    let dying = Sabotage::at(5, Break::KillAfter);
    let operator = operate(&cluster, &dying);
    dying.killed().await;
    operator.kill().await;
    show(&cluster).await?;

    println!("\nStarted again, it looks at what is there and goes on:");
    let second = Sabotage::none();
    let before = clock.moment();
    let operator = operate(&cluster, &second);
    let admitted = |tenant: &Tenant| tenant.status.iter().any(|status| status.admitted_to.is_some());
    cluster.eventually::<Tenant>("alice").is("is admitted", admitted).await?;
    println!("  converged {:.0} ms later", (clock.moment() - before).as_secs_f64() * 1e3);
    show(&cluster).await?;
    operator.stop().await?;

    let third = Sabotage::none();
    let operator = operate(&cluster, &third);
    clock.sleep(Duration::from_millis(500)).await;
    operator.stop().await?;
    println!("\nStarted once more, with nothing to do, it wrote {} times.", third.writes().len());
    println!("`make test` does this at every write, and with lost answers, dropped watches and stale lists.");
    Ok(())
}

fn operate(cluster: &TestCluster, sabotage: &Sabotage) -> Running {
    let manager = Manager::new(sabotage.on(cluster.client_as("operator")), cluster.clock().clone());
    cluster.run_manager(sample::operator(manager))
}

async fn show(cluster: &TestCluster) -> anyhow::Result<()> {
    let names = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let (secrets, maps) = (cluster.list::<Secret>().await?, cluster.list::<ConfigMap>().await?);
    println!("  Secrets:    {}", names(secrets.iter().map(ResourceExt::name_any).collect()));
    println!("  ConfigMaps: {}", names(maps.iter().map(ResourceExt::name_any).collect()));
    let vault = cluster.get::<Vault>("treasury").await?;
    let conditions = vault.status.map(|status| status.conditions).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    let text = ready.map(|ready| format!("Ready is {} ({})", ready.status, ready.reason));
    println!("  Vault:      {}", text.unwrap_or_else(|| "no status yet".into()));
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
