//! LimitRanger: default requests and limits of containers, and bounds on what pods and claims request.

use super::{all, forbidden};
use crate::kinds::resources;
use crate::kinds::resources::{Amounts, LIMITS, REQUESTS};
use crate::object::{at, child, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::{Map, Value, json};
use windlass_schema::Quantity;

/// Says what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The items of a namespace's limits, of each object apart.
fn limits(operation: &Operation<'_>) -> Vec<Vec<Value>> {
    let ranges = all(operation, "limitranges", Some(&operation.namespace));
    let items = |range: &Value| at(range, &["spec", "limits"]).and_then(Value::as_array).cloned();
    ranges.iter().filter_map(items).collect()
}

/// Fills in what the containers of a new pod leave out.
pub(super) fn mutate(operation: &Operation<'_>, pod: &mut Value) {
    if operation.resource.plural != "pods" {
        return;
    }
    for range in limits(operation) {
        let of = |field: &str| -> Map<String, Value> {
            let items = range.iter().filter(|item| text(item, &["type"]) == "Container");
            items.filter_map(|item| item.get(field)?.as_object().cloned()).flatten().collect()
        };
        let defaults = [(LIMITS, of("default")), (REQUESTS, of("defaultRequest"))];
        let mut said = Vec::new();
        for (field, what) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = child(pod, "spec").get_mut(field).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                said.extend(fill_container(container, &defaults, what));
            }
        }
        if !said.is_empty() {
            let annotations = child(pod, "metadata").entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                let text = format!("LimitRanger plugin set: {}", said.join("; "));
                annotations.insert(ANNOTATION.to_owned(), json!(text));
            }
        }
    }
}

/// What was filled in, in words: requests before limits.
fn fill_container(
    container: &mut Value,
    defaults: &[(&str, Map<String, Value>); 2],
    what: &str,
) -> Vec<String> {
    let name = text(container, &["name"]).to_owned();
    let mut said = Vec::new();
    for (side, amounts) in defaults.iter().rev() {
        let resources = child(container, "resources");
        let known = resources.entry(*side).or_insert_with(|| json!({}));
        let Some(known) = known.as_object_mut() else { continue };
        let missing: Vec<&String> =
            amounts.keys().filter(|resource| !known.contains_key(*resource)).collect();
        for resource in &missing {
            known.insert((*resource).clone(), amounts[*resource].clone());
        }
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|resource| resource.as_str()).collect();
            let side = side.trim_end_matches('s');
            said.push(format!("{} {side} for {what} {name}", names.join(", ")));
        }
        if known.is_empty() {
            resources.remove(*side);
        }
    }
    said
}

/// What is asked for, and how the refusal calls who asks.
struct Asked<'a> {
    kind: &'a str,
    requests: Amounts,
    limits: Amounts,
}

