//! What discovery and the OpenAPI documents say: the rows of discovery and the schema definitions, without descriptions;
//! the same server always gives the same bytes.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

const KINDS_KEY: &str = "x-kubernetes-group-version-kind";

/// Whose definitions are called so are Kubernetes' own; all else on a server is someone's.
const OWN: &str = "io.k8s.";

/// Everything to write, asked for with `get`.
pub(super) fn collect(get: &dyn Fn(&str) -> Result<Value>) -> Result<Value> {
    let version = get("/version")?["gitVersion"].as_str().context("the server has no version")?.to_owned();
    let mut known = BTreeMap::new();
    let (mut groups, mut rows) = (Vec::new(), Vec::new());
    for (group, versions) in offered(get)? {
        let mut own = Vec::new();
        for version in versions {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let mut defined = BTreeMap::new();
            learn(&mut defined, get(&format!("/openapi/v3/{path}"))?).with_context(|| path.clone())?;
            let discovered = get(&format!("/{path}"))?;
            let found = rows_of(&discovered, &defined, &group, &version).with_context(|| path.clone())?;
            if found.is_empty() {
                continue;
            }
            rows.extend(found);
            merge(&mut known, defined)?;
            own.push(version);
        }
        if !own.is_empty() {
            groups.push(json!({ "name": group, "versions": own }));
        }
    }
    rows.sort_by_key(|row| {
        ["group", "version", "plural"].map(|field| row[field].as_str().map(str::to_owned))
    });
    let definitions: Map<String, Value> = known.into_iter().collect();
    Ok(json!({ "version": version, "groups": groups, "definitions": definitions, "resources": rows }))
}

/// `group/version` of all that was written down.
pub(super) fn group_versions(facts: &Value) -> Vec<String> {
    let strings = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let mut all = Vec::new();
    for group in facts["groups"].as_array().into_iter().flatten() {
        let name = group["name"].as_str().unwrap_or_default();
        all.extend(
            strings(&group["versions"])
                .iter()
                .map(|version| if name.is_empty() { version.clone() } else { format!("{name}/{version}") }),
        );
    }
    all
}

/// The groups with their versions, as the server orders them.
fn offered(get: &dyn Fn(&str) -> Result<Value>) -> Result<Vec<(String, Vec<String>)>> {
    let mut offered = vec![(String::new(), vec!["v1".to_owned()])];
    let groups = get("/apis")?;
    for group in groups["groups"].as_array().context("the server lists no groups")? {
        let name = group["name"].as_str().context("a group has no name")?;
        let versions = group["versions"].as_array().into_iter().flatten();
        let versions = versions.filter_map(|version| version["version"].as_str().map(str::to_owned));
        offered.push((name.to_owned(), versions.collect()));
    }
    Ok(offered)
}

/// Adds the definitions of an OpenAPI document to those that are known, without descriptions.
fn learn(known: &mut BTreeMap<String, Value>, mut document: Value) -> Result<()> {
    let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas").map(Value::take) else {
        bail!("the OpenAPI document has no schemas");
    };
    let stripped = schemas.into_iter().map(|(name, mut schema)| {
        strip(&mut schema);
        (name, schema)
    });
    merge(known, stripped)
}

/// Adds definitions to those that are known: where both know one, they must agree.
fn merge(known: &mut BTreeMap<String, Value>, more: impl IntoIterator<Item = (String, Value)>) -> Result<()> {
    for (name, mut schema) in more {
        match known.entry(name) {
            Entry::Vacant(vacant) => _ = vacant.insert(schema),
            Entry::Occupied(mut before) => {
                join_kinds(before.get_mut(), &mut schema);
                ensure!(*before.get() == schema, "two documents disagree about {}", before.key());
            }
        }
    }
    Ok(())
}

/// Gives both the kinds of either. What all groups share, such as DeleteOptions, is a kind in each of them, and a
/// document names only those that its server knows.
fn join_kinds(one: &mut Value, other: &mut Value) {
    let kinds = [&*one, &*other].map(|schema| schema[KINDS_KEY].as_array().cloned().unwrap_or_default());
    let mut kinds = kinds.concat();
    if kinds.is_empty() {
        return;
    }
    kinds.sort_by_key(|kind| {
        ["group", "version", "kind"].map(|field| kind[field].as_str().map(str::to_owned))
    });
    kinds.dedup();
    one[KINDS_KEY] = Value::Array(kinds.clone());
    other[KINDS_KEY] = Value::Array(kinds);
}

/// Calls `visit` for every schema directly inside `schema`. Only these places hold schemas: elsewhere the same words are
/// data, and in `properties` they are the names of fields.
fn for_each_child(schema: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(schemas)) => schemas.values_mut().for_each(&mut *visit),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(&mut *visit),
            ("additionalProperties" | "items" | "not", schema) => visit(schema),
            _ => {}
        }
    }
}

/// Removes descriptions: they are prose of others, and most of the bytes.
fn strip(schema: &mut Value) {
    if let Value::Object(schema) = schema {
        schema.remove("description");
        for_each_child(schema, &mut strip);
    }
}

/// The name of the definition that is this kind and no other.
fn definition_of(known: &BTreeMap<String, Value>, group: &str, version: &str, kind: &str) -> Option<String> {
    let wanted = json!([{ "group": group, "version": version, "kind": kind }]);
    let mut found = known.iter().filter(|(_, schema)| schema[KINDS_KEY] == wanted);
    found.next().map(|(name, _)| name.clone())
}

