//! `windlass cluster kubeconfig`: what clients need to reach a cluster that runs, as its administrator or as anybody else.

use super::control::{self, Identity, Issued};
use super::find::{self, Selection};
use super::kubeconfig::Kubeconfig;
use anyhow::{Context, bail};
use std::io::Write;
use std::process::ExitCode;

/// What follows the options.
pub(crate) fn after_help() -> String {
    format!(
        "Examples:\n  \
         windlass cluster kubeconfig > admin.yaml\n  \
         windlass cluster kubeconfig --as jane:devs:ops > jane.yaml\n      \
         a kubeconfig of the user jane in the groups devs and ops, with a certificate of its own\n  \
         windlass cluster kubeconfig --as system:node:n1 --as-group system:nodes\n\n{}",
        find::SELECTION
    )
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,

    /// Print where the file is, instead of what is in it
    #[arg(long)]
    path: bool,

    /// Print a kubeconfig for this user, with a new certificate; groups may follow the name. Names that begin with `system:` are
    /// taken whole
    #[arg(long = "as", value_name = "USER[:GROUP...]", conflicts_with = "path")]
    user: Option<String>,

    /// A group of that user; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = options.selection.find()?;
    let path = &found.record.kubeconfig;
    let shown = match &options.user {
        Some(user) => {
            let identity = identity(user, &options.groups)?;
            let command = format!("issue {}", serde_json::to_string(&identity)?);
            let issued: Issued = serde_json::from_str(&control::ask(&found.folder, &command)?)?;
            Kubeconfig::open(path)?.for_user(&identity.user, &issued.certificate, &issued.key)?
        }
        None if options.path => format!("{}\n", path.display()),
        None => std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
    };
    // A pipe that is no longer read is not an error.
    let _ = std::io::stdout().write_all(shown.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// The user and the groups that are named. The names of Kubernetes' own users have colons in them.
fn identity(text: &str, groups: &[String]) -> anyhow::Result<Identity> {
    let (user, after) = match text.split_once(':') {
        Some((user, after)) if user != "system" => (user, Some(after)),
        _ => (text, None),
    };
    let named = after.into_iter().flat_map(|after| after.split(':')).map(str::to_owned);
    let groups: Vec<String> = named.chain(groups.iter().cloned()).collect();
    if user.is_empty() || groups.iter().any(String::is_empty) {
        bail!("--as {text}: a user or a group has no name");
    }
    Ok(Identity { user: user.to_owned(), groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_the_user_unless_the_name_is_one_of_the_systems() {
        let read = |text: &str, groups: &[&str]| {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            identity(text, &groups).map(|identity| (identity.user, identity.groups.join(" "))).ok()
        };
        let is = |user: &str, groups: &str| Some((user.to_owned(), groups.to_owned()));
        assert_eq!(read("jane", &[]), is("jane", ""));
        assert_eq!(read("jane:devs:ops", &["more"]), is("jane", "devs ops more"));
        assert_eq!(read("system:node:n1", &["system:nodes"]), is("system:node:n1", "system:nodes"));
        for wrong in ["", ":devs", "jane:", "jane::ops"] {
            assert_eq!(read(wrong, &[]), None, "{wrong}");
        }
    }
}
