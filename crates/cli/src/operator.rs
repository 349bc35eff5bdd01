//! `windlass describe`, `capture`, `plan` and `why`: every operator's binary answers them, and this asks it.

use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Names the operator's binary where the option does not.
const VARIABLE: &str = "WINDLASS_OPERATOR";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The operator's binary; without it, the one that WINDLASS_OPERATOR names
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// What the operator is told; it lists its options with --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Asks the operator, whose answer goes where ours would.
pub(crate) fn ask(what: &str, options: &Options) -> anyhow::Result<ExitCode> {
    let operator = options.operator.clone().or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    let operator = operator
        .with_context(|| format!("which operator? Name its binary with --operator, or in {VARIABLE}"))?;
    let status = Command::new(&operator).arg(what).args(&options.arguments).status();
    let status = status.with_context(|| format!("cannot run {}", operator.display()))?;
    // Ended by a signal, it has no code; it failed all the same.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
