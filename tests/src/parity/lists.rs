//! Lists: paging, resource versions, selectors, and invalid queries.

use super::{Behaviour, Script};
use crate::compare::Request;
use serde_json::json;

/// Queries of a list over five config maps, `a` to `e`; two of them are `app=web`, and `e` has no labels.
const QUERIES: &[(&str, &[(&str, &str)])] = &[
    ("a limit larger than the rest gives no token", &[("limit", "9")]),
    ("a limit of zero is none", &[("limit", "0")]),
    ("a negative limit", &[("limit", "-1")]),
    ("a limit that is no number", &[("limit", "many")]),
    ("a token that is none", &[("limit", "2"), ("continue", "nonsense")]),
    ("a version that is none", &[("resourceVersion", "abc")]),
    ("a negative version", &[("resourceVersion", "-1")]),
    ("version zero", &[("resourceVersion", "0")]),
    ("version zero, exactly", &[("resourceVersion", "0"), ("resourceVersionMatch", "Exact")]),
    ("a match without a version", &[("resourceVersionMatch", "Exact")]),
    ("a match that there is not", &[("resourceVersion", "<version 1>"), ("resourceVersionMatch", "Nearly")]),
    ("exactly an old version", &[("resourceVersion", "<version 2>"), ("resourceVersionMatch", "Exact")]),
    (
        "not older than an old version",
        &[("resourceVersion", "<version 2>"), ("resourceVersionMatch", "NotOlderThan")],
    ),
    ("an old version with a limit", &[("resourceVersion", "<version 2>"), ("limit", "1")]),
    ("initial events asked of a list", &[("sendInitialEvents", "true")]),
    ("labels that are equal", &[("labelSelector", "app=web")]),
    ("labels that are equal, with two signs", &[("labelSelector", "app==web")]),
    ("labels that are not equal", &[("labelSelector", "app!=web")]),
    ("labels in a set", &[("labelSelector", "app in (web, db)")]),
    ("labels not in a set", &[("labelSelector", "app notin (web)")]),
    ("labels that exist", &[("labelSelector", "tier")]),
    ("labels that do not exist", &[("labelSelector", "!tier")]),
    ("labels greater than a number", &[("labelSelector", "size>1")]),
    ("labels less than a number", &[("labelSelector", "size<2")]),
    ("labels greater than a word", &[("labelSelector", "size>big")]),
    ("two requirements", &[("labelSelector", "app=web,tier=front")]),
    ("an empty set", &[("labelSelector", "app in ()")]),
    ("an empty value", &[("labelSelector", "app=")]),
    ("a label selector that ends early", &[("labelSelector", "app in (web")]),
    ("a label key that is none", &[("labelSelector", "-app=web")]),
    ("a label value that is none", &[("labelSelector", "app=-web-")]),
    ("a label selector of commas", &[("labelSelector", ",,")]),
    ("a name by field", &[("fieldSelector", "metadata.name=c")]),
    ("all but a name by field", &[("fieldSelector", "metadata.name!=c")]),
    ("a namespace by field", &[("fieldSelector", "metadata.namespace=elsewhere")]),
    ("a field that cannot be selected by", &[("fieldSelector", "data.x=1")]),
    ("a field selector without a sign", &[("fieldSelector", "metadata.name")]),
    ("a set in a field selector", &[("fieldSelector", "metadata.name in (a,b)")]),
    ("labels and a field", &[("labelSelector", "app=web"), ("fieldSelector", "metadata.name=b")]),
    ("labels with a limit", &[("labelSelector", "app"), ("limit", "2")]),
    ("pretty output is the same data", &[("pretty", "true")]),
    ("an unknown parameter", &[("colour", "red")]),
    ("a timeout that is no duration", &[("timeout", "soon")]),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all: Vec<Behaviour> = QUERIES
        .iter()
        .map(|(name, query)| {
            Behaviour::new(format!("lists: {name}"), move |mut script: Script| async move {
                five(&mut script).await?;
                let list = Request::new("GET", script.maps());
                script.send(query.iter().fold(list, |list, (name, value)| list.with(name, *value))).await?;
                Ok(script)
            })
        })
        .collect();
    all.push(Behaviour::new("lists: pages go on where they stopped", pages));
    all.push(Behaviour::new("lists: later pages show the first page's version", pages_of_the_past));
    all.push(Behaviour::new("lists: a token goes with no version", token_and_version));
    all.push(Behaviour::new("lists: a selector may change between pages", selector_between_pages));
    all.push(Behaviour::new("lists: an empty collection", empty));
    all.push(Behaviour::new("lists: across namespaces by label", across));
    all.push(Behaviour::new("lists: one object by an old version", old_object));
    all
}

