//! Builds programs of Kubernetes: checks first, then one `go build` in a folder beside the final place, then one rename.

use super::job;
use super::module::{go_mod, linker_flags};
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the module cache, Go's build cache and the programs took when measured, with a margin.
const GIGABYTES_NEEDED: u64 = 5;

/// Builds these packages of Kubernetes `version` and those it depends on into `folder`, which appears only when it is
/// complete. A program whose name ends in `.test` is made of its package's tests.
pub(crate) fn build(version: &str, programs: &[(&str, &str)], folder: &Path) -> anyhow::Result<()> {
    check_go()?;
    let parent = folder.parent().context("the folder has a parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    check_disk(parent)?;

    let lock = File::create(parent.join(".lock")).context("cannot make the lock file")?;
    if lock.try_lock().is_err() {
        eprintln!("another build is under way; waiting for it");
        lock.lock().context("cannot wait for the other build")?;
        if programs.iter().all(|(_, program)| folder.join(program).is_file()) {
            return Ok(());
        }
    }
    // Under the lock, whatever is here was left by a build that was killed.
    let work = Unfinished(parent.join(format!(".{version}.unfinished")));
    work.clear()?;
    fs::create_dir_all(work.0.join("bin")).with_context(|| format!("cannot make {}", work.0.display()))?;

    eprintln!("building Kubernetes {version}: kept in {}, so this happens once", folder.display());
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(&work.0).env("CGO_ENABLED", "0").env("GOWORK", "off");
        command
    };
    fs::write(work.0.join("go.mod"), module_of(version)?).context("cannot write go.mod")?;

    let (tests, programs_alone): (Vec<_>, Vec<_>) =
        programs.iter().copied().partition(|(_, program)| program.ends_with(".test"));
    let all: Vec<&str> = programs.iter().map(|(package, _)| *package).collect();
    let packages: Vec<&str> = programs_alone.iter().map(|(package, _)| *package).collect();
    let list = [&["list", "-mod=mod", "-deps", "-test"], all.as_slice()].concat();
    let total = job::run("downloading its dependencies", 0, &mut go(&list))?.lines().count();
    let flags = linker_flags(version);
    let compile =
        ["build", "-mod=mod", "-v", "-trimpath", "-buildvcs=false", "-ldflags", &flags, "-o", "bin/"];
    job::run("compiling packages", total, &mut go(&[&compile, packages.as_slice()].concat()))?;

    for (package, program) in tests {
        let into = format!("bin/{program}");
        let compile = [
            "test",
            "-c",
            // Vetting tests that are others' takes most of half an hour.
            "-vet=off",
            "-mod=mod",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            &flags,
            "-o",
            &into,
            package,
        ];
        job::run("compiling tests", 0, &mut go(&compile))?;
    }
    let bin = work.0.join("bin");
    for (package, program) in programs_alone {
        // Go names a program after its package's folder.
        let made = bin.join(named_by_go(package));
        fs::rename(made, bin.join(program)).with_context(|| format!("go build made no {program}"))?;
    }
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    fs::rename(bin, folder).with_context(|| format!("cannot move the result to {}", folder.display()))
}

/// The last folder of a package that is no version.
fn named_by_go(package: &str) -> &str {
    let is_version = |part: &&str| !part.trim_start_matches('v').chars().all(|c| c.is_ascii_digit());
    package.rsplit('/').find(is_version).unwrap_or(package)
}

/// The `go.mod` of a program that uses Kubernetes `version`.
pub(crate) fn module_of(version: &str) -> anyhow::Result<String> {
    check_go()?;
    let kubernetes = format!("k8s.io/kubernetes@v{version}");
    let mut command = Command::new("go");
    command.args(["mod", "download", "-json", &kubernetes]).env("GOWORK", "off");
    let download = job::run("downloading Kubernetes", 0, &mut command)?;
    let description: serde_json::Value =
        serde_json::from_str(&download).context("`go mod download -json` answered no JSON")?;
    let path = description["GoMod"].as_str().context("`go mod download -json` names no GoMod")?;
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    go_mod(version, &text)
}

/// A folder of work in progress: gone when the build ends, however it ends.
struct Unfinished(PathBuf);

impl Unfinished {
    fn clear(&self) -> anyhow::Result<()> {
        if self.0.exists() {
            fs::remove_dir_all(&self.0).with_context(|| format!("cannot remove {}", self.0.display()))?;
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            eprintln!("warning: {error:#}");
        }
    }
}

fn check_go() -> anyhow::Result<()> {
    match Command::new("go").arg("version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => bail!(
            "the `go` command is not on PATH; install Go 1.26 or newer, or point KUBEBUILDER_ASSETS at a folder with etcd, kube-apiserver and kubectl"
        ),
    }
}

/// Refuses to begin what a full disk would end half-way. Where `df` cannot tell, the build itself will.
fn check_disk(folder: &Path) -> anyhow::Result<()> {
    let Ok(output) = Command::new("df").arg("-Pk").arg(folder).output() else { return Ok(()) };
    let text = String::from_utf8_lossy(&output.stdout);
    let free = text
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().nth(3))
        .and_then(|word| word.parse::<u64>().ok());
    match free {
        Some(kilobytes) if kilobytes < GIGABYTES_NEEDED * 1_000_000 => bail!(
            "it needs about {GIGABYTES_NEEDED} GB, and {} has {:.1} GB free; make room, or set XDG_CACHE_HOME (and Go's GOPATH and GOCACHE) to a larger disk",
            folder.display(),
            kilobytes as f64 / 1e6
        ),
        _ => Ok(()),
    }
}
