//! The custom resource definitions of well-known projects, as their modules carry them.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use windlass_clock::Clock;

/// What is pinned: one place for all versions.
const PINS: &str = include_str!("../well_known.txt");

/// How long one module may take to arrive.
const PATIENCE: Duration = Duration::from_secs(90);

/// No file of a definition is larger than this.
const MOST_BYTES: u64 = 8 << 20;

/// A project whose definitions are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The Go module that carries them.
    pub module: &'static str,
    version: &'static str,
    folder: &'static str,
}

/// Why a project's definitions could not be had.
#[derive(Debug)]
pub enum Missing {
    /// There is no Go here.
    Go,
    /// The module proxy was not reached, or does not have the module.
    Network(String),
}

/// All projects.
pub fn projects() -> Vec<Project> {
    let rows = PINS.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some(Project { module: words.next()?, version: words.next()?, folder: words.next()? })
    };
    rows.filter_map(row).collect()
}

impl Project {
    /// Has the module downloaded, and says where it is.
    ///
    /// # Errors
    /// When it is not to be had.
    pub async fn download(&self) -> Result<PathBuf, Missing> {
        let what = format!("{}@{}", self.module, self.version);
        let mut go = Command::new("go");
        go.args(["mod", "download", "-json", &what]).kill_on_drop(true);
        let output = match Clock::real().timeout(PATIENCE, go.output()).await {
            Err(_) => return Err(Missing::Network(format!("{what} did not arrive within {PATIENCE:?}"))),
            Ok(Err(_)) => return Err(Missing::Go),
            Ok(Ok(output)) => output,
        };
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match told["Dir"].as_str() {
            Some(folder) => Ok(PathBuf::from(folder).join(self.folder)),
            None => {
                Err(Missing::Network(format!("{what}: {}", told["Error"].as_str().unwrap_or("no answer"))))
            }
        }
    }
}

/// The definitions in the files of a folder, as YAML.
///
/// # Errors
/// When the folder cannot be read, or holds none.
pub fn definitions(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let yaml = file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if !yaml || std::fs::metadata(&file)?.len() > MOST_BYTES {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        let documents = text.split("\n---").map(|document| document.trim_start_matches("---"));
        let is_one = |document: &&str| document.lines().any(|line| line == "kind: CustomResourceDefinition");
        found.extend(documents.filter(is_one).filter(|document| !document.contains("{{")).map(str::to_owned));
    }
    ensure!(!found.is_empty(), "{} holds no definitions", folder.display());
    Ok(found)
}
