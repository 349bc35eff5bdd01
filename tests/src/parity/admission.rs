//! The default admission plug-ins: what they mutate and reject.

use super::{Behaviour, Script};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use serde_json::{Value, json};

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const INGRESS_CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
const RUNTIMES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

/// Limits of a namespace, and the resources of the one container of a pod in it.
const LIMITED: &[(&str, &str, &str)] = &[
    (
        "defaults are filled in",
        r#"[{"type":"Container","default":{"cpu":"500m","memory":"1Gi"},"defaultRequest":{"cpu":"100m"}}]"#,
        "{}",
    ),
    (
        "what is said stays",
        r#"[{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"}}]"#,
        r#"{"limits":{"cpu":"2"}}"#,
    ),
    ("most is the default", r#"[{"type":"Container","max":{"memory":"1Gi"}}]"#, "{}"),
    ("too much", r#"[{"type":"Container","max":{"cpu":"1"}}]"#, r#"{"limits":{"cpu":"1500m"}}"#),
    ("too little", r#"[{"type":"Container","min":{"cpu":"100m"}}]"#, r#"{"requests":{"cpu":"50m"}}"#),
    (
        "a limit that is too little",
        r#"[{"type":"Container","min":{"memory":"100Mi"},"default":{"memory":"200Mi"}}]"#,
        r#"{"limits":{"memory":"50Mi"},"requests":{"memory":"50Mi"}}"#,
    ),
    ("nothing said of what has a least", r#"[{"type":"Pod","min":{"cpu":"100m"}}]"#, "{}"),
    ("nothing said of what has a most", r#"[{"type":"Pod","max":{"cpu":"100m"}}]"#, "{}"),
    ("a pod of too much", r#"[{"type":"Pod","max":{"cpu":"1"}}]"#, r#"{"limits":{"cpu":"1001m"}}"#),
    (
        "a ratio that is too high",
        r#"[{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}]"#,
        r#"{"limits":{"cpu":"1"},"requests":{"cpu":"300m"}}"#,
    ),
    ("a ratio of nothing", r#"[{"type":"Pod","maxLimitRequestRatio":{"cpu":"2"}}]"#, "{}"),
    (
        "a ratio that is fine",
        r#"[{"type":"Container","maxLimitRequestRatio":{"memory":"2"}}]"#,
        r#"{"limits":{"memory":"2Gi"},"requests":{"memory":"1Gi"}}"#,
    ),
];

/// What a quota allows and what is used of it, and an object that counts: its path and its fields.
const COUNTED: &[(&str, &str, &str, &str, &str)] = &[
    (
        "a pod that fits",
        r#"{"pods":"2","cpu":"1"}"#,
        r#"{"pods":"1","cpu":"500m"}"#,
        "pods",
        r#"{"requests":{"cpu":"100m"}}"#,
    ),
    ("a pod too many", r#"{"pods":"2"}"#, r#"{"pods":"2"}"#, "pods", "{}"),
    (
        "a pod that asks for too much",
        r#"{"requests.cpu":"1","limits.memory":"1Gi"}"#,
        r#"{"requests.cpu":"900m","limits.memory":"0"}"#,
        "pods",
        r#"{"requests":{"cpu":"200m"},"limits":{"memory":"2Gi","cpu":"1"}}"#,
    ),
    (
        "a pod that does not say what is counted",
        r#"{"cpu":"1","limits.memory":"1Gi"}"#,
        r#"{"cpu":"0","limits.memory":"0"}"#,
        "pods",
        "{}",
    ),
    ("nobody knows what is used", r#"{"pods":"2"}"#, "{}", "pods", "{}"),
    (
        "a config map that fits",
        r#"{"configmaps":"2","count/configmaps":"5"}"#,
        r#"{"configmaps":"1","count/configmaps":"1"}"#,
        "configmaps",
        "{}",
    ),
    (
        "a config map too many",
        r#"{"count/configmaps":"1"}"#,
        r#"{"count/configmaps":"1"}"#,
        "configmaps",
        "{}",
    ),
    (
        "a secret where maps are counted",
        r#"{"count/configmaps":"1"}"#,
        r#"{"count/configmaps":"1"}"#,
        "secrets",
        "{}",
    ),
    (
        "a claim that fits",
        r#"{"requests.storage":"2Gi","persistentvolumeclaims":"3"}"#,
        r#"{"requests.storage":"512Mi","persistentvolumeclaims":"1"}"#,
        "persistentvolumeclaims",
        "{}",
    ),
    (
        "a claim of too much",
        r#"{"requests.storage":"1Gi"}"#,
        r#"{"requests.storage":"1Mi"}"#,
        "persistentvolumeclaims",
        "{}",
    ),
    (
        "a service too many",
        r#"{"services":"1","services.nodeports":"0"}"#,
        r#"{"services":"1","services.nodeports":"0"}"#,
        "services",
        "{}",
    ),
];

fn pod(resources: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], "automountServiceAccountToken": false}})
}

fn claim(storage: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": storage}}}})
}

fn object(plural: &str, fields: &str) -> anyhow::Result<Value> {
    let fields: Value = serde_json::from_str(fields)?;
    Ok(match plural {
        "pods" => pod(fields),
        "persistentvolumeclaims" => claim("1Gi"),
        "services" => {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "None"}})
        }
        "secrets" => json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
        _ => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    })
}

/// Amounts of a quota that are or are not what a resource may have.
const AMOUNTS: &[(&str, &str)] = &[
    ("half a configmap by count", r#"{"count/configmaps":"500m"}"#),
    ("half an extended resource", r#"{"example.com/gpu":"0.5"}"#),
    ("half an extended resource that is requested", r#"{"requests.example.com/gpu":"0.5"}"#),
    ("half a resource of Kubernetes' own domain", r#"{"x.kubernetes.io/y":"0.5"}"#),
    ("half a pod", r#"{"pods":"500m","cpu":"500m"}"#),
    ("fewer than none", r#"{"count/configmaps":"-1500m"}"#),
    ("a resource that nobody defined", r#"{"gadgets":"1"}"#),
];

async fn amounts(mut script: Script, amounts: &str) -> anyhow::Result<Script> {
    let amounts: Value = serde_json::from_str(amounts)?;
    let quotas = script.path("/api/v1", "resourcequotas");
    let quota = |hard: &Value| json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    script.send(rehearsed(&quotas, quota(&amounts))).await?;
    script.post(&quotas, quota(&json!({}))).await?;
    let status = format!("{quotas}/q/status");
    script.merge(&status, json!({"status": {"hard": amounts}})).await?;
    script.merge(&status, json!({"status": {"used": amounts}})).await?;
    Ok(script)
}

/// The account that a controller would make.
pub(super) async fn with_account(script: &mut Script) -> anyhow::Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let path = script.path("/api/v1", "serviceaccounts");
    script.quiet(Request::new("POST", path).body(media::JSON, account)).await?;
    Ok(())
}

fn rehearsed(path: &str, object: Value) -> Request {
    Request::new("POST", path).with("dryRun", "All").body(media::JSON, object)
}

async fn counted(
    mut script: Script,
    hard: &str,
    used: &str,
    plural: &'static str,
    fields: &str,
) -> anyhow::Result<Script> {
    with_account(&mut script).await?;
    let (mut hard, mut used): (Value, Value) = (serde_json::from_str(hard)?, serde_json::from_str(used)?);
    for side in [&mut hard, &mut used] {
        side["count/leases.coordination.k8s.io"] = json!("0");
    }
    let quotas = script.path("/api/v1", "resourcequotas");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    script.post(&quotas, quota).await?;
    let path = script.path("/api/v1", plural);
    // Without a status it binds nobody.
    script.send(rehearsed(&path, object(plural, fields)?)).await?;
    script.merge(&format!("{quotas}/q/status"), json!({"status": {"hard": hard, "used": used}})).await?;
    // The reference looks at a copy, which follows by and by: no lease is let in once it did. Asked as a dry run, for a
    // lease that is let in would count as a write, and change the versions that are compared.
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"generateName": "l-"}});
    let leases = script.path("/apis/coordination.k8s.io/v1", "leases");
    script.until_asked(rehearsed(&leases, lease), |answer| answer.status == 403).await?;
    script.post(&path, object(plural, fields)?).await?;
    script.get(format!("{quotas}/q")).await?;
    Ok(script)
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, limits, resources) in LIMITED {
        all.push(Behaviour::new(format!("limits: {name}"), move |mut script: Script| async move {
            with_account(&mut script).await?;
            let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
                "spec": {"limits": serde_json::from_str::<Value>(limits)?}});
            let path = script.path("/api/v1", "limitranges");
            script.post(&path, range).await?;
            let path = script.path("/api/v1", "pods");
            script.post(&path, pod(serde_json::from_str(resources)?)).await?;
            Ok(script)
        }));
    }
    for storage in ["1Gi", "1Mi", "100Gi"] {
        all.push(Behaviour::new(format!("limits: a claim of {storage}"), move |mut script: Script| async move {
            let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [
                {"type": "PersistentVolumeClaim", "min": {"storage": "10Mi"}, "max": {"storage": "10Gi"}}]}});
            let path = script.path("/api/v1", "limitranges");
            script.post(&path, range).await?;
            let path = script.path("/api/v1", "persistentvolumeclaims");
            script.post(&path, claim(storage)).await?;
            Ok(script)
        }));
    }
    for (name, hard, used, plural, fields) in COUNTED {
        all.push(Behaviour::new(format!("quotas: {name}"), move |script: Script| {
            counted(script, hard, used, plural, fields)
        }));
    }
    for (name, given) in AMOUNTS {
        all.push(Behaviour::new(format!("quotas: {name}"), move |script: Script| amounts(script, given)));
    }
    for (name, level, fields, container) in SECURED {
        all.push(Behaviour::new(format!("security: {level}, {name}"), move |script: Script| {
            secured(script, level, fields, container)
        }));
    }
    all.extend(runtimes());
    all.extend(storage());
    all.push(Behaviour::new("priority: a class that there is not", |mut script: Script| async move {
        with_account(&mut script).await?;
        let path = script.path("/api/v1", "pods");
        let mut pod = pod(json!({}));
        pod["spec"]["priorityClassName"] = json!("no-such-class");
        script.post(&path, pod.clone()).await?;
        pod["spec"]["priorityClassName"] = json!("system-node-critical");
        script.post(&path, pod).await?;
        Ok(script)
    }));
    all
}

