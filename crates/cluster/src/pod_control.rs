//! Creates and deletes many pods in one reconcile: concurrently, but bounded, and with a slow start, so that a create which
//! cannot succeed is tried a few times and not a thousand times.

use crate::slow_start::{self, AT_ONCE};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass::write::Deletion;
use windlass::{Object, Reason, Reconcile, ReconcileError};

/// The first error of several, and its message for people.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The reason of the event, and of a condition if there is one.
    pub(crate) reason: &'static str,
    /// The message of the API.
    pub(crate) message: String,
    /// The error itself.
    pub(crate) error: ReconcileError,
}

/// Creates `count` pods, `make(0)` first, with a slow start, and records an event for each. Returns whether any was created;
/// in a terminating namespace none is, and that is no error.
pub(crate) async fn create<K: Object>(
    ctx: &Reconcile<K>,
    count: usize,
    make: impl Fn(usize) -> Pod,
) -> Result<bool, Failed> {
    let any = AtomicBool::new(false);
    let create = |index| {
        let (pod, any) = (make(index), &any);
        async move {
            let made = ctx.create(&pod).await.inspect_err(|error| {
                if !namespace_is_terminating(error) {
                    let said = format!("Error creating: {}", message(error));
                    ctx.warning(Reason::new("FailedCreate", said));
                }
            })?;
            any.store(true, Ordering::Relaxed);
            let name = made.metadata.name.unwrap_or_default();
            ctx.event(Reason::new("SuccessfulCreate", format!("Created pod: {name}")));
            Ok(())
        }
    };
    match slow_start::each(0..count, create).await {
        Err(error) if !namespace_is_terminating(&error) => {
            Err(Failed { reason: "FailedCreate", message: message(&error), error })
        }
        _ => Ok(any.into_inner()),
    }
}

/// Deletes these pods and records an event for each. Returns whether any was deleted.
pub(crate) async fn delete<K: Object>(
    ctx: &Reconcile<K>,
    pods: Vec<Arc<Pod>>,
    how: &Deletion,
) -> Result<bool, Failed> {
    let mut failed = None;
    let mut ended = false;
    let mut results = futures::stream::iter(pods)
        .map(|pod| async move {
            let result = ctx.delete(&*pod, how).await;
            (pod, result)
        })
        .buffer_unordered(AT_ONCE);
    while let Some((pod, result)) = results.next().await {
        match result {
            Ok(_) => {
                ended = true;
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                ctx.event(Reason::new("SuccessfulDelete", format!("Deleted pod: {name}")));
            }
            Err(error) => {
                let message = message(&error);
                ctx.warning(Reason::new("FailedDelete", format!("Error deleting: {message}")));
                failed.get_or_insert(Failed { reason: "FailedDelete", message, error });
            }
        }
    }
    failed.map_or(Ok(ended), Err)
}

/// The message of the API, or else the error itself.
pub(crate) fn message(error: &ReconcileError) -> String {
    let said = match error {
        ReconcileError::Act(error) => error.message(),
        _ => None,
    };
    said.map_or_else(|| error.to_string(), str::to_owned)
}

/// Whether the API refuses because the namespace is being terminated: there is nothing to do, and nothing to report.
pub(crate) fn namespace_is_terminating(error: &ReconcileError) -> bool {
    matches!(error, ReconcileError::Act(error) if error.code() == Some(403)
        && error.message().is_some_and(|message| message.contains("because it is being terminated")))
}
