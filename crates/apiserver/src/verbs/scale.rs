//! The scale subresource of workloads: their replicas as an object of its own, read and written without knowing the kind.

use super::patch::{make as patched, read};
use crate::crd::scale::{ScalePaths, number, steps, string};
use crate::flow::guaranteed_update::{Change, Preconditions, View, guaranteed_update};
use crate::flow::{convert, decode, managed, prepare};
use crate::http::Answer;
use crate::kinds;
use crate::object::{child, text};
use crate::operation::Operation;
use crate::operation::{Call, Outcome};
use crate::request::media::content_type;
use crate::request::media::content_type::PatchType;
use crate::request::write_options::{Write, WriteOptions};
use crate::resource::Resource;
use crate::status::causes;
use crate::status::{Named, Status};
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};
use windlass_schema::apply::{Entry, PathElement, ReplicasPaths, entries, parent_entries, scale_entries};
use windlass_schema::field::{FieldError, Path};
use windlass_store::Key;

/// What a Scale is to decoding and to apply. It is stored nowhere.
pub(crate) static SCALE: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    let mut scale = Resource {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        kind: "Scale".to_owned(),
        plural: "scale".to_owned(),
        namespaced: true,
        definition: "io.k8s.api.autoscaling.v1.Scale".to_owned(),
        pristine: true,
        rules: Some(kinds::rules("autoscaling", "scale")),
        ..Resource::default()
    };
    scale.stored_as = scale.api_version();
    Arc::new(scale)
});

pub(crate) async fn get(call: &Call<'_>) -> Result<Answer, Status> {
    let name = call.target.name.as_deref().unwrap_or_default();
    let namespace = call.target.namespace.as_deref().unwrap_or_default();
    let key = Key::new(call.resource.storage_key(), namespace, name);
    match call.api.store.get(&key) {
        Some(entry) => {
            let object = convert::stored_value(call, &entry).await?;
            if let Some(paths) =
                call.resource.scale.as_ref().filter(|paths| number(&object, &paths.spec) == Ok(None))
            {
                let why = format!("the spec replicas field {:?} does not exist", paths.spec);
                return Err(Status::internal(why));
            }
            Ok(Answer::json(200, &of(&call.resource, &object)?))
        }
        None => Err(Status::not_found(call.resource.named(), name)),
    }
}

pub(crate) async fn update(call: &Call<'_>) -> Result<Answer, Status> {
    let options = WriteOptions::read(&call.query, Write::Update, &call.user_agent)?;
    let media = content_type::body(&call.content_type)?;
    let on_object = call.operation(options);
    let on_scale = Operation { resource: SCALE.clone(), ..call.operation(on_object.options.clone()) };
    let decoded = decode::body(&SCALE, &call.body, media)?;
    let mut scale = decode::judge(&on_scale, decoded, &call.warnings)?;
    prepare::namespace(&on_scale, &mut scale)?;
    prepare::name(&on_scale, &scale)?;
    write(call, &on_object, |old| {
        let mut scale = scale.clone();
        managed::update(&on_scale, Some(old), &mut scale);
        Ok(scale)
    })
    .await
}

pub(crate) async fn patch(call: &Call<'_>) -> Result<Answer, Status> {
    let kind = content_type::patch(&call.content_type, call.resource.custom)?;
    let options =
        WriteOptions::read(&call.query, Write::Patch { apply: kind == PatchType::Apply }, &call.user_agent)?;
    let on_object = call.operation(options);
    let on_scale = Operation { resource: SCALE.clone(), ..call.operation(on_object.options.clone()) };
    let patch = read(kind, &call.body, on_scale.options.strictness)?;
    write(call, &on_object, |old| {
        let mut warnings = Vec::new();
        let scale = patched(&on_scale, &patch, Some(old), &mut warnings);
        *call.warnings.lock() = warnings;
        scale
    })
    .await
}