/// A level of security, and the fields of a pod and of its container.
const SECURED: &[(&str, &str, &str, &str)] = &[
    ("the host's own", "baseline", r#"{"hostNetwork":true,"hostPID":true}"#, "{}"),
    ("a path of the host", "baseline", r#"{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}"#, "{}"),
    ("a port of the host", "baseline", "{}", r#"{"ports":[{"containerPort":80,"hostPort":81}]}"#),
    (
        "a capability",
        "baseline",
        "{}",
        r#"{"securityContext":{"capabilities":{"add":["NET_ADMIN","SYS_TIME","KILL"]}}}"#,
    ),
    (
        "no filter of system calls",
        "baseline",
        "{}",
        r#"{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}"#,
    ),
    (
        "a setting of the kernel",
        "baseline",
        r#"{"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}}"#,
        "{}",
    ),
    (
        "a host in a probe",
        "baseline",
        "{}",
        r#"{"livenessProbe":{"httpGet":{"port":80,"host":"example.com"}}}"#,
    ),
    ("nothing special", "baseline", "{}", "{}"),
    ("nothing said", "restricted", "{}", "{}"),
    (
        "all said",
        "restricted",
        r#"{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}"#,
        r#"{"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}"#,
    ),
    (
        "all said wrong",
        "restricted",
        r#"{"securityContext":{"runAsNonRoot":false,"runAsUser":0},"volumes":[{"name":"v","nfs":{"server":"s","path":"/x"}}]}"#,
        r#"{"securityContext":{"runAsUser":0,"capabilities":{"add":["NET_ADMIN"]}}}"#,
    ),
    ("anything", "privileged", r#"{"hostNetwork":true}"#, "{}"),
];

async fn secured(mut script: Script, level: &str, fields: &str, container: &str) -> anyhow::Result<Script> {
    with_account(&mut script).await?;
    let namespace = format!("/api/v1/namespaces/{}", script.namespace());
    let label = |mode: &str| format!("pod-security.kubernetes.io/{mode}");
    let path = script.path("/api/v1", "pods");
    let mut pod = pod(json!({}));
    for (place, fields) in [("/spec", fields), ("/spec/containers/0", container)] {
        let fields: Value = serde_json::from_str(fields)?;
        for (field, value) in fields.as_object().into_iter().flatten() {
            if let Some(place) = pod.pointer_mut(place) {
                place[field] = value.clone();
            }
        }
    }
    for mode in ["warn", "enforce"] {
        let mut labels = json!({"pod-security.kubernetes.io/warn": null});
        labels[label(mode)] = json!(level);
        let patch = json!({"metadata": {"labels": labels}});
        script.quiet(Request::new("PATCH", namespace.as_str()).body(media::MERGE_PATCH, patch)).await?;
        // The reference looks at a copy: the least pod shows when it followed, but for levels that let it pass.
        if level == "restricted" {
            let shows = |answer: &Answer| answer.status == 403 || !answer.warnings.is_empty();
            script.until_asked(rehearsed(&path, self::pod(json!({}))), shows).await?;
        } else {
            let mut shared = self::pod(json!({}));
            shared["spec"]["hostIPC"] = json!(level == "baseline");
            let shows =
                |answer: &Answer| level != "baseline" || answer.status == 403 || !answer.warnings.is_empty();
            script.until_asked(rehearsed(&path, shared), shows).await?;
        }
        script.send(rehearsed(&path, pod.clone())).await?;
    }
    Ok(script)
}

/// The class's fields, and the pod's.
const RUNTIME: &[(&str, &str, &str)] = &[
    ("what it costs", r#"{"overhead":{"podFixed":{"cpu":"100m"}}}"#, "{}"),
    (
        "what it costs, said before",
        r#"{"overhead":{"podFixed":{"cpu":"100m"}}}"#,
        r#"{"overhead":{"cpu":"100m"}}"#,
    ),
    ("other costs", r#"{"overhead":{"podFixed":{"cpu":"100m"}}}"#, r#"{"overhead":{"cpu":"200m"}}"#),
    ("costs of nothing", "{}", r#"{"overhead":{"cpu":"200m"}}"#),
    ("costs without a class", "{}", r#"{"overhead":{"cpu":"200m"},"runtimeClassName":null}"#),
    ("a class that there is not", "{}", r#"{"runtimeClassName":"no-such-class"}"#),
    (
        "nodes that can",
        r#"{"scheduling":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k","operator":"Exists"}]}}"#,
        r#"{"nodeSelector":{"c":"d"}}"#,
    ),
    ("nodes that cannot", r#"{"scheduling":{"nodeSelector":{"a":"b"}}}"#, r#"{"nodeSelector":{"a":"c"}}"#),
];

fn runtimes() -> Vec<Behaviour> {
    let behaviour = |(name, class, fields): &'static (&str, &str, &str)| {
        Behaviour::new(format!("runtimes: {name}"), move |mut script: Script| async move {
            with_account(&mut script).await?;
            let named = script.namespace().to_owned();
            let mut class: Value = serde_json::from_str(class)?;
            class["apiVersion"] = json!("node.k8s.io/v1");
            class["kind"] = json!("RuntimeClass");
            class["metadata"] = json!({"name": named});
            class["handler"] = json!("h");
            script.post(RUNTIMES, class).await?;
            let mut pod = pod(json!({"requests": {"cpu": "1"}}));
            pod["spec"]["runtimeClassName"] = json!(named);
            let fields: Value = serde_json::from_str(fields)?;
            for (field, value) in fields.as_object().into_iter().flatten() {
                pod["spec"][field] = value.clone();
            }
            let path = script.path("/api/v1", "pods");
            script.post(&path, pod).await?;
            script.quiet(Request::new("DELETE", format!("{RUNTIMES}/{named}"))).await?;
            Ok(script)
        })
    };
    RUNTIME.iter().map(behaviour).collect()
}

fn storage() -> Vec<Behaviour> {
    vec![
        Behaviour::new("classes: claims and ingresses get the default", |mut script: Script| async move {
            let named = script.namespace().to_owned();
            let default = |kind: &str| json!({"name": named, "annotations": {format!("{kind}.kubernetes.io/is-default-class"): "true"}});
            let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": default("storageclass"),
                "provisioner": "example.com/p"});
            script.post(CLASSES, class).await?;
            let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": default("ingressclass"),
                "spec": {"controller": "example.com/c"}});
            script.post(INGRESS_CLASSES, class).await?;
            let mut wanted = claim("1Gi");
            wanted["spec"].as_object_mut().map(|spec| spec.remove("storageClassName"));
            let claims = script.path("/api/v1", "persistentvolumeclaims");
            let has = |field: &'static str| move |answer: &Answer| answer.body["spec"][field].is_string();
            script.until_asked(rehearsed(&claims, wanted.clone()), has("storageClassName")).await?;
            script.post(&claims, wanted.clone()).await?;
            wanted["metadata"]["name"] = json!("b");
            wanted["spec"]["storageClassName"] = json!("");
            script.post(&claims, wanted).await?;
            let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"},
                "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
            let ingresses = script.path("/apis/networking.k8s.io/v1", "ingresses");
            script.until_asked(rehearsed(&ingresses, ingress.clone()), has("ingressClassName")).await?;
            script.post(&ingresses, ingress).await?;
            for path in [CLASSES, INGRESS_CLASSES] {
                script.quiet(Request::new("DELETE", format!("{path}/{named}"))).await?;
            }
            Ok(script)
        }),
        Behaviour::new("classes: claims grow where their class lets them", |mut script: Script| async move {
            let named = script.namespace().to_owned();
            let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": named},
                "provisioner": "example.com/p", "allowVolumeExpansion": false});
            script.post(CLASSES, class).await?;
            let claims = script.path("/api/v1", "persistentvolumeclaims");
            let mut wanted = claim("1Gi");
            wanted["spec"]["storageClassName"] = json!(named);
            wanted["spec"]["volumeName"] = json!("v");
            script.post(&claims, wanted).await?;
            let path = format!("{claims}/a");
            let grown = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
            script
                .merge(
                    &format!("{path}/status"),
                    json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
                )
                .await?;
            script.merge(&path, grown.clone()).await?;
            script.merge(&format!("{CLASSES}/{named}"), json!({"allowVolumeExpansion": true})).await?;
            let rehearsal = Request::new("PATCH", path.as_str())
                .with("dryRun", "All")
                .body(media::MERGE_PATCH, grown.clone());
            script.until_asked(rehearsal, Answer::is_success).await?;
            script.merge(&path, grown).await?;
            script.merge(&path, json!({"spec": {"resources": {"requests": {"storage": "1Mi"}}}})).await?;
            script.quiet(Request::new("DELETE", format!("{CLASSES}/{named}"))).await?;
            Ok(script)
        }),
    ]
}
