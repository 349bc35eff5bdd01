//! POST to `pods/NAME/binding` or `bindings`: a pod is given to a node.

use crate::flow::guaranteed_update::{ATTEMPTS, contended, wrong_precondition};
use crate::flow::{
    commit, convert, decode, encode, managed, mutating_admission, prepare, validating_admission,
};
use crate::http::Answer;
use crate::kinds;
use crate::object::{at, child, text};
use crate::operation::{Call, Operation};
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::resource::Resource;
use crate::status::{Named, Status};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use windlass_schema::field::aggregate;
use windlass_schema::{FieldError, Path};
use windlass_store::{CommitError, Key};

/// The kind of the request, whichever path it came by: it is stored nowhere.
static BINDING: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    Arc::new(Resource {
        version: "v1".to_owned(),
        kind: "Binding".to_owned(),
        plural: "bindings".to_owned(),
        namespaced: true,
        definition: "io.k8s.api.core.v1.Binding".to_owned(),
        stored_as: "v1".to_owned(),
        pristine: true,
        rules: Some(kinds::rules("", "bindings")),
        ..Resource::default()
    })
});

/// What a pod is told of where it came to be.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(crate) async fn create(call: &Call<'_>) -> Result<Answer, Status> {
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = content_type::body(&call.content_type)?;
    let asked = call.operation(options.clone());
    let on_binding = Operation { resource: BINDING.clone(), ..call.operation(options) };
    let decoded = decode::body(&BINDING, &call.body, media)?;
    let mut binding = decode::judge(&on_binding, decoded, &call.warnings)?;
    prepare::namespace(&on_binding, &mut binding)?;
    managed::update(&on_binding, None, &mut binding);
    mutating_admission::mutate(&asked, &mut binding, None).await?;
    let name = text(&binding, &["metadata", "name"]).to_owned();
    if call.target.name.as_deref().is_some_and(|target| target != name) {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let errors = validate(&binding);
    if !errors.is_empty() {
        return Err(Status::plain(aggregate(&errors)));
    }
    validating_admission::validate_unstored(&asked, &binding).await?;
    let Some(pods) = call.api.registry.served().get("", "v1", "pods") else {
        return Err(Status::no_such_resource());
    };
    let on_pod = Operation { resource: pods, name, subresource: String::new(), ..on_binding };
    assign(&on_pod, &binding).await?;
    let done =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Answer { name: on_pod.name, ..Answer::json(201, &done) })
}

fn validate(binding: &Value) -> Vec<FieldError> {
    let path = Path::new("target");
    let (kind, name) = (text(binding, &["target", "kind"]), text(binding, &["target", "name"]));
    let mut errors = Vec::new();
    if !kind.is_empty() && kind != "Node" {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    errors
}

/// Sets the pod's node, unless it has one. It is no update as others are: no strategy prepares it, and nobody comes to own
/// the fields.
async fn assign(operation: &Operation<'_>, binding: &Value) -> Result<(), Status> {
    let (resource, name) = (&operation.resource, operation.name.as_str());
    let key = operation.key(name);
    for _ in 0..ATTEMPTS {
        let Some(entry) = operation.api.store.get(&key) else {
            return Err(Status::not_found(resource.named(), name));
        };
        let conditions = [
            ("UID", text(binding, &["metadata", "uid"]), entry.uid().to_owned()),
            (
                "ResourceVersion",
                text(binding, &["metadata", "resourceVersion"]),
                entry.revision().to_string(),
            ),
        ];
        for (what, wanted, found) in conditions {
            if !wanted.is_empty() && wanted != found {
                return Err(wrong_precondition(operation, what, wanted, &found));
            }
        }
        let mut pod = convert::from_storage(operation, &entry).await?;
        refuse(&pod, name)?;
        bind(operation, &mut pod, binding);
        if operation.options.dry_run {
            return Ok(());
        }
        let body = encode::update(operation, &entry, &pod).await?;
        match commit::update(operation, name, entry.revision(), body).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict(_) | CommitError::Missing) => {}
            Err(error) => return Err(Status::internal(error)),
        }
    }
    Err(contended(resource, name))
}

/// Whether the pod is free.
fn refuse(pod: &Value, name: &str) -> Result<(), Status> {
    let node = text(pod, &["spec", "nodeName"]);
    let gates = at(pod, &["spec", "schedulingGates"]).and_then(Value::as_array);
    let why = if !text(pod, &["metadata", "deletionTimestamp"]).is_empty() {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if gates.is_some_and(|gates| !gates.is_empty()) {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(Status::conflict(Named { group: "", kind: "pods/binding" }, name, &why))
}

fn bind(operation: &Operation<'_>, pod: &mut Value, binding: &Value) {
    let node = text(binding, &["target", "name"]);
    child(pod, "spec").insert("nodeName".to_owned(), json!(node));
    let mut labels =
        at(binding, &["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if text(binding, &["target", "kind"]) == "Node"
        && let Some(found) = operation.api.store.get(&Key::new("nodes", "", node))
    {
        let found = found.value();
        let known = at(&found, &["metadata", "labels"]).and_then(Value::as_object);
        let told = known.into_iter().flatten().filter(|(key, _)| TOPOLOGY.contains(&key.as_str()));
        labels.extend(told.map(|(key, value)| (key.clone(), value.clone())));
    }
    let annotations = at(binding, &["metadata", "annotations"]).and_then(Value::as_object).cloned();
    for (field, given) in [("labels", labels), ("annotations", annotations.unwrap_or_default())] {
        if !given.is_empty() {
            let metadata = child(pod, "metadata");
            let all = metadata.entry(field).or_insert_with(|| json!({}));
            if let Some(all) = all.as_object_mut() {
                all.extend(given);
            }
        }
    }
    let now = operation.now();
    let status = child(pod, "status");
    status.remove("nominatedNodeName");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let mut scheduled =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    match conditions.iter_mut().find(|condition| text(condition, &["type"]) == "PodScheduled") {
        Some(before) => {
            if text(before, &["status"]) == "True"
                && let Some(since) = before.get("lastTransitionTime")
            {
                scheduled["lastTransitionTime"] = since.clone();
            }
            *before = scheduled;
        }
        None => conditions.push(scheduled),
    }
}