/// Changes the object as `change` changes its scale.
async fn write(
    call: &Call<'_>,
    operation: &Operation<'_>,
    change: impl Fn(&Value) -> Result<Value, Status> + Send,
) -> Result<Answer, Status> {
    let resource = &call.resource;
    let change = ScaleChange { scaled: Scaled(resource), name: &operation.name, change };
    let (outcome, _) = guaranteed_update(operation, &Preconditions::default(), change).await?;
    let object = match outcome {
        Outcome::Stored(entry) => convert::stored_value(call, &entry).await?,
        Outcome::Unstored(value) => value,
    };
    Ok(Answer::json(200, &of(resource, &object)?))
}

/// What is changed in a scale.
struct ScaleChange<'a, F> {
    scaled: Scaled<'a>,
    name: &'a str,
    change: F,
}

impl<F: Fn(&Value) -> Result<Value, Status>> Change for ScaleChange<'_, F> {
    fn make(&mut self, live: Option<&Value>) -> Result<Value, Status> {
        let resource = self.scaled.0;
        let live = live.ok_or_else(|| Status::not_found(resource.named(), self.name))?;
        (self.change)(&self.scaled.before(live)?)
    }

    fn view(&self) -> Option<&dyn View> {
        Some(&self.scaled)
    }
}

/// Objects of a resource, seen through their scale.
struct Scaled<'a>(&'a Resource);

impl Scaled<'_> {
    /// Where a custom resource keeps its replicas, if it has none.
    fn unset(&self, live: &Value) -> Option<&ScalePaths> {
        self.0.scale.as_deref().filter(|paths| number(live, &paths.spec) == Ok(None))
    }
}

impl View for Scaled<'_> {
    fn before(&self, live: &Value) -> Result<Value, Status> {
        let mut old = of(self.0, live)?;
        if self.unset(live).is_some() {
            old["spec"]["replicas"] = json!(NOT_SET);
        }
        let owners = entries(live).unwrap_or_default();
        own(&mut old, scale_entries(owners, &paths(self.0)).map_err(Status::internal)?);
        Ok(old)
    }

    fn shown(&self, object: &Value) -> Result<Value, Status> {
        of(self.0, object)
    }

    fn write(&self, live: &Value, scale: Value) -> Result<Value, Status> {
        let resource = self.0;
        check(resource, live, &scale)?;
        let replicas = scale["spec"].get("replicas").cloned().unwrap_or(json!(0));
        if let Some(paths) = self.unset(live).filter(|_| replicas == json!(NOT_SET)) {
            let why = format!("the spec replicas field {:?} cannot be empty", paths.spec);
            return Err(Status::bad_request(why));
        }
        let mut new = live.clone();
        match &resource.scale {
            Some(paths) => put(&mut new, &steps(&paths.spec), replicas),
            None => _ = child(&mut new, "spec").insert("replicas".to_owned(), replicas),
        }
        let metadata = child(&mut new, "metadata");
        match text(&scale, &["metadata", "resourceVersion"]) {
            "" if resource.custom => {}
            "" => _ = metadata.remove("resourceVersion"),
            version => _ = metadata.insert("resourceVersion".to_owned(), json!(version)),
        }
        let (owners, paths) = (entries(live).unwrap_or_default(), paths(resource));
        let owners =
            parent_entries(owners, entries(&scale).unwrap_or_default(), &resource.api_version(), &paths);
        own(&mut new, owners.map_err(Status::internal)?);
        Ok(new)
    }
}

/// Stands for replicas that were never set, so that a patch which does not set them either is seen.
const NOT_SET: i64 = i32::MIN as i64;

/// Puts a value on a path, making what is missing on the way.
fn put(object: &mut Value, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => {
            if let Some(fields) = object.as_object_mut() {
                fields.insert(last.clone(), value);
            }
        }
        [first, rest @ ..] => {
            let Some(fields) = object.as_object_mut() else { return };
            put(fields.entry(first.clone()).or_insert_with(|| json!({})), rest, value);
        }
    }
}

