//! What a kubelet may do, with pods of its own and of others.

use super::REVIEWS;
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use anyhow::ensure;
use serde_json::{Value, json};

const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate"];

/// Resources, with their group, a subresource, and whether they are in a namespace.
const RESOURCES: &[(&str, &str, &str, bool)] = &[
    ("", "secrets", "", true),
    ("", "configmaps", "", true),
    ("", "configmaps", "status", true),
    ("", "persistentvolumeclaims", "", true),
    ("", "persistentvolumeclaims", "status", true),
    ("", "persistentvolumes", "", false),
    ("", "serviceaccounts", "", true),
    ("", "serviceaccounts", "token", true),
    ("", "pods", "", true),
    ("", "pods", "status", true),
    ("", "pods", "eviction", true),
    ("", "pods", "log", true),
    ("", "nodes", "", false),
    ("", "nodes", "status", false),
    ("", "nodes", "proxy", false),
    ("", "services", "", true),
    ("", "endpoints", "", true),
    ("", "events", "", true),
    ("", "namespaces", "", false),
    ("coordination.k8s.io", "leases", "", true),
    ("storage.k8s.io", "csinodes", "", false),
    ("storage.k8s.io", "csidrivers", "", false),
    ("storage.k8s.io", "volumeattachments", "", false),
    ("resource.k8s.io", "resourceslices", "", false),
    ("resource.k8s.io", "resourceclaims", "", true),
    ("certificates.k8s.io", "certificatesigningrequests", "", false),
    ("authentication.k8s.io", "tokenreviews", "", false),
    ("node.k8s.io", "runtimeclasses", "", false),
    ("apps", "deployments", "", true),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (group, resource, subresource, namespaced) in RESOURCES {
        let name = format!("a node and its {resource}.{group}/{subresource}");
        all.push(Behaviour::new(name, move |script| {
            asks(script, (group, resource, subresource), *namespaced)
        }));
    }
    all.push(Behaviour::new("a node selects by fields", selects));
    all.push(Behaviour::new("who is a node", who_is_one));
    all
}

pub(super) fn node(script: &Script) -> String {
    format!("node-{}", script.namespace())
}

/// A pod on the node, and one on another, each with names of its own for all that it uses.
pub(super) async fn with_pods(script: &mut Script) -> anyhow::Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    script
        .quiet(Request::new("POST", script.path("/api/v1", "serviceaccounts")).body(media::JSON, account))
        .await?;
    for (name, node) in [("mine", node(script)), ("theirs", "another".to_owned())] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "nodeName": node, "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i", "envFrom": [{"configMapRef": {"name": name}}]}],
            "volumes": [
                {"name": "a", "secret": {"secretName": name}},
                {"name": "b", "persistentVolumeClaim": {"claimName": name}},
            ],
        }});
        let made =
            script.quiet(Request::new("POST", script.path("/api/v1", "pods")).body(media::JSON, pod)).await?;
        ensure!(made.is_success(), "{made}");
    }
    // The reference learns of pods a little later.
    let review = review(
        script,
        &["system:nodes"],
        "get",
        json!({"resource": "secrets", "name": "mine",
        "namespace": script.namespace()}),
    );
    script.until_asked(review, |answer| answer.body["status"]["allowed"] == true).await
}

fn review(script: &Script, groups: &[&str], verb: &str, mut attributes: Value) -> Request {
    attributes["verb"] = json!(verb);
    let spec = json!({"user": format!("system:node:{}", node(script)), "groups": groups, "resourceAttributes": attributes});
    let review =
        json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    Request::new("POST", format!("{REVIEWS}/subjectaccessreviews")).body(media::JSON, review)
}

async fn asks(
    mut script: Script,
    (group, resource, subresource): (&str, &str, &str),
    namespaced: bool,
) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    let own = node(&script);
    let namespaces = match namespaced {
        true => vec![script.namespace().to_owned(), "kube-node-lease".to_owned(), String::new()],
        false => vec![String::new()],
    };
    for verb in VERBS {
        for namespace in &namespaces {
            for name in ["mine", "theirs", "unknown", own.as_str(), "default", ""] {
                let attributes = json!({"group": group, "resource": resource, "subresource": subresource,
                    "namespace": namespace, "name": name});
                let request = review(&script, &["system:nodes", "system:authenticated"], verb, attributes);
                let answer = script.quiet(request).await?;
                script.note(&answer);
            }
        }
    }
    Ok(script)
}

