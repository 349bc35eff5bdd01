//! A token that expires, in a file that is rotated as the kubelet rotates it.

use anyhow::{Context, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Config;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::TcpListener;
use windlass::Manager;
use windlass_clock::Clock;
use windlass_harness::Target;
use windlass_testing::{Data, TestCluster, config_map, named};
use windlass_tests::mirror;

/// As short as the API makes them.
const TOKEN_LIFE: Duration = Duration::from_secs(600);

/// How long the client keeps a token that it has read, by the machine's clock, and some.
const KEPT: Duration = Duration::from_secs(58);

pub async fn token_expires(_: Target) -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    let api = cluster.embedded().context("embedded")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let serving = api.serve_tls(listener)?;
    cluster.create(named::<ServiceAccount>("operator")).await?;
    cluster.create(binding(&cluster)?).await?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), token(&cluster).await?)?;

    let mut config = Config::new(format!("https://{}", serving.address()).parse()?);
    config.root_cert = Some(vec![pem_to_der(api.credentials()?.ca_certificate())?]);
    config.auth_info.token_file = Some(file.path().to_string_lossy().into_owned());
    let manager = Manager::new(kube::Client::try_from(config)?, cluster.clock().clone());
    let operator =
        cluster.run_manager(manager.namespace(cluster.namespace()).controller(mirror::controller()));
    cluster.create(config_map("before").data("k", "v")).await?;
    mirror::shows(&cluster, "before", "v").await?;
    let read_at = Clock::real().moment();

    // It expires, and everything is refused; the watches that go on end when their time is over.
    cluster.advance(TOKEN_LIFE + Duration::from_secs(120)).await;
    cluster.create(config_map("after").data("k", "v")).await?;
    cluster.run_clock_while(Clock::real().sleep(Duration::from_secs(1))).await;
    ensure!(cluster.find::<Secret>("after").await?.is_none(), "an expired token must not do");
    ensure!(!operator.has_ended(), "a token that expired is no reason to end");

    // A new one is put into the file. The client reads it when it thinks the time has come, and the operator goes on.
    std::fs::write(file.path(), token(&cluster).await?)?;
    let left = KEPT.saturating_sub(Clock::real().moment() - read_at);
    Clock::real().sleep(left).await;
    for _ in 0..120 {
        if cluster.find::<Secret>("after").await?.is_some() {
            break;
        }
        cluster.advance(Duration::from_secs(1)).await;
        Clock::real().sleep(Duration::from_millis(10)).await;
    }
    mirror::shows(&cluster, "after", "v").await?;
    operator.stop().await?;
    serving.stop().await;
    Ok(())
}

/// Lets the account do what the operator does.
fn binding(cluster: &TestCluster) -> anyhow::Result<RoleBinding> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": "operator", "namespace": cluster.namespace() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "operator", "namespace": cluster.namespace() }],
    }))?)
}

async fn token(cluster: &TestCluster) -> anyhow::Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), cluster.namespace());
    let seconds = i64::try_from(TOKEN_LIFE.as_secs())?;
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let made = accounts.create_token_request("operator", &PostParams::default(), &request).await?;
    made.status.and_then(|status| status.token).context("a token")
}

fn pem_to_der(pem: &str) -> anyhow::Result<Vec<u8>> {
    use base64::Engine;
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    Ok(base64::engine::general_purpose::STANDARD.decode(body)?)
}
