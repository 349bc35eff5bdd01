//! Mutating admission: what may still change an object, or refuse it, before it is prepared and validated.
//!
//! Run once per attempt of the compare-and-swap, on the object as it was read in that attempt, and never under a lock of the
//! store: a webhook may be asked here.

use crate::admission::{self, namespace_lifecycle};
use crate::admission_plugins::AdmissionPlugin;
use crate::operation::Operation;
use crate::status::Status;
use serde_json::Value;

/// Admits an object that is to be created, or to be what `old` was.
pub(crate) async fn mutate(
    operation: &Operation<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if old.is_none() && guards_namespaces(operation) {
        namespace_lifecycle::validate_create(operation, object)?;
    }
    // What faults make of an object, as a mutating webhook might.
    operation.mutations.iter().for_each(|mutation| mutation.carry_out(object));
    admission::mutate(operation, object, old).await
}

/// Admits that an object is deleted.
pub(crate) async fn delete(operation: &Operation<'_>, name: &str) -> Result<(), Status> {
    match guards_namespaces(operation) {
        true => namespace_lifecycle::validate_delete(operation, name),
        false => Ok(()),
    }
}

fn guards_namespaces(operation: &Operation<'_>) -> bool {
    !operation.api.disabled_admission_plugins.contains(AdmissionPlugin::NamespaceLifecycle)
}