async fn selects(mut script: Script) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    let own = node(&script);
    let requirement = |key: &str, operator: &str, values: &[&str]| json!({"requirements": [{"key": key, "operator": operator, "values": values}]});
    let selectors = [
        json!({"rawSelector": format!("spec.nodeName={own}")}),
        json!({"rawSelector": format!("spec.nodeName=={own},status.phase!=Failed")}),
        json!({"rawSelector": format!("spec.nodeName!={own}")}),
        json!({"rawSelector": "spec.nodeName=another"}),
        json!({"rawSelector": "metadata.name=mine"}),
        json!({"rawSelector": "nonsense"}),
        requirement("spec.nodeName", "In", &[&own]),
        requirement("spec.nodeName", "In", &[&own, "another"]),
        requirement("spec.nodeName", "NotIn", &[&own]),
        requirement("spec.nodeName", "Exists", &[]),
        json!({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": [&own]},
            {"key": "a", "operator": "Exists"}]}),
        json!({"requirements": [{"key": "a", "operator": "Near", "values": ["b"]}]}),
    ];
    for (group, resource) in [("", "pods"), ("resource.k8s.io", "resourceslices"), ("", "nodes")] {
        for verb in ["list", "watch", "deletecollection", "get"] {
            for selector in &selectors {
                let attributes = json!({"group": group, "resource": resource, "fieldSelector": selector});
                let request = review(&script, &["system:nodes", "system:authenticated"], verb, attributes);
                let answer = script.quiet(request).await?;
                script.note(&answer);
            }
        }
    }
    for selector in [
        json!({"rawSelector": "a in (b,c),!d"}),
        json!({"rawSelector": "a in (b"}),
        json!({"requirements": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}),
        json!({"requirements": [{"key": "a", "operator": "In"}]}),
        json!({"requirements": [{"key": "a", "operator": "Exists"}, {"key": "-", "operator": "Exists"}]}),
        json!({"requirements": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
    ] {
        let attributes = json!({"resource": "pods", "labelSelector": selector});
        let answer = script.quiet(review(&script, &["system:nodes"], "list", attributes)).await?;
        script.note(&answer);
    }
    let who = format!("system:node:{own}");
    for path in [
        format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{own}"),
        "/api/v1/pods?fieldSelector=spec.nodeName%3Danother".to_owned(),
        "/api/v1/pods".to_owned(),
        format!("{}?fieldSelector=metadata.name%3Dmine", script.path("/api/v1", "pods")),
        format!("{}?fieldSelector=metadata.name%3Dtheirs", script.path("/api/v1", "pods")),
    ] {
        let request = Request::new("GET", path)
            .header("impersonate-user", who.as_str())
            .header("impersonate-group", "system:nodes")
            .header("impersonate-group", "system:authenticated");
        let answer = script.quiet(request).await?;
        script.note(&answer);
    }
    Ok(script)
}

async fn who_is_one(mut script: Script) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    for groups in [&["system:nodes"][..], &["system:authenticated"], &[]] {
        for resource in ["secrets", "services"] {
            let attributes = json!({"resource": resource, "name": "mine", "namespace": script.namespace()});
            let request = review(&script, groups, "get", attributes);
            let answer = script.quiet(request).await?;
            script.note(&answer);
        }
    }
    for user in ["system:node:", "system:nodes", "node"] {
        let spec = json!({"user": user, "groups": ["system:nodes"],
            "resourceAttributes": {"resource": "services", "verb": "get"}});
        let review =
            json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
        let request =
            Request::new("POST", format!("{REVIEWS}/subjectaccessreviews")).body(media::JSON, review);
        let answer = script.quiet(request).await?;
        script.note(&answer);
    }
    Ok(script)
}
