//! What pods reach, and how they are reached from this machine.

use super::fixture::{Fixture, Test, Wanted, Wants, phase};
use anyhow::Context;
use futures::FutureExt;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::{Client, Config, ResourceExt};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_clock::Clock;
use windlass_node::net::Network;
use windlass_node::shim::Shim;

/// So often it is asked.
const TRIES: usize = 100;
/// What this program is told in a pod that asks the API who it is.
pub(crate) const ASKS: &str = "ask-api";

pub(crate) const ALL: &[(&str, Wanted, Test)] = &[
    (
        "a_pod_asks_the_api_by_its_name_with_its_own_token",
        || Wants { served: true, ..Wants::default() },
        |fixture| asks(fixture).boxed_local(),
    ),
    ("ports_are_forwarded_to_the_pods_own_loopback", Wants::default, |fixture| {
        forwarded(fixture).boxed_local()
    }),
];

/// In a pod: asks `https://kubernetes.default.svc` as every operator does, with the files that a pod is given.
pub(crate) fn ask() -> ExitCode {
    let once = async || -> anyhow::Result<String> {
        let config = Config::incluster_dns()?;
        let at = config.cluster_url.to_string();
        let reviews: Api<SelfSubjectReview> = Api::all(Client::try_from(config)?);
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
        let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
        Ok(format!("{at} knows {}", user.username.unwrap_or_default()))
    };
    let asked = || -> anyhow::Result<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let clock = Clock::real();
            // Services take a moment to be known.
            for _ in 0..TRIES {
                if let Ok(said) = once().await {
                    return Ok(said);
                }
                clock.sleep(Duration::from_millis(100)).await;
            }
            once().await
        })
    };
    match asked() {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

async fn asks(fixture: &Fixture) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    let recipe = json!({"images": {"asks": {"shows": [program], "command": [program, ASKS]}}});
    std::fs::write(fixture.recipes(), recipe.to_string())?;
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::default_namespaced(fixture.client.clone());
    fixture
        .eventually("there is an account", async || Ok(accounts.get_opt("default").await?.is_some()))
        .await?;
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "asks"}]});
    let pod = fixture.run("asks", spec).await?;
    let ended = |pod: &Pod| ["Succeeded", "Failed"].contains(&phase(pod));
    fixture.until("asks", "at its end", ended).await?;
    let said = fixture.log(&pod, "main", 0)?;
    assert_eq!(said, "https://kubernetes.default.svc/ knows system:serviceaccount:default:default\n");
    Ok(())
}

async fn forwarded(fixture: &Fixture) -> anyhow::Result<()> {
    // It listens for nobody but itself.
    let script = "mkdir /www; echo hello > /www/index.html; exec busybox httpd -f -p 127.0.0.1:8080 -h /www";
    let spec = json!({"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", script]},
    ]});
    fixture.run("shy", spec).await?;
    let pod = fixture.until_ready("shy").await?;
    let shim = Shim::find(&fixture.root().join("pods").join(pod.uid().context("it has a UID")?)).await;
    let shim = shim.context("it has a shim")?;
    fixture
        .eventually("it answers on its loopback", async || {
            let Ok(mut stream) = shim.connect_to(8080).await else { return Ok(false) };
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
            let mut said = String::new();
            stream.read_to_string(&mut said).await?;
            Ok(said.ends_with("hello\n"))
        })
        .await?;
    // From elsewhere in the node's network it is not to be reached: nobody listens at the pod's address.
    let network = Network::find(&fixture.root().join("network")).await.context("the node has a network")?;
    let address = pod.status.and_then(|status| status.pod_ip).context("it has an address")?;
    assert!(network.connect(format!("{address}:8080").parse()?).await.is_err());
    // Nor is the machine's own loopback meant.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    let why = shim.connect_to(port).await.expect_err("nobody listens there in the pod").to_string();
    assert!(why.starts_with(&format!("failed to connect to localhost:{port} inside the pod: ")), "{why}");
    Ok(())
}
