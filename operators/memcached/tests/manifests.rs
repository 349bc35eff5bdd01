//! The manifests under `config/` are those that the operator's description generates, and a cluster accepts them.

use anyhow::{Context, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::{Discovery, Scope};
use kube::{Api, CustomResourceExt};
use memcached_operator::api::v1beta1::{Memcached, MemcachedSpec};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use windlass::election::Election;
use windlass_sdk::description::OperatorDescription;
use windlass_sdk::files::{self, File, State};
use windlass_sdk::generate::{Options, manifests};
use windlass_testing::TestCluster;

fn generated() -> anyhow::Result<Vec<File>> {
    let output = Command::new(env!("CARGO_BIN_EXE_memcached-operator")).arg("describe").output()?;
    ensure!(output.status.success(), "describe: {}", output.status);
    let operator = OperatorDescription::read(std::str::from_utf8(&output.stdout)?)?;
    let namespace = "memcached-operator-system".to_owned();
    Ok(manifests(
        &operator,
        &Options { namespace, image: "memcached-operator:latest".to_owned(), cert_manager: false },
    ))
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
    cluster.install([memcached_operator::api::memcached().crd()?]).await?;
    let client = cluster.client();
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut applied = 0;
    let mut files = generated()?;
    // The namespace first, as in the installer; but before its webhooks, which nobody serves here, the samples that they would be asked about.
    files.sort_by_key(|file| (!file.path.starts_with("samples"), file.path != Path::new("install.yaml")));
    // The chart is text until somebody chooses, and monitoring is no object of a cluster.
    let is_manifest = |file: &&File| {
        !["chart", "monitoring", "reference.md"].iter().any(|other| file.path.starts_with(other))
    };
    for file in files.iter().filter(is_manifest) {
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

/// What Helm does with the few expressions that the chart has.
fn rendered(template: &str, values: &serde_json::Value) -> anyhow::Result<String> {
    let resources = serde_saphyr::to_string(&values["resources"])?;
    let mut lines = Vec::new();
    for line in template.lines() {
        match line.trim() == "{{- toYaml .Values.resources | nindent 10 }}" {
            true => lines.extend(resources.lines().map(|one| format!("{:10}{one}", ""))),
            false => lines.push(
                line.replace("{{ .Release.Namespace }}", "memcached-operator-system")
                    .replace("{{ .Values.image | quote }}", &values["image"].to_string())
                    .replace("{{ .Values.replicas }}", &values["replicas"].to_string()),
            ),
        }
    }
    let text = lines.join("\n");
    ensure!(!text.contains("{{"), "an expression is left: {text}");
    Ok(text)
}

#[test]
fn the_chart_installs_what_the_installer_does() -> anyhow::Result<()> {
    let files = generated()?;
    let text = |path: &str| -> anyhow::Result<&str> {
        let file = files.iter().find(|file| file.path == Path::new(path));
        Ok(&file.with_context(|| format!("no {path}"))?.text)
    };
    let values: serde_json::Value = serde_saphyr::from_str(text("chart/values.yaml")?)?;
    let read = |text: &str| serde_saphyr::from_multiple::<serde_json::Value>(text);
    let mut charted = Vec::new();
    for file in &files {
        if file.path.starts_with("chart/templates") {
            charted.extend(read(&rendered(&file.text, &values)?)?);
        } else if file.path.starts_with("chart/crds") {
            charted.extend(read(&file.text)?);
        }
    }
    // Helm makes the namespace itself.
    let mut installed = read(text("install.yaml")?)?;
    installed.retain(|object| object["kind"] != "Namespace");
    // And it does not fill in the files of CRDs: there the operator says who converts.
    for object in installed.iter_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let conversion = object["spec"].as_object_mut().and_then(|spec| spec.remove("conversion"));
        ensure!(conversion.is_some(), "the installer says who converts");
    }
    let sorted = |mut objects: Vec<serde_json::Value>| {
        objects.sort_by_key(|object| format!("{}{}", object["kind"], object["metadata"]["name"]));
        objects
    };
    assert_eq!(sorted(charted), sorted(installed));
    Ok(())
}

#[tokio::test]
async fn dashboard_and_alerts_ask_for_figures_that_there_are() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install([Memcached::crd()]).await?;
    let manager = memcached_operator::operator(cluster.manager())
        .leader_election(Election::new("default", "memcached"));
    let inspector = manager.inspector();
    let running = cluster.run_manager(manager);
    let spec = MemcachedSpec { size: 1, image: "memcached:1.6".into(), ..Default::default() };
    cluster.create(Memcached::new("sample", spec)).await?;
    cluster.eventually::<Memcached>("sample").has_condition("Ready", true).await?;
    let page = inspector.metrics();
    let mut asked = 0;
    for file in generated()?.iter().filter(|file| file.path.starts_with("monitoring")) {
        for name in figures(&file.text) {
            asked += 1;
            let sample =
                |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            ensure!(page.lines().any(sample), "{}: {name} is no figure of ours", file.path.display());
        }
    }
    ensure!(asked > 12, "{asked} figures");
    running.stop().await
}

/// The figures that expressions ask for: each names the job whose samples it chooses.
fn figures(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    text.match_indices("{job=").map(move |(at, _)| {
        let from = text[..at].rfind(|one| !is_name(one)).map_or(0, |before| before + 1);
        &text[from..at]
    })
}
