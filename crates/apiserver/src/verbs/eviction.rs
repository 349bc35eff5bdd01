//! POST to `pods/NAME/eviction`: a deletion that asks the pod's disruption budget first.

use crate::flow::delete::delete_one;
use crate::flow::delete_options::DeleteOptions;
use crate::flow::guaranteed_update::{ATTEMPTS, Preconditions, contended, guaranteed_update};
use crate::flow::{decode, managed, mutating_admission, prepare, validating_admission};
use crate::http::Answer;
use crate::kinds;
use crate::object::timestamp;
use crate::object::{child, text};
use crate::operation::Operation;
use crate::operation::{Call, Outcome};
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::resource::Resource;
use crate::status::{Cause, Named, Status};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use windlass_schema::selector::Labels;
use windlass_store::ListQuery;

const GROUP: &str = "policy";
/// The number of evictions that a budget may have without its controller having confirmed them.
const UNCONFIRMED: usize = 2000;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// The kind of the request: it has no resource of its own.
static EVICTION: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    Arc::new(Resource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        kind: "Eviction".to_owned(),
        plural: "evictions".to_owned(),
        namespaced: true,
        definition: "io.k8s.api.policy.v1.Eviction".to_owned(),
        stored_as: format!("{GROUP}/v1"),
        pristine: true,
        rules: Some(kinds::rules(GROUP, "evictions")),
        ..Resource::default()
    })
});

pub(crate) async fn create(call: &Call<'_>) -> Result<Answer, Status> {
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let dry_run = options.dry_run;
    let media = content_type::body(&call.content_type)?;
    let on_pod = call.operation(options.clone());
    let operation = Operation { resource: EVICTION.clone(), ..call.operation(options) };
    let mut eviction =
        decode::judge(&operation, decode::body(&EVICTION, &call.body, media)?, &call.warnings)?;
    prepare::namespace(&operation, &mut eviction)?;
    mutating_admission::mutate(&on_pod, &mut eviction, None).await?;
    let name = call.target.name.as_deref().unwrap_or_default();
    if text(&eviction, &["metadata", "name"]) != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    validating_admission::validate_unstored(&on_pod, &eviction).await?;
    let mut options = DeleteOptions::of(eviction.get("deleteOptions").unwrap_or(&Value::Null))?;
    options.dry_run |= dry_run;
    evict(call, name, &options).await?;
    Ok(Answer::json(201, &success()))
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

async fn evict(call: &Call<'_>, name: &str, options: &DeleteOptions) -> Result<(), Status> {
    let conditional = options.resource_version.is_some();
    for _ in 0..ATTEMPTS {
        let pod = pod(call, name)?;
        let phase = text(&pod, &["status", "phase"]);
        let going = !text(&pod, &["metadata", "deletionTimestamp"]).is_empty();
        if !going && !matches!(phase, "Succeeded" | "Failed" | "Pending") {
            return evict_running(call, name, &pod, options).await;
        }
        // One that waits may have begun to run since we looked.
        let waits = phase == "Pending" && !going;
        let options = if waits && !conditional { at_version(options, &pod) } else { options.clone() };
        let another = options.uid.as_deref().is_some_and(|uid| uid != text(&pod, &["metadata", "uid"]));
        match delete(call, name, &options).await {
            Err(status) if status.reason == "Conflict" && !conditional && !another => {}
            done => return done,
        }
    }
    Err(contended(&call.resource, name))
}

async fn evict_running(
    call: &Call<'_>,
    name: &str,
    pod: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let budgets = budgets_of(call, pod);
    if budgets.len() > 1 {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::plain(why));
    }
    let Some(budget) = budgets.into_iter().next() else {
        return delete(call, name, options).await;
    };
    if is_free(&budget, pod) {
        // Nothing of it counts, if it is as we saw it.
        let conditional = options.resource_version.is_some();
        return match delete(call, name, &at_version(options, pod)).await {
            Err(status) if status.reason == "Conflict" && !conditional => Err(unsettled(&budget)),
            done => done,
        };
    }
    take(call, name, &budget, options.dry_run).await?;
    delete(call, name, options).await
}

