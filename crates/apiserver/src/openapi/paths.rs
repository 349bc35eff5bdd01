//! The paths of a resource: what can be done where, with which parameters and bodies.

use super::{DELETE_OPTIONS, PATCH, PREFIX, STATUS};
use crate::resource::{Resource, Subresource};
use serde_json::{Map, Value, json};

const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];

const PATCHING: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];

const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// What an operation is about.
struct Subject<'a> {
    resource: &'a Resource,
    /// Group, version and kind, as operations name them.
    kind: Value,
    /// The end of its operations' names: `CoordinationV1NamespacedLease`.
    name: String,
}

/// What an operation does.
struct Operation<'a> {
    method: &'static str,
    /// `x-kubernetes-action`
    action: &'static str,
    /// What its name begins with.
    word: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// The definition of its body, with the body's media types.
    body: Option<(&'a str, &'a [&'static str])>,
    answers: &'a str,
    codes: &'static [u16],
}

/// Adds the paths of a resource whose definition has this name.
pub(super) fn add(resource: &Resource, definition: &str, paths: &mut Map<String, Value>) {
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{place}/{}", resource.plural);
    let list = format!("{definition}List");
    let subject = Subject::of(resource, "");
    let has = |verb: &str| resource.verbs.iter().any(|known| known == verb);
    let listing = Operation {
        method: "get",
        action: "list",
        word: "list",
        parameters: LIST,
        body: None,
        answers: &list,
        codes: &[200],
    };
    let whole = [
        (has("list"), Operation { ..listing }),
        (has("create"), writing("post", "create", definition, &[200, 201, 202])),
        (
            has("deletecollection"),
            Operation { action: "deletecollection", word: "deletecollection", ..deleting() },
        ),
    ];
    paths.insert(collection.clone(), subject.operations(&whole, false, resource.namespaced));
    if resource.namespaced {
        let everywhere =
            Subject { name: format!("{}ForAllNamespaces", subject.plain()), ..Subject::of(resource, "") };
        let operations = everywhere.operations(&[(has("list"), listing)], false, false);
        paths.insert(format!("{root}/{}", resource.plural), operations);
    }
    let single = objects(definition, resource.custom);
    let single = single.map(|(verb, operation)| (has(verb), operation));
    let delete = [(has("delete"), deleting())];
    let operations: Vec<_> = single.into_iter().chain(delete).collect();
    paths
        .insert(format!("{collection}/{{name}}"), subject.operations(&operations, true, resource.namespaced));
    for subresource in &resource.subresources {
        let subject = Subject::part(resource, subresource);
        let target = if subresource.kind == resource.kind { definition } else { SCALE };
        // What streams or proxies has no objects to describe.
        if subresource.kind != resource.kind && subresource.kind != "Scale" {
            continue;
        }
        let has = |verb: &str| subresource.verbs.iter().any(|known| known == verb);
        let operations = objects(target, resource.custom).map(|(verb, operation)| (has(verb), operation));
        let path = format!("{collection}/{{name}}/{}", subresource.name);
        paths.insert(path, subject.operations(&operations, true, resource.namespaced));
    }
}

/// The definition of what `scale` speaks.
pub(super) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

const fn writing<'a>(
    method: &'static str,
    word: &'static str,
    definition: &'a str,
    codes: &'static [u16],
) -> Operation<'a> {
    let body = Some((definition, ["*/*"].as_slice()));
    Operation { method, action: method, word, parameters: WRITE, body, answers: definition, codes }
}

const fn deleting() -> Operation<'static> {
    Operation {
        method: "delete",
        action: "delete",
        word: "delete",
        parameters: DELETE,
        body: Some((DELETE_OPTIONS, &["*/*"])),
        answers: STATUS,
        codes: &[200, 202],
    }
}

/// What can be done to one object or a part of it, by verb.
fn objects(definition: &str, custom: bool) -> [(&'static str, Operation<'_>); 3] {
    let get = Operation {
        method: "get",
        action: "get",
        word: "read",
        parameters: &[],
        body: None,
        answers: definition,
        codes: &[200],
    };
    // Custom resources have no strategic merge.
    let patches = if custom { &PATCHES[..3] } else { &PATCHES[..] };
    let patch = Operation {
        method: "patch",
        action: "patch",
        word: "patch",
        parameters: PATCHING,
        body: Some((PATCH, patches)),
        answers: definition,
        codes: &[200, 201],
    };
    [("get", get), ("update", writing("put", "replace", definition, &[200, 201])), ("patch", patch)]
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

impl<'a> Subject<'a> {
    fn of(resource: &'a Resource, part: &str) -> Self {
        let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        let place = if resource.namespaced { "Namespaced" } else { "" };
        let subject = Self { resource, kind, name: String::new() };
        let name = format!("{}{place}{}{}", subject.place(), resource.kind, capitalised(part));
        Self { name, ..subject }
    }

    fn part(resource: &'a Resource, part: &Subresource) -> Self {
        let kind = json!({"group": part.group, "version": part.version, "kind": part.kind});
        Self { kind, ..Self::of(resource, &part.name) }
    }

    /// `CoordinationV1`
    fn place(&self) -> String {
        let group = self.resource.group.split('.').next().unwrap_or_default();
        let group = if self.resource.group.is_empty() { "core" } else { group };
        format!("{}{}", capitalised(group), capitalised(&self.resource.version))
    }

    /// The name without its scope.
    fn plain(&self) -> String {
        format!("{}{}", self.place(), self.resource.kind)
    }

    /// A path's operations, with the parameters that they share.
    fn operations(&self, operations: &[(bool, Operation<'_>)], named: bool, placed: bool) -> Value {
        let mut path = Map::new();
        for (_, operation) in operations.iter().filter(|(has, _)| *has) {
            path.insert(operation.method.to_owned(), self.operation(operation));
        }
        let variable = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
        let mut shared = Vec::new();
        shared.extend(named.then(|| variable("name")));
        shared.extend(placed.then(|| variable("namespace")));
        shared.push(parameter("pretty", "string"));
        path.insert("parameters".to_owned(), shared.into());
        path.into()
    }

    fn operation(&self, operation: &Operation<'_>) -> Value {
        let group = match self.resource.group.split('.').next().unwrap_or_default() {
            "" => "core",
            group => group,
        };
        let answer =
            json!({"application/json": {"schema": {"$ref": format!("{PREFIX}{}", operation.answers)}}});
        let mut responses: Map<String, Value> = operation
            .codes
            .iter()
            .map(|code| {
                let description = match code {
                    201 => "Created",
                    202 => "Accepted",
                    _ => "OK",
                };
                (code.to_string(), json!({"description": description, "content": answer}))
            })
            .collect();
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        let parameters: Vec<Value> =
            operation.parameters.iter().map(|(name, kind)| parameter(name, kind)).collect();
        let mut made = json!({
            "tags": [format!("{group}_{}", self.resource.version)],
            "operationId": format!("{}{}", operation.word, self.name),
            "responses": responses,
            "parameters": parameters,
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": self.kind,
        });
        if let Some((definition, media)) = operation.body {
            let schema = json!({"schema": {"$ref": format!("{PREFIX}{definition}")}});
            let content: Map<String, Value> =
                media.iter().map(|media| ((*media).to_owned(), schema.clone())).collect();
            made["requestBody"] = json!({"content": content});
            if operation.method != "delete" {
                made["requestBody"]["required"] = true.into();
            }
        }
        made
    }
}

fn parameter(name: &str, kind: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}
