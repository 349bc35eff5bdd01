//! What webhooks are told of each request.

use super::server::allowed;
use super::{Kind, about, configure, hook, map, serve, tell};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

type Play = for<'a> fn(&'a mut Script) -> BoxFuture<'a, anyhow::Result<()>>;

/// A name, what webhooks are asked about, and what is done, before and after they are.
const PLAYS: &[(&str, &str, &str, &str, Play, Play)] = &[
    ("a create", "", "v1", "configmaps", nothing, |script| {
        async move {
            let maps = script.maps();
            script.post(&maps, map("a", json!({"data": {"x": "y"}, "labels": {"l": "v"}}))).await.map(drop)
        }
        .boxed()
    }),
    ("a create with options", "", "v1", "configmaps", nothing, |script| {
        async move {
            let request = Request::new("POST", script.maps())
                .with("fieldManager", "me")
                .with("fieldValidation", "Strict")
                .body(media::JSON, map("a", json!({})));
            script.send(request).await.map(drop)
        }
        .boxed()
    }),
    ("a create that is not to happen", "", "v1", "configmaps", nothing, |script| {
        async move {
            let request = Request::new("POST", script.maps())
                .with("dryRun", "All")
                .body(media::JSON, map("a", json!({})));
            script.send(request).await.map(drop)
        }
        .boxed()
    }),
    ("a generated name", "", "v1", "configmaps", nothing, |script| {
        async move {
            let maps = script.maps();
            let body =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
            script.post(&maps, body).await.map(drop)
        }
        .boxed()
    }),
    ("an update", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.put(&path, map("a", json!({"data": {"x": "z"}}))).await.map(drop)
        }
        .boxed()
    }),
    ("an update of what has changed", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            let mut body = map("a", json!({"data": {"x": "z"}}));
            body["metadata"]["resourceVersion"] = json!("1");
            script.put(&path, body).await.map(drop)
        }
        .boxed()
    }),
    ("an update of what is not there", "", "v1", "configmaps", nothing, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.put(&path, map("a", json!({}))).await.map(drop)
        }
        .boxed()
    }),
    ("a merge patch", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            let request = Request::new("PATCH", path)
                .with("fieldManager", "me")
                .body(media::MERGE_PATCH, json!({"data": {"k": "v"}}));
            script.send(request).await.map(drop)
        }
        .boxed()
    }),
    ("a patch that changes nothing", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.merge(&path, json!({})).await.map(drop)
        }
        .boxed()
    }),
    ("a patch of what is not there", "", "v1", "configmaps", nothing, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.merge(&path, json!({})).await.map(drop)
        }
        .boxed()
    }),
    ("an apply of something new", "", "v1", "configmaps", nothing, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.apply(&path, "me", map("a", json!({"data": {"x": "y"}}))).await.map(drop)
        }
        .boxed()
    }),
    ("an apply of what is there", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.apply(&path, "me", map("a", json!({"data": {"x": "y"}}))).await.map(drop)
        }
        .boxed()
    }),
    ("a deletion", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.delete(&path, Value::Null).await.map(drop)
        }
        .boxed()
    }),
    ("a deletion with options", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
                "gracePeriodSeconds": 5, "dryRun": ["All"]});
            script.delete(&path, options).await.map(drop)
        }
        .boxed()
    }),
    ("a deletion with options in the query", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.send(Request::new("DELETE", path).with("propagationPolicy", "Orphan")).await.map(drop)
        }
        .boxed()
    }),
    ("a deletion of what is not there", "", "v1", "configmaps", nothing, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.delete(&path, Value::Null).await.map(drop)
        }
        .boxed()
    }),
    ("a deletion of what has finalizers", "", "v1", "configmaps", held_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.delete(&path, Value::Null).await?;
            script.delete(&path, Value::Null).await?;
            script.merge(&path, json!({"metadata": {"finalizers": null}})).await.map(drop)
        }
        .boxed()
    }),
    ("a deletion of many", "", "v1", "configmaps", one_map, |script| {
        async move {
            let maps = script.maps();
            let request = Request::new("DELETE", maps).with("labelSelector", "app=web");
            script.send(request).await.map(drop)
        }
        .boxed()
    }),
    ("a read", "", "v1", "configmaps", one_map, |script| {
        async move {
            let path = format!("{}/a", script.maps());
            script.get(path).await.map(drop)
        }
        .boxed()
    }),
    ("a create in another namespace", "", "v1", "configmaps", nothing, |script| {
        async move {
            let body = map(&format!("m-{}", script.namespace()), json!({}));
            let request = Request::new("POST", "/api/v1/namespaces/default/configmaps").with("dryRun", "All");
            script.send(request.body(media::JSON, body)).await.map(drop)
        }
        .boxed()
    }),
    ("a pod", "", "v1", "pods", nothing, |script| {
        async move {
            let pods = script.path("/api/v1", "pods");
            script.post(&pods, pod()).await.map(drop)
        }
        .boxed()
    }),
    ("a pod's deletion", "", "v1", "pods", one_pod, |script| {
        async move {
            let path = format!("{}/a", script.path("/api/v1", "pods"));
            script.delete(&path, Value::Null).await?;
            script.delete(&path, Value::Null).await.map(drop)
        }
        .boxed()
    }),
    ("a pod's status", "", "v1", "pods/status", one_pod, |script| {
        async move {
            let path = format!("{}/a/status", script.path("/api/v1", "pods"));
            script.merge(&path, json!({"status": {"phase": "Running"}})).await.map(drop)
        }
        .boxed()
    }),
    ("a pod's binding", "", "v1", "pods/binding", one_pod, |script| {
        async move {
            let path = format!("{}/a/binding", script.path("/api/v1", "pods"));
            let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
                "target": {"kind": "Node", "name": "nowhere"}});
            script.post(&path, body).await.map(drop)
        }
        .boxed()
    }),
    ("a pod's eviction", "", "v1", "pods/eviction", one_pod, |script| {
        async move {
            let path = format!("{}/a/eviction", script.path("/api/v1", "pods"));
            let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
            script.post(&path, body).await.map(drop)
        }
        .boxed()
    }),
    ("what an eviction deletes", "", "v1", "pods", one_pod, |script| {
        async move {
            let path = format!("{}/a/eviction", script.path("/api/v1", "pods"));
            let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
            script.post(&path, body).await.map(drop)
        }
        .boxed()
    }),
    ("an account's token", "", "v1", "serviceaccounts/token", one_account, |script| {
        async move {
            let path = format!("{}/a/token", script.path("/api/v1", "serviceaccounts"));
            let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"expirationSeconds": 1200, "audiences": ["x"]}});
            script.quiet(Request::new("POST", path).body(media::JSON, body)).await.map(drop)
        }
        .boxed()
    }),
    ("a command in a pod", "", "v1", "pods/exec", one_pod, |script| {
        async move {
            let path = format!("{}/a/exec", script.path("/api/v1", "pods"));
            let request = Request::new("POST", path).with("command", "ls").with("command", "-l");
            script.quiet(request.with("stdin", "true").with("container", "c")).await.map(drop)
        }
        .boxed()
    }),
    ("a pod's proxy", "", "v1", "pods/proxy", one_pod, |script| {
        async move {
            let path = format!("{}/a/proxy/some/path", script.path("/api/v1", "pods"));
            script.quiet(Request::new("GET", path)).await.map(drop)
        }
        .boxed()
    }),
    ("a deployment's scale", "apps", "v1", "deployments/scale", one_deployment, |script| {
        async move {
            let path = format!("{}/a/scale", script.path("/apis/apps/v1", "deployments"));
            script.merge(&path, json!({"spec": {"replicas": 3}})).await?;
            let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
                "spec": {"replicas": 4}});
            script.put(&path, body).await.map(drop)
        }
        .boxed()
    }),
    ("everything of a deployment", "apps", "v1", "deployments/*", nothing, |script| {
        async move {
            let deployments = script.path("/apis/apps/v1", "deployments");
            script.post(&deployments, deployment()).await?;
            let path = format!("{deployments}/a/status");
            script.merge(&path, json!({"status": {"observedGeneration": 1}})).await.map(drop)
        }
        .boxed()
    }),
    ("a secret", "", "v1", "secrets", nothing, |script| {
        async move {
            let secrets = script.path("/api/v1", "secrets");
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                "stringData": {"k": "v"}});
            script.post(&secrets, body).await.map(drop)
        }
        .boxed()
    }),
    ("an event of the other group", "events.k8s.io", "v1", "events", nothing, |script| {
        async move {
            let events = script.path("/api/v1", "events");
            let body = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Why",
                "message": "m", "type": "Normal", "involvedObject": {"kind": "Pod", "name": "p",
                "namespace": script.namespace()}});
            script.post(&events, body).await.map(drop)
        }
        .boxed()
    }),
    (
        "an autoscaler of the other version",
        "autoscaling",
        "v1",
        "horizontalpodautoscalers",
        nothing,
        |script| {
            async move {
            let path = script.path("/apis/autoscaling/v2", "horizontalpodautoscalers");
            let body = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                "averageUtilization": 50}}}]}});
            script.post(&path, body).await.map(drop)
        }
        .boxed()
        },
    ),
];