fn at_version(options: &DeleteOptions, pod: &Value) -> DeleteOptions {
    let version = text(pod, &["metadata", "resourceVersion"]).to_owned();
    DeleteOptions { resource_version: Some(version), ..options.clone() }
}

fn pod(call: &Call<'_>, name: &str) -> Result<Value, Status> {
    let operation = pods(call, "", false);
    let entry = operation.api.store.get(&operation.key(name));
    let entry = entry.ok_or_else(|| Status::not_found(call.resource.named(), name))?;
    let mut pod = entry.value();
    child(&mut pod, "metadata").insert("resourceVersion".to_owned(), json!(entry.revision().to_string()));
    Ok(pod)
}

/// The pod's own resource, or a part of it, as the one who evicts writes it.
fn pods<'a>(call: &'a Call<'_>, subresource: &str, dry_run: bool) -> Operation<'a> {
    Operation {
        subresource: subresource.to_owned(),
        asks_webhooks: false,
        ..call.operation(WriteOptions::of_server(dry_run))
    }
}

/// The budgets that are about a pod.
fn budgets_of(call: &Call<'_>, pod: &Value) -> Vec<Value> {
    let Some(resource) = call.api.registry.get(GROUP, "v1", "poddisruptionbudgets") else {
        return Vec::new();
    };
    let namespace = call.target.namespace.as_deref();
    let page = call.api.store.list(&ListQuery { namespace, ..ListQuery::all(&resource.storage_key()) });
    let budgets = page.map(|page| page.items.iter().map(|entry| entry.value()).collect::<Vec<_>>());
    let mut budgets = budgets.unwrap_or_default();
    budgets.retain(|budget| budget.pointer("/spec/selector").is_some_and(|selector| selects(selector, pod)));
    budgets
}

fn selects(selector: &Value, pod: &Value) -> bool {
    let mut terms = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for term in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = text(term, &["key"]);
        let values = term.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str).collect::<Vec<_>>().join(",");
        terms.push(match text(term, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    let labels = |name: &str| pod.get("metadata")?.get("labels")?.get(name)?.as_str();
    Labels::parse(&terms.join(",")).is_ok_and(|selector| selector.matches(labels))
}

fn number(budget: &Value, field: &str) -> i64 {
    budget.get("status").and_then(|status| status.get(field)).and_then(Value::as_i64).unwrap_or(0)
}

/// Does a pod that is not ready go without being counted?
fn is_free(budget: &Value, pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let is_ready =
        |condition: &Value| text(condition, &["type"]) == "Ready" && text(condition, &["status"]) == "True";
    if conditions.into_iter().any(is_ready) {
        return false;
    }
    let (healthy, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow"
        || (healthy >= desired && desired > 0)
}

/// Takes one of the disruptions that a budget allows.
async fn take(call: &Call<'_>, pod: &str, budget: &Value, dry_run: bool) -> Result<(), Status> {
    let Some(resource) = call.api.registry.get(GROUP, "v1", "poddisruptionbudgets") else { return Ok(()) };
    let name = text(budget, &["metadata", "name"]).to_owned();
    // The reference writes it as a client of its own.
    let taking = Operation {
        identity: &call.api.own_identity,
        resource,
        name,
        asks_webhooks: true,
        ..pods(call, "status", false)
    };
    if dry_run {
        return taken(budget, pod, "").map(drop);
    }
    // Judged again on the budget as it is when it is written.
    let make = |live: Option<&Value>| {
        let live = live.cloned().unwrap_or_default();
        let mut left = taken(&live, pod, &timestamp(call.api.clock.now()))?;
        managed::update(&taking, Some(&live), &mut left);
        Ok(left)
    };
    guaranteed_update(&taking, &Preconditions::default(), make).await.map(drop)
}

/// The budget with one disruption less, or why there is none to be had.
fn taken(budget: &Value, pod: &str, now: &str) -> Result<Value, Status> {
    let name = text(budget, &["metadata", "name"]);
    let generation = budget.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if number(budget, "observedGeneration") < generation {
        return Err(unsettled(budget));
    }
    let forbidden =
        |why: &str| Err(Status::forbidden(Named { group: GROUP, kind: "poddisruptionbudget" }, name, why));
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    let allowed = number(budget, "disruptionsAllowed");
    match allowed {
        ..0 => return forbidden("pdb disruptions allowed is negative"),
        _ if disrupted.is_some_and(|pods| pods.len() > UNCONFIRMED) => {
            return forbidden(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            );
        }
        0 => return Err(refused(0, why_none(budget, name))),
        _ => {}
    }
    let mut left = budget.clone();
    let observed = number(budget, "observedGeneration");
    let status = child(&mut left, "status");
    status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
    let pods = status.entry("disruptedPods").or_insert_with(|| json!({}));
    if let Some(pods) = pods.as_object_mut() {
        pods.insert(pod.to_owned(), json!(now));
    }
    if allowed == 1 {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        let mut condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "lastTransitionTime": now,
        });
        if observed != 0 {
            condition["observedGeneration"] = json!(observed);
        }
        set_condition(conditions, condition);
    }
    Ok(left)
}

