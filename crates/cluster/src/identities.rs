//! Who the parts of a cluster are to its API. None of them may do everything.
//!
//! The shared cache reads as kube-controller-manager. Each controller writes as the ServiceAccount of `kube-system` that
//! Kubernetes runs it as, with the stock role of that name; the scheduler and the nodes have their stock users. [`EXTRA`] is
//! all that ours may do beyond that: stored as ClusterRoles and bindings, so that `kubectl get clusterroles` shows it.

use kube::Client;
use serde_json::{Value, json};
use std::sync::LazyLock;
use windlass_apiserver::{Api, BootstrapObject, Identity};

/// The user of the controllers' manager: what it caches, it lists and watches as this one.
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The user of the scheduler.
const SCHEDULER: &str = "system:kube-scheduler";
/// The user of Service proxies.
const KUBE_PROXY: &str = "system:kube-proxy";
/// The user that the API server is to kubelets.
const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";
/// The account of those who provision local volumes.
const VOLUME_PROVISIONER: &str = "local-volume-provisioner";
/// Where the accounts of the controllers are.
const NAMESPACE: &str = "kube-system";
/// How the names of the roles for [`EXTRA`] begin.
const ROLE_PREFIX: &str = "windlass:";

/// Controllers and tasks by their names, and the accounts they write as. Those of secrets that hold tokens write as the manager
/// itself, as in Kubernetes.
const ACCOUNTS: &[(&str, &str)] = &[
    ("api-priority-and-fairness-config-consumer", "flow-control"),
    ("certificatesigningrequest-approving-controller", "certificate-controller"),
    ("certificatesigningrequest-cleaner-controller", "certificate-controller"),
    ("certificatesigningrequest-signing-controller", "certificate-controller"),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation-controller"),
    ("cronjob-controller", "cronjob-controller"),
    ("daemonset-controller", "daemon-set-controller"),
    ("default-storage-class", "default-storage-class"),
    ("deployment-controller", "deployment-controller"),
    ("disruption-controller", "disruption-controller"),
    ("endpoint-controller", "endpoint-controller"),
    ("endpointslice-controller", "endpointslice-controller"),
    ("endpointslicemirroring-controller", "endpointslicemirroring-controller"),
    ("ephemeral-volume", "ephemeral-volume-controller"),
    ("event-ttl-controller", "event-ttl-controller"),
    ("garbage-collector-controller", "generic-garbage-collector"),
    ("job-controller", "job-controller"),
    ("job-tracking-controller", "job-controller"),
    ("namespace-controller", "namespace-controller"),
    ("node-controller", "node-controller"),
    ("persistentvolume-binder", "persistent-volume-binder"),
    ("persistentvolume-controller", "persistent-volume-binder"),
    ("pod-garbage-collector", "pod-garbage-collector"),
    ("pv-protection-controller", "pv-protection-controller"),
    ("pvc-protection-controller", "pvc-protection-controller"),
    ("replicaset-controller", "replicaset-controller"),
    ("replication-controller", "replication-controller"),
    ("resourcequota-controller", "resourcequota-controller"),
    ("serviceaccount-controller", "service-account-controller"),
    ("statefulset-controller", "statefulset-controller"),
    ("ttl-after-finished-controller", "ttl-after-finished-controller"),
    ("validatingadmissionpolicy-status-controller", "validatingadmissionpolicy-status-controller"),
    ("volumeattributesclass-protection-controller", "volumeattributesclass-protection-controller"),
];