impl Asked<'_> {
    fn least(&self, resource: &str, least: Quantity) -> Option<String> {
        let head = format!("minimum {resource} usage per {} is {least}", self.kind);
        match (self.requests.get(resource), self.limits.get(resource)) {
            (None, _) => Some(format!("{head}.  No request is specified")),
            (Some(request), _) if *request < least => Some(format!("{head}, but request is {request}")),
            (_, Some(limit)) if *limit < least => Some(format!("{head}, but limit is {limit}")),
            _ => None,
        }
    }

    fn most(&self, resource: &str, most: Quantity) -> Option<String> {
        let head = format!("maximum {resource} usage per {} is {most}", self.kind);
        match (self.requests.get(resource), self.limits.get(resource)) {
            (_, None) => Some(format!("{head}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => Some(format!("{head}, but limit is {limit}")),
            (Some(request), _) if *request > most => Some(format!("{head}, but request is {request}")),
            _ => None,
        }
    }

    fn most_requested(&self, resource: &str, most: Quantity) -> Option<String> {
        let head = format!("maximum {resource} usage per {} is {most}", self.kind);
        match self.requests.get(resource) {
            None => Some(format!("{head}.  No request is specified")),
            Some(request) if *request > most => Some(format!("{head}, but request is {request}")),
            _ => None,
        }
    }

    fn ratio(&self, resource: &str, most: Quantity) -> Option<String> {
        let head = format!("{resource} max limit to request ratio per {} is {most}", self.kind);
        let known = |amount: &&Quantity| !amount.is_zero();
        let Some(request) = self.requests.get(resource).filter(known) else {
            return Some(format!("{head}, but no request is specified or request is 0"));
        };
        let Some(limit) = self.limits.get(resource).filter(known) else {
            return Some(format!("{head}, but no limit is specified or limit is 0"));
        };
        let ratio = resources::ratio(limit, request);
        (ratio * 1000.0 > resources::ratio(&most, &Quantity::from(1)) * 1000.0)
            .then(|| format!("{head}, but provided ratio is {ratio:.6}"))
    }
}

/// Does an object keep to the limits of its namespace? Pods are judged when they are new, claims whenever they change.
pub(super) fn validate(operation: &Operation<'_>, object: &Value, old: Option<&Value>) -> Result<(), Status> {
    match operation.resource.plural.as_str() {
        "pods" if old.is_none() => validate_pod(operation, object),
        "persistentvolumeclaims" => validate_claim(operation, object, old),
        _ => Ok(()),
    }
}

/// Does a pod keep to the limits of its namespace?
fn validate_pod(operation: &Operation<'_>, pod: &Value) -> Result<(), Status> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    judge(operation, pod, |item| match text(item, &["type"]) {
        "Container" => {
            let containers = ["containers", "initContainers"].into_iter();
            let containers =
                containers.flat_map(|field| spec.get(field).and_then(Value::as_array).into_iter().flatten());
            let side = |container: &Value, side: &str| {
                resources::amounts(container.get("resources").and_then(|resources| resources.get(side)))
            };
            let asked = |container: &Value| Asked {
                kind: "Container",
                requests: side(container, REQUESTS),
                limits: side(container, LIMITS),
            };
            containers.flat_map(|container| wrong(item, &asked(container))).collect()
        }
        "Pod" => {
            let side = |side| resources::of_pod_without_overhead(spec, side);
            wrong(item, &Asked { kind: "Pod", requests: side(REQUESTS), limits: side(LIMITS) })
        }
        _ => Vec::new(),
    })
}

/// Does a claim?
fn validate_claim(operation: &Operation<'_>, claim: &Value, old: Option<&Value>) -> Result<(), Status> {
    let going = old.is_some_and(|old| !text(old, &["metadata", "deletionTimestamp"]).is_empty());
    if !operation.subresource.is_empty() || going {
        return Ok(());
    }
    const KIND: &str = "PersistentVolumeClaim";
    let requests = resources::amounts(at(claim, &["spec", "resources", "requests"]));
    let asked = Asked { kind: KIND, requests, limits: Amounts::new() };
    judge(operation, claim, |item| {
        if text(item, &["type"]) != KIND {
            return Vec::new();
        }
        let least = resources::amounts(item.get("min")).into_iter();
        let most = resources::amounts(item.get("max")).into_iter();
        least
            .filter_map(|(resource, amount)| asked.least(&resource, amount))
            .chain(most.filter_map(|(resource, amount)| asked.most_requested(&resource, amount)))
            .collect()
    })
}

fn wrong(item: &Value, asked: &Asked<'_>) -> Vec<String> {
    let of = |field: &str| resources::amounts(item.get(field)).into_iter();
    of("min")
        .filter_map(|(resource, amount)| asked.least(&resource, amount))
        .chain(of("max").filter_map(|(resource, amount)| asked.most(&resource, amount)))
        .chain(of("maxLimitRequestRatio").filter_map(|(resource, amount)| asked.ratio(&resource, amount)))
        .collect()
}

fn judge(
    operation: &Operation<'_>,
    object: &Value,
    wrong: impl Fn(&Value) -> Vec<String>,
) -> Result<(), Status> {
    for range in limits(operation) {
        let mut found: Vec<String> = Vec::new();
        for why in range.iter().flat_map(&wrong) {
            if !found.contains(&why) {
                found.push(why);
            }
        }
        match found.as_slice() {
            [] => {}
            [only] => return Err(forbidden(operation, object, only)),
            several => return Err(forbidden(operation, object, &format!("[{}]", several.join(", ")))),
        }
    }
    Ok(())
}