async fn five(script: &mut Script) -> anyhow::Result<()> {
    script.map("a", json!({"app": "web", "tier": "front", "size": "1"})).await?;
    script.map("b", json!({"app": "web", "size": "2"})).await?;
    script.map("c", json!({"app": "db", "tier": "back"})).await?;
    script.map("d", json!({"app": "queue", "size": "large"})).await?;
    script.map("e", json!({})).await?;
    Ok(())
}

async fn pages(mut script: Script) -> anyhow::Result<Script> {
    five(&mut script).await?;
    let mut token = String::new();
    loop {
        let page = Request::new("GET", script.maps()).with("limit", "2").with("continue", &token);
        let page = script.send(page).await?;
        match page.body["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => return Ok(script),
        }
    }
}

async fn pages_of_the_past(mut script: Script) -> anyhow::Result<Script> {
    five(&mut script).await?;
    let maps = script.maps();
    let first = script.send(Request::new("GET", &maps).with("limit", "2")).await?;
    script.delete(&format!("{maps}/d"), json!(null)).await?;
    script.merge(&format!("{maps}/e"), json!({"data": {"late": "yes"}})).await?;
    script.map("f", json!({})).await?;
    let token = first.body["metadata"]["continue"].as_str().unwrap_or_default();
    script.send(Request::new("GET", &maps).with("continue", token)).await?;
    Ok(script)
}

async fn token_and_version(mut script: Script) -> anyhow::Result<Script> {
    five(&mut script).await?;
    let maps = script.maps();
    let first = script.send(Request::new("GET", &maps).with("limit", "2")).await?;
    let token = first.body["metadata"]["continue"].as_str().unwrap_or_default();
    let next = Request::new("GET", &maps).with("continue", token).with("resourceVersion", "<version 1>");
    script.send(next).await?;
    let next = Request::new("GET", &maps).with("continue", token).with("resourceVersionMatch", "Exact");
    script.send(next.with("resourceVersion", "<version 1>")).await?;
    Ok(script)
}

async fn selector_between_pages(mut script: Script) -> anyhow::Result<Script> {
    five(&mut script).await?;
    let maps = script.maps();
    let first =
        script.send(Request::new("GET", &maps).with("limit", "1").with("labelSelector", "app")).await?;
    let token = first.body["metadata"]["continue"].as_str().unwrap_or_default();
    script.send(Request::new("GET", &maps).with("continue", token).with("labelSelector", "size")).await?;
    Ok(script)
}

async fn empty(mut script: Script) -> anyhow::Result<Script> {
    let maps = script.maps();
    script.get(&maps).await?;
    script.get("/api/v1/namespaces/there-is-no-such/configmaps").await?;
    Ok(script)
}

async fn across(mut script: Script) -> anyhow::Result<Script> {
    let mine = script.namespace().to_owned();
    script.map("a", json!({"mine": mine})).await?;
    script.map("b", json!({})).await?;
    script
        .send(Request::new("GET", "/api/v1/configmaps").with("labelSelector", format!("mine={mine}")))
        .await?;
    Ok(script)
}

async fn old_object(mut script: Script) -> anyhow::Result<Script> {
    five(&mut script).await?;
    let item = format!("{}/a", script.maps());
    script.send(Request::new("GET", &item).with("resourceVersion", "<version 1>")).await?;
    script.send(Request::new("GET", &item).with("resourceVersion", "0")).await?;
    Ok(script)
}
