//! A client for the cluster of a kubeconfig.

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::Path;

/// A client for the cluster, which answers, and how it is reached. Without a path, the kubeconfig is the user's own: that of
/// `KUBECONFIG`, or `~/.kube/config`.
pub(crate) async fn to(path: Option<&Path>, context: Option<&str>) -> anyhow::Result<(Client, Config)> {
    let (read, shown) = match path {
        Some(path) => (Kubeconfig::read_from(path), path.display().to_string()),
        None => (Kubeconfig::read(), "your kubeconfig".to_owned()),
    };
    let kubeconfig = read.with_context(|| format!("cannot use {shown}"))?;
    let chosen = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &chosen).await;
    let config = config.with_context(|| format!("cannot use {shown}"))?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config.clone()).with_context(|| format!("cannot connect to {server}"))?;
    client.apiserver_version().await.with_context(|| format!("no Kubernetes answers at {server}"))?;
    Ok((client, config))
}