fn nothing(_: &mut Script) -> BoxFuture<'_, anyhow::Result<()>> {
    async { Ok(()) }.boxed()
}

fn one_map(script: &mut Script) -> BoxFuture<'_, anyhow::Result<()>> {
    async move { script.map("a", json!({"app": "web"})).await.map(drop) }.boxed()
}

fn held_map(script: &mut Script) -> BoxFuture<'_, anyhow::Result<()>> {
    async move {
        let maps = script.maps();
        let mut body = map("a", json!({}));
        body["metadata"]["finalizers"] = json!(["example.com/held"]);
        script.post(&maps, body).await.map(drop)
    }
    .boxed()
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false}})
}

fn one_pod(script: &mut Script) -> BoxFuture<'_, anyhow::Result<()>> {
    async move {
        let pods = script.path("/api/v1", "pods");
        script.post(&pods, pod()).await.map(drop)
    }
    .boxed()
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

fn one_deployment(script: &mut Script) -> BoxFuture<'_, anyhow::Result<()>> {
    async move {
        let path = script.path("/apis/apps/v1", "deployments");
        script.post(&path, deployment()).await.map(drop)
    }
    .boxed()
}

fn one_account(script: &mut Script) -> BoxFuture<'_, anyhow::Result<()>> {
    async move {
        let path = script.path("/api/v1", "serviceaccounts");
        let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
        script.post(&path, body).await.map(drop)
    }
    .boxed()
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, group, version, resource, before, play) in PLAYS {
        for kind in [Kind::Mutating, Kind::Validating] {
            let word = if kind == Kind::Mutating { "mutating" } else { "validating" };
            let name = format!("what a {word} webhook is told of {name}");
            all.push(Behaviour::new(name, move |mut script| async move {
                before(&mut script).await?;
                let server = serve(|_, _| allowed()).await?;
                let rules = about(group, version, resource);
                let hooks = vec![hook(&script, &server, "hook", json!({"rules": rules}))];
                configure(&mut script, &server, kind, "it", hooks).await?;
                play(&mut script).await?;
                tell(&mut script, &server, false);
                Ok(script)
            }));
        }
    }
    all.push(versions());
    all.push(namespaces());
    all.push(users());
    all
}

