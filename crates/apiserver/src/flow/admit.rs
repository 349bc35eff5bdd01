//! Validating admission: the last word before an object is stored. Nobody has one yet.

use super::Operation;
use crate::status::Status;
use serde_json::Value;

/// Asks whether the object may become `new`; none means that it is deleted.
pub(crate) fn check(
    _operation: &Operation<'_>,
    _new: Option<&Value>,
    _old: Option<&Value>,
) -> Result<(), Status> {
    Ok(())
}
