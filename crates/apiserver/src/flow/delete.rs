//! Deletes an object. What still has finalizers, or needs time to stop, is marked and stays until they are gone.

use super::delete_options::{DeleteOptions, Propagation};
use super::guaranteed_update::{ATTEMPTS, contended};
use super::{api_services, commit, convert, crd_lifecycle, encode, mutating_admission, validating_admission};
use crate::kinds::Dependents;
use crate::object::{child, text, timestamp};
use crate::operation::{Operation, Outcome};
use crate::resource::Resource;
use crate::status::{Named, Status};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use windlass_clock::Timestamp;
use windlass_store::{CommitError, Entry};

/// What became of a deletion.
pub(crate) enum Deletion {
    /// It is marked, and waits.
    Pending(Outcome),
    /// It is gone. Some kinds show what it was.
    Done { uid: String, shown: Option<Value> },
}

/// Deletes one object, and does what follows from it.
pub(crate) async fn delete_one(
    operation: &Operation<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deletion, Status> {
    if let Some(rules) = operation.resource.rules
        && !rules.deletion_warning.is_empty()
        && options.propagation.is_none()
        && !options.cascades
    {
        operation.warn(vec![rules.deletion_warning.to_owned()]);
    }
    mutating_admission::delete(operation, name).await?;
    let deletion = delete_quietly(operation, name, options).await?;
    if !operation.options.dry_run {
        match &deletion {
            Deletion::Pending(_) => {
                crd_lifecycle::changed(operation, name).await;
                api_services::changed(operation, name).await;
            }
            Deletion::Done { .. } => {
                crd_lifecycle::deleted(operation, name).await;
                api_services::deleted(operation, name).await;
            }
        }
    }
    Ok(deletion)
}

/// Deletes one object, and nothing else.
pub(crate) async fn delete_quietly(
    operation: &Operation<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deletion, Status> {
    let resource = &operation.resource;
    let key = operation.key(name);
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            operation.in_time()?;
        }
        let Some(entry) = operation.api.store.get(&key) else {
            return Err(Status::not_found(resource.named(), name));
        };
        check_preconditions(resource, &entry, options)?;
        // What the server deletes unasked, such as with its definition, goes as it is stored.
        let live = match operation.asks_webhooks {
            true => convert::from_storage(operation, &entry).await?,
            false => entry.value(),
        };
        let plan = plan(resource, &live, options, operation.api.clock.now());
        admit(operation, &live, options, &plan).await?;
        let dry_run = operation.options.dry_run;
        let shows = resource.rules.is_some_and(|rules| rules.shows_deleted);
        let committed = match plan {
            Plan::Wait => return Ok(Deletion::Pending(Outcome::Stored(entry))),
            Plan::Remove(last) if dry_run => {
                let shown = shows.then(|| last.unwrap_or(live));
                return Ok(Deletion::Done { uid: entry.uid().to_owned(), shown });
            }
            Plan::Mark(marked) if dry_run => return Ok(Deletion::Pending(Outcome::Unstored(marked))),
            Plan::Remove(last) => commit::delete(operation, name, entry.revision()).await.map(|entry| {
                let shown = shows.then(|| {
                    let mut shown = last.unwrap_or_else(|| entry.value());
                    let version = entry.revision().to_string();
                    child(&mut shown, "metadata").insert("resourceVersion".to_owned(), json!(version));
                    shown
                });
                Deletion::Done { uid: entry.uid().to_owned(), shown }
            }),
            Plan::Mark(marked) => {
                let body = match operation.asks_webhooks || !resource.custom {
                    true => encode::replace(operation, &marked).await?,
                    false => encode::as_stored(resource, &marked),
                };
                let marked = commit::update(operation, name, entry.revision(), body).await;
                marked.map(|entry| Deletion::Pending(Outcome::Stored(entry)))
            }
        };
        match committed {
            Ok(deletion) => return Ok(deletion),
            Err(CommitError::Missing) => return Err(Status::not_found(resource.named(), name)),
            Err(error @ CommitError::NotStored(_)) => return Err(Status::internal(error)),
            Err(_) => {}
        }
    }
    Err(contended(resource, name))
}

/// Asks whether the object may be deleted. What is given time to stop, and waits for that, is asked about no more.
async fn admit(
    operation: &Operation<'_>,
    live: &Value,
    options: &DeleteOptions,
    plan: &Plan,
) -> Result<(), Status> {
    let grace = operation.resource.rules.and_then(|rules| rules.grace);
    let mut given = Cow::Borrowed(&options.given);
    if let Some(grace) = grace {
        if matches!(plan, Plan::Wait) {
            return Ok(());
        }
        // As long as it is given, if it was not said.
        child_of(given.to_mut()).insert("gracePeriodSeconds".to_owned(), json!(grace(live, options.grace)));
    }
    if operation.resource.rules.is_some_and(|rules| rules.first_deletion.is_some()) {
        // What is deleted in phases is always the same object.
        let conditions = child_of(given.to_mut()).entry("preconditions").or_insert_with(|| json!({}));
        child_of(conditions).entry("uid").or_insert_with(|| json!(text(live, &["metadata", "uid"])));
    }
    mutating_admission::delete_object(operation, live, &given).await?;
    validating_admission::delete(operation, live, &given).await
}

fn child_of(value: &mut Value) -> &mut serde_json::Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made one")
}

