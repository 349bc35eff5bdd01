//! The verbs on one object, for several kinds.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use serde_json::{Value, json};

/// A kind to try the verbs on.
#[derive(Clone, Copy)]
struct Kind {
    prefix: &'static str,
    plural: &'static str,
    make: fn(&str) -> Value,
}

const KINDS: [Kind; 3] = [
    Kind {
        prefix: "/api/v1",
        plural: "configmaps",
        make: |name| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}),
    },
    Kind {
        prefix: "/api/v1",
        plural: "secrets",
        make: |name| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "1"}}),
    },
    Kind {
        prefix: "/apis/coordination.k8s.io/v1",
        plural: "leases",
        make: |name| {
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": "me"}})
        },
    },
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for kind in KINDS {
        let name = |what: &str| format!("{}: {what}", kind.plural);
        all.push(Behaviour::new(name("created and read back"), move |script| created_and_read(script, kind)));
        all.push(Behaviour::new(name("created twice"), move |script| created_twice(script, kind)));
        all.push(Behaviour::new(name("what is absent is not found"), move |script| absent(script, kind)));
        all.push(Behaviour::new(name("updated with an old version"), move |script| {
            updated_late(script, kind)
        }));
        all.push(Behaviour::new(name("deleted and gone"), move |script| deleted(script, kind)));
        all.push(Behaviour::new(name("held by a finalizer"), move |script| finalized(script, kind)));
        all.push(Behaviour::new(name("watched from its creation"), move |script| watched(script, kind)));
    }
    all
}

async fn created_and_read(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let path = script.path(kind.prefix, kind.plural);
    script.send(Request::new("POST", &path).body(media::JSON, (kind.make)("a"))).await?;
    script.send(Request::new("GET", format!("{path}/a"))).await?;
    script.send(Request::new("GET", &path)).await?;
    Ok(script)
}

async fn created_twice(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let path = script.path(kind.prefix, kind.plural);
    for _ in 0..2 {
        script.send(Request::new("POST", &path).body(media::JSON, (kind.make)("a"))).await?;
    }
    Ok(script)
}

async fn absent(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let item = format!("{}/absent", script.path(kind.prefix, kind.plural));
    script.send(Request::new("GET", &item)).await?;
    script.send(Request::new("DELETE", &item)).await?;
    script.send(Request::new("PATCH", &item).body(media::MERGE_PATCH, json!({}))).await?;
    Ok(script)
}

async fn updated_late(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let path = script.path(kind.prefix, kind.plural);
    let made = script.send(Request::new("POST", &path).body(media::JSON, (kind.make)("a"))).await?;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    script.send(Request::new("PATCH", format!("{path}/a")).body(media::MERGE_PATCH, label)).await?;
    let mut late = (kind.make)("a");
    late["metadata"]["resourceVersion"] = made.body["metadata"]["resourceVersion"].clone();
    script.send(Request::new("PUT", format!("{path}/a")).body(media::JSON, late)).await?;
    Ok(script)
}

async fn deleted(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let path = script.path(kind.prefix, kind.plural);
    script.send(Request::new("POST", &path).body(media::JSON, (kind.make)("a"))).await?;
    script.send(Request::new("DELETE", format!("{path}/a"))).await?;
    script.send(Request::new("GET", format!("{path}/a"))).await?;
    Ok(script)
}

async fn finalized(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let path = script.path(kind.prefix, kind.plural);
    let mut object = (kind.make)("a");
    object["metadata"]["finalizers"] = json!(["windlass.test/held"]);
    script.send(Request::new("POST", &path).body(media::JSON, object)).await?;
    script.send(Request::new("DELETE", format!("{path}/a"))).await?;
    script.send(Request::new("GET", format!("{path}/a"))).await?;
    let release = json!({"metadata": {"finalizers": null}});
    script.send(Request::new("PATCH", format!("{path}/a")).body(media::MERGE_PATCH, release)).await?;
    script.send(Request::new("GET", format!("{path}/a"))).await?;
    Ok(script)
}

async fn watched(mut script: Script, kind: Kind) -> anyhow::Result<Script> {
    let path = script.path(kind.prefix, kind.plural);
    let made = script.send(Request::new("POST", &path).body(media::JSON, (kind.make)("a"))).await?;
    let version = made.body["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    script.send(Request::new("PATCH", format!("{path}/a")).body(media::MERGE_PATCH, label)).await?;
    script.send(Request::new("DELETE", format!("{path}/a"))).await?;
    script
        .watch(Request::new("GET", &path).with("watch", "true").with("resourceVersion", version), 2)
        .await?;
    Ok(script)
}
