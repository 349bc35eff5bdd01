//! Validation of object metadata, and of the names of several kinds.

use super::{Behaviour, Script};
use serde_json::{Value, json};

/// Metadata of a config map that is to be created.
const METADATA: &[(&str, &str)] = &[
    ("no name at all", "{}"),
    ("an empty name", r#"{"name": ""}"#),
    ("a capital in the name", r#"{"name": "Abc"}"#),
    ("a slash in the name", r#"{"name": "a/b"}"#),
    ("an underscore in the name", r#"{"name": "a_b"}"#),
    ("dots in the name", r#"{"name": "a.b.c"}"#),
    ("two dots in a row in the name", r#"{"name": "a..b"}"#),
    ("a name of a dot", r#"{"name": "."}"#),
    ("a name of two dots", r#"{"name": ".."}"#),
    ("a per cent sign in the name", r#"{"name": "a%b"}"#),
    ("a name that ends in a hyphen", r#"{"name": "a-"}"#),
    ("a name that is a number", r#"{"name": 7}"#),
    ("a capital in the prefix of a generated name", r#"{"generateName": "Abc-"}"#),
    ("a name wins over a generated one", r#"{"name": "a", "generateName": "b-"}"#),
    ("a label's value with a space", r#"{"name": "a", "labels": {"k": "a b"}}"#),
    ("a label's key with two slashes", r#"{"name": "a", "labels": {"a/b/c": "x"}}"#),
    ("a label's key with an empty prefix", r#"{"name": "a", "labels": {"/c": "x"}}"#),
    ("a label's key with a bad prefix", r#"{"name": "a", "labels": {"Example.com/c": "x"}}"#),
    ("an empty label value", r#"{"name": "a", "labels": {"k": ""}}"#),
    ("a label that is a number", r#"{"name": "a", "labels": {"k": 1}}"#),
    ("a label that is null", r#"{"name": "a", "labels": {"k": null}}"#),
    ("labels that are a list", r#"{"name": "a", "labels": []}"#),
    ("an annotation with any text", r#"{"name": "a", "annotations": {"k": "any text: {}"}}"#),
    ("an annotation's key with a space", r#"{"name": "a", "annotations": {"a b": ""}}"#),
    ("a capital in an annotation's key", r#"{"name": "a", "annotations": {"Example.com/A": ""}}"#),
    ("a finalizer without a domain", r#"{"name": "a", "finalizers": ["mine"]}"#),
    ("a finalizer twice", r#"{"name": "a", "finalizers": ["example.com/a", "example.com/a"]}"#),
    ("a finalizer with a bad name", r#"{"name": "a", "finalizers": ["example.com/-"]}"#),
    ("the finalizers of deletion", r#"{"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}"#),
    (
        "both finalizers of deletion twice",
        r#"{"name": "a", "finalizers": ["foregroundDeletion", "foregroundDeletion"]}"#,
    ),
    ("an empty finalizer", r#"{"name": "a", "finalizers": [""]}"#),
    (
        "an owner",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}]}"#,
    ),
    ("an owner without anything", r#"{"name": "a", "ownerReferences": [{}]}"#),
    (
        "an owner without a uid",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}]}"#,
    ),
    (
        "an owner without a version",
        r#"{"name": "a", "ownerReferences": [{"kind": "ConfigMap", "name": "o", "uid": "u1"}]}"#,
    ),
    (
        "an owner whose apiVersion has too many parts",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "a/b/c", "kind": "ConfigMap", "name": "o", "uid": "u1"}]}"#,
    ),
    (
        "an event as an owner",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u1"}]}"#,
    ),
    (
        "two controllers",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1", "controller": true}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u2", "controller": true}]}"#,
    ),
    (
        "the same owner twice",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}]}"#,
    ),
    (
        "an owner that blocks deletion",
        r#"{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1", "blockOwnerDeletion": true, "controller": false}]}"#,
    ),
    ("another namespace", r#"{"name": "a", "namespace": "elsewhere"}"#),
    ("a version at creation", r#"{"name": "a", "resourceVersion": "1"}"#),
    (
        "what the server sets",
        r#"{"name": "a", "uid": "mine", "generation": 4, "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x", "deletionGracePeriodSeconds": 3}"#,
    ),
    ("a generation below zero", r#"{"name": "a", "generation": -4}"#),
    ("a time of deletion at creation", r#"{"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z"}"#),
    ("a time that is none", r#"{"name": "a", "creationTimestamp": "yesterday"}"#),
    (
        "managed fields at creation",
        r#"{"name": "a", "managedFields": [{"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]}"#,
    ),
    (
        "managed fields of a wrong operation",
        r#"{"name": "a", "managedFields": [{"manager": "me", "operation": "Guess", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]}"#,
    ),
    (
        "managed fields of a wrong type",
        r#"{"name": "a", "managedFields": [{"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV9", "fieldsV1": {}}]}"#,
    ),
    ("an unknown field of the metadata", r#"{"name": "a", "colour": "red"}"#),
    ("metadata in another case", r#"{"Name": "a"}"#),
];

/// Names of other kinds than config maps.
const NAMES: &[(&str, &str, &str, &str, &str)] = &[
    ("a dot in a namespace's name", "/api/v1/namespaces", "v1", "Namespace", "a.b"),
    ("a number as a namespace's first letter", "/api/v1/namespaces", "v1", "Namespace", "9_"),
    (
        "a lease's name is a subdomain",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        "coordination.k8s.io/v1",
        "Lease",
        "A",
    ),
    ("an event's name is a subdomain", "/api/v1/namespaces/default/events", "v1", "Event", "A B"),
    ("a secret's name is a subdomain", "/api/v1/namespaces/default/secrets", "v1", "Secret", "-a"),
    (
        "a definition's name says its plural and group",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "odd",
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all: Vec<Behaviour> = METADATA
        .iter()
        .map(|(name, metadata)| {
            Behaviour::new(format!("metadata: {name}"), move |mut script: Script| async move {
                let maps = script.maps();
                let metadata: Value = serde_json::from_str(metadata)?;
                script
                    .post(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
                    .await?;
                Ok(script)
            })
        })
        .collect();
    for (name, path, version, kind, named) in NAMES {
        all.push(Behaviour::new(format!("names: {name}"), move |mut script: Script| async move {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": named}});
            script.post(path, object).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("metadata: a name one letter too long", |script| long(script, "name", 254)));
    all.push(Behaviour::new("metadata: the longest name", |script| long(script, "name", 253)));
    all.push(Behaviour::new("metadata: a field manager too long", managers));
    all.push(Behaviour::new("metadata: annotations too large", large));
    all.push(Behaviour::new("metadata: a generated name", generated));
    all.push(Behaviour::new("metadata: a controller may not be joined by another", joined));
    all
}

async fn long(mut script: Script, field: &str, length: usize) -> anyhow::Result<Script> {
    let maps = script.maps();
    let name = "x".repeat(length);
    script.post(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {field: name}})).await?;
    Ok(script)
}

async fn managers(mut script: Script) -> anyhow::Result<Script> {
    let item = format!("{}/a", script.maps());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    script.apply(&item, &"x".repeat(129), object.clone()).await?;
    script.apply(&item, &"x".repeat(128), object).await?;
    Ok(script)
}

async fn large(mut script: Script) -> anyhow::Result<Script> {
    let maps = script.maps();
    let text = "x".repeat(256 * 1024);
    let metadata = json!({"name": "a", "annotations": {"k": text}});
    script.post(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await?;
    Ok(script)
}

async fn generated(mut script: Script) -> anyhow::Result<Script> {
    let maps = script.maps();
    for _ in 0..2 {
        let metadata = json!({"generateName": "some-"});
        script.post(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await?;
    }
    Ok(script)
}

async fn joined(mut script: Script) -> anyhow::Result<Script> {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "controller": true});
    script.map("a", json!({})).await?;
    let item = format!("{}/a", script.maps());
    script.merge(&item, json!({"metadata": {"ownerReferences": [owner("u1")]}})).await?;
    script.merge(&item, json!({"metadata": {"ownerReferences": [owner("u1"), owner("u2")]}})).await?;
    script.merge(&item, json!({"metadata": {"ownerReferences": [owner("u2")]}})).await?;
    Ok(script)
}
