//! Built-in kinds that the generated controller applies as JSON: the minimum that the API accepts.
//!
//! In these texts `VAR` is the owner's variable. What they say is accepted by the API, and to be changed by whoever knows better.
//!
//! They are applied as they are, so that the field manager owns nothing that nobody meant. The project's own kinds are
//! generated the same way: a typed object of a kind whose spec its author has yet to write could not be constructed.

use super::owned::{Need, Pods};

/// A built-in kind.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: &'static str,
    /// The module of its type in `k8s_openapi`.
    pub(super) module: &'static str,
    pub(super) namespaced: bool,
    pub(super) needs: &'static [Need],
    pub(super) pods: Pods,
    /// Whether it becomes healthy without anything that a controller does not make.
    pub(super) settles: bool,
    /// What it is for, as the end of "a ... ".
    pub(super) why: &'static str,
    /// Its fields besides the metadata.
    pub(super) fields: &'static str,
}

const fn row(kind: &'static str, module: &'static str, why: &'static str, fields: &'static str) -> Row {
    Row { kind, module, namespaced: true, needs: &[], pods: Pods::None, settles: true, why, fields }
}

const fn global(kind: &'static str, module: &'static str, why: &'static str, fields: &'static str) -> Row {
    Row { namespaced: false, ..row(kind, module, why, fields) }
}

const CORE: &str = "api::core::v1";
const APPS: &str = "api::apps::v1";
const RBAC: &str = "api::rbac::v1";
const NETWORKING: &str = "api::networking::v1";
const STORAGE: &str = "api::storage::v1";
const ADMISSION: &str = "api::admissionregistration::v1";
const RESOURCE: &str = "api::resource::v1";

const RULES: &str =
    "\"rules\": [{\"apiGroups\": [\"\"], \"resources\": [\"configmaps\"], \"verbs\": [\"get\"]}],";
const HOOKS: &str = "\"webhooks\": [],";
const MATCHED: &str = "{\"resourceRules\": [{\"apiGroups\": [\"example.com\"], \"apiVersions\": [\"*\"], \"operations\": [\"CREATE\"], \"resources\": [\"*\"]}]}";
const DEVICES: &str = "{\"devices\": {\"requests\": [{\"name\": \"first\", \"exactly\": {\"deviceClassName\": \"devices.example.com\"}}]}}";

