//! ResourceQuota: how much a namespace may use, counted in the status of its quotas. A quota binds once its status says
//! what it is; that is for a controller to say, and not for admission.

use super::{all, forbidden};
use crate::kinds::resources;
use crate::kinds::resources::{Amounts, LIMITS, REQUESTS};
use crate::object::{at, child, text};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_schema::Quantity;

/// Kinds whose objects are counted under their plural too.
pub(super) const PLAIN: [&str; 7] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
];

/// What every container must ask for where a quota counts it.
const ASKED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// The quotas that a write may be charged to: none where nobody counts.
pub(crate) fn quotas(operation: &Operation<'_>, old: Option<&Value>) -> Vec<Value> {
    if !operation.resource.namespaced || !operation.subresource.is_empty() || !is_counted(operation, old) {
        return Vec::new();
    }
    all(operation, "resourcequotas", Some(&operation.namespace))
}

/// A quota once a write is charged to it, or nothing where it has nothing to count; an error says why it does not let it
/// pass.
pub(crate) fn charged(
    quota: &Value,
    operation: &Operation<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<Option<Value>, Status> {
    let more = added(quota, operation, new, old).map_err(|why| forbidden(operation, new, &why))?;
    if more.is_empty() {
        return Ok(None);
    }
    let mut used = amounts_of(quota, "used");
    for (name, amount) in more {
        *used.entry(name).or_default() += &amount;
    }
    let used: Map<String, Value> =
        used.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect();
    let mut charged = quota.clone();
    child(&mut charged, "status").insert("used".to_owned(), Value::Object(used));
    Ok(Some(charged))
}

/// Changes count only for what can grow.
fn is_counted(operation: &Operation<'_>, old: Option<&Value>) -> bool {
    let plural = operation.resource.plural.as_str();
    old.is_none()
        || (operation.resource.group.is_empty() && matches!(plural, "services" | "persistentvolumeclaims"))
}

fn amounts_of(quota: &Value, side: &str) -> Amounts {
    resources::amounts(quota.get("status").and_then(|status| status.get(side)))
}

/// What a quota has to count for this write; an error says why it does not let it pass.
fn added(
    quota: &Value,
    operation: &Operation<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<Amounts, String> {
    let resource = &operation.resource;
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    let (hard, used) = (amounts_of(quota, "hard"), amounts_of(quota, "used"));
    let mut usage = usage(group, plural, new);
    let restricted: BTreeSet<&String> =
        hard.keys().filter(|name| usage.contains_key(*name) || is_of(group, plural, name)).collect();
    if restricted.is_empty() || !in_scope(quota, group, plural, new) {
        return Ok(Amounts::new());
    }
    let name = text(quota, &["metadata", "name"]);
    if (group, plural) == ("", "pods") {
        let asked: Vec<&str> =
            ASKED.into_iter().filter(|name| restricted.iter().any(|known| known.as_str() == *name)).collect();
        if let Some(missing) = missing(new, &asked) {
            return Err(format!("failed quota: {name}: must specify {missing}"));
        }
    }
    if restricted.iter().any(|resource| !used.contains_key(*resource)) {
        let names: Vec<&str> = restricted.iter().map(|name| name.as_str()).collect();
        return Err(format!("status unknown for quota: {name}, resources: {}", names.join(",")));
    }
    if let Some(old) = old {
        for (name, before) in self::usage(group, plural, old) {
            if let Some(now) = usage.get_mut(&name) {
                *now -= &before;
            }
        }
    }
    usage.retain(|name, amount| hard.contains_key(name) && !amount.is_zero() && !amount.is_negative());
    let sum = |name: &String, more: &Quantity| used.get(name).cloned().unwrap_or_default() + more;
    let exceeded: Vec<&String> =
        usage.iter().filter(|(name, more)| sum(name, more) > hard[*name]).map(|(name, _)| name).collect();
    if exceeded.is_empty() {
        return Ok(usage);
    }
    let shown = |amounts: &Amounts| {
        let parts: Vec<String> =
            exceeded.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?))).collect();
        parts.join(",")
    };
    Err(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        shown(&usage),
        shown(&used),
        shown(&hard)
    ))
}

/// Would objects of the kind count under this name, if they had some of it?
pub(super) fn is_of(group: &str, plural: &str, name: &str) -> bool {
    match (group, plural) {
        ("", "pods") => {
            let bare =
                name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
            matches!(bare, "cpu" | "memory" | "ephemeral-storage") || bare.starts_with("hugepages-")
        }
        _ => false,
    }
}

