//! The surface: paths and verbs that are not there, bodies and media types that do not fit, health and discovery.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::json;

/// Requests without a body; `*` stands for the script's namespace.
const PATHS: &[(&str, &str, &str)] = &[
    ("alive", "GET", "/livez"),
    ("ready", "GET", "/readyz"),
    ("healthy, in the old way", "GET", "/healthz"),
    ("one check of health", "GET", "/livez/ping"),
    ("a check of health that there is not", "GET", "/livez/none"),
    ("a path that there is not", "GET", "/none"),
    ("the versions of the core group", "GET", "/api"),
    ("a core version that there is not", "GET", "/api/v9"),
    ("a group that there is not", "GET", "/apis/none.example.com"),
    ("a group's version that there is not", "GET", "/apis/coordination.k8s.io/v9"),
    ("one group", "GET", "/apis/coordination.k8s.io"),
    ("the group of definitions", "GET", "/apis/apiextensions.k8s.io"),
    ("the resources of definitions", "GET", "/apis/apiextensions.k8s.io/v1"),
    ("a resource that there is not", "GET", "/api/v1/namespaces/*/gadgets"),
    ("a resource of a group that there is not", "GET", "/apis/none.example.com/v1/gadgets"),
    ("a subresource that there is not", "GET", "/api/v1/namespaces/*/configmaps/a/status"),
    ("a subresource of a subresource", "GET", "/api/v1/namespaces/*/status/x"),
    ("a namespaced object without a namespace", "GET", "/api/v1/configmaps/a"),
    (
        "a cluster's object in a namespace",
        "GET",
        "/apis/apiextensions.k8s.io/v1/namespaces/*/customresourcedefinitions",
    ),
    ("a creation by name", "POST", "/api/v1/namespaces/*/configmaps/a"),
    ("an update of a collection", "PUT", "/api/v1/namespaces/*/configmaps"),
    ("a patch of a collection", "PATCH", "/api/v1/namespaces/*/configmaps"),
    ("a creation across namespaces", "POST", "/api/v1/configmaps"),
    ("a creation without a body", "POST", "/api/v1/namespaces/*/configmaps"),
    ("a verb that there is not", "TRACE", "/api/v1/namespaces/*/configmaps"),
    ("options are no verb", "OPTIONS", "/api/v1/namespaces/*/configmaps"),
    ("a slash at the end", "GET", "/api/v1/namespaces/*/configmaps/"),
    ("two slashes", "GET", "/api/v1//namespaces/*/configmaps"),
    ("the old path of watches", "GET", "/api/v1/watch/namespaces/*/configmaps/a?timeoutSeconds=1"),
];

/// Bodies of a creation of a config map, by media type.
const BODIES: &[(&str, &str, &str)] = &[
    ("no JSON", media::JSON, "{"),
    ("nothing", media::JSON, ""),
    ("a list", media::JSON, "[]"),
    ("a string", media::JSON, "\"x\""),
    ("null", media::JSON, "null"),
    ("an empty object", media::JSON, "{}"),
    ("no kind", media::JSON, r#"{"apiVersion":"v1","metadata":{"name":"a"}}"#),
    ("no apiVersion", media::JSON, r#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#),
    ("neither kind nor apiVersion", media::JSON, r#"{"metadata":{"name":"a"}}"#),
    ("another kind", media::JSON, r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#),
    (
        "a kind that there is not",
        media::JSON,
        r#"{"apiVersion":"v1","kind":"Gadget","metadata":{"name":"a"}}"#,
    ),
    (
        "a version that there is not",
        media::JSON,
        r#"{"apiVersion":"v9","kind":"ConfigMap","metadata":{"name":"a"}}"#,
    ),
    ("a kind that is a number", media::JSON, r#"{"apiVersion":"v1","kind":1}"#),
    ("a list of the kind", media::JSON, r#"{"apiVersion":"v1","kind":"ConfigMapList","items":[]}"#),
    (
        "a key twice",
        media::JSON,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"}}"#,
    ),
    (
        "keys in another case",
        media::JSON,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"Data":{"x":"1"}}"#,
    ),
    (
        "text after the object",
        media::JSON,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}} x"#,
    ),
    (
        "an escape that is none",
        media::JSON,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\q"}}"#,
    ),
    ("metadata that is a string", media::JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":"a"}"#),
    ("metadata that is null", media::JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":null}"#),
    (
        "YAML",
        "application/yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"1\"\n",
    ),
    (
        "YAML with a bare number",
        "application/yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: 1\n",
    ),
    ("YAML that is none", "application/yaml", "a: [\n"),
    (
        "JSON with a charset",
        "application/json;charset=utf-8",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#,
    ),
    (
        "a media type that there is not",
        "text/plain",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#,
    ),
    ("a media type that is none", "nonsense", "{}"),
];

/// Media types that a client takes.
const ACCEPTED: &[(&str, &str)] = &[
    ("anything", "*/*"),
    ("any application", "application/*"),
    ("something that there is not", "text/html"),
    ("JSON at last", "text/html, application/json;q=0.5"),
    ("a transform that there is not", "application/json;as=Picture;g=meta.k8s.io;v=v1"),
    ("only the metadata", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
];

/// Media types of patches.
const PATCHES: &[(&str, &str)] = &[
    ("plain JSON", "application/json"),
    ("a type that there is not", "application/funny-patch+json"),
    ("no type", ""),
    ("a type with a parameter", "application/merge-patch+json; charset=utf-8"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, method, path) in PATHS {
        all.push(Behaviour::new(format!("paths: {name}"), move |mut script: Script| async move {
            let path = path.replace('*', script.namespace());
            script.send(Request::new(method, path)).await?;
            Ok(script)
        }));
    }
    for (name, media_type, body) in BODIES {
        all.push(Behaviour::new(format!("bodies: {name}"), move |mut script: Script| async move {
            let maps = script.maps();
            script.send(Request::new("POST", &maps).raw(media_type, *body)).await?;
            Ok(script)
        }));
    }
    for (name, accept) in ACCEPTED {
        all.push(Behaviour::new(format!("accepted: {name}"), move |mut script: Script| async move {
            script.map("a", json!({})).await?;
            let maps = script.maps();
            script.send(Request::new("GET", &maps).accepting(accept)).await?;
            Ok(script)
        }));
    }
    for (name, media_type) in PATCHES {
        all.push(Behaviour::new(format!("patches: {name}"), move |mut script: Script| async move {
            script.map("a", json!({})).await?;
            let item = format!("{}/a", script.maps());
            script.send(Request::new("PATCH", item).raw(media_type, "{}")).await?;
            Ok(script)
        }));
    }
    all
}
