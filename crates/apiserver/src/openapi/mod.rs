//! OpenAPI: the schemas and paths of everything that is served. Version 3 has one document per group and version, at an
//! address that changes with its contents; version 2 has one for all.

mod gnostic;
mod merge;
mod object_meta;
mod paths;
mod v2;

pub(crate) use merge::of_paths;

use crate::aggregation::Registered;
use crate::crd;
use crate::facts::FACTS;
use crate::http::ApiBody;
use crate::http::etag::{tag, tagged};
use crate::http::response::{plain, respond};
use crate::object::text;
use crate::registry::Served;
use crate::request::media::accept::clauses;
use crate::request::query::Query;
use crate::resource::Resource;
use crate::state::ApiState;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use windlass_store::Key;

/// As documents show the version.
const SHOWN_VERSION: &str = "1.36";

/// The tags of the documents that never change.
static TAGS: LazyLock<Mutex<BTreeMap<String, String>>> = LazyLock::new(Mutex::default);

pub(crate) const PREFIX: &str = "#/components/schemas/";
const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
/// What is told of the fields that every object has.
const VERSION_IS: &str =
    "APIVersion defines in which version of its type the object is written, as group/version.";
const KIND_IS: &str = "Kind is the name of the object's type, in CamelCase. It never changes.";
const METADATA_IS: &str = "Standard object's metadata: its name, its labels, whom it belongs to.";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Answers what is asked below `/openapi`.
pub(crate) fn answer(
    api: &ApiState,
    served: &Served,
    parts: &Parts,
    query: &Query,
    path: &[&str],
) -> Response<ApiBody> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accept = header(ACCEPT);
    let takes_json = accept.trim().is_empty() || clauses(accept).iter().any(|clause| clause.takes_json());
    let empty = |code| {
        let mut response = respond(code, JSON, ApiBody::full(Bytes::new()));
        response.headers_mut().remove(CONTENT_TYPE);
        response
    };
    let clauses = clauses(accept);
    let first = clauses.iter().find(|clause| clause.takes_json() || clause.takes_any(&gnostic::MEDIA));
    let in_protobuf = first.is_some_and(|clause| !clause.takes_json());
    match path {
        ["v2"] if in_protobuf => {
            let body = gnostic::document(&older_document(api, served));
            let mut response = tagged(gnostic::MEDIA[1], &tag(&body), header(IF_NONE_MATCH), body);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(FRESH));
            response
        }
        ["v2" | "v3", ..] if !takes_json => empty(StatusCode::NOT_ACCEPTABLE),
        ["v2"] => {
            let body = windlass_schema::json::write(&older_document(api, served));
            let mut response = tagged(JSON, &tag(&body), header(IF_NONE_MATCH), body);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(FRESH));
            response
        }
        ["v3"] => {
            let body = windlass_schema::json::write(&index(api, served));
            respond(StatusCode::OK, JSON, ApiBody::full(body.into()))
        }
        ["v3", rest @ ..] => {
            let wanted = rest.join("/");
            let found = addresses(served).into_iter().find(|(path, ..)| *path == wanted);
            let body = found.and_then(|(_, group, version)| document(api, served, &group, &version));
            match body {
                Some(body) => dated(api, query, &wanted, header(IF_NONE_MATCH), &body),
                None => empty(StatusCode::NOT_FOUND),
            }
        }
        _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// The one document of version 2.
fn older_document(api: &ApiState, served: &Served) -> Value {
    let documents = addresses(served).into_iter();
    let documents = documents.filter_map(|(_, group, version)| document(api, served, &group, &version));
    let mut all = v2::document(documents.collect(), SHOWN_VERSION);
    for registered in extensions(api) {
        if let Some(document) = api.aggregation.documents(&registered.name).openapi_v2 {
            merge::merge(&mut all, &document);
        }
    }
    all
}

