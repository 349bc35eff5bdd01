//! `windlass completion`: what a shell needs to complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  source <(windlass completion bash)
  windlass completion zsh > \"${fpath[1]}/_windlass\"
  windlass completion fish > ~/.config/fish/completions/windlass.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The shell
    #[arg(value_parser = shells())]
    shell: Shell,
}

/// Those that it is tried with.
fn shells() -> impl clap::builder::TypedValueParser<Value = Shell> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(["bash", "zsh", "fish"]).map(|name| match name.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    })
}

impl Options {
    pub(crate) fn run<C: CommandFactory>(&self) -> anyhow::Result<ExitCode> {
        // A shell that closes the pipe early has what it wanted.
        let mut script = Vec::new();
        generate(self.shell, &mut C::command(), "windlass", &mut script);
        std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
        Ok(ExitCode::SUCCESS)
    }
}
