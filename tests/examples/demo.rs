//! `make demo`: an operator on an embedded Kubernetes, killed in the middle of its work and started again.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use std::time::Duration;
use windlass::Seen;
use windlass_clock::Clock;
use windlass_harness::Target;
use windlass_tests::campaign::{OPERATORS, run_operator, until, world};
use windlass_tests::grounds::embedded_in_process;
use windlass_tests::sabotage::{Break, Sabotage};
use windlass_tests::sample::vault::decide;
use windlass_tests::sample::{Tenant, TenantSpec, Vault, VaultSpec};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let clock = Clock::real();
    let start = clock.moment();
    let (target, namespace) = world(&embedded_in_process().open().await?).await?;
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

    let client = target.client();
    let vaults: Api<Vault> = Api::namespaced(client.clone(), &namespace);
    let tenants: Api<Tenant> = Api::namespaced(client.clone(), &namespace);
    vaults.create(&PostParams::default(), &vault).await?;
    let tenant = Tenant::new("alice", TenantSpec { vault: "treasury".into(), quota: 10 });
    tenants.create(&PostParams::default(), &tenant).await?;
    println!(
        "Created Vault treasury and Tenant alice, who waits for the vault to open. The operator starts,"
    );
    println!("and is killed right after its fifth write, before it hears of it:");
    let dying = Sabotage::at(5, Break::KillAfter);
    tokio::select! {
        ended = run_operator(&target, &namespace, OPERATORS[0], &dying) => ended?,
        () = dying.killed() => {}
    }
    show(&target, &namespace).await?;

    println!("\nStarted again, it looks at what is there and goes on:");
    let second = Sabotage::none();
    let before = clock.moment();
    let admitted = until("the tenant is admitted", || async {
        Ok(tenants.get("alice").await?.status.is_some_and(|status| status.admitted_to.is_some()))
    });
    tokio::select! {
        ended = run_operator(&target, &namespace, OPERATORS[1], &second) => ended?,
        reached = admitted => reached?,
    }
    println!("  converged {:.0} ms later", (clock.moment() - before).as_secs_f64() * 1e3);
    show(&target, &namespace).await?;

    let third = Sabotage::none();
    let rest = Duration::from_millis(500);
    let _ = clock.timeout(rest, run_operator(&target, &namespace, OPERATORS[1], &third)).await;
    println!("\nStarted once more, with nothing to do, it wrote {} times.", third.writes().len());
    println!("`make test` does this at every write, and with lost answers, dropped watches and stale lists.");
    Ok(())
}

async fn show(target: &Target, namespace: &str) -> anyhow::Result<()> {
    let all = ListParams::default();
    let names = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let secrets = Api::<Secret>::namespaced(target.client(), namespace).list(&all).await?;
    let maps = Api::<ConfigMap>::namespaced(target.client(), namespace).list(&all).await?;
    println!("  Secrets:    {}", names(secrets.iter().map(ResourceExt::name_any).collect()));
    println!("  ConfigMaps: {}", names(maps.iter().map(ResourceExt::name_any).collect()));
    let vault = Api::<Vault>::namespaced(target.client(), namespace).get("treasury").await?;
    let conditions = vault.status.map(|status| status.conditions).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    let text = ready.map(|ready| format!("Ready is {} ({})", ready.status, ready.reason));
    println!("  Vault:      {}", text.unwrap_or_else(|| "no status yet".into()));
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