/// A custom resource of two versions.
fn versions() -> Behaviour {
    Behaviour::new("what webhooks are told of a custom object in another version", |mut script| async move {
        let mut definition =
            script.with_spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        let mut other = definition["spec"]["versions"][0].clone();
        other["name"] = json!("v1beta1");
        other["storage"] = json!(false);
        if let Some(versions) = definition["spec"]["versions"].as_array_mut() {
            versions.push(other);
        }
        let defined = script.define(definition).await?;
        let server = serve(|_, _| allowed()).await?;
        let rules = about(&defined.group, "v1", "widgets");
        let hooks = vec![
            hook(&script, &server, "equivalent", json!({"rules": rules})),
            hook(&script, &server, "exact", json!({"rules": rules, "matchPolicy": "Exact"})),
        ];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        let objects = script.path(&format!("/apis/{}/v1beta1", defined.group), "widgets");
        let mut object = defined.object("a", json!({"spec": {"size": 1}}));
        object["apiVersion"] = json!(format!("{}/v1beta1", defined.group));
        script.until(&objects, 200).await?;
        script.post(&objects, object).await?;
        tell(&mut script, &server, true);
        script.merge(&defined.item("a"), json!({"spec": {"size": 2}})).await?;
        tell(&mut script, &server, true);
        script.delete(&format!("{objects}/a"), Value::Null).await?;
        tell(&mut script, &server, true);
        Ok(script)
    })
}

/// Namespaces are in themselves.
fn namespaces() -> Behaviour {
    Behaviour::new("what webhooks are told of a namespace", |mut script| async move {
        let server = serve(|_, _| allowed()).await?;
        let name = format!("{}-more", script.namespace());
        let selector = json!({"matchLabels": {"by": script.namespace()}});
        let hooks = vec![hook(
            &script,
            &server,
            "hook",
            json!({"rules": about("", "v1", "namespaces"), "namespaceSelector": selector}),
        )];
        configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name,
            "labels": {"by": script.namespace()}}});
        script.post("/api/v1/namespaces", body).await?;
        tell(&mut script, &server, false);
        let path = format!("/api/v1/namespaces/{name}");
        script.merge(&path, json!({"metadata": {"annotations": {"a": "b"}}})).await?;
        tell(&mut script, &server, false);
        let request = Request::new("DELETE", path).with("dryRun", "All");
        script.send(request).await?;
        tell(&mut script, &server, false);
        Ok(script)
    })
}

/// Who asks is told.
fn users() -> Behaviour {
    Behaviour::new("webhooks are told who asks", |mut script| async move {
        let maps = script.maps();
        let server = serve(|_, _| allowed()).await?;
        let hooks = vec![hook(&script, &server, "hook", json!({}))];
        configure(&mut script, &server, Kind::Mutating, "it", hooks).await?;
        let request = Request::new("POST", maps)
            .header("impersonate-user", "jane@example.com")
            .header("impersonate-group", "system:masters")
            .header("impersonate-uid", "7")
            .header("impersonate-extra-scope", "all")
            .body(media::JSON, map("a", json!({})));
        script.send(request).await?;
        tell(&mut script, &server, false);
        Ok(script)
    })
}
