//! For every built-in kind the minimal object that kube-apiserver accepts.

use serde_json::{Value, json};

/// A certificate signing request for nobody, whose key was thrown away.
pub(crate) const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QmJUQlpNQk1HQnlx\
    R1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCTi9tS0pyTzZ3WDMyRzVQSWtLSlo2djRKd1Y5ampsd2sxZU1tU1piQ05iNkJIbk5v\
    b00ybXhqMXUrb3ZVTnIxCmh1LzBkTElGdmNtN0F5OXRLWTNLQitxZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUE2QWJrR0p5\
    NDM2S2oKTXNvdGY4MEx2MzNxWFI0M3lqbkhYbWI2dDhHZlkySUNJRUxadm5mUkxDR25XbEd4Lzg5VmJqa2NXQUF4WWxuQgo4WmtW\
    RkNYYUpPWVgKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

/// An object and where it is created.
#[derive(Debug, Clone)]
pub struct Minimal {
    /// `apps/v1 Deployment`, as people say it.
    pub title: String,
    /// The collection that it is posted to.
    pub path: String,
    /// The object.
    pub object: Value,
}

/// One per kind and version that is stored, in `namespace` where it has one. What is named first is there when what
/// refers to it is created.
pub fn all(namespace: &str) -> Vec<Minimal> {
    let labels = json!({"app": "a"});
    let pod = json!({"containers": [{"name": "c", "image": "i"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let job = json!({"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"});
    let selector = json!({"matchLabels": labels});
    let webhook = json!({
        "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://example.com/hook"},
        "rules": [{"apiGroups": ["g"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
    });
    let matched = json!({"resourceRules": [
        {"apiGroups": ["g"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}
    ]});
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let scaled = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let claim =
        json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c.example.com"}}]}});
    let rows: Vec<(&str, &str, &str, bool, Value)> = vec![
        ("v1", "configmaps", "ConfigMap", true, json!({})),
        ("v1", "secrets", "Secret", true, json!({})),
        ("v1", "serviceaccounts", "ServiceAccount", true, json!({})),
        ("v1", "services", "Service", true, json!({"spec": {"ports": [{"port": 80}]}})),
        ("v1", "pods", "Pod", true, json!({"spec": pod})),
        ("v1", "podtemplates", "PodTemplate", true, json!({"template": template})),
        (
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            true,
            json!({"spec": {"template": template}}),
        ),
        ("v1", "endpoints", "Endpoints", true, json!({})),
        (
            "v1",
            "events",
            "Event",
            true,
            json!({"involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"}}),
        ),
        (
            "v1",
            "limitranges",
            "LimitRange",
            true,
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2000m"}}]}}),
        ),
        ("v1", "namespaces", "Namespace", false, json!({})),
        ("v1", "nodes", "Node", false, json!({})),
        (
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            true,
            json!({
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }),
        ),
        (
            "v1",
            "persistentvolumes",
            "PersistentVolume",
            false,
            json!({
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
            }),
        ),
        ("v1", "resourcequotas", "ResourceQuota", true, json!({"spec": {"hard": {"secrets": "1000"}}})),
        (
            "apps/v1",
            "controllerrevisions",
            "ControllerRevision",
            true,
            json!({"revision": 1, "data": {"a": 1}}),
        ),
        (
            "apps/v1",
            "daemonsets",
            "DaemonSet",
            true,
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1",
            "deployments",
            "Deployment",
            true,
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1",
            "replicasets",
            "ReplicaSet",
            true,
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1",
            "statefulsets",
            "StatefulSet",
            true,
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        ("batch/v1", "jobs", "Job", true, json!({"spec": {"template": {"spec": job}}})),
        (
            "batch/v1",
            "cronjobs",
            "CronJob",
            true,
            json!({
                "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": job}}}}
            }),
        ),
        (
            "autoscaling/v1",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            true,
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": scaled}}),
        ),
        (
            "autoscaling/v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            true,
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": scaled}}),
        ),
        ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", true, json!({})),
        ("rbac.authorization.k8s.io/v1", "roles", "Role", true, json!({"rules": rules})),
        ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", false, json!({"rules": rules})),
        (
            "rbac.authorization.k8s.io/v1",
            "rolebindings",
            "RoleBinding",
            true,
            json!({
                "roleRef": {"kind": "Role", "name": "minimal"}, "subjects": [{"kind": "User", "name": "u"}]
            }),
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "clusterrolebindings",
            "ClusterRoleBinding",
            false,
            json!({
                "roleRef": {"kind": "ClusterRole", "name": "minimal"}, "subjects": [{"kind": "Group", "name": "g"}]
            }),
        ),
        (
            "networking.k8s.io/v1",
            "ingresses",
            "Ingress",
            true,
            json!({
                "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
            }),
        ),
        (
            "networking.k8s.io/v1",
            "ingressclasses",
            "IngressClass",
            false,
            json!({"spec": {"controller": "example.com/c"}}),
        ),
        (
            "networking.k8s.io/v1",
            "networkpolicies",
            "NetworkPolicy",
            true,
            json!({"spec": {"podSelector": {}}}),
        ),
        (
            "networking.k8s.io/v1",
            "servicecidrs",
            "ServiceCIDR",
            false,
            json!({"spec": {"cidrs": ["10.200.0.0/24"]}}),
        ),
        (
            "networking.k8s.io/v1",
            "ipaddresses",
            "IPAddress",
            false,
            json!({
                "metadata": {"name": "10.201.0.1"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}
            }),
        ),
        (
            "storage.k8s.io/v1",
            "storageclasses",
            "StorageClass",
            false,
            json!({"provisioner": "example.com/p"}),
        ),
        ("storage.k8s.io/v1", "csidrivers", "CSIDriver", false, json!({"spec": {}})),
        ("storage.k8s.io/v1", "csinodes", "CSINode", false, json!({"spec": {"drivers": []}})),
        (
            "storage.k8s.io/v1",
            "csistoragecapacities",
            "CSIStorageCapacity",
            true,
            json!({"storageClassName": "s"}),
        ),
        (
            "storage.k8s.io/v1",
            "volumeattachments",
            "VolumeAttachment",
            false,
            json!({
                "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}
            }),
        ),
        (
            "storage.k8s.io/v1",
            "volumeattributesclasses",
            "VolumeAttributesClass",
            false,
            json!({
                "driverName": "example.com", "parameters": {"a": "b"}
            }),
        ),
        ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", false, json!({"value": 5})),
        ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", false, json!({"handler": "h"})),
        ("coordination.k8s.io/v1", "leases", "Lease", true, json!({})),
        (
            "discovery.k8s.io/v1",
            "endpointslices",
            "EndpointSlice",
            true,
            json!({
                "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": [{"port": 80}]
            }),
        ),
        (
            "events.k8s.io/v1",
            "events",
            "Event",
            true,
            json!({
                "eventTime": "2026-01-02T03:04:05.000006Z", "reason": "R", "action": "A", "type": "Normal",
                "reportingController": "c.example.com/c", "reportingInstance": "i",
                "regarding": {"kind": "Pod", "namespace": namespace, "name": "p"},
            }),
        ),
        (
            "certificates.k8s.io/v1",
            "certificatesigningrequests",
            "CertificateSigningRequest",
            false,
            json!({
                "spec": {"request": REQUEST, "signerName": "example.com/s", "usages": ["client auth"]}
            }),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            false,
            json!({"webhooks": [webhook]}),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            false,
            json!({"webhooks": [webhook]}),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
            false,
            json!({
                "spec": {"matchConstraints": matched, "validations": [{"expression": "true"}]}
            }),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            false,
            json!({"spec": {"policyName": "minimal", "validationActions": ["Deny"]}}),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "mutatingadmissionpolicies",
            "MutatingAdmissionPolicy",
            false,
            json!({
                "spec": {
                    "matchConstraints": matched, "reinvocationPolicy": "Never",
                    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: \"remove\", path: \"/spec/x\"}]"}}],
                }
            }),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
            false,
            json!({"spec": {"policyName": "minimal"}}),
        ),
        (
            "apiregistration.k8s.io/v1",
            "apiservices",
            "APIService",
            false,
            json!({
                "metadata": {"name": "v1.minimal.example.com"},
                "spec": {
                    "group": "minimal.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
                    "service": {"namespace": namespace, "name": "s"}, "insecureSkipTLSVerify": true,
                }
            }),
        ),
        (
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            false,
            json!({
                "metadata": {"name": "things.minimal.windlass.test"},
                "spec": {
                    "group": "minimal.windlass.test", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
                }
            }),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "prioritylevelconfigurations",
            "PriorityLevelConfiguration",
            false,
            json!({
                "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
            }),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "flowschemas",
            "FlowSchema",
            false,
            json!({
                "spec": {"priorityLevelConfiguration": {"name": "minimal"}}
            }),
        ),
        ("resource.k8s.io/v1", "deviceclasses", "DeviceClass", false, json!({"spec": {}})),
        ("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", true, json!({"spec": claim})),
        (
            "resource.k8s.io/v1",
            "resourceclaimtemplates",
            "ResourceClaimTemplate",
            true,
            json!({"spec": {"spec": claim}}),
        ),
        (
            "resource.k8s.io/v1",
            "resourceslices",
            "ResourceSlice",
            false,
            json!({
                "spec": {
                    "driver": "d.example.com", "allNodes": true,
                    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "x"}],
                }
            }),
        ),
    ];
    rows.into_iter()
        .map(|(version, plural, kind, namespaced, body)| {
            minimal(namespace, version, plural, kind, namespaced, body)
        })
        .collect()
}

fn minimal(
    namespace: &str,
    version: &str,
    plural: &str,
    kind: &str,
    namespaced: bool,
    mut object: Value,
) -> Minimal {
    let root = if version.contains('/') { "apis" } else { "api" };
    let place = if namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    if object.pointer("/metadata/name").is_none() {
        // The two versions of one kind are two objects.
        let name = if version == "autoscaling/v1" || version == "events.k8s.io/v1" {
            "minimal-too"
        } else {
            "minimal"
        };
        object["metadata"] = json!({"name": name});
    }
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    Minimal { title: format!("{version} {kind}"), path: format!("/{root}/{version}{place}/{plural}"), object }
}
