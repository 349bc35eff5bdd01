//! ServiceAccount: the account of a new pod, and its token.
//!
//! A new pod whose namespace has no default account yet waits for it, as in Kubernetes, and on the store's changes rather
//! than by polling.

use super::forbidden;
use crate::authorization::{is_mirror, pod_names};
use crate::object::{child, generate_name, list_mut, text};
use crate::operation::Operation;
use crate::status::Status;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_store::Key;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The account of pods that name none. A controller makes it, some time after the namespace.
const DEFAULT: &str = "default";

/// How long a pod waits for it: as long as the reference tries at most (ten times, 100 to 200 ms apart).
const PATIENCE: Duration = Duration::from_secs(2);

/// Gives a new pod its account, and mounts the account's token.
pub(super) async fn mutate(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    if is_mirror(pod) {
        return validate_mirror(operation, pod);
    }
    if let Some(default) = awaited_default(operation, pod) {
        default.await;
    }
    assign(operation, pod)
}

/// A mirror pod shows a static pod of a kubelet, which would delete one that is not as it wrote it.
fn validate_mirror(operation: &Operation<'_>, pod: &Value) -> Result<(), Status> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let sources =
        volumes.into_iter().flatten().filter_map(|volume| volume.pointer("/projected/sources")?.as_array());
    let mut sources = sources.flatten();
    let why = if !text(pod, &["spec", "serviceAccountName"]).is_empty() {
        "a mirror pod may not reference service accounts"
    } else if pod_names(pod).secrets {
        "a mirror pod may not reference secrets"
    } else if sources.any(|source| source.get("serviceAccountToken").is_some_and(|token| !token.is_null())) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(forbidden(operation, pod, why))
}

/// Waits for the default account of a new pod, which may be in a namespace that is newer than its controller's last look. None
/// if there is nothing to wait for, so that nothing is boxed then.
///
/// The time is the machine's, whatever time the API lives by: it is given to a controller to act, and where a test holds the
/// clock no other time would pass.
fn awaited_default<'a>(operation: &'a Operation<'_>, pod: &Value) -> Option<BoxFuture<'a, ()>> {
    if !operation.subresource.is_empty() || account_of(pod) != DEFAULT {
        return None;
    }
    let store = &operation.api.store;
    let key = Key::new("serviceaccounts", operation.namespace.as_str(), DEFAULT);
    if store.get(&key).is_some() {
        return None;
    }
    let mut changes = store.watch("serviceaccounts", None, store.revision()).ok()?;
    let waiting = async move {
        let made = async { while store.get(&key).is_none() && changes.next().await.is_ok() {} };
        // Whether it came in time is seen by whoever looks for it next.
        let _ = Clock::real().timeout(PATIENCE, made).await;
    };
    Some(waiting.boxed())
}

fn account_of(pod: &Value) -> &str {
    match text(pod, &["spec", "serviceAccountName"]) {
        "" => DEFAULT,
        name => name,
    }
}

fn assign(operation: &Operation<'_>, pod: &mut Value) -> Result<(), Status> {
    let namespace = operation.namespace.as_str();
    let name = account_of(pod).to_owned();
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
    let name = present.clone().unwrap_or_else(|| generate_name(TOKEN_VOLUME));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut needed = false;
    for field in ["initContainers", "containers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let Some(mounts) = list_mut(container, "volumeMounts") else { continue };
            if !mounts.iter().any(|mount| text(mount, &["mountPath"]) == TOKEN_PATH) {
                mounts.push(mount.clone());
                needed = true;
            }
        }
    }
    if needed
        && present.is_none()
        && let Some(volumes) = list_mut(spec, "volumes")
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
