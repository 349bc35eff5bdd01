//! The cargo package of an operator: where it is, and how its binary is built.

use anyhow::{Context, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A package of cargo.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    folder: PathBuf,
}

impl Project {
    /// The project that this folder is in.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let here = std::env::current_dir().context("cannot tell which folder this is")?;
        let folder = here.ancestors().find(|folder| folder.join("Cargo.toml").is_file());
        let folder =
            folder.with_context(|| format!("{} is in no project: there is no Cargo.toml", here.display()))?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Builds it, with cargo's own words on the terminal, and says where its binary is.
    pub(crate) fn build(&self) -> anyhow::Result<PathBuf> {
        self.build_with(&[], &[])
    }

    /// As [`Project::build`], with more arguments and variables.
    pub(crate) fn build_with(
        &self,
        arguments: &[&str],
        variables: &[(String, String)],
    ) -> anyhow::Result<PathBuf> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(&cargo);
        command.args(["build", "--bins", "--message-format", "json-render-diagnostics"]);
        command.args(arguments).envs(variables.iter().cloned());
        let built = command.current_dir(&self.folder).stderr(Stdio::inherit()).output();
        let built = built.with_context(|| format!("cannot run {}", cargo.display()))?;
        if !built.status.success() {
            bail!("{} cannot be built", self.folder.display());
        }
        let mut binaries = binaries(&String::from_utf8_lossy(&built.stdout));
        match (binaries.pop(), binaries.is_empty()) {
            (Some(one), true) => Ok(one),
            (None, _) => bail!("{} makes no binary", self.folder.display()),
            (Some(last), false) => {
                let names: Vec<_> =
                    binaries.iter().chain([&last]).map(|one| one.display().to_string()).collect();
                bail!(
                    "{} makes several binaries; --operator says which: {}",
                    self.folder.display(),
                    names.join(", ")
                )
            }
        }
    }
}

/// The programs that cargo says it built.
fn binaries(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binaries_are_among_what_cargo_says() {
        let said = "{\"reason\":\"compiler-artifact\",\"executable\":null}\nnoise\n\
                    {\"reason\":\"compiler-artifact\",\"executable\":\"/t/debug/op\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(binaries(said), [PathBuf::from("/t/debug/op")]);
    }
}
