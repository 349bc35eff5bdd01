//! The cluster of a kubeconfig.

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::Path;

/// A client for the cluster, which answers, and how it is reached.
pub(super) async fn to(path: &Path, context: Option<&str>) -> anyhow::Result<(Client, Config)> {
    let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("cannot use {}", path.display()))?;
    let chosen = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &chosen).await;
    let config = config.with_context(|| format!("cannot use {}", path.display()))?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config.clone()).with_context(|| format!("cannot connect to {server}"))?;
    client.apiserver_version().await.with_context(|| format!("no Kubernetes answers at {server}"))?;
    Ok((client, config))
}
