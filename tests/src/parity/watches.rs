//! Watches: resource versions, events, and when they end.

use super::{Behaviour, Script};
use crate::compare::Request;
use serde_json::json;

/// A watch: its name, what it asks, and how many events it gives.
type Watch = (&'static str, &'static [(&'static str, &'static str)], usize);

/// Watches after some writes to the namespace's config maps.
const WATCHES: &[Watch] = &[
    ("from a version on", &[("resourceVersion", "<version 1>")], 4),
    (
        "from the last version, until a bookmark ends it",
        &[("resourceVersion", "<version 5>"), ("timeoutSeconds", "1")],
        9,
    ),
    ("from zero begins with what is there", &[("resourceVersion", "0")], 2),
    ("from nowhere begins with what is there", &[], 2),
    ("one object by name", &[("resourceVersion", "<version 1>"), ("fieldSelector", "metadata.name=a")], 2),
    (
        "entering and leaving a selection",
        &[("resourceVersion", "<version 1>"), ("labelSelector", "app=web")],
        2,
    ),
    ("a label that is gone", &[("resourceVersion", "<version 1>"), ("labelSelector", "!app")], 2),
    (
        "initial events end with a bookmark",
        &[
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("allowWatchBookmarks", "true"),
        ],
        3,
    ),
    ("initial events without a match", &[("sendInitialEvents", "true")], 1),
    (
        "initial events with an exact match",
        &[
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "Exact"),
            ("resourceVersion", "<version 1>"),
        ],
        1,
    ),
    (
        "no initial events",
        &[
            ("sendInitialEvents", "false"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("resourceVersion", "<version 3>"),
        ],
        2,
    ),
    (
        "a match without initial events",
        &[("resourceVersionMatch", "NotOlderThan"), ("resourceVersion", "<version 1>")],
        1,
    ),
    ("a version that is none", &[("resourceVersion", "x")], 1),
    ("a selector that is none", &[("labelSelector", "=")], 1),
    ("a field that cannot be selected by", &[("fieldSelector", "data.x=1")], 1),
    ("a timeout that is none", &[("timeoutSeconds", "x")], 1),
    ("a limit means nothing", &[("resourceVersion", "<version 1>"), ("limit", "1")], 4),
    ("a continue token", &[("continue", "x")], 1),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all: Vec<Behaviour> = WATCHES
        .iter()
        .map(|(name, query, count)| {
            Behaviour::new(format!("watches: {name}"), move |mut script: Script| async move {
                five_writes(&mut script).await?;
                let watch = Request::new("GET", script.maps()).with("watch", "true");
                let watch = query.iter().fold(watch, |watch, (name, value)| watch.with(name, *value));
                script.watch(watch, *count).await?;
                Ok(script)
            })
        })
        .collect();
    all.push(Behaviour::new("watches: watch=0 is a list", |mut script: Script| async move {
        script.map("a", json!({})).await?;
        let maps = script.maps();
        script.send(Request::new("GET", &maps).with("watch", "0")).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("watches: custom resources", |mut script: Script| async move {
        let defined = script.define(script.with_spec(json!({"type": "object"}))).await?;
        script.post(&defined.objects, defined.object("w", json!({}))).await?;
        script.merge(&format!("{}/status", defined.item("w")), json!({"status": {"a": 1}})).await?;
        script.delete(&defined.item("w"), json!(null)).await?;
        let watch = Request::new("GET", &defined.objects).with("watch", "true");
        script.watch(watch.with("resourceVersion", "<version 2>"), 2).await?;
        Ok(script)
    }));
    all
}

/// `a` leaves `app=web`, `b` comes into it and goes away, and `c` is new.
async fn five_writes(script: &mut Script) -> anyhow::Result<()> {
    script.map("a", json!({"app": "web"})).await?;
    let maps = script.maps();
    script.map("b", json!({"app": "web"})).await?;
    script.merge(&format!("{maps}/a"), json!({"metadata": {"labels": {"app": null}}})).await?;
    script.map("c", json!({"app": "db"})).await?;
    script.merge(&format!("{maps}/c"), json!({"data": {"x": "1"}})).await?;
    script.merge(&format!("{maps}/c"), json!({"metadata": {"labels": {"app": null}}})).await?;
    script.delete(&format!("{maps}/b"), json!(null)).await?;
    Ok(())
}
