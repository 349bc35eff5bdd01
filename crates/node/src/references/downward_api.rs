//! The downward API: fields of a pod and resources of its containers, as text. Pure.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use windlass::quantity::{milli_value, value};

/// The fields that are known to the node only.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeFields {
    /// The node's name.
    pub(crate) node: String,
    /// The node's IP.
    pub(crate) host_ip: String,
    /// The pod's IP, once it has one.
    pub(crate) pod_ip: Option<String>,
    /// The node's allocatable resources: the limits of containers without limits.
    pub(crate) allocatable: BTreeMap<String, Quantity>,
}

/// The value of a field of the pod. An error says why there is none.
pub(crate) fn field(pod: &Pod, node: &NodeFields, path: &str) -> Result<String, String> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    if let Some((of, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match of {
            "metadata.annotations" => meta.annotations.as_ref(),
            "metadata.labels" => meta.labels.as_ref(),
            _ => return Err(format!("fieldPath {path:?} does not support subscript")),
        };
        return Ok(map.and_then(|map| map.get(key)).cloned().unwrap_or_default());
    }
    let text = |value: &Option<String>| Ok(value.clone().unwrap_or_default());
    match path {
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        "metadata.labels" => Ok(lines(meta.labels.as_ref())),
        "metadata.annotations" => Ok(lines(meta.annotations.as_ref())),
        "spec.nodeName" => Ok(node.node.clone()),
        "spec.serviceAccountName" => {
            Ok(spec.and_then(|s| s.service_account_name.clone()).unwrap_or_default())
        }
        "status.hostIP" | "status.hostIPs" => Ok(node.host_ip.clone()),
        "status.podIP" | "status.podIPs" => Ok(node.pod_ip.clone().unwrap_or_default()),
        _ => Err(format!("unsupported fieldPath: {path}")),
    }
}

/// A map, one `key="value"` per line, sorted.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> =
        map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    lines.join("\n")
}

/// Quotes a text as Go's `%q` does.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A resource of a container, in units of the divisor and rounded up. Limits default to the node's allocatable resources.
pub(crate) fn resource(
    pod: &Pod,
    own: Option<&Container>,
    selector: &ResourceFieldSelector,
    node: &NodeFields,
) -> Result<String, String> {
    let named = selector.container_name.as_deref().filter(|name| !name.is_empty());
    let container = match named {
        Some(name) => {
            let spec = pod.spec.as_ref();
            let init = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
            let all = spec.into_iter().flat_map(|spec| &spec.containers).chain(init);
            all.into_iter().find(|container| container.name == name)
        }
        None => own,
    };
    let container = container.ok_or_else(|| format!("container {} not found", named.unwrap_or_default()))?;
    let (side, name) = selector
        .resource
        .split_once('.')
        .filter(|(side, name)| {
            matches!(*side, "limits" | "requests")
                && (matches!(*name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-"))
        })
        .ok_or_else(|| format!("unsupported container resource : {}", selector.resource))?;
    let resources = container.resources.as_ref();
    let limit =
        resources.and_then(|all| all.limits.as_ref()?.get(name)).or_else(|| node.allocatable.get(name));
    let amount = match side {
        "limits" => limit,
        _ => resources.and_then(|all| all.requests.as_ref()?.get(name)),
    };
    let read = |quantity: &Quantity| if name == "cpu" { milli_value(quantity) } else { value(quantity) };
    let one = Quantity("1".to_owned());
    let divisor = selector.divisor.as_ref().and_then(read).filter(|divisor| *divisor > 0);
    let divisor = divisor.or_else(|| read(&one)).unwrap_or(1);
    let amount = amount.and_then(read).unwrap_or(0);
    Ok((amount / divisor + i64::from(amount % divisor > 0)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"b": "2", "a": "x\"y\n"}},
            "spec": {"serviceAccountName": "sa", "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "100Mi"}}},
            ]},
        }))
        .unwrap()
    }

    fn node() -> NodeFields {
        let allocatable = [("memory".to_owned(), Quantity("1Gi".to_owned()))].into();
        NodeFields {
            node: "node-1".into(),
            host_ip: "192.0.2.1".into(),
            pod_ip: Some("10.244.0.2".into()),
            allocatable,
        }
    }

    #[test]
    fn fields_are_text() {
        for (path, expected) in [
            ("metadata.name", "p"),
            ("metadata.labels['b']", "2"),
            ("metadata.labels['absent']", ""),
            ("metadata.labels", "a=\"x\\\"y\\n\"\nb=\"2\""),
            ("spec.nodeName", "node-1"),
            ("spec.serviceAccountName", "sa"),
            ("status.podIP", "10.244.0.2"),
            ("status.hostIP", "192.0.2.1"),
        ] {
            assert_eq!(field(&pod(), &node(), path).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(field(&pod(), &node(), "spec.x").unwrap_err(), "unsupported fieldPath: spec.x");
    }

    #[test]
    fn resources_are_rounded_up_to_the_divisor() {
        let pod = pod();
        let own = pod.spec.as_ref().map(|spec| &spec.containers[0]);
        let ask = |resource_name: &str, divisor: &str| {
            let selector: ResourceFieldSelector =
                serde_json::from_value(json!({"resource": resource_name, "divisor": divisor})).unwrap();
            resource(&pod, own, &selector, &node())
        };
        assert_eq!(ask("limits.cpu", "0").as_deref(), Ok("2"));
        assert_eq!(ask("limits.cpu", "1m").as_deref(), Ok("1500"));
        assert_eq!(ask("requests.memory", "1Mi").as_deref(), Ok("100"));
        assert_eq!(ask("limits.memory", "1Mi").as_deref(), Ok("1024"), "what the node has");
        assert_eq!(ask("requests.cpu", "1").as_deref(), Ok("0"));
        assert!(ask("limits.disks", "1").unwrap_err().contains("unsupported container resource"));
    }
}
