//! TLS: whom clients and replicas talk to is verified, and a new certificate disconnects nobody.

use super::place::{Place, cannot_run_postgres};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::json;

/// Of the connections of replicas, how many there are by TLS, and their processes.
const REPLICATION: &str = "SELECT count(*) FILTER (WHERE ssl), string_agg(pid::text, ' ' ORDER BY pid) \
                           FROM pg_stat_replication JOIN pg_stat_ssl USING (pid)";

/// What `psql` prints that trusts what this Secret says, and nothing else.
async fn verified(place: &Place, trusted: &str) -> String {
    let variables = json!([
        {"name": "PGSSLMODE", "value": "verify-full"}, {"name": "PGSSLROOTCERT", "value": "/trusted/ca.crt"},
    ]);
    let by_tls = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    place.psql_with("shop", by_tls, &variables, Some(trusted)).await
}

async fn in_the_clear(place: &Place) -> String {
    let variables = json!([{"name": "PGSSLMODE", "value": "disable"}]);
    place.psql_with("shop", "SELECT 1", &variables, None).await
}

#[tokio::test]
async fn connections_are_encrypted_and_verified() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.create("shop", json!({"instances": 2})).await;
    place.is_ready("shop").await;
    assert_eq!(verified(&place, "shop-tls").await, "t");
    assert_eq!(in_the_clear(&place).await, "1");
    let replication = place.sampledb(&["psql", "shop", "--", "-Atc", REPLICATION]).await;
    assert!(replication.starts_with("1|"), "{replication}");

    // Another authority: clients that trust it get in, those who trust the one before do not, and the replica stays connected.
    let secrets = place.world.api::<Secret>();
    let before = secrets.get("shop-tls").await.unwrap();
    let mut kept: Secret = serde_json::from_value(json!({"metadata": {"name": "before"}})).unwrap();
    kept.data.clone_from(&before.data);
    secrets.create(&Default::default(), &kept).await.unwrap();
    secrets.delete("shop-ca", &DeleteParams::default()).await.unwrap();
    place
        .until("shop", "the server shows its new certificate", || async {
            verified(&place, "shop-tls").await == "t"
                && verified(&place, "before").await.contains("certificate verify failed")
        })
        .await;
    assert_eq!(place.sampledb(&["psql", "shop", "--", "-Atc", REPLICATION]).await, replication);

    // Who may not do without it, does not get in without it.
    place.change("shop", json!({"requireTLS": true})).await;
    place
        .until("shop", "TLS is required", || async {
            verified(&place, "shop-tls").await == "t" && in_the_clear(&place).await.contains("no encryption")
        })
        .await;
    place.is_ready("shop").await;
}