/// The APIServices that lead elsewhere, the preferred ones first.
fn extensions(api: &ApiState) -> Vec<Arc<Registered>> {
    let mut all: Vec<Arc<Registered>> = api.aggregation.services().remotes().cloned().collect();
    all.sort_by_key(|known| std::cmp::Reverse((known.group_priority, known.version_priority)));
    all
}

/// Which extension API server has a document of version 3 at this path: what is served here is described here.
pub(crate) fn elsewhere(api: &ApiState, path: &[String]) -> Option<Arc<Registered>> {
    let ["openapi", "v3", rest @ ..] = &*path.iter().map(String::as_str).collect::<Vec<_>>() else {
        return None;
    };
    if rest.is_empty() || !api.aggregation.is_used() {
        return None;
    }
    let wanted = rest.join("/");
    let served = api.registry.served();
    let ours = addresses(&served).into_iter().any(|(path, ..)| path == wanted);
    extensions(api).into_iter().find(|registered| describes(api, registered, &wanted, ours))
}

/// Whether an extension API server describes what is at a path.
fn describes(api: &ApiState, registered: &Registered, path: &str, ours: bool) -> bool {
    let own = registered.path().trim_start_matches('/') == path;
    let documents = api.aggregation.documents(&registered.name).openapi_v3;
    (own || !ours) && documents.is_some_and(|documents| documents.contains_key(path))
}

const JSON: &str = "application/json";
const FRESH: &str = "no-cache, private";

/// How long what never changes may be kept.
const KEEP: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);

/// A document at its address: for ever under its own tag, elsewhere under any other, for now without one.
fn dated(api: &ApiState, query: &Query, path: &str, known: &str, body: &Value) -> Response<ApiBody> {
    let body = windlass_schema::json::write(body);
    let tag = tag(&body);
    let asked = query.get("hash").unwrap_or_default();
    if !asked.is_empty() && asked != tag {
        let mut response = respond(StatusCode::MOVED_PERMANENTLY, JSON, ApiBody::full(Bytes::new()));
        let headers = response.headers_mut();
        let place = format!("/openapi/v3/{path}?hash={tag}");
        for (name, value) in [(LOCATION, place), (ETAG, format!("\"{tag}\""))] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        return response;
    }
    let mut response = tagged(JSON, &tag, known, body);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FRESH));
    if !asked.is_empty() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let until = api.clock.now().checked_add(KEEP).unwrap_or(jiff::Timestamp::MAX);
        let until = until.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
        if let Ok(until) = HeaderValue::from_str(&until) {
            headers.insert(EXPIRES, until);
        }
    }
    response
}

/// The documents of version 3: where each is, and of which group and version.
fn addresses(served: &Served) -> Vec<(String, String, String)> {
    let mut all = vec![("api/v1".to_owned(), String::new(), "v1".to_owned())];
    for group in served.group_names() {
        for version in served.versions(&group) {
            all.push((format!("apis/{group}/{version}"), group.clone(), version));
        }
    }
    all
}

/// Which documents there are, each under an address that changes with its contents.
fn index(api: &ApiState, served: &Served) -> Value {
    let mut paths = Map::new();
    for (path, group, version) in addresses(served) {
        let made = || {
            let body = document(api, served, &group, &version).unwrap_or_default();
            tag(&windlass_schema::json::write(&body))
        };
        let custom =
            served.all().any(|known| known.custom && known.group == group && known.version == version);
        let known = if custom { None } else { TAGS.lock().get(&path).cloned() };
        let tag = known.unwrap_or_else(|| {
            let tag = made();
            if !custom {
                TAGS.lock().insert(path.clone(), tag.clone());
            }
            tag
        });
        let address = format!("/openapi/v3/{path}?hash={tag}");
        paths.insert(path, json!({"serverRelativeURL": address}));
    }
    let ours: BTreeSet<String> = paths.keys().cloned().collect();
    for registered in extensions(api).into_iter().rev() {
        let documents = api.aggregation.documents(&registered.name).openapi_v3.unwrap_or_default();
        for (path, address) in documents.iter() {
            if describes(api, &registered, path, ours.contains(path)) {
                paths.insert(path.clone(), address.clone());
            }
        }
    }
    json!({ "paths": paths })
}

