//! `windlass describe`, `capture`, `plan` and `why`: every operator's binary answers them, and this asks it.

use crate::cargo_project::Project;
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Names the operator's binary where the option does not.
const VARIABLE: &str = "WINDLASS_OPERATOR";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The operator's binary [default: WINDLASS_OPERATOR, or that of the project in this folder]
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// Arguments for the operator; it lists its options with --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

impl Options {
    /// Which operator, without anything to tell it.
    pub(crate) fn of(operator: Option<PathBuf>) -> Self {
        Self { operator, arguments: Vec::new() }
    }

    /// The operator's binary; that of the project here, built, where none is named.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        match self.operator.clone().or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from)) {
            Some(operator) => Ok(operator),
            None => Project::find()
                .and_then(|project| project.build())
                .with_context(|| format!("which operator? --operator or {VARIABLE} names its binary")),
        }
    }

    /// What the operator answers.
    pub(crate) fn answer(&self, what: &str) -> anyhow::Result<String> {
        let operator = self.program()?;
        let output =
            Command::new(&operator).arg(what).args(&self.arguments).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot run {}", operator.display()))?;
        anyhow::ensure!(output.status.success(), "{} {what} failed ({})", operator.display(), output.status);
        String::from_utf8(output.stdout)
            .with_context(|| format!("{} {what} does not answer in UTF-8", operator.display()))
    }
}

/// Asks the operator, whose answer goes where ours would.
pub(crate) fn ask(what: &str, options: &Options) -> anyhow::Result<ExitCode> {
    let operator = options.program()?;
    let status = Command::new(&operator).arg(what).args(&options.arguments).status();
    let status = status.with_context(|| format!("cannot run {}", operator.display()))?;
    // Ended by a signal, it has no code; it failed all the same.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
