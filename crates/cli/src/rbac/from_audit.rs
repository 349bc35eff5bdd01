//! `windlass rbac from-audit`: reads an audit log, and prints roles and their bindings.

use super::least_rules::{self, Done, Rule};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass cluster up --audit-policy-file policy.yaml --audit-log-path audit.log
      audits what happens; a policy with the one rule `level: Metadata` is enough
  windlass rbac from-audit audit.log --user system:serviceaccount:shop:operator
      the roles and bindings that allow what this service account did, as YAML
  windlass rbac from-audit audit.log --user jane --resource-names
      only for the objects that were named
  windlass rbac from-audit audit.log --list
      the users in the log";

const GROUP: &str = "rbac.authorization.k8s.io";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The audit log: events of audit.k8s.io/v1, one JSON object per line; `-` for standard input
    #[arg(value_name = "FILE")]
    log: PathBuf,

    /// The user whose requests count; impersonated users count as themselves
    #[arg(long, required_unless_present = "list")]
    user: Option<String>,

    /// The name of the roles and bindings [default: made from the user's name]
    #[arg(long)]
    name: Option<String>,

    /// Allow only the objects that were named, where a name was given
    #[arg(long)]
    resource_names: bool,

    /// Allow also what was refused
    #[arg(long)]
    with_refused: bool,

    /// Print the users in the log, with the number of their requests
    #[arg(long, conflicts_with = "user")]
    list: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let shown = options.log.display();
    let input: Box<dyn BufRead> = match options.log.as_path() {
        path if path == Path::new("-") => Box::new(BufReader::new(io::stdin())),
        path => Box::new(BufReader::new(File::open(path).with_context(|| format!("cannot read {shown}"))?)),
    };
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    let mut done = BTreeSet::new();
    for (index, line) in input.lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {shown}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let event: Value = serde_json::from_str(&line)
            .with_context(|| format!("{shown}, line {}: this is no event in JSON", index + 1))?;
        let Some((user, act)) = Done::of(&event, options.with_refused) else { continue };
        *users.entry(user.clone()).or_default() += 1;
        if options.user.as_ref() == Some(&user) {
            done.insert(act);
        }
    }
    let mut out = io::stdout().lock();
    let Some(user) = &options.user else {
        for (user, requests) in users {
            writeln!(out, "{requests:>8}  {user}")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    if done.is_empty() {
        bail!("{shown} has no request of {user:?} that was allowed; --list prints the users that it has");
    }
    let name = options.name.clone().unwrap_or_else(|| role_name(user));
    for object in roles(&least_rules::of(&done, options.resource_names), user, &name) {
        writeln!(out, "---\n{}", serde_saphyr::to_string(&object)?.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A role for each place, and its binding.
fn roles(rules: &BTreeMap<Option<String>, Vec<Rule>>, user: &str, name: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for (namespace, rules) in rules {
        let (role, binding) = match namespace {
            Some(_) => ("Role", "RoleBinding"),
            None => ("ClusterRole", "ClusterRoleBinding"),
        };
        let mut metadata = json!({"name": name});
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        let version = format!("{GROUP}/v1");
        objects.push(json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules}));
        objects.push(json!({
            "apiVersion": version, "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": role, "name": name},
            "subjects": [subject(user)],
        }));
    }
    objects
}

fn subject(user: &str) -> Value {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, name)) => json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}),
        None => json!({"apiGroup": GROUP, "kind": "User", "name": user}),
    }
}

/// The name of a user as that of a role: a path segment.
fn role_name(user: &str) -> String {
    let user = user.strip_prefix("system:serviceaccount:").unwrap_or(user);
    let name: String = user
        .chars()
        .map(|one| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '-' })
        .collect();
    match name.trim_matches('-') {
        "" => "from-audit".to_owned(),
        name => name.to_owned(),
    }
}
