//! `windlass deploy` and `undeploy`: an operator's manifests, applied to a cluster and deleted.

use super::{Instance, Target, instances, listed, refuse_breaks};
use crate::apply::{self, Objects, title};
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use windlass_sdk::description::OperatorDescription;
use windlass_sdk::generate::{Options as Given, manifests};

#[derive(Debug, clap::Args)]
pub(crate) struct Deploy {
    #[command(flatten)]
    target: Target,

    /// The operator's image, which the cluster's nodes can pull
    #[arg(long)]
    image: String,

    /// The operator's namespace [default: NAME-system]
    #[arg(long)]
    namespace: Option<String>,

    /// Let cert-manager make the certificates of webhooks, instead of the operator itself
    #[arg(long)]
    cert_manager: bool,

    /// Apply changes of CRDs that break stored custom resources
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Undeploy {
    #[command(flatten)]
    target: Target,

    /// The operator's namespace [default: NAME-system]
    #[arg(long)]
    namespace: Option<String>,

    /// cert-manager makes the certificates of webhooks, instead of the operator itself
    #[arg(long)]
    cert_manager: bool,

    /// Undeploy even if custom resources have finalizers that nobody will remove then
    #[arg(long)]
    force: bool,
}

impl Deploy {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let operator = self.target.described()?;
        let installer = installer(&operator, self.namespace.as_deref(), &self.image, self.cert_manager)?;
        let client = self.target.client().await?;
        if !self.force {
            refuse_breaks(&client, &operator).await?;
        }
        let mut objects = Objects::of(client);
        for object in &installer {
            let became = objects.apply(object).await?;
            println!("{:<9} {}", became.in_words(), title(object));
        }
        let deployment = installer.iter().find(|object| object["kind"] == "Deployment");
        if let Some(deployment) = deployment {
            let text =
                |pointer: &str| deployment.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            println!(
                "kubectl rollout status --namespace {} deployment/{} says when it runs",
                text("/metadata/namespace"),
                text("/metadata/name")
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Undeploy {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let operator = self.target.described()?;
        let client = self.target.client().await?;
        let found = instances(&client, &operator.kinds()).await?;
        let held = stranded(&found);
        if !held.is_empty() && !self.force {
            let count = held.len();
            bail!(
                "{count} objects could never be deleted without the operator, which removes their finalizers; \
                 delete them first (--force leaves them):{}",
                listed(held.into_iter())
            );
        }
        let mut objects = Objects::of(client);
        for object in
            installer(&operator, self.namespace.as_deref(), "unused", self.cert_manager)?.iter().rev()
        {
            // Its kinds stay, and with them what people declared: `uninstall` is for them.
            if object["kind"] == "CustomResourceDefinition" {
                continue;
            }
            let was_there = objects.delete(object).await?;
            println!("{:<9} {}", if was_there { "deleted" } else { "absent" }, title(object));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The custom resources with finalizers, which only the operator removes.
fn stranded(all: &[Instance]) -> Vec<String> {
    let held = all.iter().filter(|one| !one.finalizers.is_empty());
    held.map(|one| format!("{}: {}", one.title, one.finalizers.join(", "))).collect()
}

/// The objects to apply, in order: those of `config/install.yaml`, for this image.
fn installer(
    operator: &OperatorDescription,
    namespace: Option<&str>,
    image: &str,
    cert_manager: bool,
) -> anyhow::Result<Vec<Value>> {
    let namespace = namespace.map_or_else(|| format!("{}-system", operator.name), str::to_owned);
    let files = manifests(operator, &Given { namespace, image: image.to_owned(), cert_manager });
    let installer = files.iter().find(|file| file.path == Path::new("install.yaml"));
    apply::read(&installer.context("there is no installer")?.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_finalizers_is_stranded() {
        let instance = |title: &str, finalizers: &[&str]| Instance {
            title: title.to_owned(),
            finalizers: finalizers.iter().map(|&one| one.to_owned()).collect(),
        };
        let all = [instance("Thing a/free", &[]), instance("Thing a/held", &["x/y", "z"])];
        assert_eq!(stranded(&all), ["Thing a/held: x/y, z"]);
    }
}
