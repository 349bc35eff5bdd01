//! `windlass deploy` and `undeploy`: an operator in a cluster, as its manifests say.

use super::{Instance, Target, instances, listed, refuse_breaks};
use crate::apply::{self, Objects, title};
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use windlass_sdk::described::Described;
use windlass_sdk::generate::{Options as Given, manifests};

#[derive(Debug, clap::Args)]
pub(crate) struct Deploy {
    #[command(flatten)]
    target: Target,

    /// The operator's image, as the cluster's nodes can pull it
    #[arg(long)]
    image: String,

    /// The namespace that it runs in; without it, NAME-system
    #[arg(long)]
    namespace: Option<String>,

    /// Change kinds even where that breaks objects that are stored
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Undeploy {
    #[command(flatten)]
    target: Target,

    /// The namespace that it runs in; without it, NAME-system
    #[arg(long)]
    namespace: Option<String>,

    /// Also where objects have finalizers that nobody will remove then
    #[arg(long)]
    force: bool,
}

impl Deploy {
    pub(crate) async fn run(&self) -> anyhow::Result<ExitCode> {
        let operator = self.target.described()?;
        let installer = installer(&operator, self.namespace.as_deref(), &self.image)?;
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
        for object in installer(&operator, self.namespace.as_deref(), "unused")?.iter().rev() {
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

/// The objects that the operator would have to let go, and by what they are held.
fn stranded(all: &[Instance]) -> Vec<String> {
    let held = all.iter().filter(|one| !one.finalizers.is_empty());
    held.map(|one| format!("{}: {}", one.title, one.finalizers.join(", "))).collect()
}

/// All that is applied, in order: what `config/install.yaml` has, for this image.
fn installer(operator: &Described, namespace: Option<&str>, image: &str) -> anyhow::Result<Vec<Value>> {
    let namespace = namespace.map_or_else(|| format!("{}-system", operator.name), str::to_owned);
    let files = manifests(operator, &Given { namespace, image: image.to_owned() });
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
