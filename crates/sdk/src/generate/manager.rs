//! The operator itself: its namespace, its Deployment, and its metrics Service.

use super::{Manifest, Options, labels};
use crate::description::OperatorDescription;
use serde_json::{Value, json};

const METRICS: u16 = 8080;
const HEALTH: u16 = 8081;

pub(super) fn namespace(options: &Options) -> Manifest {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": options.namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "windlass",
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    });
    Manifest::new("manager/namespace.yaml", vec![object])
}

pub(super) fn of(name: &str, operator: &OperatorDescription, options: &Options) -> Vec<Manifest> {
    let mut deployment = deployment(name, operator, options);
    super::webhooks::serve(&mut deployment, name, operator, options);
    vec![
        Manifest::new("manager/deployment.yaml", vec![deployment]),
        Manifest::new(
            "manager/metrics.yaml",
            vec![metrics_service(name, options), network_policy(name, options)],
        ),
    ]
}

fn deployment(name: &str, operator: &OperatorDescription, options: &Options) -> Value {
    let mut arguments = vec![
        "--leader-elect".to_owned(),
        format!("--metrics-bind-address=:{METRICS}"),
        format!("--health-probe-bind-address=:{HEALTH}"),
    ];
    arguments.extend(operator.namespaces.iter().map(|namespace| format!("--namespace={namespace}")));
    let asks = |path: &str, delay: u32| json!({ "httpGet": { "path": path, "port": "health" }, "initialDelaySeconds": delay, "periodSeconds": 10 });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": options.namespace, "labels": labels(name) },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": selected(name) },
            "template": {
                "metadata": { "labels": labels(name) },
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    // It hands its lease over before it goes.
                    "terminationGracePeriodSeconds": 30,
                    "containers": [{
                        "name": "operator",
                        "image": options.image,
                        "args": arguments,
                        "ports": [
                            { "name": "metrics", "containerPort": METRICS },
                            { "name": "health", "containerPort": HEALTH },
                        ],
                        "livenessProbe": asks("/healthz", 15),
                        "readinessProbe": asks("/readyz", 1),
                        "resources": {
                            "requests": { "cpu": "10m", "memory": "32Mi" },
                            "limits": { "memory": "256Mi" },
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                    }],
                },
            },
        },
    })
}

fn selected(name: &str) -> Value {
    json!({ "app.kubernetes.io/name": name })
}

fn metrics_service(name: &str, options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": format!("{name}-metrics"), "namespace": options.namespace, "labels": labels(name) },
        "spec": {
            "selector": selected(name),
            "ports": [{ "name": "metrics", "port": METRICS, "targetPort": "metrics" }],
        },
    })
}

/// Only namespaces that say so may ask for the figures; a kubelet's probes are never refused.
fn network_policy(name: &str, options: &Options) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": { "name": format!("{name}-metrics"), "namespace": options.namespace, "labels": labels(name) },
        "spec": {
            "podSelector": { "matchLabels": selected(name) },
            "policyTypes": ["Ingress"],
            "ingress": [{
                "from": [{ "namespaceSelector": { "matchLabels": { "metrics": "enabled" } } }],
                "ports": [{ "port": METRICS, "protocol": "TCP" }],
            }],
        },
    })
}
