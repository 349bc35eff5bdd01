//! NamespaceLifecycle: nothing is created in a namespace that is not there or is being deleted, and some namespaces stay.

use crate::operation::Operation;
use crate::status::{Cause, Named, Status};
use serde_json::Value;
use windlass_store::Key;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

const NAMESPACES: Named<'static> = Named { group: "", kind: "namespaces" };

/// Nothing is created in a namespace that is not there, or is being deleted, nor of a custom resource that is.
pub(crate) fn validate_create(operation: &Operation<'_>, object: &Value) -> Result<(), Status> {
    let (resource, namespace) = (&operation.resource, operation.namespace.as_str());
    let text = |field: &str| crate::object::text(object, &["metadata", field]);
    let name = if text("name").is_empty() { text("generateName") } else { text("name") };
    if resource.terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(resource.named(), name, why));
    }
    if !resource.namespaced {
        return Ok(());
    }
    let Some(entry) = operation.api.store.get(&Key::new("namespaces", "", namespace)) else {
        return Err(Status::not_found(NAMESPACES, namespace));
    };
    if entry.field("status.phase") != Some("Terminating") {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden(resource.named(), name, &why);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(status)
}

/// Some namespaces stay.
pub(crate) fn validate_delete(operation: &Operation<'_>, name: &str) -> Result<(), Status> {
    let resource = &operation.resource;
    if resource.group.is_empty() && resource.plural == "namespaces" && IMMORTAL.contains(&name) {
        return Err(Status::forbidden(NAMESPACES, name, "this namespace may not be deleted"));
    }
    Ok(())
}
