//! What a project has besides its code: its Makefile, its Dockerfile and its workflow name what there is.

use super::folder::Folder;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use windlass_sdk::scaffold::License;

fn folder() -> anyhow::Result<(tempfile::TempDir, Folder)> {
    let below = tempfile::tempdir()?;
    let folder = Folder::init(below.path(), "shop-operator", License::Apache2, false)?;
    Ok((below, folder))
}

/// What make would do, line by line.
fn make(folder: &Path, target: &str) -> anyhow::Result<Vec<String>> {
    let mut make = Command::new("make");
    make.args(["--dry-run", "--no-print-directory", target, "IMG=registry.example.com/shop:1"])
        .current_dir(folder);
    for name in ["MAKEFLAGS", "MFLAGS", "CARGO", "WINDLASS", "IMG"] {
        make.env_remove(name);
    }
    let said = make.output().context("cannot run make")?;
    ensure!(said.status.success(), "make {target}: {}", String::from_utf8_lossy(&said.stderr));
    Ok(String::from_utf8(said.stdout)?.lines().map(str::to_owned).collect())
}

#[test]
fn make_leaves_to_windlass_what_windlass_does() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    for (target, wanted) in [
        ("manifests", vec!["windlass generate --image registry.example.com/shop:1"]),
        ("check-manifests", vec!["windlass generate --image registry.example.com/shop:1 --check"]),
        ("install", vec!["windlass install"]),
        ("uninstall", vec!["windlass uninstall"]),
        ("run", vec!["windlass install", "windlass run"]),
        ("deploy", vec!["windlass deploy --image registry.example.com/shop:1"]),
        ("undeploy", vec!["windlass undeploy"]),
        ("build", vec!["cargo build"]),
    ] {
        assert_eq!(make(&folder.path, target)?, wanted, "make {target}");
    }
    let text = folder.text("Makefile")?;
    assert!(!text.contains("kubectl"), "{text}");
    let declared = text.lines().find_map(|line| line.strip_prefix(".PHONY: ")).context("no .PHONY")?;
    let targets: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| {
            Some(line.split_once(':')?.0).filter(|_| line.contains("## ") && !line.starts_with('\t'))
        })
        .collect();
    assert_eq!(declared.split(' ').collect::<BTreeSet<_>>(), targets, "each is listed and explained");
    Ok(())
}

#[test]
fn the_workflow_runs_targets_that_there_are() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    let workflow: Value = serde_saphyr::from_str(&folder.text(".github/workflows/ci.yaml")?)?;
    let steps = workflow.pointer("/jobs/check/steps").and_then(Value::as_array).context("no steps")?;
    let runs: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let targets: Vec<&str> = runs.iter().filter_map(|run| run.strip_prefix("make ")).collect();
    assert!(targets.contains(&"lint") && targets.contains(&"test"), "{runs:?}");
    for target in targets {
        make(&folder.path, target)?;
    }
    // What lint runs is installed before.
    assert!(runs.iter().any(|run| run.contains("clippy") && run.contains("rustfmt")), "{runs:?}");
    Ok(())
}

/// The words of a Dockerfile's instructions, by their first.
fn instructions<'a>(text: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let all = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    all.filter(|words| words.first() == Some(&name)).map(|words| words[1..].to_vec()).collect()
}

#[test]
fn the_image_has_what_cargo_makes_and_nothing_else() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    let text = folder.text("Dockerfile")?;
    let manifest = folder.text("Cargo.toml")?;
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).context("no Rust")?;
    let stages = instructions(&text, "FROM");
    // On Alpine cargo links statically: what it makes runs in an image that has nothing else.
    let base = format!("rust:{}-alpine", rust.trim_matches('"'));
    assert_eq!(stages, [vec![base.as_str(), "AS", "build"], vec!["scratch"]], "{text}");
    let builds = instructions(&text, "RUN");
    assert!(builds.iter().any(|words| words.join(" ") == "cargo build --profile dist --locked"), "{text}");
    assert!(folder.text(".dockerignore")?.lines().any(|line| line == "target"), "it builds its own");
    let copied = instructions(&text, "COPY").into_iter().find(|words| words[0] == "--from=build");
    assert_eq!(
        copied.context("nothing is copied")?[1..],
        ["/src/target/dist/shop-operator", "/shop-operator"]
    );
    let user = instructions(&text, "USER");
    let (user, group) = user[0][0].split_once(':').context("no group")?;
    // Kubernetes can tell that a number is not root, and of a name it cannot.
    assert!(user.parse::<u32>()? > 0 && group.parse::<u32>()? > 0, "{text}");
    assert_eq!(instructions(&text, "ENTRYPOINT"), [vec!["[\"/shop-operator\"]"]]);
    Ok(())
}
