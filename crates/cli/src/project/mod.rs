//! The commands that act on an operator's project.
//!
//! - `install`: installs and uninstalls its CRDs
//! - `run`: runs the operator on this machine; `watch` finds out when to rebuild it
//! - `deploy`: deploys it to a cluster, and undeploys it
//! - `image`: builds an image of its binary
//!
//! A project is a cargo package with one binary, which is asked to `describe` itself.
//!
//! All that these commands know of an operator is what that binary says of itself.

pub(crate) mod deploy;
pub(crate) mod image;
pub(crate) mod install;
pub(crate) mod run;
mod watch;

use crate::apply::tried;
use crate::connect;
use crate::operator::Options as Operator;
use anyhow::bail;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_sdk::breaking::breaking_changes;
use windlass_sdk::description::{DescribedKind, OperatorDescription};

/// Which operator, and which cluster.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    /// The operator's binary [default: WINDLASS_OPERATOR, or that of the project in this folder]
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,

    /// The kubeconfig of the cluster [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Target {
    fn described(&self) -> anyhow::Result<OperatorDescription> {
        Ok(OperatorDescription::read(&Operator::of(self.operator.clone()).answer("describe")?)?)
    }

    async fn client(&self) -> anyhow::Result<Client> {
        Ok(connect::to(self.kubeconfig.as_deref(), self.context.as_deref()).await?.0)
    }
}

/// Runs a command that waits more than it computes.
pub(crate) fn block_on(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    // One thread: children end with the thread that started them.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}

/// A custom resource of an operator's kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    title: String,
    finalizers: Vec<String>,
}

/// The custom resources of the operator's kinds, as far as the cluster serves them.
async fn instances(client: &Client, kinds: &[DescribedKind<'_>]) -> anyhow::Result<Vec<Instance>> {
    let mut found = Vec::new();
    for kind in kinds {
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: format!("{}/{}", kind.group, kind.version),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let objects = match api.list(&ListParams::default()).await {
            Ok(objects) => objects.items,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(tried(format!("cannot list {}", kind.plural), error)),
        };
        found.extend(objects.into_iter().map(|object| {
            let metadata = object.metadata;
            let name = metadata.name.unwrap_or_default();
            Instance {
                title: match metadata.namespace {
                    Some(namespace) => format!("{} {namespace}/{name}", kind.kind),
                    None => format!("{} {name}", kind.kind),
                },
                finalizers: metadata.finalizers.unwrap_or_default(),
            }
        }));
    }
    Ok(found)
}

/// Refuses changes of CRDs that would break stored custom resources.
async fn refuse_breaks(client: &Client, operator: &OperatorDescription) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut found = Vec::new();
    for definition in &operator.definitions {
        let (Some(name), Some(kind)) =
            (definition["metadata"]["name"].as_str(), DescribedKind::of(definition))
        else {
            continue;
        };
        let there = definitions.get_opt(name).await;
        let there = there.map_err(|error| tried(format!("cannot look at {name}"), error))?;
        let Some(there) = there else { continue };
        let breaking = breaking_changes(&serde_json::to_value(there)?, definition);
        if breaking.is_empty() || instances(client, &[kind]).await?.is_empty() {
            continue;
        }
        found.extend(breaking.iter().map(|one| format!("{name}: {one}")));
    }
    if !found.is_empty() {
        let fields = listed(found.into_iter());
        bail!(
            "the change would break stored custom resources; nothing was changed (--force applies it anyway):{fields}"
        );
    }
    Ok(())
}

/// A list for people, which ends somewhere.
fn listed(lines: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 10;
    let more = lines.len().saturating_sub(MOST);
    let mut text: String = lines.take(MOST).map(|line| format!("\n  {line}")).collect();
    if more > 0 {
        text += &format!("\n  and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end() {
        let text = listed((0..12).map(|number| number.to_string()));
        assert!(text.ends_with("\n  9\n  and 2 more"), "{text}");
    }
}
