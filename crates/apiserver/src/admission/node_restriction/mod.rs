//! NodeRestriction: what a kubelet may write, of its own node and of the pods on it.
//!
//! The Node authorizer says which objects it may write; this is about what it writes into them. Nobody else is restricted.

mod claims;
mod equality;
mod nodes;
mod pods;
mod tokens;

use super::forbidden;
use crate::authorization::{NODE_LEASES, node_of};
use crate::object::text;
use crate::operation::Operation;
use crate::request::identity::NODE_PREFIX;
use crate::status::{Named, Status};
use crate::x509::CertificateRequest;
use serde_json::Value;
use windlass_store::Key;

/// Whose requests for a certificate have to be in the kubelet's own name.
const SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

/// What a kubelet does to an object.
#[derive(Clone, Copy)]
enum Action<'a> {
    Create(&'a Value),
    Update { new: &'a Value, old: &'a Value },
    Delete(&'a Value),
}

/// Asks whether a kubelet may create or update an object.
pub(super) async fn write(operation: &Operation<'_>, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    match old {
        None => admit(operation, Action::Create(new)).await,
        Some(old) => admit(operation, Action::Update { new, old }).await,
    }
}

/// Asks whether a kubelet may delete an object.
pub(super) async fn delete(operation: &Operation<'_>, old: &Value) -> Result<(), Status> {
    admit(operation, Action::Delete(old)).await
}

async fn admit(operation: &Operation<'_>, action: Action<'_>) -> Result<(), Status> {
    let Some(node) = node_of(operation.identity) else { return Ok(()) };
    let request = NodeWrite { operation, node, action };
    if node.is_empty() {
        return request.refuse(format!("could not determine node from user {:?}", operation.identity.user));
    }
    let subresource = operation.subresource.as_str();
    match (operation.resource.group.as_str(), operation.resource.plural.as_str()) {
        ("", "pods") => request.pod(subresource),
        ("", "nodes") => request.node(),
        ("", "persistentvolumeclaims") => request.claim(subresource),
        ("", "serviceaccounts") if subresource == "token" => request.token().await,
        ("coordination.k8s.io", "leases") => request.lease(),
        ("storage.k8s.io", "csinodes") => request.csi_node(),
        ("resource.k8s.io", "resourceslices") => request.resource_slice(),
        ("certificates.k8s.io", "certificatesigningrequests") => request.certificate(),
        _ => Ok(()),
    }
}

/// What a kubelet wants to write.
struct NodeWrite<'a> {
    operation: &'a Operation<'a>,
    node: &'a str,
    action: Action<'a>,
}

impl NodeWrite<'_> {
    fn object(&self) -> &Value {
        match self.action {
            Action::Create(object) | Action::Update { new: object, .. } | Action::Delete(object) => object,
        }
    }

    /// The name of the object: that of the path, if it has one.
    fn name(&self) -> &str {
        match self.operation.name.as_str() {
            "" => text(self.object(), &["metadata", "name"]),
            name => name,
        }
    }

    fn refuse(&self, why: impl AsRef<str>) -> Result<(), Status> {
        Err(forbidden(self.operation, self.object(), why.as_ref()))
    }

    /// Another object that it is about; a missing one is called by its kind, as `KIND` or `KIND.GROUP`.
    fn other(&self, resource: &str, kind: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        let found = self.operation.api.store.get(&Key::new(resource, namespace, name));
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        found.map(|entry| entry.value()).ok_or_else(|| Status::not_found(Named { group, kind }, name))
    }

    fn lease(&self) -> Result<(), Status> {
        if self.operation.namespace != NODE_LEASES {
            return self.refuse(format!("can only access leases in the {NODE_LEASES:?} system namespace"));
        }
        match self.name() == self.node {
            true => Ok(()),
            false => self.refuse("can only access node lease with the same name as the requesting node"),
        }
    }

    fn csi_node(&self) -> Result<(), Status> {
        match self.name() == self.node {
            true => Ok(()),
            false => self.refuse("can only access CSINode with the same name as the requesting node"),
        }
    }

    /// Updates are for the Node authorizer, which knows what is stored.
    fn resource_slice(&self) -> Result<(), Status> {
        let (slice, verb) = match self.action {
            Action::Create(slice) => (slice, "create"),
            Action::Delete(slice) => (slice, "delete"),
            Action::Update { .. } => return Ok(()),
        };
        match text(slice, &["spec", "nodeName"]) == self.node {
            true => Ok(()),
            false => self.refuse(format!(
                "can only {verb} ResourceSlice with the same NodeName as the requesting node"
            )),
        }
    }

    fn certificate(&self) -> Result<(), Status> {
        let Action::Create(request) = self.action else { return Ok(()) };
        if !SIGNERS.contains(&text(request, &["spec", "signerName"])) {
            return Ok(());
        }
        let wanted = match CertificateRequest::from_base64(text(request, &["spec", "request"])) {
            Ok(wanted) => wanted,
            Err(why) => return self.refuse(format!("unable to parse csr: {why}")),
        };
        let own = format!("{NODE_PREFIX}{}", self.node);
        match wanted.common_name() == own {
            true => Ok(()),
            false => self.refuse(format!("can only create a node CSR with CN={own}")),
        }
    }
}
