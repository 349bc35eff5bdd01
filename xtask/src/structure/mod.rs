//! What `make lint` checks of the structure: no cycle among the top-level modules of a crate, and no crate that depends on one
//! further up.

mod crates;
mod modules;
mod uses;

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks everything, and names all that is wrong.
pub fn check() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the task is not in a workspace")?;
    let packages = packages(root)?;
    let mut wrong = crates::out_of_order(root, &packages)?;
    for package in &packages {
        for main in ["lib.rs", "main.rs"] {
            let file = package.folder.join("src").join(main);
            if file.exists() {
                wrong.extend(modules::cycle(&package.name, &file)?);
            }
        }
    }
    if !wrong.is_empty() {
        bail!("the structure is not as it should be:\n  {}", wrong.join("\n  "));
    }
    println!("{} crates in order, and no cycle among the modules of any", packages.len());
    Ok(())
}

/// A crate of the workspace.
struct Package {
    name: String,
    folder: PathBuf,
    /// The crates that it depends on, but for its tests.
    depends_on: Vec<String>,
}

fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata could not be run")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let package = |package: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        Package {
            name: text(&package["name"]),
            folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
            depends_on: dependencies
                .filter(|dependency| dependency["path"].is_string() && dependency["kind"] != "dev")
                .map(|dependency| text(&dependency["name"]))
                .collect(),
        }
    };
    Ok(packages.iter().map(package).collect())
}
