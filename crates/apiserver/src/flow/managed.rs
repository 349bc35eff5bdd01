//! Who owns which field: `metadata.managedFields`, for writes of all kinds.

use super::{Operation, decode};
use crate::kinds;
use crate::registry::Served;
use crate::resource::Resource;
use crate::status::{Cause, Status};
use serde_json::Value;
use windlass_schema::apply::{
    self, ApplyError, Context, Convert, ConvertError, FieldSet, Filter, Renaming, ResetFields, Same,
};

/// Tracks an ordinary write. What cannot be tracked is stored untracked, as the reference does.
pub(crate) fn update(operation: &Operation<'_>, live: Option<&Value>, new: &mut Value) {
    let manager = operation.options.manager.clone();
    update_as(operation, live, new, &manager);
}

/// The same, for a manager that the request did not name.
pub(crate) fn update_as(operation: &Operation<'_>, live: Option<&Value>, new: &mut Value, manager: &str) {
    // What is new is compared with what nothing looks like: some kinds spell out even what is empty.
    let nothing = match live {
        Some(_) => None,
        None => decode::blank(&operation.resource),
    };
    update_from(operation, live.or(nothing.as_ref()), new, manager);
}

fn update_from(operation: &Operation<'_>, live: Option<&Value>, new: &mut Value, manager: &str) {
    let tracked = with_context(operation, |context| apply::update(live, new, manager, context));
    if let Err(error) = tracked {
        tracing::debug!(%error, resource = operation.resource.plural, "a write is not tracked");
    }
}

/// Applies an intent. The outcome is not yet defaulted.
pub(crate) fn apply(
    operation: &Operation<'_>,
    live: Option<&Value>,
    intent: &Value,
) -> Result<Value, Status> {
    let options = &operation.options;
    let tracked = live.and_then(|live| from_the_start(operation, live));
    let live = tracked.as_ref().or(live);
    let applied = with_context(operation, |context| {
        apply::apply(live, intent, &options.manager, options.force, context)
    });
    match applied {
        Ok(applied) => Ok(applied.object),
        Err(ApplyError::Conflicts(conflicts)) => {
            let causes = conflicts.causes().into_iter().map(|cause| Cause {
                reason: cause.reason.to_owned(),
                message: cause.message,
                field: cause.field,
            });
            Err(Status::apply_conflict(conflicts.to_string(), causes.collect()))
        }
        Err(ApplyError::BadRequest(text)) => Err(Status::bad_request(text)),
        Err(ApplyError::Internal(text)) => Err(Status::plain(text)),
    }
}

/// An object of a built-in kind that nobody was tracked on, with an owner for what it holds: for that only, and not for
/// what its kind spells out though it is empty.
fn from_the_start(operation: &Operation<'_>, live: &Value) -> Option<Value> {
    if live
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .is_some_and(|entries| !entries.is_empty())
    {
        return None;
    }
    let blank = decode::blank(&operation.resource)?;
    let mut tracked = live.clone();
    if let (Some(fields), Some(blank)) = (tracked.as_object_mut(), blank.as_object()) {
        fields.retain(|name, value| {
            value.as_object().is_none_or(|value| !value.is_empty()) || !blank.contains_key(name)
        });
    }
    update_from(operation, Some(&blank), &mut tracked, "before-first-apply");
    Some(tracked)
}

fn with_context<T>(operation: &Operation<'_>, run: impl FnOnce(&Context<'_>) -> T) -> T {
    let resource = &operation.resource;
    let served = operation.api.registry.served();
    let api_version = resource.api_version();
    let schema = |version: &str| {
        if version == api_version {
            return resource.schema();
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        served.get(group, version, &resource.plural).and_then(|resource| resource.schema())
    };
    let convert = conversion(resource, &served);
    let reset_fields = reset_fields(resource, &operation.subresource);
    let context = Context {
        schema: &schema,
        convert: &*convert,
        now: operation.api.clock.now(),
        subresource: &operation.subresource,
        reset_fields: &reset_fields,
        api_version: &api_version,
        kind: &resource.kind,
    };
    run(&context)
}

/// Conversion between the shapes of a built-in kind.
struct Shapes {
    plural: String,
}

impl Convert for Shapes {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        kinds::convert::between(&self.plural, object, api_version).ok_or(ConvertError::MissingVersion)
    }
}

fn conversion(resource: &Resource, served: &Served) -> Box<dyn Convert> {
    if !resource.custom {
        return match kinds::convert::has_shapes(&resource.plural) {
            true => Box::new(Shapes { plural: resource.plural.clone() }),
            false => Box::new(Same),
        };
    }
    let versions = served.all().filter(|other| {
        (other.group.as_str(), other.plural.as_str()) == (resource.group.as_str(), resource.plural.as_str())
    });
    let mut api_versions: Vec<String> = versions.map(|other| other.api_version()).collect();
    api_versions.push(resource.stored_as.clone());
    Box::new(Renaming { api_versions })
}

/// What a request on this path may not own: what the kind takes back anyway.
fn reset_fields(resource: &Resource, subresource: &str) -> ResetFields {
    let fields: &[&[&str]] = match (resource.rules, subresource) {
        (Some(_), "") if resource.has_subresource("status") => &[&["status"]],
        (Some(rules), "status") if rules.status_keeps == kinds::Keeps::Metadata => {
            &[&["metadata"], &["spec"]]
        }
        (Some(rules), "status") if rules.status_keeps == kinds::Keeps::Labels => {
            &[&["metadata", "labels"], &["spec"]]
        }
        (Some(_), "status") => &[&["spec"]],
        (Some(_), "finalize") => &[&["status"]],
        (None, "") if resource.has_subresource("status") => &[&["status"]],
        (None, "status") => &[&["metadata"], &["spec"]],
        _ => &[],
    };
    let mut reset = ResetFields::new();
    if fields.is_empty() {
        return reset;
    }
    let filter = || Filter::Exclude(FieldSet::of_fields(fields));
    reset.insert(resource.api_version(), filter());
    // Through a custom object's status nobody owns the rest, in whichever version; the object itself knows only its own.
    if resource.custom && subresource == "status" {
        reset.extend(resource.schemas.keys().map(|version| (version.clone(), filter())));
    }
    reset
}
