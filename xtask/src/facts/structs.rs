//! Struct tags of Kubernetes' Go types: runs a program that reads them by reflection, with a `go.mod` of the reference's version.

use crate::reference::module_of;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("../../../crates/apiserver/facts/reflect/main.go");

/// The structs of all kinds in these groups and versions, one per line.
pub(super) fn reflect(version: &str, group_versions: &[String]) -> Result<String> {
    let folder =
        tempfile::Builder::new().prefix("windlass-facts").tempdir().context("cannot make a folder")?;
    fs::write(folder.path().join("go.mod"), module_of(version)?).context("cannot write go.mod")?;
    fs::write(folder.path().join("main.go"), PROGRAM).context("cannot write main.go")?;
    eprintln!("reflecting on the Go types of Kubernetes {version}; the first time takes minutes");
    let output = Command::new("go")
        .args(["run", "-mod=mod", "."])
        .args(group_versions)
        .current_dir(folder.path())
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run go")?;
    ensure!(output.status.success(), "the reflecting program failed ({})", output.status);
    String::from_utf8(output.stdout).context("the reflecting program printed no text")
}
