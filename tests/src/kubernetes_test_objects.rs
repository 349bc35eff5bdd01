//! The objects in the test data of the Go module `k8s.io/api`, as JSON and as protobuf: read from the Go
//! module cache, never kept here.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// One object in both forms.
pub struct OwnObject {
    /// `apps.v1.Deployment`
    pub name: String,
    /// As JSON.
    pub json: Vec<u8>,
    /// As protobuf, in its envelope.
    pub protobuf: Vec<u8>,
}

/// All of them, for the Kubernetes of this version; none where there is no Go.
///
/// # Errors
/// When the module cannot be downloaded or read.
pub fn all(version: &str) -> anyhow::Result<Option<Vec<OwnObject>>> {
    let version = version.trim().trim_start_matches("1.");
    let module = format!("k8s.io/api@v0.{version}");
    let Ok(output) = Command::new("go").args(["mod", "download", "-json", &module]).output() else {
        return Ok(None);
    };
    ensure!(output.status.success(), "go mod download {module}: {}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).context("go prints JSON")?;
    let folder = PathBuf::from(found["Dir"].as_str().context("a folder")?).join("testdata/HEAD");
    let mut objects = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "pb") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let json = std::fs::read(path.with_extension("json"))?;
            objects.push(OwnObject { name, json, protobuf: std::fs::read(&path)? });
        }
    }
    objects.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(objects))
}
