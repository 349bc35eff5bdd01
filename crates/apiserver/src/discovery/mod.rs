//! What the server says about itself: version, health, groups and their resources.

mod aggregated;
mod health;

use crate::aggregation::{self, Aggregation};
use crate::facts::FACTS;
use crate::http::ApiBody;
use crate::http::etag::{tag, tagged};
use crate::http::response::{self, failure, plain, respond};
use crate::object::{list, text};
use crate::openapi;
use crate::registry::Served;
use crate::request::media::accept::{self, Endpoint};
use crate::request::query::Query;
use crate::resource::{Resource, Subresource};
use crate::state::ApiState;
use crate::status::Status;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// The version of Kubernetes whose behaviour this is.
pub const VERSION: &str = "v1.36.4";

/// Where the paths begin that are read, and nothing else.
const READ: [&str; 10] =
    [".well-known", "api", "apis", "healthz", "livez", "metrics", "openapi", "openid", "readyz", "version"];

/// Answers what is not about a resource.
pub(crate) fn answer(api: &ApiState, parts: &Parts, query: &Query, segments: &[String]) -> Response<ApiBody> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        let first = segments.first().map_or("", String::as_str);
        return match first.is_empty() || READ.contains(&first) {
            true => failure(&Status::method_not_allowed()),
            false => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        };
    }
    let served = api.registry.served();
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if let ["api"] | ["apis"] = segments.as_slice()
        && let Ok(wanted) = accept::negotiate(header(ACCEPT), Endpoint::Discovery)
    {
        let core = segments == ["api"];
        let body = windlass_schema::json::write(&aggregated::document(&served, &api.aggregation, core));
        let tag = tag(&body);
        let response = tagged(aggregated::MEDIA_TYPE, &tag, header(IF_NONE_MATCH), body);
        return response::encoded(response, wanted.media, false);
    }
    if let ["openapi", rest @ ..] = segments.as_slice() {
        return openapi::answer(api, &served, parts, query, rest);
    }
    let found = match segments.as_slice() {
        ["version"] => {
            return match accept::routed(header(ACCEPT), &[accept::JSON], &[]) {
                Ok(()) => document(&version()),
                Err(status) => failure(&status),
            };
        }
        [endpoint @ ("healthz" | "livez" | "readyz"), check @ ..] => {
            return health::answer(endpoint, &check.join("/"), query, api.store.can_write());
        }
        ["metrics"] => return metrics(api.flow_control.metrics() + &api.webhooks.metrics.text()),
        [] => return document(&paths(&served, &groups(&served, &api.aggregation))),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        })),
        ["api", version] => resource_list(&served, "", version),
        ["apis"] => Some(
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(&served, &api.aggregation)}),
        ),
        ["apis", name] => group(&served, &api.aggregation, name).map(|mut group| {
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            group
        }),
        ["apis", group, version] => resource_list(&served, group, version),
        ["openid", "v1", "jwks"] => {
            return match api.accounts() {
                Ok(accounts) => public(&accounts.key_set(), "application/jwk-set+json"),
                Err(error) => failure(&Status::internal(error)),
            };
        }
        [".well-known", "openid-configuration"] => {
            let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
            let host = parts.uri.authority().map(|authority| authority.as_str()).or(host);
            return match api.accounts() {
                Ok(accounts) => {
                    public(&accounts.openid_configuration(host.unwrap_or("localhost")), "application/json")
                }
                Err(error) => failure(&Status::internal(error)),
            };
        }
        _ => None,
    };
    if found.is_none() && is_routed(&segments) {
        return failure(&Status::no_such_resource());
    }
    match found {
        Some(value) => negotiated(&value, header(ACCEPT), is_routed(&segments)),
        None => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// Is it answered by a route that knows what it produces? Lists of groups and of what definitions bring are not.
fn is_routed(segments: &[&str]) -> bool {
    match segments {
        ["api"] | ["api", _] => true,
        ["apis", group, _] => FACTS.groups.iter().any(|known| known.name == *group),
        _ => false,
    }
}

/// A document in the encoding that the client takes.
fn negotiated(value: &Value, accept: &str, routed: bool) -> Response<ApiBody> {
    let endpoint = if routed { accept::routed(accept, &accept::TYPES, &[]) } else { Ok(()) };
    match endpoint.and_then(|()| accept::negotiate(accept, Endpoint::Document)) {
        Ok(wanted) => response::encoded(document(value), wanted.media, wanted.pretty),
        Err(status) => failure(&status),
    }
}

fn document(value: &Value) -> Response<ApiBody> {
    let body = windlass_schema::json::write(value);
    respond(StatusCode::OK, accept::JSON, ApiBody::full(body.into()))
}

/// Metrics, as Prometheus reads them.
fn metrics(text: String) -> Response<ApiBody> {
    respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", ApiBody::full(text.into()))
}

/// A document that anyone may keep for a while.
fn public(value: &Value, media_type: &'static str) -> Response<ApiBody> {
    let mut response = document(value);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35", "gitVersion": VERSION,
        "gitCommit": "unknown", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": concat!("linux/", "amd64"),
    })
}