/// What an object uses.
pub(super) fn usage(group: &str, plural: &str, object: &Value) -> Amounts {
    let one = Quantity::from(1);
    let full = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let mut usage = Amounts::from([(format!("count/{full}"), one.clone())]);
    if !group.is_empty() {
        return usage;
    }
    if PLAIN.contains(&plural) {
        usage.insert(plural.to_owned(), one.clone());
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match plural {
        "pods" => {
            if matches!(text(object, &["status", "phase"]), "Failed" | "Succeeded") {
                usage.remove("pods");
                return usage;
            }
            usage.extend(computed(&resources::of_pod(spec, REQUESTS), &resources::of_pod(spec, LIMITS)));
        }
        "services" => {
            let ports = spec.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let given = match text(spec, &["type"]) {
                "NodePort" => ports.len(),
                "LoadBalancer" if spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)) => {
                    ports.len()
                }
                "LoadBalancer" => ports.iter().filter(|port| port.get("nodePort").is_some()).count(),
                _ => 0,
            };
            usage.insert("services.nodeports".to_owned(), whole(given));
            let balanced = usize::from(text(spec, &["type"]) == "LoadBalancer");
            usage.insert("services.loadbalancers".to_owned(), whole(balanced));
        }
        "persistentvolumeclaims" => {
            let class = text(spec, &["storageClassName"]);
            let of_class = |name: &str| format!("{class}.storageclass.storage.k8s.io/{name}");
            if !class.is_empty() {
                usage.insert(of_class("persistentvolumeclaims"), one);
            }
            if let Some(storage) =
                at(spec, &["resources", "requests", "storage"]).and_then(resources::quantity)
            {
                if !class.is_empty() {
                    usage.insert(of_class("requests.storage"), storage.clone());
                }
                usage.insert("requests.storage".to_owned(), storage);
            }
        }
        _ => {}
    }
    usage
}

fn whole(count: usize) -> Quantity {
    Quantity::from(i64::try_from(count).unwrap_or(i64::MAX))
}

/// What containers ask for, under all its names.
fn computed(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::new();
    for (name, amount) in requests {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-") {
            usage.insert(name.clone(), amount.clone());
        }
        usage.insert(format!("requests.{name}"), amount.clone());
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(format!("limits.{name}"), amount.clone());
        }
    }
    usage
}

/// Which containers leave out what is asked of all of them, in words.
fn missing(pod: &Value, asked: &[&str]) -> Option<String> {
    let spec = pod.get("spec")?;
    if spec.get("resources").and_then(Value::as_object).is_some_and(|own| !own.is_empty()) {
        return None;
    }
    let mut lacking: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for field in ["containers", "initContainers"] {
        for container in spec.get(field).and_then(Value::as_array).into_iter().flatten() {
            let side = |side: &str| {
                resources::amounts(container.get("resources").and_then(|resources| resources.get(side)))
            };
            let has = computed(&side(REQUESTS), &side(LIMITS));
            for name in asked.iter().filter(|name| !has.contains_key(**name)) {
                lacking.entry(name).or_default().insert(text(container, &["name"]));
            }
        }
    }
    let parts: Vec<String> = lacking
        .into_iter()
        .map(|(name, who)| format!("{name} for: {}", who.into_iter().collect::<Vec<_>>().join(",")))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Is the object one of those that the quota is about?
pub(super) fn in_scope(quota: &Value, group: &str, plural: &str, object: &Value) -> bool {
    let list = |pointer: &str| quota.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let plain =
        list("/spec/scopes").into_iter().map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
    let mut scopes = plain.chain(list("/spec/scopeSelector/matchExpressions"));
    match (group, plural) {
        ("", "pods") => scopes.all(|scope| pod_in_scope(&scope, object)),
        _ => scopes.next().is_none(),
    }
}

fn pod_in_scope(scope: &Value, pod: &Value) -> bool {
    let ends = || {
        let deadline = at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
        deadline.is_some_and(|seconds| seconds >= 0)
    };
    let best_effort = || text(pod, &["status", "qosClass"]) == "BestEffort";
    match text(scope, &["scopeName"]) {
        "Terminating" => ends(),
        "NotTerminating" => !ends(),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => {
            let class = text(pod, &["spec", "priorityClassName"]);
            let values = scope.get("values").and_then(Value::as_array);
            let listed =
                values.is_some_and(|values| values.iter().any(|value| value.as_str() == Some(class)));
            match text(scope, &["operator"]) {
                "Exists" => !class.is_empty(),
                "DoesNotExist" => class.is_empty(),
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_counted_under_all_names_of_what_it_asks_for() {
        let pod = json!({"spec": {"containers": [
            {"resources": {"requests": {"cpu": "100m", "example.com/gpu": "1"}, "limits": {"cpu": "1"}}}
        ]}});
        let shown: Vec<String> =
            usage("", "pods", &pod).iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(
            shown,
            [
                "count/pods=1",
                "cpu=100m",
                "limits.cpu=1",
                "pods=1",
                "requests.cpu=100m",
                "requests.example.com/gpu=1"
            ]
        );
    }
}
