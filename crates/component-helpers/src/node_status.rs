//! The conditions of a Node, as its kubelet reports them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_clock::Clock;

/// The field manager of kubelets.
const FIELD_MANAGER: &str = "kubelet";

/// Patch parameters with a kubelet's field manager.
pub fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// What is wrong with a node: which pressure conditions are true, and whether it is not ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodePressure {
    /// `MemoryPressure`.
    pub memory: bool,
    /// `DiskPressure`.
    pub disk: bool,
    /// `PIDPressure`.
    pub pids: bool,
    /// Whether the node has no network now: then it is not ready.
    pub network_down: bool,
}

/// Type, status, reason and message of a condition.
type Reported = (&'static str, &'static str, &'static str, &'static str);

fn reported(pressure: NodePressure) -> [Reported; 4] {
    let memory = match pressure.memory {
        true => ("True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        false => ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    };
    let disk = match pressure.disk {
        true => ("True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
        false => ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    };
    let pids = match pressure.pids {
        true => ("True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        false => ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    };
    let ready = match pressure.network_down {
        true => (
            "False",
            "KubeletNotReady",
            "container runtime network not ready: the node's network process ended, and is being replaced",
        ),
        false => ("True", "KubeletReady", "kubelet is posting ready status"),
    };
    [
        ("MemoryPressure", memory.0, memory.1, memory.2),
        ("DiskPressure", disk.0, disk.1, disk.2),
        ("PIDPressure", pids.0, pids.1, pids.2),
        ("Ready", ready.0, ready.1, ready.2),
    ]
}

/// The conditions of a node. Those whose status is as `existing` has it keep their transition time.
pub fn conditions(existing: Option<&Node>, pressure: NodePressure, now: Timestamp) -> Vec<NodeCondition> {
    let stamp = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let before = |of: &str| {
        existing?.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == of)
    };
    reported(pressure)
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

/// Whether the Node's conditions are as its kubelet would report them.
pub fn is_current(node: &Node, pressure: NodePressure) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    reported(pressure).iter().all(|(of, status, ..)| {
        conditions.iter().any(|condition| condition.type_ == *of && condition.status == *status)
    })
}

/// Patches the Node's conditions.
///
/// # Errors
/// When the API rejects the patch or cannot be reached.
pub async fn report(
    client: &Client,
    clock: &Clock,
    node: &Node,
    pressure: NodePressure,
) -> Result<(), kube::Error> {
    let status = json!({ "status": { "conditions": conditions(Some(node), pressure, clock.now()) } });
    let nodes = Api::<Node>::all(client.clone());
    nodes.patch_status(&node.name_any(), &patch_params(), &Patch::Strategic(status)).await.map(drop)
}

/// Whether a node's `Ready` condition is true.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