/// Puts a condition in the place of the one of its type.
fn set_condition(conditions: &mut Value, mut condition: Value) {
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        None => conditions.push(condition),
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
    }
}

fn why_none(budget: &Value, name: &str) -> String {
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let said = conditions.into_iter().find(|condition| text(condition, &["type"]) == "DisruptionAllowed");
    let said = said.filter(|it| text(it, &["status"]) == "False" && !text(it, &["message"]).is_empty());
    let (healthy, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    let message = said.map(|said| text(said, &["message"])).unwrap_or_default();
    let reason = said.map(|said| text(said, &["reason"])).unwrap_or_default();
    match said {
        Some(_) if reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some(_) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
            )
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn unsettled(budget: &Value) -> Status {
    let name = text(budget, &["metadata", "name"]);
    refused(10, format!("The disruption budget {name} is still being processed by the server."))
}

fn refused(retry_after: u32, message: String) -> Status {
    let mut status = Status::too_many_requests(REFUSED, retry_after);
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message, ..Cause::default() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

/// Says on the pod why it goes, and deletes it.
async fn delete(call: &Call<'_>, name: &str, options: &DeleteOptions) -> Result<(), Status> {
    let mut options = options.clone();
    if !options.dry_run {
        let saying = pods(call, "status", false);
        let expected = |live: &Value, field: &str, wanted: &Option<String>, what: &str, hint: &str| {
            let found = text(live, &["metadata", field]);
            let Some(wanted) = wanted.as_deref().filter(|wanted| !wanted.is_empty() && *wanted != found)
            else {
                return Ok(());
            };
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {hint}"
            );
            Err(Status::conflict(Named { group: "", kind: "Pod" }, name, &why))
        };
        let make = |live: Option<&Value>| {
            let mut pod = live.cloned().unwrap_or_default();
            expected(
                &pod,
                "uid",
                &options.uid,
                "UID",
                "The object might have been deleted and then recreated",
            )?;
            let version = &options.resource_version;
            expected(
                &pod,
                "resourceVersion",
                version,
                "ResourceVersion",
                "The object might have been modified",
            )?;
            let conditions = child(&mut pod, "status").entry("conditions").or_insert_with(|| json!([]));
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null,
                "lastTransitionTime": timestamp(call.api.clock.now()),
            });
            set_condition(conditions, condition);
            Ok(pod)
        };
        let (outcome, _) = guaranteed_update(&saying, &Preconditions::default(), make).await?;
        if let (Some(version), Outcome::Stored(entry)) = (&mut options.resource_version, &outcome) {
            *version = entry.revision().to_string();
        }
    }
    delete_one(&pods(call, "", options.dry_run), name, &options).await.map(drop)
}