/// All of them; `$NAME` stands for a constant of that name.
pub(super) const ALL: [Row; 37] = [
    Row {
        needs: &[Need::Image],
        pods: Pods::Alone,
        ..row(
            "Pod",
            CORE,
            "runs it alone",
            "\"spec\": {\"containers\": [container(VAR)], \"securityContext\": restricted()},",
        )
    },
    Row {
        needs: &[Need::Image],
        pods: Pods::Alone,
        ..row(
            "PodTemplate",
            CORE,
            "shapes its pods",
            "\"template\": {\"metadata\": {\"labels\": labels(VAR)}, \"spec\": {\"containers\": [container(VAR)], \"securityContext\": restricted()}},",
        )
    },
    Row {
        needs: &[Need::Replicas, Need::Image],
        pods: Pods::Serve,
        ..row(
            "ReplicaSet",
            APPS,
            "keeps its pods running",
            "\"spec\": {\"replicas\": VAR.spec.replicas, \"selector\": {\"matchLabels\": labels(VAR)}, \"template\": pods(VAR)},",
        )
    },
    Row {
        needs: &[Need::Replicas, Need::Image],
        pods: Pods::Serve,
        ..row(
            "ReplicationController",
            CORE,
            "keeps as many pods running",
            "\"spec\": {\"replicas\": VAR.spec.replicas, \"selector\": labels(VAR), \"template\": pods(VAR)},",
        )
    },
    // It is bound when a pod uses it.
    Row {
        settles: false,
        ..row(
            "PersistentVolumeClaim",
            CORE,
            "stores its data",
            "\"spec\": {\"accessModes\": [\"ReadWriteOnce\"], \"resources\": {\"requests\": {\"storage\": \"1Gi\"}}},",
        )
    },
    row("ResourceQuota", CORE, "bounds what it takes", "\"spec\": {\"hard\": {\"configmaps\": \"1000\"}},"),
    row(
        "LimitRange",
        CORE,
        "limits its containers",
        "\"spec\": {\"limits\": [{\"type\": \"Container\", \"defaultRequest\": {\"cpu\": \"100m\"}}]},",
    ),
    row("Endpoints", CORE, "lists who answers for it", ""),
    row(
        "EndpointSlice",
        "api::discovery::v1",
        "names who answers for it",
        "\"addressType\": \"IPv4\", \"endpoints\": [], \"ports\": [],",
    ),
    // Its data is never to change: who wants to remember another spec gives each revision a name of its own.
    row(
        "ControllerRevision",
        APPS,
        "remembers what it was",
        "\"revision\": 1, \"data\": {\"uid\": VAR.metadata.uid},",
    ),
    row(
        "HorizontalPodAutoscaler",
        "api::autoscaling::v2",
        "scales it by its load",
        "\"spec\": {\"maxReplicas\": 3, \"scaleTargetRef\": {\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"name\": VAR.name_any()}},",
    ),
    row(
        "PodDisruptionBudget",
        "api::policy::v1",
        "protects its pods from eviction",
        "\"spec\": {\"minAvailable\": 1, \"selector\": {\"matchLabels\": labels(VAR)}},",
    ),
    row(
        "NetworkPolicy",
        NETWORKING,
        "guards its pods",
        "\"spec\": {\"podSelector\": {\"matchLabels\": labels(VAR)}, \"policyTypes\": [\"Ingress\"], \"ingress\": [{}]},",
    ),
    row(
        "Ingress",
        NETWORKING,
        "lets clients in",
        "\"spec\": {\"defaultBackend\": {\"service\": {\"name\": VAR.name_any(), \"port\": {\"number\": 80}}}},",
    ),
    row("Role", RBAC, "permits what it does", "$RULES"),
    row(
        "RoleBinding",
        RBAC,
        "grants its role",
        "\"roleRef\": {\"apiGroup\": \"rbac.authorization.k8s.io\", \"kind\": \"Role\", \"name\": VAR.name_any()}, \"subjects\": [{\"apiGroup\": \"rbac.authorization.k8s.io\", \"kind\": \"Group\", \"name\": VAR.name_any()}],",
    ),
    row("Lease", "api::coordination::v1", "tells who holds it", "\"spec\": {},"),
    row("CSIStorageCapacity", STORAGE, "measures the room there is", "\"storageClassName\": VAR.name_any(),"),
    row("ResourceClaim", RESOURCE, "asks for a device", "\"spec\": $DEVICES,"),
    row("ResourceClaimTemplate", RESOURCE, "asks for devices of its pods", "\"spec\": {\"spec\": $DEVICES},"),
    global("Namespace", CORE, "houses its objects", ""),
    // One with a claim that nobody makes would wait for it.
    global(
        "PersistentVolume",
        CORE,
        "offers room for its data",
        "\"spec\": {\"capacity\": {\"storage\": \"1Gi\"}, \"accessModes\": [\"ReadWriteOnce\"], \"hostPath\": {\"path\": \"/var/lib/volume\"}, \"storageClassName\": \"by-hand\"},",
    ),
    global("ClusterRole", RBAC, "permits it everywhere", "$RULES"),
    global(
        "ClusterRoleBinding",
        RBAC,
        "grants a role everywhere",
        "\"roleRef\": {\"apiGroup\": \"rbac.authorization.k8s.io\", \"kind\": \"ClusterRole\", \"name\": \"view\"}, \"subjects\": [{\"apiGroup\": \"rbac.authorization.k8s.io\", \"kind\": \"Group\", \"name\": VAR.name_any()}],",
    ),
    global(
        "IngressClass",
        NETWORKING,
        "chooses who serves it",
        "\"spec\": {\"controller\": \"example.com/ingress\"},",
    ),
    global(
        "StorageClass",
        STORAGE,
        "provides its volumes",
        "\"provisioner\": \"kubernetes.io/no-provisioner\",",
    ),
    global(
        "VolumeAttributesClass",
        STORAGE,
        "describes its volumes",
        "\"driverName\": \"csi.example.com\", \"parameters\": {\"tier\": \"usual\"},",
    ),
    global("CSIDriver", STORAGE, "drives its volumes", "\"spec\": {},"),
    global("PriorityClass", "api::scheduling::v1", "ranks its pods", "\"value\": 1000,"),
    global("RuntimeClass", "api::node::v1", "picks what runs its pods", "\"handler\": \"runc\","),
    global("DeviceClass", RESOURCE, "sorts its devices", "\"spec\": {},"),
    global("MutatingWebhookConfiguration", ADMISSION, "has requests changed", "$HOOKS"),
    global("ValidatingWebhookConfiguration", ADMISSION, "has requests checked", "$HOOKS"),
    global(
        "ValidatingAdmissionPolicy",
        ADMISSION,
        "judges requests",
        "\"spec\": {\"matchConstraints\": $MATCHED, \"validations\": [{\"expression\": \"true\"}]},",
    ),
    global(
        "ValidatingAdmissionPolicyBinding",
        ADMISSION,
        "applies its judgement",
        "\"spec\": {\"policyName\": VAR.name_any(), \"validationActions\": [\"Deny\"]},",
    ),
    global(
        "MutatingAdmissionPolicy",
        ADMISSION,
        "amends requests",
        "\"spec\": {\"matchConstraints\": $MATCHED, \"reinvocationPolicy\": \"Never\", \"mutations\": [{\"patchType\": \"JSONPatch\", \"jsonPatch\": {\"expression\": \"[]\"}}]},",
    ),
    global(
        "MutatingAdmissionPolicyBinding",
        ADMISSION,
        "applies its amendments",
        "\"spec\": {\"policyName\": VAR.name_any()},",
    ),
];

impl Row {
    /// Its fields, in full.
    pub(super) fn body(&self) -> String {
        [("$RULES", RULES), ("$HOOKS", HOOKS), ("$MATCHED", MATCHED), ("$DEVICES", DEVICES)]
            .iter()
            .fold(self.fields.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// Kinds that stand for something else or have names that are not one's own: no decision makes one from the start.
pub(super) const OTHERS: [(&str, &str); 14] = [
    ("APIService", "kube_aggregator::pkg::apis::apiregistration::v1"),
    ("CSINode", STORAGE),
    ("CertificateSigningRequest", "api::certificates::v1"),
    ("ComponentStatus", CORE),
    ("CustomResourceDefinition", "apiextensions_apiserver::pkg::apis::apiextensions::v1"),
    ("Event", CORE),
    ("FlowSchema", "api::flowcontrol::v1"),
    ("IPAddress", NETWORKING),
    ("Node", CORE),
    ("PriorityLevelConfiguration", "api::flowcontrol::v1"),
    ("ResourceSlice", RESOURCE),
    ("ServiceCIDR", NETWORKING),
    ("VolumeAttachment", STORAGE),
    ("Binding", CORE),
];
