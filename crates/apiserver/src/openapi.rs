//! OpenAPI v3: the schemas of everything that is served, one document per group and version.

use crate::api::Inner;
use crate::crd;
use crate::discovery::{VERSION, group_names};
use crate::facts::FACTS;
use crate::kinds::text;
use crate::registry::Served;
use crate::resource::Resource;
use crate::store::Key;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const PREFIX: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Which documents there are. Their addresses change when their contents may have.
pub(crate) fn index(served: &Served) -> Value {
    let mut paths = Map::new();
    let mut add = |path: String| {
        let address = format!("/openapi/v3/{path}?hash={VERSION}-{}", served.stamp());
        paths.insert(path, json!({"serverRelativeURL": address}));
    };
    add("api/v1".to_owned());
    for group in group_names(served) {
        for version in served.versions(&group) {
            add(format!("apis/{group}/{version}"));
        }
    }
    json!({ "paths": paths })
}

/// One document; none for a group and version that is not served.
pub(crate) fn document(api: &Inner, served: &Served, path: &[&str]) -> Option<Value> {
    let (group, version) = match path {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    let resources: Vec<_> =
        served.all().filter(|resource| resource.group == group && resource.version == version).collect();
    if resources.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    let mut wanted: BTreeSet<String> = BTreeSet::from([PATCH.to_owned()]);
    for resource in resources {
        let name = definition_name(resource);
        if resource.custom {
            let schema = custom_schema(api, resource);
            references(&schema, &mut wanted);
            schemas.insert(name.clone(), schema);
            let list = custom_list(resource, &name);
            references(&list, &mut wanted);
            schemas.insert(format!("{name}List"), list);
        } else {
            wanted.extend([name.clone(), format!("{name}List")]);
        }
        if resource.is_stored() {
            add_paths(resource, &name, &mut paths);
        }
    }
    while let Some(name) = wanted.pop_first() {
        if let Some(schema) = FACTS.definition(&name)
            && !schemas.contains_key(&name)
        {
            references(schema, &mut wanted);
            schemas.insert(name, schema.clone());
        }
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `io.k8s.api.core.v1.ConfigMap`, or for custom resources the group backwards: `com.example.v1.Widget`.
fn definition_name(resource: &Resource) -> String {
    if !resource.custom {
        return resource.definition.clone();
    }
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.extend([resource.version.as_str(), resource.kind.as_str()]);
    parts.join(".")
}

fn kinds(resource: &Resource, suffix: &str) -> Value {
    json!([{"group": resource.group, "version": resource.version, "kind": format!("{}{suffix}", resource.kind)}])
}

fn custom_schema(api: &Inner, resource: &Resource) -> Value {
    let stored =
        api.store.get(&Key::new(crd::STORAGE, "", resource.definition.as_str())).map(|entry| entry.value());
    let version = stored.as_ref().and_then(|crd| {
        crd::versions(crd).iter().find(|version| text(version, &["name"]) == resource.version)
    });
    let mut schema = version
        .and_then(|version| version.pointer("/schema/openAPIV3Schema"))
        .cloned()
        .unwrap_or_else(|| json!({"type": "object"}));
    if let Some(object) = schema.as_object_mut() {
        let preserves = object.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
        if !preserves || object.contains_key("properties") {
            let properties = object.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
                properties.insert("kind".to_owned(), json!({"type": "string"}));
                let metadata = json!({"allOf": [{"$ref": format!("{PREFIX}{OBJECT_META}")}]});
                properties.insert("metadata".to_owned(), metadata);
            }
        }
        object.insert("x-kubernetes-group-version-kind".to_owned(), kinds(resource, ""));
    }
    schema
}

fn custom_list(resource: &Resource, name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": format!("{PREFIX}{LIST_META}")}]},
            "items": {"type": "array", "items": {"$ref": format!("{PREFIX}{name}")}},
        },
        "x-kubernetes-group-version-kind": kinds(resource, "List"),
    })
}

fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix(PREFIX)) {
                    Some(target) if name == "$ref" => {
                        found.insert(target.to_owned());
                    }
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn add_paths(resource: &Resource, name: &str, paths: &mut Map<String, Value>) {
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{place}/{}", resource.plural);
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let parameter = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let write = json!([
        parameter("dryRun", "string"),
        parameter("fieldManager", "string"),
        parameter("fieldValidation", "string")
    ]);
    let answer = |name: &str| {
        let schema = json!({"$ref": format!("{PREFIX}{name}")});
        json!({"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}})
    };
    let body = |media: &[&str], target: &str| {
        let content: Map<String, Value> = media
            .iter()
            .map(|&media| (media.to_owned(), json!({"schema": {"$ref": format!("{PREFIX}{target}")}})))
            .collect();
        json!({"required": true, "content": content})
    };
    let action = |verb: &str, parameters: &Value, body: Option<Value>, answers: &str| {
        let mut operation = json!({
            "responses": answer(answers), "parameters": parameters,
            "x-kubernetes-action": verb, "x-kubernetes-group-version-kind": kind,
        });
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    };
    let none = json!([]);
    let json_body = || Some(body(&["application/json", "application/yaml"], name));
    let mut patch_parameters = write.clone();
    if let Some(parameters) = patch_parameters.as_array_mut() {
        parameters.push(parameter("force", "boolean"));
    }
    let patches =
        ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    let patch = || action("patch", &patch_parameters, Some(body(&patches, PATCH)), name);
    let list = format!("{name}List");
    paths.insert(
        collection.clone(),
        json!({"get": action("list", &none, None, &list), "post": action("post", &write, json_body(), name)}),
    );
    let object = json!({
        "get": action("get", &none, None, name), "put": action("put", &write, json_body(), name),
        "patch": patch(), "delete": action("delete", &write, None, name),
    });
    paths.insert(format!("{collection}/{{name}}"), object);
    for subresource in &resource.subresources {
        let path = format!("{collection}/{{name}}/{}", subresource.name);
        let operations = json!({"put": action("put", &write, json_body(), name), "patch": patch()});
        paths.insert(path, operations);
    }
}
