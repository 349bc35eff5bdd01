//! What any node says of itself while it lives, simulated or not: its Lease, and the conditions of its Node.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_clock::Clock;

/// Where Leases of nodes are.
const LEASES: &str = "kube-node-lease";
/// Who writes.
const MANAGER: &str = "kubelet";
/// How long a Lease holds.
const LEASE_SECONDS: i32 = 40;

/// As whom a node writes.
pub fn params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// What a node is short of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressures {
    /// Memory.
    pub memory: bool,
    /// Room on its disk.
    pub disk: bool,
    /// Processes that it can start.
    pub pids: bool,
}

/// What a node says: type, status, reason and message.
type Said = (&'static str, &'static str, &'static str, &'static str);

fn said(pressures: Pressures) -> [Said; 4] {
    let memory = match pressures.memory {
        true => ("True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        false => ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    };
    let disk = match pressures.disk {
        true => ("True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        false => ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    };
    let pids = match pressures.pids {
        true => ("True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        false => ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    };
    [
        ("MemoryPressure", memory.0, memory.1, memory.2),
        ("DiskPressure", disk.0, disk.1, disk.2),
        ("PIDPressure", pids.0, pids.1, pids.2),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
}

/// The conditions of a node that works, beside what is reported already.
pub fn conditions(reported: Option<&Node>, pressures: Pressures, now: Timestamp) -> Vec<NodeCondition> {
    let stamp = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let before = |of: &str| {
        reported?.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == of)
    };
    said(pressures)
        .into_iter()
        .map(|(of, status, reason, message)| {
            let since = before(of).filter(|before| before.status == status);
            let since = since.and_then(|before| before.last_transition_time.clone());
            NodeCondition {
                type_: of.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: Some(stamp.clone()),
                last_transition_time: since.or_else(|| Some(stamp.clone())),
            }
        })
        .collect()
}

/// Whether the API says of the node what it would say itself.
pub fn is_as_said(node: &Node, pressures: Pressures) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    said(pressures).iter().all(|(of, status, ..)| {
        conditions.iter().any(|condition| condition.type_ == *of && condition.status == *status)
    })
}

/// Says again how the node fares.
///
/// # Errors
/// When the API does not take it.
pub async fn report(
    client: &Client,
    clock: &Clock,
    node: &Node,
    pressures: Pressures,
) -> Result<(), kube::Error> {
    let status = json!({ "status": { "conditions": conditions(Some(node), pressures, clock.now()) } });
    let nodes = Api::<Node>::all(client.clone());
    nodes.patch_status(&node.name_any(), &params(), &Patch::Strategic(status)).await.map(drop)
}

/// The node's Lease, renewed by whoever holds this.
#[derive(Debug)]
pub struct Heartbeat {
    name: String,
    uid: String,
    last: Option<Lease>,
}

impl Heartbeat {
    /// Of the node of this name and UID, which owns it.
    pub fn new(name: &str, uid: &str) -> Self {
        Self { name: name.to_owned(), uid: uid.to_owned(), last: None }
    }

    /// Renews the Lease, or makes it. After a failure the next beat begins from what is there.
    ///
    /// # Errors
    /// When the API does not take it.
    pub async fn beat(&mut self, client: &Client, clock: &Clock) -> Result<(), kube::Error> {
        let leases = Api::<Lease>::namespaced(client.clone(), LEASES);
        let last = match self.last.take() {
            Some(last) => Some(last),
            None => leases.get_opt(&self.name).await?,
        };
        let renewed = match last {
            Some(mut lease) => {
                lease.spec = Some(self.spec(clock.now()));
                leases.replace(&self.name, &PostParams::default(), &lease).await?
            }
            None => leases.create(&PostParams::default(), &self.lease(clock.now())).await?,
        };
        self.last = Some(renewed);
        Ok(())
    }

    fn spec(&self, now: Timestamp) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.name.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }
    }

    fn lease(&self, now: Timestamp) -> Lease {
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        };
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(LEASES.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: Some(self.spec(now)) }
    }
}
