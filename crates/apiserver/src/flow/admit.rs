//! Validating admission: the last word before an object is stored. Nobody has one yet.

use super::Operation;
use crate::status::Status;
use serde_json::Value;

/// Asks whether the object may become `new`; none means that it is deleted.
pub(crate) fn check(
    operation: &Operation<'_>,
    new: Option<&Value>,
    _old: Option<&Value>,
) -> Result<(), Status> {
    let (user, resource) = (&operation.identity.user, &operation.resource.plural);
    tracing::trace!(user, resource, deletes = new.is_none(), "a write is admitted");
    Ok(())
}
