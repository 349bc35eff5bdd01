//! What a kubelet may write into objects: the NodeRestriction admission plug-in.

use super::nodes::{node, with_pods};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::merge::merge;
use crate::parity::{Behaviour, Script};
use anyhow::ensure;
use serde_json::{Value, json};

const MIRROR: &str = "kubernetes.io/config.mirror";

/// Changes of a mirror pod that is right otherwise, as a merge patch; `NODE` is the node's name.
const MIRRORS: &[(&str, &str)] = &[
    ("as it should be", "{}"),
    ("without the annotation", r#"{"metadata":{"annotations":null}}"#),
    ("of another node", r#"{"spec":{"nodeName":"another"}}"#),
    ("of no node", r#"{"spec":{"nodeName":null}}"#),
    ("without an owner", r#"{"metadata":{"ownerReferences":null}}"#),
    (
        "that another node owns",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"another","uid":"u","controller":true}]}}"#,
    ),
    (
        "that a pod owns",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"NODE","uid":"u","controller":true}]}}"#,
    ),
    (
        "that it does not control",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"NODE","uid":"u"}]}}"#,
    ),
    (
        "that blocks its deletion",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"NODE","uid":"u","controller":true,"blockOwnerDeletion":true}]}}"#,
    ),
    (
        "with two owners",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"NODE","uid":"u"},{"apiVersion":"v1","kind":"Node","name":"another","uid":"v"}]}}"#,
    ),
    ("with an account", r#"{"spec":{"serviceAccountName":"default"}}"#),
    ("with a Secret as a volume", r#"{"spec":{"volumes":[{"name":"v","secret":{"secretName":"s"}}]}}"#),
    (
        "with a Secret in its environment",
        r#"{"spec":{"containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"s"}}]}]}}"#,
    ),
    ("with Secrets for its images", r#"{"spec":{"imagePullSecrets":[{"name":"s"}]}}"#),
    ("with a ConfigMap as a volume", r#"{"spec":{"volumes":[{"name":"v","configMap":{"name":"s"}}]}}"#),
    (
        "with a ConfigMap in its environment",
        r#"{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"s","key":"k"}}}]}]}}"#,
    ),
    (
        "with a projected token",
        r#"{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"p"}}]}}]}}"#,
    ),
    (
        "with a projected Secret",
        r#"{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s"}}]}}]}}"#,
    ),
    (
        "with a projected ConfigMap",
        r#"{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"s"}}]}}]}}"#,
    ),
    ("with a claim", r#"{"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"s"}}]}}"#),
    (
        "with an ephemeral claim",
        r#"{"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}}"#,
    ),
    ("with a CSI volume", r#"{"spec":{"volumes":[{"name":"v","csi":{"driver":"d.example.com"}}]}}"#),
    ("with a resource claim", r#"{"spec":{"resourceClaims":[{"name":"r","resourceClaimName":"s"}]}}"#),
    (
        "with volumes of its own",
        r#"{"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","hostPath":{"path":"/tmp"}},{"name":"x","downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"metadata.name"}}]}}]}}"#,
    ),
];

/// Changes of the node's own Node.
const NODES: &[(&str, &str)] = &[
    ("a label", r#"{"metadata":{"labels":{"app":"x","example.com/y":"z"}}}"#),
    (
        "a label of kubelets",
        r#"{"metadata":{"labels":{"kubernetes.io/os":"plan9","node.kubernetes.io/x":"y","a.kubelet.kubernetes.io/b":"c"}}}"#,
    ),
    ("a label of Kubernetes", r#"{"metadata":{"labels":{"kubernetes.io/x":"y"}}}"#),
    ("two labels of Kubernetes", r#"{"metadata":{"labels":{"z.k8s.io/x":"y","kubernetes.io/x":"y"}}}"#),
    ("its role", r#"{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}"#),
    ("a restricted label", r#"{"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}}}"#),
    (
        "a restricted label of its own domain",
        r#"{"metadata":{"labels":{"a.node-restriction.kubernetes.io/x":"y"}}}"#,
    ),
    ("an annotation", r#"{"metadata":{"annotations":{"kubernetes.io/x":"y"}}}"#),
    ("a taint", r#"{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}"#),
    (
        "an owner",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}"#,
    ),
    ("that it is unschedulable", r#"{"spec":{"unschedulable":true}}"#),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (what, change) in MIRRORS {
        all.push(Behaviour::new(format!("a node creates a mirror pod {what}"), move |script| {
            mirrors(script, change)
        }));
    }
    for (what, change) in NODES {
        all.push(Behaviour::new(format!("a node sets {what}"), move |script| {
            changes_its_node(script, change)
        }));
    }
    all.push(Behaviour::new("a node registers", registers));
    all.push(Behaviour::new("a node writes pods", writes_pods));
    all.push(Behaviour::new("a node evicts and deletes pods", evicts));
    all.push(Behaviour::new("a node asks for tokens", asks_for_tokens));
    all.push(Behaviour::new("a node writes what has its name", writes_its_own));
    all.push(Behaviour::new("a node writes claims", writes_claims));
    all.push(Behaviour::new("a node without a name writes", without_a_name));
    all
}

/// As a kubelet sends it.
fn by(node: &str, request: Request) -> Request {
    request
        .header("impersonate-user", format!("system:node:{node}"))
        .header("impersonate-group", "system:nodes")
        .header("impersonate-group", "system:authenticated")
}

fn own(script: &Script, method: &'static str, path: impl Into<String>) -> Request {
    by(&node(script), Request::new(method, path))
}

/// Registers the node itself; gives back its UID.
async fn registered(script: &mut Script) -> anyhow::Result<String> {
    let name = node(script);
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let made = script.quiet(Request::new("POST", "/api/v1/nodes").body(media::JSON, object)).await?;
    ensure!(made.is_success(), "{made}");
    script.leave(format!("/api/v1/nodes/{name}"));
    Ok(made.body["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

fn mirror(script: &Script, uid: &str) -> Value {
    let name = node(script);
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "mirror", "annotations": {MIRROR: "x"}, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": true}]},
        "spec": {"nodeName": name, "containers": [{"name": "c", "image": "i"}]}})
}

async fn mirrors(mut script: Script, change: &str) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    let uid = registered(&mut script).await?;
    let pods = script.path("/api/v1", "pods");
    // The reference learns of nodes a little later.
    let sound = own(&script, "POST", format!("{pods}?dryRun=All")).body(media::JSON, mirror(&script, &uid));
    script.until_asked(sound, |answer| answer.is_success()).await?;
    let mut pod = mirror(&script, &uid);
    let change = change.replace("NODE", &node(&script));
    merge(&mut pod, &serde_json::from_str(&change)?);
    let request = own(&script, "POST", pods).body(media::JSON, pod);
    script.send(request).await?;
    Ok(script)
}

async fn registers(mut script: Script) -> anyhow::Result<Script> {
    let name = node(&script);
    let taints = json!([{"key": "k", "effect": "NoSchedule"}]);
    for (metadata, spec) in [
        (json!({"name": "another-node"}), json!({})),
        (json!({"generateName": "generated-"}), json!({})),
        (json!({"name": name, "labels": {"kubernetes.io/x": "y"}}), json!({})),
        (
            json!({"name": name, "labels": {"kubernetes.io/os": "linux", "app": "x"}}),
            json!({"taints": taints}),
        ),
    ] {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec});
        let request = own(&script, "POST", "/api/v1/nodes").body(media::JSON, object);
        script.send(request).await?;
    }
    script.leave(format!("/api/v1/nodes/{name}"));
    Ok(script)
}

async fn changes_its_node(mut script: Script, change: &str) -> anyhow::Result<Script> {
    registered(&mut script).await?;
    let name = node(&script);
    for path in [format!("/api/v1/nodes/{name}"), format!("/api/v1/nodes/{name}/status")] {
        let change: Value = serde_json::from_str(change)?;
        let request = own(&script, "PATCH", path).body(media::MERGE_PATCH, change);
        script.send(request).await?;
    }
    let request = by("other", Request::new("PATCH", format!("/api/v1/nodes/{name}")))
        .body(media::MERGE_PATCH, json!({"metadata": {"labels": {"app": "theirs"}}}));
    script.send(request).await?;
    Ok(script)
}

async fn writes_pods(mut script: Script) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    let pods = script.path("/api/v1", "pods");
    for name in ["mine", "theirs", "unknown"] {
        for (part, change) in [
            ("/status", json!({"status": {"phase": "Running", "podIP": "10.0.0.1"}})),
            ("/status", json!({"metadata": {"labels": {"a": "b"}}})),
            ("/status", json!({"metadata": {"annotations": {"a": "b"}}})),
            (
                "/status",
                json!({"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "x"}]}}),
            ),
            ("", json!({"metadata": {"labels": {"a": "b"}}})),
            ("/resize", json!({"spec": {"containers": [{"name": "c", "resources": {}}]}})),
        ] {
            let request =
                own(&script, "PATCH", format!("{pods}/{name}{part}")).body(media::STRATEGIC_PATCH, change);
            script.send(request).await?;
        }
    }
    Ok(script)
}

async fn evicts(mut script: Script) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    let pods = script.path("/api/v1", "pods");
    let eviction =
        |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let known =
        own(&script, "POST", format!("{pods}/mine/eviction?dryRun=All")).body(media::JSON, eviction("mine"));
    script.until_asked(known, |answer| answer.is_success()).await?;
    for (path, name) in [("theirs", "theirs"), ("unknown", "unknown"), ("theirs", "mine"), ("mine", "mine")] {
        let request = own(&script, "POST", format!("{pods}/{path}/eviction?dryRun=All"))
            .body(media::JSON, eviction(name));
        script.send(request).await?;
    }
    for name in ["theirs", "unknown", "mine"] {
        let request = own(&script, "DELETE", format!("{pods}/{name}?gracePeriodSeconds=0"));
        script.send(request).await?;
    }
    Ok(script)
}

async fn asks_for_tokens(mut script: Script) -> anyhow::Result<Script> {
    with_pods(&mut script).await?;
    let pods = script.path("/api/v1", "pods");
    let projected = |audience: &str| json!({"serviceAccountToken": {"path": "p", "audience": audience}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tokens"}, "spec": {
        "nodeName": node(&script), "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": [projected("vault")]}}]}});
    let made = script.quiet(Request::new("POST", pods.clone()).body(media::JSON, pod)).await?;
    ensure!(made.is_success(), "{made}");
    let mut uids = Vec::new();
    for name in ["mine", "theirs", "tokens"] {
        let found = script.quiet(Request::new("GET", format!("{pods}/{name}"))).await?;
        uids.push(found.body["metadata"]["uid"].clone());
    }
    let path = format!("{}/default/token", script.path("/api/v1", "serviceaccounts"));
    let token = |bound: Value, audiences: Value| {
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
            "boundObjectRef": bound, "audiences": audiences}})
    };
    let to = |name: &str, uid: &Value| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
    let known =
        own(&script, "POST", path.clone()).body(media::JSON, token(to("tokens", &uids[2]), json!(["vault"])));
    script.until_asked(known, |answer| answer.is_success()).await?;
    for (bound, audiences) in [
        (Value::Null, json!([])),
        (json!({"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}), json!([])),
        (json!({"apiVersion": "v1", "kind": "Pod", "name": "mine"}), json!([])),
        (to("mine", &json!("other")), json!([])),
        (to("unknown", &json!("other")), json!([])),
        (to("theirs", &uids[1]), json!([])),
        (to("mine", &uids[0]), json!([])),
        (to("tokens", &uids[2]), json!([])),
        (to("tokens", &uids[2]), json!(["other"])),
        (to("tokens", &uids[2]), json!(["vault", "other"])),
        (to("tokens", &uids[2]), json!(["vault"])),
    ] {
        let request = own(&script, "POST", path.clone()).body(media::JSON, token(bound, audiences));
        let mut answer = script.quiet(request).await?;
        // Nobody gets the same token twice.
        if answer.is_success() {
            answer.body = json!("granted");
        } else {
            let text = answer.body["message"].as_str().unwrap_or_default();
            let text = uids
                .iter()
                .filter_map(Value::as_str)
                .fold(text.to_owned(), |text, uid| text.replace(uid, "UID"));
            answer.body["message"] = json!(text);
        }
        script.note(&answer);
    }
    Ok(script)
}

async fn writes_its_own(mut script: Script) -> anyhow::Result<Script> {
    let name = node(&script);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let csi_nodes = "/apis/storage.k8s.io/v1/csinodes";
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    for named in ["another-one", name.as_str()] {
        let metadata = json!({"name": named});
        let slice = |node: &str| {
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {
                "nodeName": node, "driver": "d.example.com",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d"}]}})
        };
        for (path, object) in [
            (leases, json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})),
            (
                csi_nodes,
                json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata,
                "spec": {"drivers": []}}),
            ),
            (slices, slice(named)),
        ] {
            let request = own(&script, "POST", path).body(media::JSON, object);
            script.send(request).await?;
        }
        for path in [leases, csi_nodes] {
            let request = own(&script, "PATCH", format!("{path}/{named}"))
                .body(media::MERGE_PATCH, json!({"metadata": {"labels": {"a": "b"}}}));
            script.send(request).await?;
        }
    }
    for path in [leases, csi_nodes, slices] {
        script.leave(format!("{path}/{name}"));
    }
    let elsewhere = script.path("/apis/coordination.k8s.io/v1", "leases");
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    let request = own(&script, "POST", elsewhere).body(media::JSON, lease);
    script.send(request).await?;
    Ok(script)
}

async fn writes_claims(mut script: Script) -> anyhow::Result<Script> {
    let claims = script.path("/api/v1", "persistentvolumeclaims");
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine"}, "spec": {
        "storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let made = script.quiet(Request::new("POST", claims.clone()).body(media::JSON, claim)).await?;
    ensure!(made.is_success(), "{made}");
    with_pods(&mut script).await?;
    let path = format!("{claims}/mine/status");
    for change in [
        json!({"status": {"capacity": {"storage": "1Gi"}}}),
        json!({"status": {"conditions": [{"type": "Resizing", "status": "True"}]}}),
        json!({"status": {"allocatedResources": {"storage": "1Gi"}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"status": {"phase": "Lost"}}),
    ] {
        let request = own(&script, "PATCH", path.clone()).body(media::MERGE_PATCH, change);
        let mut answer = script.quiet(request).await?;
        match answer.body["message"].as_str().and_then(|text| text.split_once(" and status.conditions")) {
            // What follows is how the reference prints Go values.
            Some((before, _)) => answer.body["message"] = json!(before),
            None => answer.body = answer.body["status"].clone(),
        }
        script.note(&answer);
    }
    Ok(script)
}

async fn without_a_name(mut script: Script) -> anyhow::Result<Script> {
    let map = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"namespace": script.namespace()}});
    let request = by("", Request::new("POST", script.path("/api/v1", "events"))).body(media::JSON, map);
    script.send(request).await?;
    Ok(script)
}
