//! Patches of mutating webhooks: what they make of an object, and what of them is refused.

use super::server::{Reply, patched, patched_with};
use super::{Kind, about, configure, hook, map, serve};
use crate::parity::Behaviour;
use serde_json::{Value, json};

/// Patches of a ConfigMap with the data `x: y` and the label `app: web`.
const PATCHES: &[(&str, &str)] = &[
    ("adds data", r#"[{"op":"add","path":"/data/k","value":"v"}]"#),
    ("adds a label", r#"[{"op":"add","path":"/metadata/labels/l","value":"v"}]"#),
    ("adds annotations", r#"[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]"#),
    ("replaces data", r#"[{"op":"replace","path":"/data","value":{"only":"this"}}]"#),
    ("removes data", r#"[{"op":"remove","path":"/data"}]"#),
    (
        "tests and changes",
        r#"[{"op":"test","path":"/data/x","value":"y"},{"op":"add","path":"/data/x","value":"z"}]"#,
    ),
    (
        "copies and moves",
        r#"[{"op":"copy","from":"/data/x","path":"/data/c"},{"op":"move","from":"/data/x","path":"/data/m"}]"#,
    ),
    ("does nothing", "[]"),
    ("changes nothing", r#"[{"op":"replace","path":"/data/x","value":"y"}]"#),
    ("is null", "null"),
    ("is an object", "{}"),
    ("is text", r#""text""#),
    ("is garbage", "hello"),
    ("has steps that are none", r#"["step"]"#),
    ("removes what is not there", r#"[{"op":"remove","path":"/data/missing"}]"#),
    ("adds where nothing is", r#"[{"op":"add","path":"/nothing/there","value":1}]"#),
    ("fails its test", r#"[{"op":"test","path":"/data/x","value":"other"}]"#),
    ("has an unknown step", r#"[{"op":"improve","path":"/data/x"}]"#),
    ("takes the kind away", r#"[{"op":"remove","path":"/kind"}]"#),
    ("changes the kind", r#"[{"op":"replace","path":"/kind","value":"Secret"}]"#),
    ("changes the kind into none", r#"[{"op":"replace","path":"/kind","value":"Nothing"}]"#),
    ("changes the version", r#"[{"op":"replace","path":"/apiVersion","value":"v9"}]"#),
    ("changes the name", r#"[{"op":"replace","path":"/metadata/name","value":"other"}]"#),
    ("takes the name away", r#"[{"op":"remove","path":"/metadata/name"}]"#),
    ("makes the name invalid", r#"[{"op":"replace","path":"/metadata/name","value":"Not_Valid"}]"#),
    ("changes the namespace", r#"[{"op":"replace","path":"/metadata/namespace","value":"other"}]"#),
    ("makes it invalid", r#"[{"op":"add","path":"/data/not a key","value":"v"}]"#),
    ("has a value of another type", r#"[{"op":"replace","path":"/data","value":5}]"#),
    ("has a number where text is", r#"[{"op":"add","path":"/data/n","value":5}]"#),
    ("adds an unknown field", r#"[{"op":"add","path":"/unknown","value":{"a":1}}]"#),
    (
        "breaks the owners of fields",
        r#"[{"op":"add","path":"/metadata/managedFields","value":[{"manager":"m","operation":"Nothing"}]}]"#,
    ),
    ("takes the owners of fields away", r#"[{"op":"remove","path":"/metadata/managedFields"}]"#),
    ("adds a finalizer", r#"[{"op":"add","path":"/metadata/finalizers","value":["example.com/f"]}]"#),
    ("sets a UID", r#"[{"op":"add","path":"/metadata/uid","value":"mine"}]"#),
    ("sets a version", r#"[{"op":"add","path":"/metadata/resourceVersion","value":"1"}]"#),
    (
        "replaces all of it",
        r#"[{"op":"replace","path":"","value":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"all":"new"}}}]"#,
    ),
];

/// The type of a patch, and whether there is one.
const TYPES: &[(&str, &str)] = &[
    ("a patch without a type", r#"{"allowed":true,"patch":"W10="}"#),
    ("a type without a patch", r#"{"allowed":true,"patchType":"JSONPatch"}"#),
    ("an empty type", r#"{"allowed":true,"patch":"W10=","patchType":""}"#),
    (
        "another type",
        r#"{"allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEiLCJ2YWx1ZSI6e319XQ==","patchType":"MergePatch"}"#,
    ),
    (
        "a refusal with a patch",
        r#"{"allowed":false,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEiLCJ2YWx1ZSI6e319XQ==","patchType":"JSONPatch"}"#,
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all: Vec<Behaviour> = PATCHES
        .iter()
        .flat_map(|(name, patch)| {
            let reply = || patched_with(patch.as_bytes());
            [
                created(&format!("a webhook's patch {name}"), reply(), json!({})),
                updated(&format!("a webhook's patch {name}, of what is there"), reply()),
            ]
        })
        .collect();
    for (name, response) in TYPES {
        let reply = Reply::Response(serde_json::from_str(response).unwrap_or_default());
        all.push(created(&format!("a webhook answers with {name}"), reply, json!({})));
    }
    all.push(created(
        "a webhook's patch is garbage, and it is ignored",
        patched_with(b"hello"),
        json!({"failurePolicy": "Ignore"}),
    ));
    all.push(created(
        "a webhook's patch does not apply, and nothing is ignored",
        patched(&json!([{"op": "remove", "path": "/missing"}])),
        json!({"failurePolicy": "Ignore"}),
    ));
    all.push(deleted());
    all.push(defaulted());
    all.push(custom());
    all.push(pruned());
    all.push(scaled());
    all.push(status());
    all.push(applied());
    all
}

fn created(name: &str, reply: Reply, fields: Value) -> Behaviour {
    Behaviour::new(name, move |mut script| {
        let (reply, fields) = (reply.clone(), fields.clone());
        async move {
            let maps = script.maps();
            let server = serve(move |_, _| reply.clone()).await?;
            let hooks = vec![hook(&script, &server, "hook", fields)];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            script.post(&maps, map("a", json!({"data": {"x": "y"}, "labels": {"app": "web"}}))).await?;
            script.get(&maps).await?;
            Ok(script)
        }
    })
}

fn updated(name: &str, reply: Reply) -> Behaviour {
    Behaviour::new(name, move |mut script| {
        let reply = reply.clone();
        async move {
            let maps = script.maps();
            script.map("a", json!({"app": "web"})).await?;
            let server = serve(move |_, _| reply.clone()).await?;
            let hooks = vec![hook(&script, &server, "hook", json!({}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            script.merge(&format!("{maps}/a"), json!({"data": {"x": "y"}})).await?;
            script.get(&maps).await?;
            Ok(script)
        }
    })
}

fn deleted() -> Behaviour {
    Behaviour::new("what is deleted cannot be patched by a webhook", |mut script| async move {
        let path = format!("{}/a", script.maps());
        script.map("a", json!({})).await?;
        let server = serve(|_, _| patched(&json!([{"op": "add", "path": "/data", "value": {}}]))).await?;
        let hooks = vec![hook(&script, &server, "hook", json!({}))];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        script.delete(&path, Value::Null).await?;
        script.get(path).await?;
        Ok(script)
    })
}

fn defaulted() -> Behaviour {
    Behaviour::new(
        "what a webhook adds to a pod is defaulted, and plug-ins see it",
        |mut script| async move {
            let pods = script.path("/api/v1", "pods");
            let server = serve(|_, _| {
            patched(&json!([
                {"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar", "image": "side:1"}},
                {"op": "add", "path": "/spec/tolerations", "value": [{"key": "k", "operator": "Exists"}]},
            ]))
        })
        .await?;
            let rules = about("", "v1", "pods");
            let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false}});
            script.post(&pods, pod).await?;
            Ok(script)
        },
    )
}

fn custom() -> Behaviour {
    Behaviour::new(
        "a webhook's patch of a custom object is defaulted, pruned and validated",
        |mut script| async move {
            let definition = script.with_spec(json!({"type": "object", "properties": {
            "size": {"type": "integer", "maximum": 5}, "mode": {"type": "object", "default": {},
                "properties": {"fast": {"type": "boolean", "default": true}}}}}));
            let defined = script.define(definition).await?;
            let server = serve(|path, request| match (path, request["name"].as_str()) {
            (_, Some("large")) => patched(&json!([{"op": "add", "path": "/spec/size", "value": 9}])),
            (_, Some("odd")) => patched(&json!([{"op": "add", "path": "/spec/size", "value": "text"}])),
            _ => patched(&json!([
                {"op": "add", "path": "/spec/size", "value": 3}, {"op": "add", "path": "/spec/other", "value": 1},
                {"op": "replace", "path": "/spec/mode", "value": {}},
            ])),
        })
        .await?;
            let rules = about(&defined.group, "*", "widgets");
            let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            for name in ["fine", "large", "odd"] {
                script.post(&defined.objects, defined.object(name, json!({"spec": {"size": 1}}))).await?;
            }
            script.get(&defined.objects).await?;
            Ok(script)
        },
    )
}

fn pruned() -> Behaviour {
    Behaviour::new(
        "a webhook sets the status of a custom object through its own path in vain",
        |mut script| async move {
            let definition =
                script.with_spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
            let defined = script.define(definition).await?;
            let server =
                serve(|_, _| patched(&json!([{"op": "add", "path": "/status", "value": {"phase": "Done"}}])))
                    .await?;
            let rules = about(&defined.group, "v1", "widgets");
            let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
            configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
            script.post(&defined.objects, defined.object("a", json!({"spec": {}}))).await?;
            script.merge(&defined.item("a"), json!({"spec": {"x": 1}})).await?;
            Ok(script)
        },
    )
}

fn scaled() -> Behaviour {
    Behaviour::new("a webhook patches the scale of a deployment", |mut script| async move {
        let deployments = script.path("/apis/apps/v1", "deployments");
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        script.post(&deployments, deployment).await?;
        let server =
            serve(|_, _| patched(&json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]))).await?;
        let rules = about("apps", "v1", "deployments/scale");
        let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        script.merge(&format!("{deployments}/a/scale"), json!({"spec": {"replicas": 3}})).await?;
        script.get(format!("{deployments}/a")).await?;
        Ok(script)
    })
}

fn status() -> Behaviour {
    Behaviour::new("a webhook patches the status of a pod", |mut script| async move {
        let pods = script.path("/api/v1", "pods");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false}});
        script.post(&pods, pod).await?;
        let server = serve(|_, _| {
            patched(&json!([{"op": "add", "path": "/status/message", "value": "told"},
                {"op": "add", "path": "/metadata/labels", "value": {"in": "vain"}}]))
        })
        .await?;
        let rules = about("", "v1", "pods/status");
        let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        script.merge(&format!("{pods}/a/status"), json!({"status": {"reason": "Why"}})).await?;
        script.merge(&format!("{pods}/a"), json!({"metadata": {"labels": {"not": "asked"}}})).await?;
        Ok(script)
    })
}

fn applied() -> Behaviour {
    Behaviour::new("a webhook patches what is applied, and nobody owns it", |mut script| async move {
        let path = format!("{}/a", script.maps());
        let server = serve(|_, _| patched(&json!([{"op": "add", "path": "/data/k", "value": "v"}]))).await?;
        let hooks = vec![hook(&script, &server, "hook", json!({}))];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        script.apply(&path, "one", map("a", json!({"data": {"x": "y"}}))).await?;
        script.apply(&path, "one", map("a", json!({"data": {"x": "z"}}))).await?;
        script.apply(&path, "two", map("a", json!({"data": {"k": "w"}}))).await?;
        Ok(script)
    })
}
