//! Validating admission: the last word before an object is stored, or deleted.
//!
//! Run once per attempt of the compare-and-swap, on the object as it was read in that attempt, and never under a lock of the
//! store: webhooks are asked here. Quotas are charged last, when nobody else can refuse.

use super::webhooks::{self, Admitted};
use super::{policies, quota};
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
    policies::validate(operation, Some(new), || Admitted::write(operation, new, old)).await?;
    webhooks::validate(operation, Some(new), || Admitted::write(operation, new, old)).await?;
    charge(operation, new, old).await
}

/// The same where a request shows the object in another form, of which webhooks are told: what it is to be, and what it was.
pub(crate) async fn validate_view(
    operation: &Operation<'_>,
    (new, old): (&Value, &Value),
    (shown, before): (&Value, &Value),
) -> Result<(), Status> {
    trace(operation, false);
    admission::validate(operation, new, Some(old)).await?;
    policies::validate(operation, Some(shown), || Admitted::write(operation, shown, Some(before))).await?;
    webhooks::validate(operation, Some(shown), || Admitted::write(operation, shown, Some(before))).await?;
    charge(operation, new, Some(old)).await
}

/// Asks policies and webhooks alone, about what is sent and stored nowhere.
pub(crate) async fn validate_unstored(operation: &Operation<'_>, sent: &Value) -> Result<(), Status> {
    policies::validate(operation, Some(sent), || Admitted::write(operation, sent, None)).await?;
    webhooks::validate(operation, Some(sent), || Admitted::write(operation, sent, None)).await
}

async fn charge(operation: &Operation<'_>, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    match quota::charge(operation, new, old) {
        Some(charging) => charging.await,
        None => Ok(()),
    }
}

/// Asks whether the object may be deleted; `given` is how that is asked for.
pub(crate) async fn delete(operation: &Operation<'_>, old: &Value, given: &Value) -> Result<(), Status> {
    trace(operation, true);
    admission::delete(operation, old).await?;
    policies::validate(operation, None, || Admitted::delete(operation, old, given)).await?;
    webhooks::validate(operation, None, || Admitted::delete(operation, old, given)).await
}

fn trace(operation: &Operation<'_>, deletes: bool) {
    let (user, resource) = (&operation.identity.user, &operation.resource.plural);
    tracing::trace!(user, resource, deletes, "a write is admitted");
}