/// One document; none for a group and version that is not served.
fn document(api: &ApiState, served: &Served, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> =
        served.all().filter(|resource| resource.group == group && resource.version == version).collect();
    if resources.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    let mut wanted: BTreeSet<String> = [PATCH, DELETE_OPTIONS, STATUS].map(str::to_owned).into();
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
            paths::add(resource, &name, &mut paths);
            if resource.has_subresource("scale") {
                wanted.insert(paths::SCALE.to_owned());
            }
        }
    }
    while let Some(name) = wanted.pop_first() {
        if let Some(schema) = FACTS.definition(&name)
            && !schemas.contains_key(&name)
        {
            references(schema, &mut wanted);
            let schema = schema.clone();
            let schema = if name == OBJECT_META { object_meta::described(schema) } else { schema };
            schemas.insert(name, schema);
        }
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": SHOWN_VERSION},
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

fn custom_schema(api: &ApiState, resource: &Resource) -> Value {
    let stored =
        api.store.get(&Key::new(crd::STORAGE, "", resource.definition.as_str())).map(|entry| entry.value());
    let version = stored.as_ref().and_then(|crd| {
        crd::versions(crd).iter().find(|version| text(version, &["name"]) == resource.version)
    });
    let mut schema = version
        .and_then(|version| version.pointer("/schema/openAPIV3Schema"))
        .cloned()
        .unwrap_or_else(|| json!({"type": "object"}));
    embed(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        properties.as_object_mut().into_iter().for_each(add_common);
        object.insert(GROUP_VERSION_KIND.to_owned(), kinds(resource, ""));
    }
    tell_selectable(resource, &mut schema);
    schema
}

/// Which fields selectors may name.
fn tell_selectable(resource: &Resource, schema: &mut Value) {
    if let Some(object) = schema.as_object_mut().filter(|_| !resource.selectable.is_empty()) {
        let fields = resource.selectable.iter().map(|field| json!({"fieldPath": field.label}));
        object.insert("x-kubernetes-selectable-fields".to_owned(), fields.collect());
    }
}

/// Resources inside of a resource have a type and metadata too.
fn embed(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(embed);
    for keyword in ["items", "additionalProperties"] {
        object.get_mut(keyword).into_iter().for_each(embed);
    }
    if object.get("x-kubernetes-embedded-resource") != Some(&json!(true)) {
        return;
    }
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    properties.as_object_mut().into_iter().for_each(add_common);
    let required = object.entry("required").or_insert_with(|| json!([]));
    for name in ["kind", "apiVersion"] {
        if let Some(required) = required.as_array_mut().filter(|required| !required.contains(&json!(name))) {
            required.push(json!(name));
        }
    }
}

/// What every object has.
fn add_common(properties: &mut Map<String, Value>) {
    for (name, told) in [("apiVersion", VERSION_IS), ("kind", KIND_IS)] {
        properties.insert(name.to_owned(), json!({"type": "string", "description": told}));
    }
    let metadata = json!({"allOf": [{"$ref": format!("{PREFIX}{OBJECT_META}")}], "description": METADATA_IS});
    properties.insert("metadata".to_owned(), metadata);
}

fn custom_list(resource: &Resource, name: &str) -> Value {
    let mut list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": VERSION_IS},
            "kind": {"type": "string", "description": KIND_IS},
            "metadata": {"allOf": [{"$ref": format!("{PREFIX}{LIST_META}")}], "description": METADATA_IS},
            "items": {
                "type": "array",
                "items": {"$ref": format!("{PREFIX}{name}")},
                "description": format!("The {} of this list.", resource.plural),
            },
        },
        "x-kubernetes-group-version-kind": kinds(resource, "List"),
    });
    tell_selectable(resource, &mut list);
    list
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
