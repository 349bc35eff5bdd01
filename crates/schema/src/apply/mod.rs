//! Server-side apply: merging what appliers declare, and the ownership of fields in `metadata.managedFields`.
//!
//! In go an object as it is, what somebody applies or writes, and who that is; out comes the object with its managed fields as
//! Kubernetes writes them, or the conflicts. Pure: the time, the schemas and the conversion between versions are given.

mod change;
mod compare;
mod configuration;
mod conflict;
mod fields_v1;
mod fieldset;
mod last_applied;
mod managed;
mod merge;
mod path;
mod reconcile;
mod remove;
mod scale;
mod typed;
mod types;
mod updater;
mod values;

#[cfg(test)]
mod tests;

pub use change::{WouldChange, would_change, would_change_owning};
pub use configuration::merge_configuration;
pub use conflict::{Conflict, ConflictCause, Conflicts};
pub use fields_v1::FieldsError;
pub use fieldset::{FieldSet, Filter, Pattern};
pub use managed::{Entry, Identifier, entries, keep_times_if_unchanged};
pub use path::{Path, PathElement, path_text};
pub use scale::{ReplicasPaths, parent_entries, scale_entries};

use crate::schema::Schema;
use jiff::Timestamp;
use managed::{APPLY, Managed, Owners, UPDATE};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use types::TypeView;
use updater::{Typed, UpdateError};

/// How many update entries an object keeps; older ones are united.
const MAX_UPDATE_ENTRIES: usize = 10;

/// Per apiVersion, which fields a request may own: what the kind resets on this path is left out.
pub type ResetFields = BTreeMap<String, Filter>;

/// Converts objects of a kind between its versions.
pub trait Convert {
    /// The object in the version `api_version`, such as `example.com/v2`.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;
}

/// Why an object has no form in another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The version does not exist any more: who owned fields in it owns them no longer.
    #[error("no such version")]
    MissingVersion,
    /// The version exists and the conversion failed, or the kind cannot say.
    #[error("{0}")]
    Failed(String),
}

/// The conversion of kinds with one version: there is no other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Same;

impl Convert for Same {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if text_at(object, &["apiVersion"]) == api_version {
            Ok(object.clone())
        } else {
            Err(ConvertError::MissingVersion)
        }
    }
}

/// The conversion of CRDs with the strategy None: the versions differ in name only.
#[derive(Debug, Clone)]
pub struct Renaming {
    /// All versions of the CRD, such as `example.com/v1`.
    pub api_versions: Vec<String>,
}

impl Convert for Renaming {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if !self.api_versions.iter().any(|known| known == api_version) {
            let message = format!("request to convert CR to an invalid group/version: {api_version}");
            return Err(ConvertError::Failed(message));
        }
        let mut object = object.clone();
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".into(), api_version.into());
        }
        Ok(object)
    }
}

/// What a request runs in.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The schema of the kind in a version, if there is one.
    pub schema: &'a dyn Fn(&str) -> Option<Arc<Schema>>,
    /// The conversion between the kind's versions.
    pub convert: &'a dyn Convert,
    /// The time to stamp entries with.
    pub now: Timestamp,
    /// The subresource of the request, or empty.
    pub subresource: &'a str,
    /// What the kind resets on this path.
    pub reset_fields: &'a ResetFields,
    /// The version of the request, such as `example.com/v1`.
    pub api_version: &'a str,
    /// The kind of the request's object.
    pub kind: &'a str,
    /// An object of the kind with nothing in it, for kinds that spell out what is empty.
    pub blank: Option<&'a Value>,
    /// Whether objects as they are were of their type when they were stored, and the type is still the same.
    pub settled: bool,
}

/// Why an apply or update failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409: others own fields that the intent changes.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// 400: the intent is not one for this request.
    #[error("{0}")]
    BadRequest(String),
    /// 500: an object is not of its type, or a conversion failed.
    #[error("{0}")]
    Internal(String),
}

/// The outcome of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The object, with its managed fields, in the version of the request and before defaulting.
    pub object: Value,
    /// Whether anything but the managed fields differs from before.
    pub changed: bool,
}