/// The resources of one group and version that are Kubernetes' own, as discovery shows them.
fn rows_of(
    discovered: &Value,
    defined: &BTreeMap<String, Value>,
    group: &str,
    version: &str,
) -> Result<Vec<Value>> {
    let resources = discovered["resources"].as_array().context("discovery lists no resources")?;
    let mut rows = Vec::new();
    for resource in resources.iter().filter(|resource| !text(resource, "name").contains('/')) {
        // What answers with a kind of another group says so.
        let or_own = |field: &str, own: &str| resource[field].as_str().unwrap_or(own).to_owned();
        let kind = text(resource, "kind");
        let definition = definition_of(defined, &or_own("group", group), &or_own("version", version), &kind)
            .with_context(|| format!("no definition is of kind {kind}"))?;
        if definition.starts_with(OWN) {
            rows.push(row(resources, resource, group, version, &definition));
        }
    }
    Ok(rows)
}

fn text(resource: &Value, field: &str) -> String {
    resource[field].as_str().unwrap_or_default().to_owned()
}

/// A resource and its subresources.
fn row(resources: &[Value], resource: &Value, group: &str, version: &str, definition: &str) -> Value {
    let list = |resource: &Value, field: &str| resource.get(field).cloned().unwrap_or_else(|| json!([]));
    let plural = text(resource, "name");
    let subresources = resources.iter().filter_map(|sub| {
        let name = text(sub, "name").strip_prefix(&format!("{plural}/"))?.to_owned();
        // A subresource of its parent's group and version leaves both out.
        let or_parents = |field: &str, parents: &str| sub[field].as_str().unwrap_or(parents).to_owned();
        Some(json!({
            "name": name,
            "group": or_parents("group", group),
            "version": or_parents("version", version),
            "kind": text(sub, "kind"),
            "verbs": list(sub, "verbs"),
        }))
    });
    json!({
        "group": group,
        "version": version,
        "kind": text(resource, "kind"),
        "plural": plural,
        "singular": text(resource, "singularName"),
        "namespaced": resource["namespaced"] == true,
        "short_names": list(resource, "shortNames"),
        "categories": list(resource, "categories"),
        "verbs": list(resource, "verbs"),
        "hash": text(resource, "storageVersionHash"),
        "definition": definition,
        "subresources": subresources.collect::<Vec<_>>(),
    })
}

/// JSON with one definition or resource per line: small, and a change shows as the lines it touches.
pub(super) fn print(facts: &Value) -> Result<String> {
    let definitions = facts["definitions"].as_object().context("definitions are an object")?;
    let definitions = definitions
        .iter()
        .map(|(name, schema)| {
            Ok(format!("{}:{}", serde_json::to_string(name)?, serde_json::to_string(schema)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let resources = facts["resources"].as_array().context("resources are a list")?;
    let resources = resources.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(format!(
        "{{\"version\":{},\n\"groups\":{},\n\"definitions\":{{\n{}\n}},\n\"resources\":[\n{}\n]}}\n",
        facts["version"],
        facts["groups"],
        definitions.join(",\n"),
        resources.join(",\n"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_go_and_fields_called_description_stay() {
        let mut schema = json!({
            "description": "gone",
            "default": { "description": "stays" },
            "properties": {
                "description": { "type": "string", "description": "gone" },
                "properties": { "items": { "description": "gone", "allOf": [{ "description": "gone" }] } },
            },
        });
        strip(&mut schema);
        let expected = json!({
            "default": { "description": "stays" },
            "properties": {
                "description": { "type": "string" },
                "properties": { "items": { "allOf": [{}] } },
            },
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn documents_may_differ_in_the_kinds_they_name_and_in_nothing_else() {
        let document = |group: &str, kind_of: &str| {
            let kinds = json!([{ "group": group, "version": "v1", "kind": "DeleteOptions" }]);
            json!({ "components": { "schemas": { "a": { "type": kind_of, KINDS_KEY: kinds } } } })
        };
        let mut known = BTreeMap::new();
        learn(&mut known, document("z", "object")).unwrap();
        learn(&mut known, document("b", "object")).unwrap();
        learn(&mut known, document("b", "object")).unwrap();
        let groups = known["a"][KINDS_KEY].as_array().unwrap().iter().map(|kind| &kind["group"]);
        assert_eq!(groups.collect::<Vec<_>>(), ["b", "z"]);
        assert!(learn(&mut known, document("b", "string")).is_err());
        assert!(learn(&mut known, json!([])).is_err());
    }

    #[test]
    fn what_is_printed_is_json() {
        let facts = json!({
            "version": "v1", "groups": [], "definitions": { "a": {}, "b\"": {} }, "resources": [{}, {}]
        });
        assert_eq!(serde_json::from_str::<Value>(&print(&facts).unwrap()).unwrap(), facts);
    }

    #[test]
    fn only_kubernetes_own_kinds_are_written_down() {
        let document = |name: &str, group: &str, kind: &str| {
            let kinds = json!([{ "group": group, "version": "v1", "kind": kind }]);
            json!({ "components": { "schemas": { name: { KINDS_KEY: kinds } } } })
        };
        let get = |path: &str| {
            Ok(match path {
                "/version" => json!({ "gitVersion": "v1.2.3" }),
                "/apis" => {
                    json!({ "groups": [{ "name": "example.com", "versions": [{ "version": "v1" }] }] })
                }
                "/openapi/v3/api/v1" => document("io.k8s.api.core.v1.Pod", "", "Pod"),
                "/openapi/v3/apis/example.com/v1" => document("com.example.v1.Pod", "example.com", "Pod"),
                _ => {
                    json!({ "resources": [{ "name": "pods", "kind": "Pod" }, { "name": "pods/status", "kind": "Pod" }] })
                }
            })
        };
        let facts = collect(&get).unwrap();
        assert_eq!(group_versions(&facts), ["v1"]);
        assert_eq!(facts["resources"].as_array().unwrap().len(), 1);
        assert_eq!(facts["resources"][0]["subresources"][0]["name"], "status");
    }
}
