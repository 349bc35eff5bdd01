//! The command line of an operator: its commands, and its options as flags.

use super::layers::{InvalidOption, one_line, variable};
use super::options::Options;
use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, FromArgMatches, Parser};
use std::path::PathBuf;

/// The flags and commands of every operator, to be flattened into a parser of one's own; see [`crate::config`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    pub(crate) command: Option<Command>,
    pub(super) options: Options,
}

/// What an operator's binary does.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Subcommand)]
pub enum Command {
    /// Run the controllers; the default
    #[default]
    Run,
    /// Print what the operator watches and writes, its CRDs and its RBAC rules, as JSON
    Describe,
    /// Print what a decision about an object observes now, as JSON, with the data of Secrets redacted
    ///
    /// It prints one capture, or a list where several controllers are for the kind.
    Capture {
        /// Which object
        #[command(flatten)]
        object: ObjectName,
        /// Capture for this controller alone
        #[arg(long, value_name = "NAME")]
        controller: Option<String>,
        /// Keep the data of Secrets; needs --file
        #[arg(long, requires = "file")]
        with_secrets: bool,
        /// Write it to this file, which only you can read, instead of standard output
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print what the next reconcile of an object would do, by each controller of its kind; Secrets are redacted
    ///
    /// Without KIND and NAME, a capture is read from standard input.
    Plan {
        /// The kind of the object
        #[arg(requires = "name")]
        kind: Option<String>,
        /// The name of the object, or NAMESPACE/NAME
        name: Option<String>,
        /// Plan for this controller alone
        #[arg(long, value_name = "NAME")]
        controller: Option<String>,
    },
    /// Print what an object waits for, since when, and when it is reconciled again
    Why(ObjectName),
}

/// An object as a person names it: `Vault orders`, `vaults shop/orders`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ObjectName {
    /// The kind of the object
    pub kind: String,
    /// The name of the object, or NAMESPACE/NAME
    pub name: String,
}

/// What clap derives; [`Args`] adds what follows from an option's name.
#[derive(clap::Args)]
struct Derived {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

impl clap::Args for Args {
    fn augment_args(command: clap::Command) -> clap::Command {
        finish(Derived::augment_args(command))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        finish(Derived::augment_args_for_update(command))
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Derived { command, options } = Derived::from_arg_matches(matches)?;
        Ok(Self { command, options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options may stand before and after the command, the last of several counts, and the help names the variable.
fn finish(command: clap::Command) -> clap::Command {
    Options::names().fold(command, |command, name| {
        command.mut_arg(&name, |arg| {
            let id = arg.get_id().clone();
            let arg = match arg.get_action() {
                ArgAction::Set => arg.overrides_with(id),
                _ => arg,
            };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.global(true).help(format!("{help} [env: {}]", variable(&name)))
        })
    })
}

#[derive(Parser)]
#[command(about = "A Kubernetes operator, built on Windlass")]
#[command(
    after_help = "Options are also read from environment variables, and by their names from the file that --config names."
)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum CommandLine {
    Args(Box<Args>),
    /// To print this.
    Help(String),
}

/// Reads the words after the program's name.
pub(crate) fn parse(program: &str, words: &[String]) -> Result<CommandLine, InvalidOption> {
    use clap::CommandFactory;
    let program = program.to_owned();
    let command = Cli::command().display_name(program.clone()).bin_name(program).no_binary_name(true);
    let parsed = command.try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => Ok(CommandLine::Args(Box::new(cli.args))),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(CommandLine::Help(error.to_string())),
        Err(error) => Err(InvalidOption { place: "command line".to_owned(), message: one_line(&error) }),
    }
}
