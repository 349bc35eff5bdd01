//! Validating admission: the last word before an object is stored, or deleted.
//!
//! Run once per attempt of the compare-and-swap, on the object as it was read in that attempt, and never under a lock of the
//! store: a webhook may be asked here. Quotas are charged last, when nobody else can refuse.

use super::quota;
use crate::admission;
use crate::operation::Operation;
use crate::status::Status;
use serde_json::Value;

/// Asks whether the object may be stored as `new`; `old` is what it was, if it was.
pub(crate) async fn validate(
    operation: &Operation<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    trace(operation, false);
    admission::validate(operation, new, old).await?;
    match quota::charge(operation, new, old) {
        Some(charging) => charging.await,
        None => Ok(()),
    }
}

/// Asks whether the object may be deleted.
pub(crate) async fn delete(operation: &Operation<'_>, old: &Value) -> Result<(), Status> {
    trace(operation, true);
    admission::delete(operation, old).await
}

fn trace(operation: &Operation<'_>, deletes: bool) {
    let (user, resource) = (&operation.identity.user, &operation.resource.plural);
    tracing::trace!(user, resource, deletes, "a write is admitted");
}
