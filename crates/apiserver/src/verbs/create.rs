//! POST: a new object.

use super::{Answer, Call, Outcome};
use crate::admission::{resource_quota, service_account};
use crate::crd::lifecycle;
use crate::flow::{Operation, admit, commit, decode, managed, mutate, prepare, validate};
use crate::kinds::text;
use crate::negotiate;
use crate::query::{Write, WriteOptions};
use crate::status::Status;
use crate::store::{CommitError, Entry};
use serde_json::Value;

pub(crate) async fn create(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = negotiate::object(&call.content_type, call.resource.custom)?;
    let operation = call.operation(options);
    let decoded = decode::body(resource, &call.body, media)?;
    let mut object = operation.judge(decoded, &call.warnings)?;
    prepare::wipe(&mut object);
    prepare::namespace(&operation, &mut object)?;
    prepare::owners(&operation, &mut object, false);
    managed::update(&operation, None, &mut object);
    let outcome = store_new(&operation, object).await?;
    let name = outcome.name().to_owned();
    Ok(Answer { name, ..outcome.answer(call, 201) })
}

/// The steps of a creation from mutation on; managed fields are set.
pub(crate) async fn store_new(operation: &Operation<'_>, mut object: Value) -> Result<Outcome, Status> {
    let resource = &operation.resource;
    if let Some(account) = service_account::awaited(operation, &object) {
        account.await;
    }
    mutate::create(operation, &mut object)?;
    prepare::create(operation, &mut object);
    validate::create(operation, &object)?;
    operation.warn(validate::warnings(operation, &object, None));
    admit::check(operation, Some(&object), None)?;
    if let Some(counting) = resource_quota::charge(operation, &object, None) {
        counting.await?;
    }
    if let Some(rules) = resource.rules.filter(|_| operation.subresource.is_empty()) {
        (rules.allocate)(operation, &mut object, None)?;
    }
    let name = text(&object, &["metadata", "name"]).to_owned();
    let taken = |found: &Entry| {
        let mut status = match text(&object, &["metadata", "generateName"]) {
            "" => Status::already_exists(resource.named(), &name),
            _ => Status::generated_name_taken(resource.named(), &name),
        };
        if !text(&found.value(), &["metadata", "deletionTimestamp"]).is_empty() {
            status.message.insert_str(0, "object is being deleted: ");
        }
        status
    };
    if operation.options.dry_run {
        if let Some(found) = operation.api.store.get(&operation.key(&name)) {
            return Err(taken(&found));
        }
        return Ok(Outcome::Shown(commit::rehearsed(operation, object)));
    }
    // What is no version is no claim to one.
    if text(&object, &["metadata", "resourceVersion"]).parse().is_ok_and(|version: u64| version != 0) {
        return Err(Status::plain("resourceVersion should not be set on objects to be created"));
    }
    match commit::create(operation, &name, &object).await {
        Ok(entry) => {
            lifecycle::changed(operation, &name).await;
            Ok(Outcome::Stored(entry))
        }
        Err(CommitError::Exists(found)) => Err(taken(&found)),
        Err(error) => Err(Status::internal(error)),
    }
}