fn paths(served: &Served, groups: &[Value]) -> Value {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for group in groups {
        paths.push(format!("/apis/{}", text(group, &["name"])));
        let versions = list(group, &["versions"]).iter();
        paths.extend(versions.map(|version| format!("/apis/{}", text(version, &["groupVersion"]))));
    }
    // What is served without an APIService is there, too.
    for group in served.group_names() {
        paths.push(format!("/apis/{group}"));
        paths.extend(served.versions(&group).iter().map(|version| format!("/apis/{group}/{version}")));
    }
    paths.sort();
    paths.dedup();
    json!({ "paths": paths })
}

/// The groups of all APIServices, in their order. The first is that of the APIServices themselves, and the last those that have none.
fn groups(served: &Served, aggregation: &Aggregation) -> Vec<Value> {
    let services = aggregation.services();
    let registered = services.groups();
    let own = served.versions(aggregation::GROUP);
    let first = (aggregation::GROUP, own.iter().map(String::as_str).collect());
    let names = served.group_names();
    let is_built_in = |name: &str| FACTS.groups.iter().any(|known| known.name == name);
    let others =
        names.iter().filter(|name| !is_built_in(name) && !registered.iter().any(|(known, _)| known == name));
    let others: Vec<(&str, Vec<String>)> =
        others.map(|name| (name.as_str(), served.versions(name))).collect();
    let others = others.iter().map(|(name, versions)| (*name, versions.iter().map(String::as_str).collect()));
    let all = std::iter::once(first).chain(registered.iter().cloned()).chain(others);
    let all = all.filter(|(name, _): &(&str, Vec<&str>)| !name.is_empty());
    all.map(|(name, versions)| shown_group(name, &versions)).collect()
}

/// One group: as its APIServices say, or as it is served if it has none.
fn group(served: &Served, aggregation: &Aggregation, name: &str) -> Option<Value> {
    let services = aggregation.services();
    let registered = services.groups().into_iter().find(|(known, _)| *known == name);
    if let Some((_, versions)) = registered.filter(|_| !name.is_empty()) {
        return Some(shown_group(name, &versions));
    }
    let versions = served.versions(name);
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    (!name.is_empty() && !versions.is_empty()).then(|| shown_group(name, &versions))
}

fn shown_group(name: &str, versions: &[&str]) -> Value {
    let shown = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions.iter().map(shown).collect();
    let preferred = versions.first().cloned();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

fn resource_list(served: &Served, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<Value> = served
        .all()
        .filter(|resource| resource.group == group && resource.version == version)
        .flat_map(entries)
        .collect();
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!resources.is_empty()).then(|| {
        let mut list =
            json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
        // The core group leaves it out.
        if !group.is_empty() {
            list["apiVersion"] = json!("v1");
        }
        list
    })
}

fn entries(resource: &Arc<Resource>) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.storage_hash.is_empty() {
        entry["storageVersionHash"] = json!(resource.storage_hash);
    }
    let subresource = |sub: &Subresource| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
        });
        if (&sub.group, &sub.version) != (&resource.group, &resource.version) {
            entry["group"] = json!(sub.group);
            entry["version"] = json!(sub.version);
        }
        entry
    };
    std::iter::once(entry).chain(resource.subresources.iter().map(subresource)).collect()
}