/// Who may do what beyond the stock roles.
struct Extra {
    who: Who,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// A ServiceAccount in `kube-system`.
    Account(&'static str),
    /// All nodes.
    Nodes,
}

/// A row about resources of the core group.
const fn core(
    account: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Extra {
    Extra { who: Who::Account(account), group: "", resources, verbs }
}

/// One row for each thing, each with its reason.
const EXTRA: &[Extra] = &[
    // Kubernetes leaves it to the API server itself.
    Extra {
        who: Who::Account("flow-control"),
        group: "flowcontrol.apiserver.k8s.io",
        resources: &["flowschemas/status"],
        verbs: &["get", "update"],
    },
    // Kubernetes gives events a time to live in etcd.
    core("event-ttl-controller", &["events"], &["list", "delete"]),
    // Kubernetes has none: whoever installs a cluster brings it.
    Extra {
        who: Who::Account("default-storage-class"),
        group: "storage.k8s.io",
        resources: &["storageclasses"],
        verbs: &["list", "create"],
    },
    // One controller gives a namespace both its account and the certificate of its API, for which Kubernetes has two.
    core("service-account-controller", &["configmaps"], &["create", "get", "update"]),
    // What is looked at again by its name, after a write whose response was lost.
    core("daemon-set-controller", &["pods"], &["get"]),
    core("job-controller", &["pods"], &["get"]),
    core("pod-garbage-collector", &["pods"], &["get"]),
    core("replicaset-controller", &["pods"], &["get"]),
    core("replication-controller", &["pods"], &["get"]),
    core("resourcequota-controller", &["resourcequotas"], &["get"]),
    core("service-account-controller", &["serviceaccounts"], &["get"]),
    // Endpoints whose Service is gone: who mirrors them notices it.
    core("endpointslicemirroring-controller", &["endpoints"], &["delete"]),
    // Single fields, and finalizers, are written by patches that say which version they mean.
    core("persistent-volume-binder", &["persistentvolumes", "persistentvolumeclaims"], &["patch"]),
    core("pv-protection-controller", &["persistentvolumes"], &["patch"]),
    core("pvc-protection-controller", &["persistentvolumeclaims"], &["patch"]),
    core("statefulset-controller", &["persistentvolumeclaims"], &["patch"]),
    Extra {
        who: Who::Account("volumeattributesclass-protection-controller"),
        group: "storage.k8s.io",
        resources: &["volumeattributesclasses"],
        verbs: &["patch"],
    },
    // Kubernetes has no provisioner of its own: each brings its role.
    core(VOLUME_PROVISIONER, &["persistentvolumes"], &["list", "watch", "create", "patch", "delete"]),
    core(VOLUME_PROVISIONER, &["persistentvolumeclaims"], &["list", "watch"]),
    core(VOLUME_PROVISIONER, &["persistentvolumeclaims/status"], &["patch"]),
    Extra {
        who: Who::Account(VOLUME_PROVISIONER),
        group: "storage.k8s.io",
        resources: &["storageclasses"],
        verbs: &["list", "watch"],
    },
    // A node chooses its own range of pod IPs among those of the others, for which Kubernetes has a controller, and deletes its
    // Node when it leaves; NodeRestriction sees to it that it is its own.
    Extra { who: Who::Nodes, group: "", resources: &["nodes"], verbs: &["list", "delete"] },
];

/// The client of the controllers' manager.
pub(crate) fn controller_manager(api: &Api) -> Client {
    client(api, Identity::user(CONTROLLER_MANAGER))
}

/// The client of the scheduler.
pub(crate) fn scheduler(api: &Api) -> Client {
    client(api, Identity::user(SCHEDULER))
}

/// The client of a node's kubelet.
pub fn kubelet(api: &Api, node: &str) -> Client {
    client(api, Identity::node(node))
}

/// The client of the Service proxies of nodes.
pub fn kube_proxy(api: &Api) -> Client {
    client(api, Identity::user(KUBE_PROXY))
}

/// The client of those who provision local volumes on nodes.
pub fn volume_provisioner(api: &Api) -> Client {
    client(api, Identity::service_account(NAMESPACE, VOLUME_PROVISIONER))
}

/// The clients of the controllers and tasks of a manager, by their names.
pub(crate) fn controllers(api: &Api) -> impl Fn(&str) -> Option<Client> + Send + use<> {
    let api = api.clone();
    move |name| {
        let (_, account) = ACCOUNTS.iter().find(|(controller, _)| *controller == name)?;
        Some(client(&api, Identity::service_account(NAMESPACE, account)))
    }
}

fn client(api: &Api, identity: Identity) -> Client {
    Client::new(api.service(identity), "default")
}

/// What the parts may do beyond the stock roles: roles and bindings that a cluster has from the start.
pub(crate) static GRANTS: LazyLock<Vec<BootstrapObject>> = LazyLock::new(|| {
    let mut objects = Vec::new();
    for (place, Extra { who, .. }) in EXTRA.iter().enumerate() {
        if EXTRA[..place].iter().any(|earlier| earlier.who == *who) {
            continue;
        }
        objects.push(BootstrapObject::new("rbac.authorization.k8s.io/clusterroles", role(*who)));
        objects.push(BootstrapObject::new("rbac.authorization.k8s.io/clusterrolebindings", binding(*who)));
    }
    objects.push(BootstrapObject::new("rbac.authorization.k8s.io/clusterrolebindings", kubelet_api_admin()));
    objects.into_iter().map(|object| object.expect("they are written as roles and bindings are")).collect()
});

impl Who {
    fn role(self) -> String {
        match self {
            Self::Account(account) => format!("{ROLE_PREFIX}{account}"),
            Self::Nodes => format!("{ROLE_PREFIX}nodes"),
        }
    }

    fn subject(self) -> Value {
        match self {
            Self::Account(name) => json!({"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}),
            Self::Nodes => json!({"kind": "Group", "name": "system:nodes", "apiGroup": GROUP}),
        }
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";

/// Lets the API server ask nodes for logs, and to run commands: for that it is a user of its own.
fn kubelet_api_admin() -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{ROLE_PREFIX}{KUBELET_CLIENT}")},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"kind": "User", "name": KUBELET_CLIENT, "apiGroup": GROUP}]})
}

fn role(who: Who) -> Value {
    let rows = EXTRA.iter().filter(|row| row.who == who);
    let rules: Vec<Value> = rows
        .map(|row| json!({"apiGroups": [row.group], "resources": row.resources, "verbs": row.verbs}))
        .collect();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": who.role()}, "rules": rules})
}

fn binding(who: Who) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": who.role()},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": who.role()}, "subjects": [who.subject()]})
}
