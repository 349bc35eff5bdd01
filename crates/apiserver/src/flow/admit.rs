//! Validating admission: the last word before an object is stored. A kind's row says who has one.

use super::Operation;
use crate::status::Status;
use serde_json::Value;

/// Asks whether the object may become `new`; none means that it is deleted.
pub(crate) fn check(
    operation: &Operation<'_>,
    new: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Status> {
    let (user, resource) = (&operation.identity.user, &operation.resource.plural);
    tracing::trace!(user, resource, deletes = new.is_none(), "a write is admitted");
    match (operation.resource.rules, new) {
        (Some(rules), Some(new)) => (rules.check)(operation, new, old),
        _ => Ok(()),
    }
}
