//! A pod's quality of service class. Pure.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use windlass::quantity::milli_value;

/// `Guaranteed` if every container has limits for CPU and memory and requests that equal them; `BestEffort` if no container has
/// requests or limits for either; `Burstable` otherwise.
pub fn qos_class(spec: &PodSpec) -> &'static str {
    let all: Vec<&Container> = spec.init_containers.iter().flatten().chain(&spec.containers).collect();
    let of_pod = spec.resources.as_ref();
    let each: Vec<Option<&ResourceRequirements>> = match of_pod {
        Some(_) => vec![of_pod],
        None => all.iter().map(|container| container.resources.as_ref()).collect(),
    };
    let amount = |resources: Option<&ResourceRequirements>, limits: bool, name: &str| {
        let side = resources.and_then(|all| if limits { all.limits.as_ref() } else { all.requests.as_ref() });
        side.and_then(|side| side.get(name)).and_then(milli_value).filter(|amount| *amount > 0)
    };
    let says = |resources: Option<&ResourceRequirements>| {
        ["cpu", "memory"]
            .iter()
            .any(|name| amount(resources, true, name).or(amount(resources, false, name)).is_some())
    };
    if !each.iter().any(|resources| says(*resources)) {
        return "BestEffort";
    }
    let bound = |resources: Option<&ResourceRequirements>, name: &str| {
        let limit = amount(resources, true, name);
        limit.is_some() && amount(resources, false, name).or(limit) == limit
    };
    let guaranteed = each.iter().all(|resources| bound(*resources, "cpu") && bound(*resources, "memory"));
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_class_follows_from_the_resources() {
        let class = |resources: &[Value]| {
            let containers: Vec<Value> =
                resources.iter().map(|resources| json!({"name": "c", "resources": resources})).collect();
            qos_class(&serde_json::from_value(json!({"containers": containers})).unwrap())
        };
        let full = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}});
        assert_eq!(class(&[json!({})]), "BestEffort");
        assert_eq!(class(std::slice::from_ref(&full)), "Guaranteed");
        assert_eq!(class(&[full.clone(), json!({})]), "Burstable");
        assert_eq!(
            class(&[json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})]),
            "Burstable"
        );
        assert_eq!(class(&[json!({"requests": {"memory": "1Mi"}})]), "Burstable");
    }
}
