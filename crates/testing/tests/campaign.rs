//! A campaign finds out operators that remember instead of looking, write for ever, or cost too much.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass::{Controller, Manager, Plan, Reason, Reconcile, Requeue};
use windlass_testing::campaign::{Campaign, Fault};
use windlass_testing::faulty_client::ClientFault;
use windlass_testing::{TestCluster, config_map, secret};

fn why() -> Reason {
    Reason::new("Pairs", "each has two")
}

/// Makes two secrets for each map, the second in a reconcile of its own.
fn operator(manager: Manager, remembers: bool) -> Manager {
    let made_the_first = Arc::new(AtomicBool::new(false));
    let reconcile = move |map: Arc<ConfigMap>, ctx: Reconcile<ConfigMap>| {
        let made_the_first = made_the_first.clone();
        async move {
            let named = |number: u8| secret(format!("{}-{number}", map.name_any()));
            let first = match remembers {
                // What it did itself is what it believes in, and a crash makes it forget.
                true => made_the_first.swap(true, Ordering::SeqCst),
                false => !ctx.observed().names::<Secret>().unwrap_or_default().is_empty(),
            };
            let there = !ctx.observed().names::<Secret>().unwrap_or_default().is_empty();
            let plan = match (first, there) {
                // It looks as if somebody else had made the first: then there is no need for a second.
                (false, true) => Plan::new(),
                (false, false) => Plan::new().apply(named(1), why()),
                (true, _) => Plan::new().apply(named(1), why()).apply(named(2), why()),
            };
            ctx.carry_out(&plan).await?;
            Ok(Requeue::on_change())
        }
    };
    manager.controller(Controller::reconciling(reconcile).owns::<Secret>())
}

async fn life(cluster: TestCluster) -> anyhow::Result<()> {
    cluster.create(config_map("a")).await?;
    Ok(())
}

fn here(manager: Manager, remembers: bool) -> Manager {
    operator(manager.namespace("default"), remembers)
}

#[tokio::test]
async fn an_operator_that_remembers_instead_of_looking_is_found_out() {
    let crash =
        || Campaign::new(|manager| here(manager, true), life).faults([Fault::Client(ClientFault::KillAfter)]);
    let failed = format!("{:#}", crash().within(Duration::from_secs(1)).run().await.unwrap_err());
    assert!(
        failed.contains("a crash after at write 1 of 2 (PATCH /api/v1/namespaces/default/secrets/a-1)"),
        "{failed}"
    );
    assert!(failed.contains("the state is that of the undisturbed life"), "{failed}");
    let looks =
        Campaign::new(|manager| here(manager, false), life).faults([Fault::Client(ClientFault::KillAfter)]);
    assert_eq!(looks.run().await.unwrap().writes, 2);
}

#[tokio::test]
async fn a_life_without_a_write_is_no_campaign() {
    let idle = Campaign::new(|manager: Manager| manager, |_| async { Ok(()) });
    let failed = idle.run().await.unwrap_err().to_string();
    assert!(failed.contains("writes nothing"), "{failed}");
}

#[tokio::test]
async fn a_life_that_fails_says_at_which_fault() {
    let fails = |cluster: TestCluster| async move {
        cluster.create(config_map("a")).await?;
        cluster.eventually::<Secret>("a-2").exists().await?;
        anyhow::ensure!(cluster.list::<Secret>().await?.len() > 2, "only two");
        Ok(())
    };
    let failed = Campaign::new(|manager| here(manager, false), fails).run().await.unwrap_err();
    assert_eq!(format!("{failed:#}"), "the undisturbed life: only two");
}
