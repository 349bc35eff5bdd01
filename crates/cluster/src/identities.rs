//! Who the parts of a cluster are to its API. None of them may do everything.
//!
//! The shared cache reads as kube-controller-manager. Each controller writes as the ServiceAccount of `kube-system` that
//! Kubernetes runs it as, with the stock role of that name; the scheduler and the nodes have their stock users. [`EXTRA`] is
//! all that ours may do beyond that: stored as ClusterRoles and bindings, so that `kubectl get clusterroles` shows it.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api as KubeApi, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use windlass_apiserver::{Api, Identity};

/// The user of the controllers' manager: what it caches, it lists and watches as this one.
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The user of the scheduler.
const SCHEDULER: &str = "system:kube-scheduler";
/// The user of Service proxies.
const KUBE_PROXY: &str = "system:kube-proxy";
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

/// Stores what the parts may do beyond the stock roles, as the API server stores those. A role that is there stays as it is.
pub(crate) async fn grant_extra(api: &Api) -> Result<(), kube::Error> {
    let client = client(api, Identity::privileged("system:apiserver"));
    let mut granted: Vec<Who> = Vec::new();
    for Extra { who, .. } in EXTRA {
        if granted.contains(who) {
            continue;
        }
        granted.push(*who);
        let rows = EXTRA.iter().filter(|row| row.who == *who);
        create(&client, &role(*who, rows)).await?;
        create(&client, &binding(*who)).await?;
    }
    Ok(())
}

impl Who {
    fn role(self) -> String {
        match self {
            Self::Account(account) => format!("{ROLE_PREFIX}{account}"),
            Self::Nodes => format!("{ROLE_PREFIX}nodes"),
        }
    }

    fn subject(self) -> Subject {
        let (api_group, kind, name, namespace) = match self {
            Self::Account(account) => (None, "ServiceAccount", account, Some(NAMESPACE.to_owned())),
            Self::Nodes => (Some(GROUP.to_owned()), "Group", "system:nodes", None),
        };
        Subject { api_group, kind: kind.to_owned(), name: name.to_owned(), namespace }
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";

fn role<'a>(who: Who, rows: impl Iterator<Item = &'a Extra>) -> ClusterRole {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let rules = rows.map(|row| PolicyRule {
        api_groups: Some(vec![row.group.to_owned()]),
        resources: Some(owned(row.resources)),
        verbs: owned(row.verbs),
        ..PolicyRule::default()
    });
    ClusterRole { metadata: named(who), rules: Some(rules.collect()), ..ClusterRole::default() }
}

fn binding(who: Who) -> ClusterRoleBinding {
    let role_ref =
        RoleRef { api_group: Some(GROUP.to_owned()), kind: "ClusterRole".to_owned(), name: who.role() };
    ClusterRoleBinding { metadata: named(who), role_ref, subjects: Some(vec![who.subject()]) }
}

fn named(who: Who) -> ObjectMeta {
    ObjectMeta { name: Some(who.role()), ..ObjectMeta::default() }
}

async fn create<K>(client: &Client, object: &K) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    match KubeApi::<K>::all(client.clone()).create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        made => made.map(drop),
    }
}