fn check(resource: &Resource, live: &Value, scale: &Value) -> Result<(), Status> {
    let name = text(live, &["metadata", "name"]);
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    if replicas < 0 && !resource.custom {
        let path = Path::new("spec").child("replicas");
        let error = FieldError::invalid(&path, replicas, "must be greater than or equal to 0");
        return Err(Status::invalid(Named { group: "autoscaling", kind: "Scale" }, name, causes(&[error])));
    }
    let (wanted, found) = (text(scale, &["metadata", "uid"]), text(live, &["metadata", "uid"]));
    if !wanted.is_empty() && wanted != found {
        let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
        let kind = format!("{}/scale", resource.plural);
        return Err(Status::conflict(Named { group: &resource.group, kind: &kind }, name, &why));
    }
    Ok(())
}

fn paths(resource: &Resource) -> ReplicasPaths {
    if let Some(scale) = &resource.scale {
        let path = |steps: &Vec<String>| steps.iter().map(|step| PathElement::field(step)).collect();
        let versions = scale.versions.iter();
        return versions.map(|(version, steps)| (version.clone(), steps.as_ref().map(path))).collect();
    }
    let replicas = vec![PathElement::field("spec"), PathElement::field("replicas")];
    ReplicasPaths::from([(resource.api_version(), Some(replicas))])
}

fn own(object: &mut Value, owners: Vec<Entry>) {
    let metadata = child(object, "metadata");
    if owners.is_empty() {
        metadata.remove("managedFields");
    } else {
        let owners: Vec<Value> = owners.into_iter().map(Entry::into_json).collect();
        metadata.insert("managedFields".to_owned(), Value::Array(owners));
    }
}

/// The scale of an object.
fn of(resource: &Resource, object: &Value) -> Result<Value, Status> {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let (wanted, there, selector) = match &resource.scale {
        Some(paths) => {
            let count =
                |path: &str| number(object, path).map(Option::unwrap_or_default).map_err(Status::internal);
            let selector = match paths.selector.as_str() {
                "" => None,
                path => string(object, path).map_err(Status::internal)?,
            };
            (count(&paths.spec)?, count(&paths.status)?, selector.unwrap_or_default().to_owned())
        }
        None => {
            let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
            let selector = selector(object.pointer("/spec/selector").unwrap_or(&Value::Null));
            (number("/spec/replicas"), number("/status/replicas"), selector)
        }
    };
    let mut spec = Map::new();
    if wanted != 0 {
        spec.insert("replicas".to_owned(), json!(wanted));
    }
    let mut status = Map::from_iter([("replicas".to_owned(), json!(there))]);
    if !selector.is_empty() {
        status.insert("selector".to_owned(), json!(selector));
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}),
    )
}

/// A selector as a query writes it. Old kinds have but the labels.
fn selector(selector: &Value) -> String {
    let labels = match selector.get("matchLabels") {
        Some(labels) => labels.as_object(),
        None if selector.get("matchExpressions").is_some() => None,
        None => selector.as_object(),
    };
    let equals = |(key, value): (&String, &Value)| {
        (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default()))
    };
    let mut parts: Vec<(String, String)> = labels.into_iter().flatten().map(equals).collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    parts.extend(expressions.map(|expression| {
        let key = text(expression, &["key"]);
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(expression, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        (key.to_owned(), part)
    }));
    parts.sort();
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_written_as_a_query() {
        let labels = json!({"b": "2", "a": "1"});
        assert_eq!(selector(&labels), "a=1,b=2");
        let both = json!({"matchLabels": labels, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "aa", "operator": "DoesNotExist"}
        ]});
        assert_eq!(selector(&both), "a=1,!aa,b=2,c in (x,y)");
        assert_eq!(selector(&Value::Null), "");
    }
}
