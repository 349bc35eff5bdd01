//! Admission of what leads to a node: exec, attach, port-forward and proxies. What webhooks and policies are told of are the
//! parameters.

use super::policies;
use super::webhooks::{Admitted, Rounds, Verb, kind_of, mutate, mutates, validate};
use crate::operation::Operation;
use crate::request::query::Query;
use crate::status::Status;
use serde_json::{Map, Value, json};

/// Asks whether a connection may be made, `path` being what is behind a proxy; the parameters as they are then, if they were changed.
///
/// # Errors
/// What the first webhook that refuses says.
pub(crate) async fn connect(
    operation: &Operation<'_>,
    path: Option<&str>,
    query: &Query,
) -> Result<Option<Query>, Status> {
    let mut changed = false;
    let mut options = Value::Null;
    if mutates(operation) {
        let webhooks = operation.api.webhooks.mutating();
        if !webhooks.is_empty() {
            options = shown(operation, path, query);
            let mut rounds = Rounds::default();
            let admitted = admitted(operation);
            for round in 0..2 {
                if !mutate(&webhooks, &admitted, Some(&mut options), &mut rounds, round).await? {
                    break;
                }
                changed = true;
            }
        }
    }
    if options.is_null() {
        // Shown only if anybody is to be asked.
        if operation.api.webhooks.validating().is_empty() && !policies::validates(operation) {
            return Ok(None);
        }
        options = shown(operation, path, query);
    }
    policies::validate(operation, Some(&options), || admitted(operation)).await?;
    validate(operation, Some(&options), || admitted(operation)).await?;
    Ok(changed.then(|| with_options(query, &options)))
}

fn admitted<'a>(operation: &'a Operation<'a>) -> Admitted<'a> {
    Admitted::new(operation, Verb::Connect, &operation.name, None, Value::Null)
}

/// The parameters that are flags.
const FLAGS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

/// The parameters as an object of the kind that the subresource takes.
fn shown(operation: &Operation<'_>, path: Option<&str>, query: &Query) -> Value {
    let (group, version, kind) = kind_of(&operation.resource, &operation.subresource);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut options = Map::new();
    match kind {
        "PodExecOptions" | "PodAttachOptions" => {
            for flag in FLAGS.into_iter().filter(|flag| query.flag(flag)) {
                options.insert(flag.to_owned(), json!(true));
            }
            if let Some(container) = query.get("container").filter(|name| !name.is_empty()) {
                options.insert("container".to_owned(), json!(container));
            }
            if kind == "PodExecOptions" {
                let command: Vec<&str> = query.all("command").collect();
                options.insert(
                    "command".to_owned(),
                    if command.is_empty() { Value::Null } else { json!(command) },
                );
            }
        }
        "PodPortForwardOptions" => {
            let ports: Vec<i64> = query
                .all("ports")
                .flat_map(|ports| ports.split(','))
                .filter_map(|port| port.parse().ok())
                .collect();
            if !ports.is_empty() {
                options.insert("ports".to_owned(), json!(ports));
            }
        }
        _ => {
            if let Some(path) = path {
                options.insert("path".to_owned(), json!(format!("/{path}")));
            }
        }
    }
    options.insert("kind".to_owned(), json!(kind));
    options.insert("apiVersion".to_owned(), json!(api_version));
    Value::Object(options)
}

/// A query with what a webhook made of its parameters.
fn with_options(query: &Query, options: &Value) -> Query {
    let fields = options.as_object().cloned().unwrap_or_default();
    let known = |name: &str| FLAGS.contains(&name) || matches!(name, "container" | "command" | "ports");
    let mut changed = Query::default();
    for (name, value) in query.pairs().filter(|(name, _)| !known(name)) {
        changed.push(name, value);
    }
    for flag in FLAGS {
        changed.push(flag, if fields.get(flag) == Some(&json!(true)) { "true" } else { "false" });
    }
    for (name, value) in fields.iter().filter(|(name, _)| known(name)) {
        match value {
            Value::String(text) => changed.push(name, text),
            Value::Array(items) => items.iter().for_each(|item| match item {
                Value::String(text) => changed.push(name, text),
                other => changed.push(name, &other.to_string()),
            }),
            _ => {}
        }
    }
    changed
}
