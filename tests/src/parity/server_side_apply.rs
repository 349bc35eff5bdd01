//! Server-side apply, and field ownership after other writes.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};

/// One step of an apply story.
#[derive(Clone, Copy)]
enum Step {
    /// Applied by a manager, with this data.
    Apply(&'static str, &'static str),
    /// Applied with force.
    Force(&'static str, &'static str),
    /// Written by a merge patch.
    Merge(&'static str, &'static str),
    /// Replaced by an update without a version.
    Put(&'static str, &'static str),
    /// Created by an ordinary client.
    Post(&'static str, &'static str),
    /// Applied as a dry run.
    Rehearse(&'static str, &'static str),
}

use Step::{Apply, Force, Merge, Post, Put, Rehearse};

/// Stories of the config map `a`: each step names who writes and what.
const STORIES: &[(&str, &[Step])] = &[
    ("what is absent is created", &[Apply("one", r#"{"data":{"x":"1"}}"#)]),
    (
        "the same again changes nothing",
        &[Apply("one", r#"{"data":{"x":"1"}}"#), Apply("one", r#"{"data":{"x":"1"}}"#)],
    ),
    (
        "what is left out is removed",
        &[Apply("one", r#"{"data":{"x":"1","y":"2"}}"#), Apply("one", r#"{"data":{"y":"2"}}"#)],
    ),
    (
        "another's value is a conflict",
        &[Apply("one", r#"{"data":{"x":"1"}}"#), Apply("two", r#"{"data":{"x":"2"}}"#)],
    ),
    (
        "several conflicts are listed",
        &[Apply("one", r#"{"data":{"x":"1","y":"1"}}"#), Apply("two", r#"{"data":{"x":"2","y":"2"}}"#)],
    ),
    (
        "conflicts with two managers",
        &[
            Apply("one", r#"{"data":{"x":"1"}}"#),
            Apply("two", r#"{"data":{"y":"1"}}"#),
            Apply("three", r#"{"data":{"x":"2","y":"2"}}"#),
        ],
    ),
    ("force takes it over", &[Apply("one", r#"{"data":{"x":"1"}}"#), Force("two", r#"{"data":{"x":"2"}}"#)]),
    (
        "the same value is shared",
        &[Apply("one", r#"{"data":{"x":"1"}}"#), Apply("two", r#"{"data":{"x":"1"}}"#)],
    ),
    (
        "a shared field stays when one gives it up",
        &[Apply("one", r#"{"data":{"x":"1"}}"#), Apply("two", r#"{"data":{"x":"1"}}"#), Apply("one", "{}")],
    ),
    ("giving up everything leaves no entry", &[Apply("one", r#"{"data":{"x":"1"}}"#), Apply("one", "{}")]),
    (
        "a merge patch takes a field",
        &[
            Apply("one", r#"{"data":{"x":"1"}}"#),
            Merge("two", r#"{"data":{"x":"2"}}"#),
            Apply("one", r#"{"data":{"x":"1"}}"#),
        ],
    ),
    (
        "a merge patch to the same value takes nothing",
        &[Apply("one", r#"{"data":{"x":"1"}}"#), Merge("two", r#"{"data":{"x":"1"}}"#)],
    ),
    (
        "an update that drops a field removes its owners",
        &[Apply("one", r#"{"data":{"x":"1","y":"2"}}"#), Put("two", r#"{"data":{"y":"2"}}"#)],
    ),
    (
        "what was created is a conflict too",
        &[Post("maker", r#"{"data":{"x":"1"}}"#), Apply("one", r#"{"data":{"x":"2"}}"#)],
    ),
    (
        "a manager that updates and applies has two entries",
        &[Post("one", r#"{"data":{"x":"1"}}"#), Apply("one", r#"{"data":{"x":"2"}}"#)],
    ),
    ("a rehearsal of a new object", &[Rehearse("one", r#"{"data":{"x":"1"}}"#)]),
    (
        "a rehearsal of a conflict",
        &[Apply("one", r#"{"data":{"x":"1"}}"#), Rehearse("two", r#"{"data":{"x":"2"}}"#)],
    ),
    (
        "labels belong to who set them",
        &[
            Apply("one", r#"{"metadata":{"labels":{"a":"1"}}}"#),
            Apply("two", r#"{"metadata":{"labels":{"b":"1"}}}"#),
            Apply("one", "{}"),
        ],
    ),
    (
        "finalizers are a set",
        &[
            Apply("one", r#"{"metadata":{"finalizers":["example.com/a"]}}"#),
            Apply("two", r#"{"metadata":{"finalizers":["example.com/b"]}}"#),
            Apply("one", "{}"),
        ],
    ),
    (
        "owners are known by uid",
        &[
            Apply(
                "one",
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u1"}]}}"#,
            ),
            Apply(
                "two",
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"p","uid":"u2"}]}}"#,
            ),
            Apply("one", "{}"),
        ],
    ),
    (
        "managed fields may not be applied",
        &[Apply(
            "one",
            r#"{"metadata":{"managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1"}]}}"#,
        )],
    ),
    (
        "an empty list of managed fields forgets owners",
        &[
            Apply("one", r#"{"data":{"x":"1"}}"#),
            Merge("two", r#"{"metadata":{"managedFields":[{}]}}"#),
            Apply("three", r#"{"data":{"x":"2"}}"#),
        ],
    ),
    (
        "before the first apply there was someone",
        &[
            Post("maker", r#"{"data":{"x":"1"}}"#),
            Merge("two", r#"{"metadata":{"managedFields":[{}]}}"#),
            Apply("one", r#"{"data":{"y":"1"}}"#),
        ],
    ),
    ("a null is no value", &[Apply("one", r#"{"data":{"x":null}}"#)]),
    ("an unknown field", &[Apply("one", r#"{"colour":"red"}"#)]),
    ("a value of the wrong type", &[Apply("one", r#"{"data":{"x":1}}"#)]),
    ("another name", &[Apply("one", r#"{"metadata":{"name":"b"}}"#)]),
    ("another kind", &[Apply("one", r#"{"kind":"Secret"}"#)]),
    ("another apiVersion", &[Apply("one", r#"{"apiVersion":"apps/v1"}"#)]),
    (
        "a uid of what is not there",
        &[Apply("one", r#"{"metadata":{"uid":"00000000-0000-0000-0000-000000000000"}}"#)],
    ),
    ("a version of what is not there", &[Apply("one", r#"{"metadata":{"resourceVersion":"1"}}"#)]),
    (
        "an immutable map cannot be forced",
        &[Apply("one", r#"{"immutable":true,"data":{"x":"1"}}"#), Force("two", r#"{"data":{"x":"2"}}"#)],
    ),
];

fn object(fields: &str) -> anyhow::Result<Value> {
    let mut object: Value = serde_json::from_str(fields)?;
    for (field, value) in [("apiVersion", "v1"), ("kind", "ConfigMap")] {
        if object.get(field).is_none() {
            object[field] = json!(value);
        }
    }
    if object.pointer("/metadata/name").is_none() {
        object["metadata"]["name"] = json!("a");
    }
    Ok(object)
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all: Vec<Behaviour> = STORIES
        .iter()
        .map(|(name, steps)| {
            Behaviour::new(format!("apply: {name}"), move |mut script: Script| async move {
                for step in *steps {
                    take(&mut script, *step).await?;
                }
                Ok(script)
            })
        })
        .collect();
    all.push(Behaviour::new("apply: without a manager", |mut script: Script| async move {
        let item = format!("{}/a", script.maps());
        script.send(Request::new("PATCH", &item).body(media::APPLY_PATCH, object("{}")?)).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("apply: written as YAML", |mut script: Script| async move {
        let item = format!("{}/a", script.maps());
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: \"1\" # one\n";
        let request = Request::new("PATCH", &item).with("fieldManager", "one");
        script.send(request.raw(media::APPLY_PATCH, text)).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("apply: a key given twice", |mut script: Script| async move {
        let item = format!("{}/a", script.maps());
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: a\n  x: b\n";
        let request = Request::new("PATCH", &item).with("fieldManager", "one");
        script.send(request.raw(media::APPLY_PATCH, text)).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("apply: the status of a custom resource is owned apart", status));
    all.push(Behaviour::new("apply: items of a list are known by their keys", keyed));
    all.push(Behaviour::new("apply: an atomic list is one value", atomic));
    all
}

async fn take(script: &mut Script, step: Step) -> anyhow::Result<()> {
    let maps = script.maps();
    let item = format!("{maps}/a");
    let apply = |manager: &str, fields: &str| {
        let request = Request::new("PATCH", &item).with("fieldManager", manager);
        anyhow::Ok(request.body(media::APPLY_PATCH, object(fields)?))
    };
    let request = match step {
        Apply(manager, fields) => apply(manager, fields)?,
        Force(manager, fields) => apply(manager, fields)?.with("force", "true"),
        Rehearse(manager, fields) => apply(manager, fields)?.with("dryRun", "All"),
        Merge(manager, fields) => Request::new("PATCH", &item)
            .with("fieldManager", manager)
            .body(media::MERGE_PATCH, serde_json::from_str(fields)?),
        Put(manager, fields) => {
            Request::new("PUT", &item).with("fieldManager", manager).body(media::JSON, object(fields)?)
        }
        Post(manager, fields) => {
            Request::new("POST", &maps).with("fieldManager", manager).body(media::JSON, object(fields)?)
        }
    };
    script.send(request).await?;
    Ok(())
}

async fn status(mut script: Script) -> anyhow::Result<Script> {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let defined = script.define(script.with_spec(spec)).await?;
    let item = defined.item("w");
    script
        .apply(&item, "one", defined.object("w", json!({"spec": {"a": "1"}, "status": {"s": "1"}})))
        .await?;
    let path = format!("{item}/status");
    script
        .apply(&path, "two", defined.object("w", json!({"spec": {"a": "2"}, "status": {"s": "2"}})))
        .await?;
    script.apply(&item, "three", defined.object("w", json!({"spec": {"a": "3"}}))).await?;
    script.apply(&path, "three", defined.object("w", json!({"status": {"s": "3"}}))).await?;
    Ok(script)
}

async fn keyed(mut script: Script) -> anyhow::Result<Script> {
    let items = json!({"type": "object", "required": ["k"],
        "properties": {"k": {"type": "string"}, "v": {"type": "string"}}});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items});
    let defined =
        script.define(script.with_spec(json!({"type": "object", "properties": {"l": list}}))).await?;
    let item = defined.item("w");
    let with = |list: Value| defined.object("w", json!({"spec": {"l": list}}));
    script.apply(&item, "one", with(json!([{"k": "a", "v": "1"}]))).await?;
    script.apply(&item, "two", with(json!([{"k": "b", "v": "1"}]))).await?;
    script.apply(&item, "two", with(json!([{"k": "a", "v": "2"}]))).await?;
    script.apply(&item, "two", with(json!([{"k": "b"}, {"k": "b"}]))).await?;
    script.apply(&item, "one", with(json!([]))).await?;
    Ok(script)
}

async fn atomic(mut script: Script) -> anyhow::Result<Script> {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let defined =
        script.define(script.with_spec(json!({"type": "object", "properties": {"l": list}}))).await?;
    let item = defined.item("w");
    let with = |list: Value| defined.object("w", json!({"spec": {"l": list}}));
    script.apply(&item, "one", with(json!(["a"]))).await?;
    script.apply(&item, "two", with(json!(["a", "b"]))).await?;
    Ok(script)
}
