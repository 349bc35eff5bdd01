//! Who owns which field: `metadata.managedFields`, for writes of all kinds.
//!
//! What a write left as it was is not checked against its type again: a built-in kind's object was of its type when it was
//! stored. The schema of a custom resource may have changed since, so there the whole object is checked.

use super::convert;
use crate::kinds::{self, Kept};
use crate::operation::{Conversions, Operation, Wanted};
use crate::registry::Served;
use crate::resource::Resource;
use crate::status::{Cause, Status};
use serde_json::Value;
use windlass_schema::apply::{
    self, ApplyError, Context, Convert, ConvertError, FieldSet, Filter, Renaming, ResetFields, Same,
};

/// How often server-side apply is run again with what it wanted to be converted: more than a CRD has versions.
const ROUNDS: usize = 100;

/// Runs what tracks fields, and again with the conversions that it asked for: it is pure, and a webhook is asked outside of it.
pub(crate) async fn converting<T>(operation: &Operation<'_>, mut run: impl FnMut() -> T) -> T {
    if operation.resource.conversion.is_none() {
        return run();
    }
    operation.conversions.forget();
    for _ in 0..ROUNDS {
        let made = run();
        let wanted = operation.conversions.take_wanted();
        if wanted.is_empty() {
            return made;
        }
        for wanted in wanted {
            let Wanted { object, api_version } = wanted.clone();
            let converted = convert::for_owners(operation, object, &api_version).await;
            operation.conversions.learn(wanted, converted);
        }
    }
    run()
}

/// Tracks the creation of an object.
pub(crate) async fn create(operation: &Operation<'_>, object: &mut Value) {
    if operation.resource.conversion.is_none() {
        return update(operation, None, object);
    }
    *object = converting(operation, || {
        let mut object = object.clone();
        update(operation, None, &mut object);
        object
    })
    .await;
}

/// Tracks an ordinary write. What cannot be tracked is stored untracked, as the reference does.
pub(crate) fn update(operation: &Operation<'_>, live: Option<&Value>, new: &mut Value) {
    let manager = operation.options.manager.clone();
    update_as(operation, live, new, &manager);
}

/// The same, for a manager that the request did not name.
pub(crate) fn update_as(operation: &Operation<'_>, live: Option<&Value>, new: &mut Value, manager: &str) {
    // What is new is compared with what nothing looks like: some kinds spell out even what is empty.
    let blank = if live.is_none() { operation.resource.blank_object() } else { None };
    let tracked = with_context(operation, blank.as_ref(), |context| {
        apply::update(live.or(context.blank), new, manager, context)
    });
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
    let blank = operation.resource.blank_object();
    let applied = with_context(operation, blank.as_ref(), |context| {
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

/// Runs it with what tracking needs to know; `blank` is what nothing looks like, where somebody may ask.
fn with_context<T>(
    operation: &Operation<'_>,
    blank: Option<&Value>,
    run: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let resource = &operation.resource;
    let served = operation.api.registry.served();
    let api_version = resource.api_version();
    let schema = |version: &str| {
        if version == api_version {
            return resource.schema();
        }
        // Versions of a CRD that are not served have owners, too.
        if resource.custom {
            return resource.schemas.get(version).cloned();
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        served.get(group, version, &resource.plural).and_then(|resource| resource.schema())
    };
    let convert = conversion(operation, &served);
    let reset_fields = reset_fields(resource, &operation.subresource);
    let context = Context {
        blank,
        settled: !resource.custom,
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
    group: String,
    plural: String,
}

impl Convert for Shapes {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        // Who owned fields through another group is not known to this one.
        let group = |version: &str| version.split_once('/').map_or("", |(group, _)| group).to_owned();
        if group(api_version) != self.group {
            return Err(ConvertError::MissingVersion);
        }
        kinds::convert::between(&self.plural, object, api_version).ok_or(ConvertError::MissingVersion)
    }
}

/// Conversion by a webhook, as far as its answers are known.
struct Asked<'a> {
    conversions: &'a Conversions,
    /// The version of the request, through which all conversions go.
    hub: String,
}

impl Asked<'_> {
    fn find(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            return Ok(object.clone());
        }
        let unknown = || Err("the object is not converted yet".to_owned());
        let found = self.conversions.find(object, api_version).unwrap_or_else(unknown);
        found.map_err(ConvertError::Failed)
    }
}

impl Convert for Asked<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let at_hub = self.find(object, &self.hub)?;
        self.find(&at_hub, api_version)
    }
}

fn conversion<'a>(operation: &'a Operation<'_>, served: &Served) -> Box<dyn Convert + 'a> {
    let resource = &operation.resource;
    if resource.conversion.is_some() {
        return Box::new(Asked { conversions: &operation.conversions, hub: resource.api_version() });
    }
    if !resource.custom {
        return match kinds::convert::has_shapes(&resource.plural) {
            true => Box::new(Shapes { group: resource.group.clone(), plural: resource.plural.clone() }),
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
    let own = resource.rules.and_then(|rules| rules.resets.iter().find(|(path, _)| *path == subresource));
    let usual: &[&[&str]] = match (resource.rules, subresource) {
        (Some(_), "") if resource.has_subresource("status") => &[&["status"]],
        (Some(rules), "status") => match rules.status_keeps {
            Kept::All | Kept::Everything => &[&["spec"], &["metadata"]],
            Kept::Fields([]) => &[&["spec"]],
            Kept::Fields(["labels"]) => &[&["spec"], &["metadata", "labels"]],
            Kept::Fields(_) => {
                &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
            }
        },
        (Some(_), "finalize") => &[&["status"]],
        (None, "") if resource.has_subresource("status") => &[&["status"]],
        (None, "status") => &[&["metadata"], &["spec"]],
        _ => &[],
    };
    let fields = own.map_or(usual, |(_, fields)| *fields);
    let mut reset = ResetFields::new();
    if fields.is_empty() {
        return reset;
    }
    let filter = || Filter::Exclude(FieldSet::of_fields(fields));
    reset.insert(resource.api_version(), filter());
    if !resource.custom {
        let versions = kinds::convert::versions(&resource.group, &resource.plural);
        reset.extend(versions.into_iter().map(|version| (version, filter())));
    }
    // Through a custom object's status nobody owns the rest, in whichever version; the object itself knows only its own.
    if resource.custom && subresource == "status" {
        reset.extend(resource.schemas.keys().map(|version| (version.clone(), filter())));
    }
    reset
}