/// Applies a configuration (the intent) to the live object, or creates the object.
pub fn apply(
    live: Option<&Value>,
    intent: &Value,
    manager: &str,
    force: bool,
    context: &Context<'_>,
) -> Result<Applied, ApplyError> {
    check_intent(intent, context)?;
    let live = live_object(live, context).map_err(|error| {
        ApplyError::Internal(format!("failed to convert live object to proper version: {error}"))
    })?;
    let managed = Managed::decode(entries(&live).unwrap_or_default())
        .map_err(|message| ApplyError::Internal(format!("failed to decode managed fields: {message}")))?;
    let view = TypeView::of_kind((context.schema)(context.api_version));
    let live_errors = typed::check(&view, &live, true).err();
    if let (Some(errors), true) = (&live_errors, managed.owners.is_empty()) {
        let why = format!("failed to convert new object ({}) to smd typed: {errors}", name_of(&live));
        return Err(ApplyError::Internal(format!("failed to create manager for existing fields: {why}")));
    }
    typed::check(&view, intent, false).map_err(|errors| {
        ApplyError::Internal(format!("failed to create typed patch object ({}): {errors}", name_of(intent)))
    })?;
    if let Some(errors) = live_errors {
        let name = name_of(&live);
        return Err(ApplyError::Internal(format!("failed to create typed live object ({name}): {errors}")));
    }

    let live = Typed { value: live, view: view.clone(), api_version: Cow::Borrowed(context.api_version) };
    let intent_typed = Typed { value: Cow::Borrowed(intent), ..live.clone() };
    let managed = with_first_owner(&live, managed, context)?;
    let kubectl = manager == last_applied::KUBECTL;
    let first = apply_once(&live, &intent_typed, managed.clone(), manager, force, context);
    let (mut object, managed, changed) = match first {
        Err(UpdateError::Conflicts(conflicts)) if kubectl => {
            let Some(allowed) = last_applied::allowed(&view, &live.value, context.api_version) else {
                return Err(ApplyError::Conflicts(conflicts));
            };
            let remaining = last_applied::remaining(conflicts, &allowed);
            if !remaining.is_empty() {
                return Err(ApplyError::Conflicts(Conflicts(remaining)));
            }
            apply_once(&live, &intent_typed, managed, manager, true, context)?
        }
        first => first?,
    };
    if kubectl {
        last_applied::refresh(&mut object, intent);
    }
    managed.encode_into(&mut object);
    Ok(Applied { object, changed })
}

fn apply_once(
    live: &Typed<'_>,
    intent: &Typed<'_>,
    mut managed: Managed,
    manager: &str,
    force: bool,
    context: &Context<'_>,
) -> Result<(Value, Managed, bool), UpdateError> {
    let id = Identifier::of_request(manager, APPLY, context.api_version, context.subresource);
    let (object, owners) = updater::apply(live, intent, managed.owners, &id, force, context)?;
    managed.owners = owners;
    strip(&mut managed.owners, &id);
    Ok(match object {
        Some(object) => {
            managed.times.insert(id, Some(context.now));
            (object, managed, true)
        }
        None => {
            let mut object = live.value.clone().into_owned();
            managed::remove_from(&mut object);
            (object, managed, false)
        }
    })
}

/// An object without managed fields gets the owner `before-first-apply` for the fields it has.
fn with_first_owner(
    live: &Typed<'_>,
    managed: Managed,
    context: &Context<'_>,
) -> Result<Managed, ApplyError> {
    if !managed.owners.is_empty() {
        return Ok(managed);
    }
    let nothing = context.blank.cloned().unwrap_or_else(|| empty_object(context));
    let nothing = Typed { value: Cow::Owned(nothing), ..live.clone() };
    let tracked = tracked_update(&nothing, live, managed, "before-first-apply", context);
    tracked.map_err(|error| {
        ApplyError::Internal(format!(
            "failed to create manager for existing fields: {}",
            ApplyError::from(error)
        ))
    })
}

/// Sets `metadata.managedFields` of an object that was created, updated or patched by other means than apply.
///
/// The object must be in the version of the request. After an error it has no managed fields: then they would be wrong.
/// An empty list of managed fields in it forgets all ownership; for custom resources the server drops an empty list when it
/// decodes the object, so that only a list of one empty entry does.
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    manager: &str,
    context: &Context<'_>,
) -> Result<(), ApplyError> {
    // Ownership is not to be edited through a subresource.
    let from_request = if context.subresource.is_empty() { entries(new) } else { None };
    let written = managed::take_from(new);
    let from_live = || {
        let entries = live.and_then(entries).unwrap_or_default();
        Managed::decode(entries).unwrap_or_default()
    };
    let managed = match from_request {
        Some(entries) if managed::asks_for_reset(&entries) => Managed::default(),
        Some(entries) => match Managed::decode(entries) {
            Ok(managed) if !managed.owners.is_empty() => managed,
            // Clients that do not know managed fields shall not delete them by accident.
            _ => from_live(),
        },
        None => from_live(),
    };
    // Who was not tracked from the beginning is tracked from the first apply on.
    let existed = live.is_some_and(|live| !text_at(live, &["metadata", "uid"]).is_empty());
    if managed.owners.is_empty() && existed {
        return Ok(());
    }
    let live = live_object(live, context).map_err(|error| {
        ApplyError::Internal(format!("failed to convert live object to proper version: {error}"))
    })?;
    // Who owns what is no change: while both are compared, both say the same of it.
    if let Some(entries) = managed::listed(&live) {
        let same = written.filter(|written| written == entries);
        managed::put_into(new, same.unwrap_or_else(|| entries.clone()));
    }
    let tracked = tracked_change(live, new, managed, manager, context);
    managed::remove_from(new);
    tracked?.encode_into(new);
    Ok(())
}

