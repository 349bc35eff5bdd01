//! The manifests under `config/` follow from what the operator says of itself, and a cluster takes them.

use anyhow::{Context, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::{Discovery, Scope};
use kube::{Api, CustomResourceExt};
use memcached_operator::api::v1alpha1::Memcached;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use windlass_sdk::described::Described;
use windlass_sdk::files::{self, File, State};
use windlass_sdk::generate::{Options, manifests};
use windlass_testing::TestCluster;

fn generated() -> anyhow::Result<Vec<File>> {
    let output = Command::new(env!("CARGO_BIN_EXE_memcached-operator")).arg("describe").output()?;
    ensure!(output.status.success(), "describe: {}", output.status);
    let operator = Described::read(std::str::from_utf8(&output.stdout)?)?;
    let namespace = "memcached-operator-system".to_owned();
    Ok(manifests(&operator, &Options { namespace, image: "memcached-operator:latest".to_owned() }))
}

#[test]
fn the_manifests_on_disk_are_those_that_follow() -> anyhow::Result<()> {
    let files = generated()?;
    let states = files::compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("config"), &files)?;
    let stale: Vec<_> = files.iter().zip(states).filter(|(_, state)| *state != State::Same).collect();
    let stale: Vec<_> = stale.into_iter().map(|(file, state)| (&file.path, state)).collect();
    ensure!(stale.is_empty(), "run `windlass generate` in operators/memcached: {stale:?}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_takes_all_of_them() -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    cluster.install([Memcached::crd()]).await?;
    let client = cluster.client();
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut applied = 0;
    let mut files = generated()?;
    // The namespace first, as in the installer.
    files.sort_by_key(|file| file.path != Path::new("install.yaml"));
    for file in &files {
        for document in file.text.split("\n---\n") {
            let object: DynamicObject = serde_saphyr::from_str(document)?;
            let types = object.types.clone().context("a document without a kind")?;
            let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
            let kind = kube::api::GroupVersionKind::gvk(group, version, &types.kind);
            let (resource, capabilities) =
                discovery.resolve_gvk(&kind).with_context(|| format!("{kind:?} is unknown"))?;
            let name = object.metadata.name.clone().context("a document without a name")?;
            let namespace = object.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Namespaced => Api::namespaced_with(client.clone(), &namespace, &resource),
                Scope::Cluster => Api::all_with(client.clone(), &resource),
            };
            let mut strictly = PatchParams::apply("test");
            strictly.field_validation = Some(kube::api::ValidationDirective::Strict);
            api.patch(&name, &strictly, &Patch::Apply(&object))
                .await
                .with_context(|| format!("{} {name} of {}", types.kind, file.path.display()))?;
            applied += 1;
        }
    }
    ensure!(applied > 15, "{applied} objects");
    Ok(())
}

/// Only here to say that a manifest is read as what it is.
#[derive(Deserialize)]
struct Role {
    rules: Vec<serde_json::Value>,
}

#[test]
fn the_operator_may_do_nothing_to_secrets() -> anyhow::Result<()> {
    let files = generated()?;
    let role = files.iter().find(|file| file.path == Path::new("rbac/role.yaml")).context("no role")?;
    let role: Role = serde_saphyr::from_str(role.text.split("\n---\n").next().unwrap_or_default())?;
    let told = serde_json::to_string(&role.rules)?;
    ensure!(told.contains("\"deployments\"") && !told.contains("secrets") && !told.contains('*'), "{told}");
    Ok(())
}
