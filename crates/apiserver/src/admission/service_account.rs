//! ServiceAccount: the account of a new pod, and its token.

use super::{forbidden, list};
use crate::flow::{Operation, prepare};
use crate::kinds::{child, text};
use crate::status::Status;
use crate::store::Key;
use serde_json::{Map, Value, json};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Gives a new pod its account, and mounts the account's token.
pub(super) fn fill(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
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
        return Err(forbidden(operation, pod, &why));
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
