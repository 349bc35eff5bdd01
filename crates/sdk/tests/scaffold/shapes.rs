//! Projects of many shapes compile without a warning, are formatted, and pass their own tests.

use super::folder::{Folder, repository};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;
use windlass_sdk::scaffold::{Edit, License, NewKind, WebhookSort, edit, ownable};

type Make = fn(&Path, &str) -> anyhow::Result<()>;

/// Names a few shapes, with commas, where all would take too long.
const CHOICE: &str = "WINDLASS_SHAPES";

fn plain(below: &Path, name: &str) -> anyhow::Result<Folder> {
    Folder::init(below, name, License::Apache2, false)
}

const SHAPES: [(&str, Make); 18] = [
    ("shape-empty", |below, name| plain(below, name).map(drop)),
    ("shape-tutorial", |below, name| {
        plain(below, name)?.api("cache", "v1alpha1", "Memcached", &["Deployment", "Service"]).map(drop)
    }),
    ("shape-bare", |below, name| plain(below, name)?.api("notes", "v1", "Note", &[]).map(drop)),
    ("shape-cluster", |below, name| plain(below, name)?.cluster_api("fleet", "Region", &[]).map(drop)),
    ("shape-cluster-owning", |below, name| {
        plain(below, name)?.cluster_api("fleet", "Site", &["Deployment", "Service", "ConfigMap"]).map(drop)
    }),
    ("shape-groups", |below, name| {
        let folder = Folder::init(below, name, License::Mit, true)?;
        folder.api("cache", "v1", "Store", &["Deployment"])?;
        folder.api("shop", "v1beta1", "Store", &["ConfigMap"])?;
        folder.api("", "v1", "Backup", &["CronJob"]).map(drop)
    }),
    ("shape-kinds", |below, name| {
        let folder = plain(below, name)?;
        folder.api("shop", "v1", "Policy", &["ConfigMap"])?;
        folder.api("shop", "v1", "Gateway", &["Deployment"]).map(drop)
    }),
    ("shape-versions", |below, name| {
        let folder = plain(below, name)?;
        folder.api("shop", "v1alpha1", "Basket", &["Deployment"])?;
        folder.api("shop", "v1beta1", "Basket", &[])?;
        folder.api("shop", "v1", "Basket", &[]).map(drop)
    }),
    ("shape-webhooks", |below, name| {
        let folder = plain(below, name)?;
        folder.api("shop", "v1alpha1", "Basket", &["Deployment"])?;
        folder.api("shop", "v1", "Basket", &[])?;
        folder.webhook("Basket", &[WebhookSort::Defaulting, WebhookSort::Conversion])?;
        folder.cluster_api("shop", "Market", &["ConfigMap"])?;
        folder.webhook("Market", &[WebhookSort::Validation]).map(drop)
    }),
    ("shape-controllers", |below, name| {
        let folder = plain(below, name)?;
        folder.api("shop", "v1", "Ledger", &["Deployment", "Service"])?;
        folder.controller("Ledger", "backup")?;
        folder.controller("Ledger", "nightly-report").map(drop)
    }),
    ("shape-awkward", |below, name| {
        let folder = Folder::init(below, name, License::None, true)?;
        folder.api("match", "v1", "Type", &["ConfigMap"])?;
        folder.api("a.b-c", "v2beta10", "HTTPRoute", &[])?;
        folder.api("9lives", "v1", "Plan", &["Deployment"])?;
        folder.controller("Type", "async").map(drop)
    }),
    ("shape-stateful", |below, name| {
        let owns = ["StatefulSet", "Service", "Secret", "ServiceAccount"];
        plain(below, name)?.api("data", "v1", "Database", &owns).map(drop)
    }),
    ("shape-jobs", |below, name| {
        let folder = plain(below, name)?;
        folder.api("work", "v1", "Errand", &["Job"])?;
        folder.api("work", "v1", "Routine", &["CronJob", "ConfigMap"]).map(drop)
    }),
    ("shape-daemon", |below, name| {
        Folder::init(below, name, License::Mit, false)?.api("infra", "v1", "Agent", &["DaemonSet"]).map(drop)
    }),
    ("shape-edited", |below, name| {
        let folder = plain(below, name)?;
        folder.api("shop", "v1", "Shelf", &["ConfigMap"])?;
        let several = Edit { multigroup: Some(true), license: Some(License::Mit) };
        folder.change(|read| edit(&several, read))?;
        folder.api("stock", "v1", "Shelf", &["Secret"]).map(drop)
    }),
    ("shape-any", |below, name| {
        let folder = plain(below, name)?;
        folder.api("shop", "v1", "Part", &["ConfigMap"])?;
        let usual = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ConfigMap", "Secret"];
        // A claim is bound only when a pod uses it, and pods of several would be taken for each other's.
        let left_out = ["PersistentVolumeClaim", "ReplicationController", "Service", "ServiceAccount"];
        let kinds = ownable().into_iter().filter(|kind| !usual.contains(kind) && !left_out.contains(kind));
        folder.api("shop", "v1", "Whole", &kinds.chain(["Part"]).collect::<Vec<_>>()).map(drop)
    }),
    ("shape-any-cluster", |below, name| {
        let folder = plain(below, name)?;
        let owns = ["Namespace", "PersistentVolumeClaim", "NetworkPolicy", "ClusterRole", "RoleBinding"];
        folder.cluster_api("fleet", "Site", &owns).map(drop)
    }),
    ("shape-everything", |below, name| {
        let folder = plain(below, name)?;
        let owns = ["Deployment", "Service", "ConfigMap", "Secret", "ServiceAccount", "CronJob", "Job"];
        let (group, version, kind) = (String::new(), "v1".to_owned(), "Deployment".to_owned());
        let owns = owns.map(str::to_owned).to_vec();
        let plural = Some("rollouts".to_owned());
        folder.api_of(NewKind { group, version, kind, plural, namespaced: Some(true), owns }).map(drop)
    }),
];

