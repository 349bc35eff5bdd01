//! The commit: a change of the store by compare-and-swap.

use crate::kinds;
use crate::operation::Operation;
use std::sync::Arc;
use windlass_store::{Body, Change, CommitError, Entry, Revision};

pub(crate) async fn create(
    operation: &Operation<'_>,
    name: &str,
    body: Body,
) -> Result<Arc<Entry>, CommitError> {
    operation.api.store.commit(Change::Create { key: operation.key(name), body }).await
}

/// Over the version that was read.
pub(crate) async fn update(
    operation: &Operation<'_>,
    name: &str,
    expected: Revision,
    body: Body,
) -> Result<Arc<Entry>, CommitError> {
    operation.api.store.commit(Change::Update { key: operation.key(name), expected, body }).await
}

pub(crate) async fn delete(
    operation: &Operation<'_>,
    name: &str,
    expected: Revision,
) -> Result<Arc<Entry>, CommitError> {
    let gone = operation.api.store.commit(Change::Delete { key: operation.key(name), expected }).await;
    if let Ok(gone) = &gone
        && &*gone.key().resource == "services"
    {
        kinds::services::release(&operation.api.service_allocations, gone.key());
    }
    gone
}
