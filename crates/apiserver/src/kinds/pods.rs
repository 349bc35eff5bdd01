//! Pods: what admission adds to every new one, and what its status begins with.

use super::{child, text};
use crate::flow::{Operation, prepare};
use crate::status::{Named, Status};
use crate::store::{Key, ListQuery};
use serde_json::{Map, Value, json};

const PODS: Named<'static> = Named { group: "", kind: "pods" };
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Gives a new pod its account, the account's token, a priority, and patience with nodes in trouble.
pub(super) fn admit(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    tolerate(pod);
    account(operation, pod)?;
    prioritize(operation, pod)
}

fn forbidden(pod: &Value, why: &str) -> Status {
    let name = match text(pod, &["metadata", "name"]) {
        "" => text(pod, &["metadata", "generateName"]),
        name => name,
    };
    Status::forbidden(PODS, name, why)
}

fn list<'a>(object: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Vec<Value>> {
    let slot = object.entry(field).or_insert_with(|| json!([]));
    if slot.is_null() {
        *slot = json!([]);
    }
    slot.as_array_mut()
}

fn tolerate(pod: &mut Value) {
    let Some(tolerations) = list(child(pod, "spec"), "tolerations") else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let (its_key, effect) = (text(toleration, &["key"]), text(toleration, &["effect"]));
            (its_key == key || its_key.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}

fn account(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    let namespace = operation.namespace.as_str();
    let name = match text(pod, &["spec", "serviceAccountName"]) {
        "" => "default".to_owned(),
        name => name.to_owned(),
    };
    let spec = child(pod, "spec");
    for field in ["serviceAccountName", "serviceAccount"] {
        spec.insert(field.to_owned(), json!(name));
    }
    let key = Key::new("serviceaccounts", namespace, name.as_str());
    let Some(account) = operation.api.store.get(&key).map(|entry| entry.value()) else {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        return Err(forbidden(pod, &why));
    };
    let wants = |object: &Value| object.get("automountServiceAccountToken").and_then(Value::as_bool);
    let mounts = pod.get("spec").and_then(wants).or_else(|| wants(&account)).unwrap_or(true);
    if mounts {
        mount_token(child(pod, "spec"));
    }
    let secrets = account.get("imagePullSecrets").filter(|list| list.is_array());
    let spec = child(pod, "spec");
    if let Some(secrets) = secrets
        && spec.get("imagePullSecrets").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        spec.insert("imagePullSecrets".to_owned(), secrets.clone());
    }
    Ok(())
}

fn mount_token(spec: &mut Map<String, Value>) {
    let volumes = spec.get("volumes").and_then(Value::as_array);
    let names = volumes.into_iter().flatten().map(|volume| text(volume, &["name"]));
    let present = names.into_iter().find(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned);
    let name = present.clone().unwrap_or_else(|| prepare::generated(TOKEN_VOLUME));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut needed = false;
    for field in ["initContainers", "containers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let Some(mounts) = list(container, "volumeMounts") else { continue };
            if !mounts.iter().any(|mount| text(mount, &["mountPath"]) == TOKEN_PATH) {
                mounts.push(mount.clone());
                needed = true;
            }
        }
    }
    if needed
        && present.is_none()
        && let Some(volumes) = list(spec, "volumes")
    {
        volumes.push(json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
            ]}},
        ]}}));
    }
}

fn prioritize(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    let class = match text(pod, &["spec", "priorityClassName"]) {
        "" => default_class(operation),
        name => {
            let key = Key::new("scheduling.k8s.io/priorityclasses", "", name);
            let found = operation.api.store.get(&key).map(|entry| entry.value());
            let why = format!("no PriorityClass with name {name} was found");
            Some(found.ok_or_else(|| forbidden(pod, &why))?)
        }
    };
    let priority = class.as_ref().and_then(|class| class.get("value")).cloned().unwrap_or(json!(0));
    let policy = match class.as_ref().map_or("", |class| text(class, &["preemptionPolicy"])) {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    if let Some(given) = pod.pointer("/spec/priority").filter(|given| **given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return Err(forbidden(pod, &why));
    }
    let given = text(pod, &["spec", "preemptionPolicy"]);
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(pod, &why));
    }
    let spec = child(pod, "spec");
    if let Some(class) = &class {
        spec.insert("priorityClassName".to_owned(), json!(text(class, &["metadata", "name"])));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    spec.insert("priority".to_owned(), priority);
    Ok(())
}

/// The class of pods that name none: of several, the least.
fn default_class(operation: &Operation<'_>) -> Option<Value> {
    let page = operation.api.store.list(&ListQuery::all("scheduling.k8s.io/priorityclasses")).ok()?;
    let classes = page.items.iter().map(|entry| entry.value());
    let defaults = classes.filter(|class| class.get("globalDefault") == Some(&json!(true)));
    defaults.min_by_key(|class| class.get("value").and_then(Value::as_i64))
}

/// The first of a pod's addresses has a field of its own, from before there could be several. That field counts.
pub(super) fn addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    let own = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = status.get("podIPs").and_then(|all| all.get(0)).map(|first| text(first, &["ip"]).to_owned());
    match first {
        Some(first) if own == first => {}
        Some(first) if own.is_empty() => _ = status.insert("podIP".to_owned(), json!(first)),
        None if own.is_empty() => {}
        _ => _ = status.insert("podIPs".to_owned(), json!([{"ip": own}])),
    }
}

/// A new pod waits, in the quality of service that its resources ask for.
pub(super) fn prepare(_: &Operation<'_>, pod: &mut Value) {
    let quality = quality(pod.get("spec").unwrap_or(&Value::Null));
    *child(pod, "status") =
        Map::from_iter([("phase".to_owned(), json!("Pending")), ("qosClass".to_owned(), json!(quality))]);
}

/// A pod's quality of service never changes.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    if let Some(quality) = old.pointer("/status/qosClass") {
        child(new, "status").entry("qosClass").or_insert_with(|| quality.clone());
    }
}

/// How long a pod has to stop: as long as was asked for or it says itself, and no time if nothing runs.
pub(super) fn grace(pod: &Value, asked: Option<i64>) -> i64 {
    let own = || pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let ended = matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded");
    match asked.or_else(own).unwrap_or(0) {
        _ if ended || text(pod, &["spec", "nodeName"]).is_empty() => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

fn quality(spec: &Value) -> &'static str {
    const COUNTED: [&str; 2] = ["cpu", "memory"];
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|field| spec.get(field).and_then(Value::as_array).into_iter().flatten());
    let amount = |container: &Value, side: &str, name: &str| {
        let amount = container.pointer(&format!("/resources/{side}/{name}"))?.as_str()?.to_owned();
        (amount != "0").then_some(amount)
    };
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        for name in COUNTED {
            let (limit, request) = (amount(container, "limits", name), amount(container, "requests", name));
            any |= limit.is_some() || request.is_some();
            // Requests that are not told are as the limits.
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_of_service_follows_from_requests_and_limits() {
        let spec = |resources: Value| json!({"containers": [{"resources": resources}]});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(quality(&spec(json!({}))), "BestEffort");
        assert_eq!(quality(&spec(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(quality(&spec(json!({"limits": both, "requests": both}))), "Guaranteed");
        assert_eq!(quality(&spec(json!({"limits": both, "requests": {"cpu": "1"}}))), "Guaranteed");
        assert_eq!(quality(&spec(json!({"limits": both, "requests": {"cpu": "500m"}}))), "Burstable");
    }
}
