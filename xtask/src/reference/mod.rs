//! `cargo xtask reference`: a real Kubernetes of the pinned version, built from published Go modules and kept outside
//! the tree, so that a second call is instant.

mod build;
mod job;
mod module;
// One source for where the reference lives; depending on the harness would drag a Kubernetes client into this build.
#[path = "../../../crates/harness/src/reference/location.rs"]
mod location;

pub(crate) use build::module_of;

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// The folder with the reference's programs: the one the user named, or the one that was built.
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    let (folder, remedy) = match location::named_assets() {
        Some(folder) => (folder, "correct or unset KUBEBUILDER_ASSETS, which names this folder"),
        None => (location::built_folder().map_err(anyhow::Error::msg)?, "run `make reference` (it needs Go)"),
    };
    let missing = location::missing_from(&folder, &location::REQUIRED);
    if !missing.is_empty() {
        bail!("{} lacks {}; {remedy}", folder.display(), missing.join(", "));
    }
    Ok(folder)
}

/// Builds the reference unless it is there, or the user named another.
pub(crate) fn ensure() -> anyhow::Result<()> {
    let version = location::version();
    if location::named_assets().is_some() {
        let folder = find()?;
        println!("the reference is {}, as KUBEBUILDER_ASSETS says; nothing to build", folder.display());
        return Ok(());
    }
    let folder = location::built_folder().map_err(anyhow::Error::msg)?;
    let wanted: Vec<&'static str> = location::REQUIRED.into_iter().chain(location::CONTROLLERS).collect();
    if location::missing_from(&folder, &wanted).is_empty() {
        println!("Kubernetes {version} is in {}", folder.display());
        return Ok(());
    }
    build::build(version, &module::REFERENCE, &folder)
        .with_context(|| format!("the reference Kubernetes {version} was not built"))?;
    println!("Kubernetes {version} is in {}", folder.display());
    Ok(())
}

/// Builds Kubernetes' own conformance tests unless they are there, and says where they are.
pub(crate) fn conformance() -> anyhow::Result<PathBuf> {
    let version = location::version();
    let beside = location::built_folder().map_err(anyhow::Error::msg)?;
    let cache = beside.parent().and_then(Path::parent).context("the reference's folder has parents")?;
    let folder = cache.join("conformance").join(version);
    let programs = module::CONFORMANCE.map(|(_, program)| program);
    if !location::missing_from(&folder, &programs).is_empty() {
        build::build(version, &module::CONFORMANCE, &folder)
            .with_context(|| format!("the conformance tests of Kubernetes {version} were not built"))?;
    }
    Ok(folder)
}

/// One line on what a run of the tests left out; nothing when it left nothing out.
pub(crate) fn say_skipped() {
    let set = |name: &str| std::env::var_os(name).is_some();
    if set("WINDLASS_SKIP_REFERENCE") {
        println!("skipped: the comparisons with a real Kubernetes (WINDLASS_SKIP_REFERENCE is set)");
    } else if !set("WINDLASS_REFERENCE_KUBECONFIG")
        && let Err(error) = find()
    {
        println!("skipped: the comparisons with a real Kubernetes ({error:#})");
    }
}
