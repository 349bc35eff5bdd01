//! PersistentVolumeClaims: a kubelet reports how large a volume has become, and how that goes.

use super::equality::same;
use super::{Action, NodeWrite};
use crate::status::Status;
use serde_json::Value;

/// What of a claim a kubelet may write, or what no client writes.
const FREE: [&str; 6] = [
    "/metadata/resourceVersion",
    "/metadata/managedFields",
    "/status/capacity",
    "/status/conditions",
    "/status/allocatedResourceStatuses",
    "/status/allocatedResources",
];

impl NodeWrite<'_> {
    pub(super) fn claim(&self, subresource: &str) -> Result<(), Status> {
        match (subresource, self.action) {
            ("status", Action::Update { new, old }) => match same(Some(&fixed(new)), Some(&fixed(old))) {
                true => Ok(()),
                false => self.refuse(format!(
                    "node {:?} is not allowed to update fields other than status.quantity and status.conditions",
                    self.node
                )),
            },
            _ => self.refuse("may only update PVC status"),
        }
    }
}

/// A claim without what a kubelet may write.
fn fixed(claim: &Value) -> Value {
    let mut claim = claim.clone();
    for path in FREE {
        let (parent, field) = path.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = claim.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(field);
        }
    }
    claim
}