/// The profile of this repository, so that what was built for its own tests serves these too.
fn profile() -> anyhow::Result<String> {
    let manifest = std::fs::read_to_string(repository().join("Cargo.toml"))?;
    let begins = manifest.find("[profile.dev]").context("no profile")?;
    let ends = manifest.find("[profile.release]").context("no end")?;
    Ok(manifest[begins..ends].to_owned())
}

#[test]
#[ignore = "it takes minutes: make test-scaffolds runs it"]
fn projects_of_every_shape_compile_without_a_warning_and_pass_their_tests() -> anyhow::Result<()> {
    let chosen = std::env::var(CHOICE).unwrap_or_default();
    let is_chosen =
        |name: &str| chosen.is_empty() || chosen.split(',').any(|one| name == format!("shape-{one}"));
    let workspace = tempfile::tempdir()?;
    let below = workspace.path();
    let mut members = Vec::new();
    for (name, make) in SHAPES.iter().filter(|(name, _)| is_chosen(name)) {
        make(below, name).with_context(|| (*name).to_owned())?;
        members.push(format!("{name:?}"));
        // Profiles count in a workspace's root alone, and cargo says so of every other.
        let manifest = below.join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)?;
        let cut = text.find("\n# Enough for backtraces").context("no profile in the project")?;
        std::fs::write(&manifest, &text[..cut])?;
    }
    ensure!(!members.is_empty(), "{CHOICE} names no shape");
    let root = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n{}{}",
        members.join(", "),
        profile()?,
        windlass_harness::projects::library_profiles()
    );
    std::fs::write(below.join("Cargo.toml"), root)?;
    std::fs::copy(repository().join("Cargo.lock"), below.join("Cargo.lock"))?;
    let cargo = |arguments: &[&str]| -> anyhow::Result<()> {
        let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        command.args(arguments).current_dir(below);
        command.env("CARGO_TARGET_DIR", repository().join("target")).env("CARGO_NET_OFFLINE", "true");
        // As the tutorial is built, so that they share what they build.
        command.env("CARGO_INCREMENTAL", "0");
        // What the outer cargo says of its own package is not said of these.
        for (name, _) in std::env::vars()
            .filter(|(name, _)| name.starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR")
        {
            command.env_remove(name);
        }
        let status = command.status()?;
        ensure!(status.success(), "cargo {arguments:?}: {status}");
        Ok(())
    };
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&[
        "clippy",
        "--quiet",
        "--keep-going",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ])?;
    cargo(&["test", "--quiet", "--no-fail-fast", "--workspace", "--test", "*"])
}
