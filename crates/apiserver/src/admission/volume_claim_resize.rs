//! PersistentVolumeClaimResize: a claim grows only where its class lets it.

use super::forbidden;
use crate::kinds::resources::quantity;
use crate::object::{at, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::{Value, json};
use windlass_schema::Quantity;
use windlass_store::Key;

fn size(claim: &Value) -> Option<Quantity> {
    quantity(at(claim, &["spec", "resources", "requests", "storage"])?)
}

pub(super) fn validate(operation: &Operation<'_>, claim: &Value, old: Option<&Value>) -> Result<(), Status> {
    let Some(old) = old.filter(|old| operation.subresource.is_empty() && size(claim) > size(old)) else {
        return Ok(());
    };
    if text(old, &["status", "phase"]) != "Bound" {
        return Err(forbidden(operation, claim, "Only bound persistent volume claims can be expanded"));
    }
    let class = |claim: &Value| text(claim, &["spec", "storageClassName"]).to_owned();
    let key = Key::new("storage.k8s.io/storageclasses", "", class(claim));
    let found = operation.api.store.get(&key).filter(|_| class(claim) == class(old));
    let grows = found.is_some_and(|entry| entry.value().get("allowVolumeExpansion") == Some(&json!(true)));
    if grows {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
               resize";
    Err(forbidden(operation, claim, why))
}
