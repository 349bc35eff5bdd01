//! A new object, from mutating admission to the store.

use super::{
    api_services, commit, crd_lifecycle, encode, escalation, mutating_admission, policy_params, prepare,
    validate, validating_admission,
};
use crate::object::text;
use crate::operation::{Operation, Outcome};
use crate::status::Status;
use serde_json::Value;
use windlass_store::{CommitError, Entry};

/// The steps of a creation from mutation on; managed fields are set.
pub(crate) async fn store_new(operation: &Operation<'_>, mut object: Value) -> Result<Outcome, Status> {
    let resource = &operation.resource;
    mutating_admission::mutate(operation, &mut object, None).await?;
    escalation::check(operation, &object, None).await?;
    prepare::create(operation, &mut object);
    validate::create(operation, &object)?;
    policy_params::check(operation, &object, None).await?;
    operation.warn(validate::warnings(operation, &object, None));
    validating_admission::validate(operation, &object, None).await?;
    if let Some(rules) = resource.rules.filter(|_| operation.subresource.is_empty()) {
        (rules.allocate)(&operation.rule_context(), &mut object, None)?;
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
        return Ok(Outcome::Unstored(encode::dry_run(operation, object).await?));
    }
    // What is no version is no claim to one.
    if text(&object, &["metadata", "resourceVersion"]).parse().is_ok_and(|version: u64| version != 0) {
        return Err(Status::plain("resourceVersion should not be set on objects to be created"));
    }
    let body = encode::create(operation, &object).await?;
    match commit::create(operation, &name, body).await {
        Ok(entry) => {
            crd_lifecycle::changed(operation, &name).await;
            api_services::changed(operation, &name).await;
            Ok(Outcome::Stored(entry))
        }
        Err(CommitError::Exists(found)) => Err(taken(&found)),
        Err(error) => Err(Status::internal(error)),
    }
}
