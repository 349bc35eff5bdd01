//! HTTP: unknown paths and verbs, invalid bodies and media types, health checks and discovery.

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
    ("a check of readiness", "GET", "/readyz/informer-sync"),
    ("a check of readiness alone", "GET", "/livez/informer-sync"),
    ("all checks of life", "GET", "/livez?verbose"),
    ("all checks of readiness", "GET", "/readyz?verbose"),
    ("all checks of health but some", "GET", "/healthz?verbose&exclude=etcd&exclude=none&exclude=a"),
    ("a check within a check", "GET", "/livez/ping/x"),
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
    (
        "the old path of watches, and a selector",
        "GET",
        "/api/v1/watch/namespaces/*/configmaps/a?timeoutSeconds=1&fieldSelector=metadata.name%3Db",
    ),
    ("a deletion in the old path of watches", "DELETE", "/api/v1/watch/namespaces/*/configmaps/a"),
    ("a resource of a version that there is not", "GET", "/apis/coordination.k8s.io/v9/leases"),
    ("a timeout", "GET", "/api/v1/namespaces/*/configmaps?timeout=5s"),
    ("a timeout without a unit", "GET", "/api/v1/namespaces/*/configmaps?timeout=5"),
    ("a timeout with another unit", "GET", "/api/v1/namespaces/*/configmaps?timeout=5y"),
    ("a timeout of a document", "GET", "/api/v1?timeout=none"),
    ("a timeout of a watch", "GET", "/api/v1/namespaces/*/configmaps?watch=1&timeoutSeconds=1&timeout=none"),
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
    ("a status", media::JSON, r#"{"apiVersion":"v1","kind":"Status"}"#),
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
    (
        "YAML with a key twice",
        "application/yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, name: a}\nfoo: 1\n",
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
    ("a star alone", "*"),
    ("a star that weighs more than JSON", "application/*;q=0.5,application/json;q=0.2"),
    ("protobuf", "application/vnd.kubernetes.protobuf"),
    ("protobuf before JSON", "application/vnd.kubernetes.protobuf,application/json"),
    ("protobuf of a weight below JSON's", "application/vnd.kubernetes.protobuf;q=0.2,application/json;q=0.3"),
    ("a table in protobuf", "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1"),
    (
        "metadata in protobuf",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    ),
    ("an object's metadata of a list", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    ("a stream that there is not", "application/json;stream=fish"),
    ("a stream of YAML", "application/yaml;stream=watch"),
    ("a group without a kind", "application/json;g=meta.k8s.io"),
    ("a version of the server", "application/json;sv=v1"),
    ("a version of the server that there is not", "application/json;sv=v9"),
    ("something that there is not", "text/html"),
    ("JSON at last", "text/html, application/json;q=0.5"),
    ("a transform that there is not", "application/json;as=Picture;g=meta.k8s.io;v=v1"),
    ("only the metadata", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
];

const PROTOBUF: &str = media::PROTOBUF;
const YAML: &str = "application/yaml";
const ALL_IN_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const ALL_IN_YAML: &str = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const ALL_AT_LAST: &str =
    "application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Documents and errors, and the media types that a client takes.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("a group in protobuf", "/apis/coordination.k8s.io", PROTOBUF),
    ("a group in YAML", "/apis/coordination.k8s.io", YAML),
    ("a group in anything", "/apis/coordination.k8s.io", "*"),
    ("a group in nothing", "/apis/coordination.k8s.io", "text/html"),
    ("resources in protobuf", "/apis/coordination.k8s.io/v1", PROTOBUF),
    ("resources in YAML", "/apis/coordination.k8s.io/v1", YAML),
    ("resources in anything", "/apis/coordination.k8s.io/v1", "*"),
    ("core resources in protobuf", "/api/v1", PROTOBUF),
    ("all of the core group in protobuf", "/api", ALL_IN_PROTOBUF),
    ("all of the core group in YAML", "/api", ALL_IN_YAML),
    ("all of the core group after its versions", "/api", ALL_AT_LAST),
    ("the version in YAML", "/version", YAML),
    ("the version in nothing", "/version", "text/html"),
    ("schemas in YAML", "/openapi/v2", YAML),
    ("what is missing in protobuf", "/api/v1/namespaces/default/configmaps/missing", PROTOBUF),
    ("what is missing in YAML", "/api/v1/namespaces/default/configmaps/missing", YAML),
    (
        "what is missing as a table",
        "/api/v1/namespaces/default/configmaps/missing",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
    ),
    ("a resource that there is not in protobuf", "/api/v1/gadgets", PROTOBUF),
];

/// What is answered and not stored, which has no rows and columns.
const REVIEWS: &[(&str, &str, &str)] = &[
    (
        "a review of one's own access",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        r#"{"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}"#,
    ),
    (
        "a review of access",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        r#"{"spec": {"user": "ann", "nonResourceAttributes": {"path": "/", "verb": "get"}}}"#,
    ),
    ("a review of a token", "/apis/authentication.k8s.io/v1/tokenreviews", r#"{"spec": {"token": "none"}}"#),
    ("a token of a missing account", "/api/v1/namespaces/*/serviceaccounts/missing/token", "{}"),
    ("an eviction of a missing pod", "/api/v1/namespaces/*/pods/missing/eviction", "{}"),
    ("a binding of a missing pod", "/api/v1/namespaces/*/bindings", r#"{"metadata": {"name": "missing"}}"#),
];

/// Rows and columns, in JSON, in protobuf, and if there is nothing else.
const FORMS: &[(&str, &str)] = &[
    ("a table", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    ("a table or whatever it is", "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"),
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
    for (name, path, accept) in DOCUMENTS {
        all.push(Behaviour::new(format!("accepted: {name}"), move |mut script: Script| async move {
            script.send(Request::new("GET", *path).accepting(accept)).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("accepted: a life in protobuf", in_protobuf));
    for (name, path, body) in REVIEWS {
        for (form, accept) in FORMS {
            let name = format!("accepted: {name} as {form}");
            all.push(Behaviour::new(name, move |mut script: Script| async move {
                let path = path.replace('*', script.namespace());
                script
                    .send(Request::new("POST", path).raw("application/json", *body).accepting(accept))
                    .await?;
                Ok(script)
            }));
        }
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

/// Every write of an object, answered in protobuf.
async fn in_protobuf(mut script: Script) -> anyhow::Result<Script> {
    let maps = script.maps();
    let item = format!("{maps}/a");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
    let body = windlass_apiserver::protobuf::encode(&serde_json::to_vec(&object)?)?;
    let asks = |request: Request| request.accepting(PROTOBUF);
    script.send(asks(Request::new("POST", &maps).raw(PROTOBUF, body.clone()))).await?;
    script.send(asks(Request::new("POST", &maps).raw(PROTOBUF, body.clone()))).await?;
    script.send(asks(Request::new("PUT", &item).raw(PROTOBUF, body))).await?;
    script
        .send(asks(Request::new("PATCH", &item).body(media::MERGE_PATCH, json!({"data": {"y": "2"}}))))
        .await?;
    let dry = Request::new("PATCH", &item).with("dryRun", "All");
    script.send(asks(dry.body(media::MERGE_PATCH, json!({"data": {"z": "3"}})))).await?;
    let applied = Request::new("PATCH", &item).with("fieldManager", "one").with("force", "true");
    script.send(asks(applied.body(media::APPLY_PATCH, object))).await?;
    script.send(asks(Request::new("DELETE", &item))).await?;
    script.send(asks(Request::new("DELETE", &item))).await?;
    script.send(asks(Request::new("DELETE", &maps))).await?;
    Ok(script)
}
