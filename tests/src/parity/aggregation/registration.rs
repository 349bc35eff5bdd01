//! APIServices of what the server itself serves: built-in groups, and those of CRDs.

use super::{SERVICES, api_service, item, register};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Which versions a definition serves.
fn definition(script: &Script, versions: &[(&str, bool)]) -> Value {
    let mut definition =
        script.with_spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let first = definition["spec"]["versions"][0].clone();
    let version = |(index, (name, served)): (usize, &(&str, bool))| {
        let mut version = first.clone();
        version["name"] = json!(name);
        version["served"] = json!(served);
        version["storage"] = json!(index == 0);
        version
    };
    definition["spec"]["versions"] = versions.iter().enumerate().map(version).collect();
    definition
}

/// A definition whose APIService is there.
async fn registered(script: &mut Script) -> anyhow::Result<()> {
    let definition = definition(script, &[("v1", true)]);
    script.define(definition).await?;
    local(script).await
}

/// Waits until the APIService of version v1 says that it is available.
async fn local(script: &mut Script) -> anyhow::Result<()> {
    super::until_condition(script, "Local").await
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for name in ["v1.", "v1.apps", "v2.autoscaling", "v1.rbac.authorization.k8s.io", "v1.nowhere.example.com"]
    {
        all.push(Behaviour::new(
            format!("the APIService {name} that is built in"),
            move |mut script| async move {
                script.get(format!("{SERVICES}/{name}")).await?;
                Ok(script)
            },
        ));
    }
    all.push(Behaviour::new("the APIServices that are built in", |mut script| async move {
        let label = "kube-aggregator.kubernetes.io/automanaged=onstart";
        script.send(Request::new("GET", SERVICES).with("labelSelector", label)).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("a CRD has an APIService", |mut script| async move {
        registered(&mut script).await?;
        let path = item(&script);
        script.get(&path).await?;
        Ok(script)
    }));
    all.push(Behaviour::new(
        "a CRD has an APIService for each version that is served",
        |mut script| async move {
            let group = script.group();
            let definition = definition(&script, &[("v1", true), ("v2", true), ("v3", false)]);
            script.define(definition).await?;
            local(&mut script).await?;
            script.until(&format!("{SERVICES}/v2.{group}"), 200).await?;
            for version in ["v1", "v2", "v3"] {
                script.get(format!("{SERVICES}/{version}.{group}")).await?;
            }
            Ok(script)
        },
    ));
    all.push(Behaviour::new("a version that is served no more has no APIService", |mut script| async move {
        let group = script.group();
        let two = definition(&script, &[("v1", true), ("v2", true)]);
        let defined = script.define(two).await?;
        script.until(&format!("{SERVICES}/v2.{group}"), 200).await?;
        let change = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
        script.quiet(Request::new("PATCH", &defined.path).body(media::JSON_PATCH, change)).await?;
        script.until(&format!("{SERVICES}/v2.{group}"), 404).await?;
        script.get(format!("{SERVICES}/v2.{group}")).await?;
        script.get(item(&script)).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("an APIService goes with its CRD", |mut script| async move {
        registered(&mut script).await?;
        let defined = script.defined();
        script.quiet(Request::new("DELETE", &defined.path)).await?;
        let path = item(&script);
        script.until(&path, 404).await?;
        script.get(path).await?;
        Ok(script)
    }));
    all.push(Behaviour::new(
        "an APIService of a CRD comes back when it is deleted",
        |mut script| async move {
            registered(&mut script).await?;
            let path = item(&script);
            let before = script.unseen(&Request::new("GET", &path)).await?;
            script.delete(&path, Value::Null).await?;
            let uid = before.body["metadata"]["uid"].clone();
            let request = Request::new("GET", &path);
            loop {
                let now = script.unseen(&request).await?;
                if now.status == 200 && now.body["metadata"]["uid"] != uid {
                    break;
                }
                windlass_clock::Clock::real().sleep(std::time::Duration::from_millis(40)).await;
            }
            local(&mut script).await?;
            script.get(path).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new("an APIService of a CRD is what it was again", |mut script| async move {
        registered(&mut script).await?;
        let path = item(&script);
        script
            .quiet(
                Request::new("PATCH", &path)
                    .body(media::MERGE_PATCH, json!({"spec": {"versionPriority": 7}})),
            )
            .await?;
        script.until_it(&path, |answer| answer.body["spec"]["versionPriority"] == 100).await?;
        script.get(path).await?;
        Ok(script)
    }));
    all.push(Behaviour::new(
        "an APIService of a CRD without its label is somebody's own",
        |mut script| async move {
            registered(&mut script).await?;
            let path = item(&script);
            let change = json!({"metadata": {"labels": null}, "spec": {"versionPriority": 7}});
            script.merge(&path, change).await?;
            let defined = script.defined();
            script.leave(path.clone());
            script.quiet(Request::new("DELETE", &defined.path)).await?;
            script.until(&defined.path, 404).await?;
            script.get(path).await?;
            Ok(script)
        },
    ));
    all.push(Behaviour::new("an APIService from before its CRD stays as it is", |mut script| async move {
        let object = api_service(&script, |object| {
            object["spec"] = json!({"group": object["spec"]["group"], "version": "v1", "groupPriorityMinimum": 300,
                "versionPriority": 7});
        });
        register(&mut script, object).await?;
        registered(&mut script).await?;
        script.get(item(&script)).await?;
        Ok(script)
    }));
    all.push(Behaviour::new("an APIService with nothing behind it is available", |mut script| async move {
        let object = api_service(&script, |object| {
            object["spec"] = json!({"group": object["spec"]["group"], "version": "v1", "groupPriorityMinimum": 300,
                "versionPriority": 7});
        });
        register(&mut script, object).await?;
        local(&mut script).await?;
        let group = script.group();
        script.until(&format!("/apis/{group}"), 200).await?;
        script.get(item(&script)).await?;
        script.get(format!("/apis/{group}")).await?;
        script.get(format!("/apis/{group}/v1")).await?;
        let all = script.unseen(&Request::new("GET", "/apis")).await?;
        super::discovery::note_group(&mut script, &all, &group);
        Ok(script)
    }));
    all.push(Behaviour::new("an APIService as it is created", |mut script| async move {
        let object = api_service(&script, |_| {});
        script.leave(item(&script));
        script.post(SERVICES, object.clone()).await?;
        script.post(SERVICES, object).await?;
        Ok(script)
    }));
    for (name, change) in INVALID {
        all.push(Behaviour::new(format!("an APIService {name}"), move |mut script| async move {
            let object = api_service(&script, change);
            script.leave(item(&script));
            script
                .send(Request::new("POST", SERVICES).with("dryRun", "All").body(media::JSON, object))
                .await?;
            Ok(script)
        }));
    }
    all
}

type Change = (&'static str, fn(&mut Value));

const INVALID: &[Change] = &[
    ("with a port", |object| object["spec"]["service"]["port"] = json!(8443)),
    ("with a port that is none", |object| object["spec"]["service"]["port"] = json!(70000)),
    ("of another name", |object| object["metadata"]["name"] = json!("v1.other.example.com")),
    ("without a group", |object| object["spec"]["group"] = json!("")),
    ("with a version that is none", |object| object["spec"]["version"] = json!("V1")),
    ("with no name of a Service", |object| object["spec"]["service"] = json!({"namespace": "default"})),
    ("that trusts twice", |object| object["spec"]["insecureSkipTLSVerify"] = json!(true)),
    ("of too high a priority", |object| object["spec"]["groupPriorityMinimum"] = json!(20001)),
    ("of no priority", |object| object["spec"]["versionPriority"] = json!(0)),
    ("whose bundle is no base64", |object| object["spec"]["caBundle"] = json!("?")),
];