/// The owners after a change from `live` to `new`, which are to be objects of their type.
fn tracked_change(
    live: Cow<'_, Value>,
    new: &Value,
    managed: Managed,
    manager: &str,
    context: &Context<'_>,
) -> Result<Managed, ApplyError> {
    let view = TypeView::of_kind((context.schema)(context.api_version));
    let unfit = |which: &str, object: &Value, errors: typed::TypeErrors| {
        let name = name_of(object);
        ApplyError::Internal(format!("failed to convert {which} object ({name}) to smd typed: {errors}"))
    };
    if context.settled {
        typed::check_beside(&view, new, &live).map_err(|errors| unfit("new", new, errors))?;
    } else {
        typed::check(&view, new, true).map_err(|errors| unfit("new", new, errors))?;
        typed::check_beside(&view, &live, new).map_err(|errors| unfit("live", &live, errors))?;
    }
    let live = Typed { value: live, view, api_version: Cow::Borrowed(context.api_version) };
    let new = Typed { value: Cow::Borrowed(new), ..live.clone_type() };
    Ok(tracked_update(&live, &new, managed, manager, context)?)
}

fn tracked_update(
    live: &Typed<'_>,
    new: &Typed<'_>,
    mut managed: Managed,
    manager: &str,
    context: &Context<'_>,
) -> Result<Managed, UpdateError> {
    let current = Identifier::current_operation();
    managed.owners = updater::update(live, new, managed.owners, &current, context)?;
    strip(&mut managed.owners, &current);
    if let Some(mut owned) = managed.owners.remove(&current) {
        let id = Identifier::of_request(manager, UPDATE, context.api_version, context.subresource);
        if let Some(previous) = managed.owners.get(&id) {
            owned.set = owned.set.union(&previous.set);
        }
        managed.owners.insert(id.clone(), owned);
        managed.times.insert(id, Some(context.now));
    }
    managed.cap_updates(MAX_UPDATE_ENTRIES);
    Ok(managed)
}

/// The fields that a manager applied and the object still has, like `managedfields.ExtractInto` of apimachinery.
pub fn owned_by(live: &Value, manager: &str, context: &Context<'_>) -> Option<Value> {
    let id = Identifier::of_request(manager, APPLY, context.api_version, context.subresource);
    let managed = Managed::decode(entries(live)?).ok()?;
    let owned = managed.owners.get(&id).filter(|owned| owned.api_version == context.api_version)?;
    let live = live_object(Some(live), context).ok()?;
    let view = TypeView::of_kind((context.schema)(context.api_version));
    typed::check(&view, &live, true).ok()?;
    Some(remove::extract(&view, &live, &owned.set))
}

/// The fields that nobody owns: what names an object, and what only the server writes.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

fn strip(owners: &mut Owners, id: &Identifier) {
    if let Some(owned) = owners.get_mut(id) {
        owned.set = owned.set.difference(&NEVER_OWNED);
        if owned.set.is_empty() {
            owners.remove(id);
        }
    }
}

fn check_intent(intent: &Value, context: &Context<'_>) -> Result<(), ApplyError> {
    let (api_version, kind) = (text_at(intent, &["apiVersion"]), text_at(intent, &["kind"]));
    if api_version != context.api_version || kind != context.kind {
        let message = format!("invalid object type: {}", kind_text(api_version, kind));
        return Err(ApplyError::BadRequest(message));
    }
    if entries(intent).is_some() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    Ok(())
}

/// The live object in the version of the request.
fn live_object<'a>(live: Option<&'a Value>, context: &Context<'_>) -> Result<Cow<'a, Value>, ConvertError> {
    match live {
        None => Ok(Cow::Owned(empty_object(context))),
        Some(live) if text_at(live, &["apiVersion"]) == context.api_version => Ok(Cow::Borrowed(live)),
        Some(live) => context.convert.convert(live, context.api_version).map(Cow::Owned),
    }
}

fn empty_object(context: &Context<'_>) -> Value {
    let fields = [("apiVersion", context.api_version), ("kind", context.kind)];
    Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect::<Map<_, _>>())
}

fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    let value = path.iter().try_fold(object, |value, name| value.get(name));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// A kind as messages name it: `example.com/v1, Kind=Widget`.
fn kind_text(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

/// An object as messages name it: `default/w; example.com/v1, Kind=Widget`.
fn name_of(object: &Value) -> String {
    let kind = kind_text(text_at(object, &["apiVersion"]), text_at(object, &["kind"]));
    format!(
        "{}/{}; {kind}",
        text_at(object, &["metadata", "namespace"]),
        text_at(object, &["metadata", "name"])
    )
}

impl From<UpdateError> for ApplyError {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            UpdateError::Failed(message) => ApplyError::Internal(message),
        }
    }
}
