//! `windlass envtest`: stands in for the programs that envtest starts, so that the suites of operators in other languages run
//! on the embedded API unchanged.
//!
//! `windlass envtest path` makes a folder of links to this program, by the names that envtest looks for. Started by one of
//! these names, the program is that: `etcd` keeps a folder, and tells `kube-apiserver` where it is; `kube-apiserver` serves
//! the embedded API with its objects in there. Flags that a test suite may pass and that have no meaning here are warned
//! about, and ignored.

mod etcd;
mod flags;
mod kube_apiserver;
mod path;
mod serving_certificate;

use anyhow::bail;
use clap::Subcommand;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a folder with kube-apiserver, etcd and kubectl, for KUBEBUILDER_ASSETS
    #[command(after_help = path::EXAMPLES)]
    Path(path::Options),
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Path(options) => path::run(options),
        }
    }
}

/// Runs the program by whose name this one was started, if that is one that it stands in for.
pub(crate) fn stand_in() -> Option<anyhow::Result<ExitCode>> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let name = Path::new(&name).file_name().and_then(OsStr::to_str)?.to_owned();
    let run = match name.as_str() {
        "etcd" => etcd::run,
        "kube-apiserver" => kube_apiserver::run,
        "kubectl" => no_kubectl,
        _ => return None,
    };
    let text = |argument: std::ffi::OsString| argument.to_string_lossy().into_owned();
    let arguments: Vec<String> = arguments.map(text).collect();
    Some(run(&arguments))
}

fn no_kubectl(_: &[String]) -> anyhow::Result<ExitCode> {
    bail!(
        "there was no kubectl on this machine when `windlass envtest path` made this folder; install kubectl, and run it again"
    )
}