/// What a deletion does to an object.
enum Plan {
    /// It goes at once; what it looks like then, if that differs from what it was.
    Remove(Option<Value>),
    /// It becomes this, and stays until nothing holds it.
    Mark(Value),
    /// It stays as it is.
    Wait,
}

fn plan(resource: &Resource, live: &Value, options: &DeleteOptions, time: Timestamp) -> Plan {
    if let Some(grace) = resource.rules.and_then(|rules| rules.grace) {
        return plan_with_grace(resource, live, options, grace(live, options.grace), time);
    }
    let now = &timestamp(time);
    let first = text(live, &["metadata", "deletionTimestamp"]).is_empty();
    if let Some(begin) = resource.rules.and_then(|rules| rules.first_deletion) {
        if first {
            let mut marked = live.clone();
            child(&mut marked, "metadata").insert("deletionTimestamp".to_owned(), json!(now));
            begin(&mut marked, now);
            if resource.plural == "namespaces" {
                // Here the old way of asking means that dependents go first.
                let propagation =
                    if options.cascades { Some(Propagation::Foreground) } else { options.propagation };
                let options = DeleteOptions { propagation, ..options.clone() };
                let kept = finalizers(resource, live_finalizers(&marked), &options);
                set_finalizers(&mut marked, kept);
            }
            return Plan::Mark(marked);
        }
        let held =
            live.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if resource.plural == "namespaces" && held {
            return Plan::Wait;
        }
    }
    let kept = finalizers(resource, live_finalizers(live), options);
    if kept.is_empty() {
        return Plan::Remove(None);
    }
    let mut marked = live.clone();
    set_finalizers(&mut marked, kept);
    let metadata = child(&mut marked, "metadata");
    if first {
        metadata.insert("deletionTimestamp".to_owned(), json!(now));
        if let Some(generation) =
            metadata.get("generation").and_then(Value::as_i64).filter(|number| *number > 0)
        {
            metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
        }
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    if marked == *live { Plan::Wait } else { Plan::Mark(marked) }
}

/// What needs time to stop is marked with how much it has, and removed by who stopped it, without any. Asking again may
/// shorten the time, and never makes it longer.
fn plan_with_grace(
    resource: &Resource,
    live: &Value,
    options: &DeleteOptions,
    grace: i64,
    time: Timestamp,
) -> Plan {
    let kept = finalizers(resource, live_finalizers(live), options);
    let leaves = kept.is_empty() && grace == 0;
    let given = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let mut marked = live.clone();
    set_finalizers(&mut marked, kept);
    let metadata = child(&mut marked, "metadata");
    let deleted =
        metadata.get("deletionTimestamp").and_then(Value::as_str).and_then(|text| text.parse().ok());
    let until: Timestamp = match (deleted, given) {
        (Some(_), Some(given)) if grace >= given => {
            return if leaves { Plan::Remove(None) } else { Plan::Wait };
        }
        (Some(until), given) => later(until, grace.saturating_sub(given.unwrap_or(0))),
        (None, _) => {
            if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|it| *it > 0)
            {
                metadata.insert("generation".to_owned(), json!(generation.saturating_add(1)));
            }
            later(time, grace)
        }
    };
    metadata.insert("deletionTimestamp".to_owned(), json!(timestamp(until)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    if leaves { Plan::Remove(Some(marked)) } else { Plan::Mark(marked) }
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(time.as_second().saturating_add(seconds)).unwrap_or(time)
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

fn live_finalizers(object: &Value) -> Vec<String> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The finalizers that the object has from now on: those that the garbage collector works by follow the options, or
/// stay as they were.
fn finalizers(resource: &Resource, had: Vec<String>, options: &DeleteOptions) -> Vec<String> {
    if resource.rules.is_some_and(|rules| rules.dependents == Dependents::Ignored) {
        return had.into_iter().filter(|name| name != ORPHAN && name != FOREGROUND).collect();
    }
    let orphaned = resource.rules.is_some_and(|rules| rules.dependents == Dependents::Orphaned);
    let wanted = options
        .propagation
        .or_else(|| {
            had.iter().find_map(|name| match name.as_str() {
                ORPHAN => Some(Propagation::Orphan),
                FOREGROUND => Some(Propagation::Foreground),
                _ => None,
            })
        })
        .or_else(|| (orphaned && !options.cascades).then_some(Propagation::Orphan));
    let mut kept: Vec<String> = had.into_iter().filter(|name| name != ORPHAN && name != FOREGROUND).collect();
    match wanted {
        Some(Propagation::Orphan) => kept.push(ORPHAN.to_owned()),
        Some(Propagation::Foreground) => kept.push(FOREGROUND.to_owned()),
        _ => {}
    }
    kept
}

fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    let metadata = child(object, "metadata");
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}

fn check_preconditions(
    resource: &Resource,
    entry: &Arc<Entry>,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let phased = resource.rules.is_some_and(|rules| rules.first_deletion.is_some());
    let version = entry.revision().to_string();
    let checks = [
        ("UID", &options.uid, entry.uid(), "The object might have been deleted and then recreated"),
        (
            "ResourceVersion",
            &options.resource_version,
            version.as_str(),
            "The object might have been modified",
        ),
    ];
    for (what, wanted, found, hint) in checks {
        let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) else { continue };
        let name = &entry.key().name;
        return Err(if phased {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            Status::conflict(resource.named(), name, &why)
        } else {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {hint}"
            );
            // Here the reference names the kind where it should name the resource.
            Status::conflict(Named { group: &resource.group, kind: &resource.kind }, name, &why)
        });
    }
    Ok(())
}
