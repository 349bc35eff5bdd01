//! `windlass version`.

use std::io::Write;
use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "windlass {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "Kubernetes {}", windlass_apiserver::KUBERNETES_VERSION)?;
    Ok(ExitCode::SUCCESS)
}
