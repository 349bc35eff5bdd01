//! `windlass envtest path`: a folder with the programs that envtest starts.

use anyhow::Context;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_apiserver::KUBERNETES_VERSION;

pub(crate) const EXAMPLES: &str = "\
Examples:
  KUBEBUILDER_ASSETS=$(windlass envtest path) go test ./...
      runs the tests of a Go operator on windlass
  KUBEBUILDER_ASSETS=$(windlass envtest path) WINDLASS_ENVTEST=gc go test ./...
      with the garbage collector and the namespace controller, which envtest does not have
  setup-envtest use -i --bin-dir \"$(windlass envtest path --bin-dir)\" -p path
      the same folder, by setup-envtest

docs/envtest.md tells how to use it in other languages.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Print the folder that setup-envtest takes as --bin-dir instead
    #[arg(long)]
    bin_dir: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let bin_dir = data_home()?.join("windlass/envtest");
    let version = KUBERNETES_VERSION.trim_start_matches('v');
    let folder = bin_dir.join("k8s").join(format!("{version}-{}-{}", go_os(), go_arch()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let own = std::env::current_exe().context("cannot find this program")?;
    for name in ["kube-apiserver", "etcd"] {
        link(&own, &folder.join(name))?;
    }
    let kubectl = find_kubectl(&folder);
    link(kubectl.as_deref().unwrap_or(&own), &folder.join("kubectl"))?;
    println!("{}", if options.bin_dir { &bin_dir } else { &folder }.display());
    Ok(ExitCode::SUCCESS)
}

/// Makes a link, in place of whatever has its name: in one step, since tests may start it meanwhile.
fn link(target: &Path, link: &Path) -> anyhow::Result<()> {
    if fs::read_link(link).is_ok_and(|old| old == target) {
        return Ok(());
    }
    let new = link.with_extension(format!("new-{}", std::process::id()));
    let made = symlink(target, &new).and_then(|()| fs::rename(&new, link));
    made.with_context(|| format!("cannot make {}", link.display()))
}

/// The real kubectl, but not the one that was linked here before.
fn find_kubectl(folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|one| one.join("kubectl"));
    found.find(|one| one.is_file() && !one.starts_with(folder))
}

/// Where programs keep what they make, as the desktop's convention has it.
fn data_home() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    named.or_else(usual).context("neither XDG_DATA_HOME nor HOME is set")
}

/// Go's names of this machine, by which setup-envtest finds folders.
fn go_os() -> &'static str {
    if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS }
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
