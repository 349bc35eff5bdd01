//! Amounts of resources, and what a pod requests in all. Pure.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use windlass::quantity::{milli_value, value};

/// Amounts by resource name: CPU in millicores, everything else in units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources(pub BTreeMap<String, i128>);

impl Resources {
    /// From a list of quantities, such as `requests` or `allocatable`. Invalid quantities are left out.
    pub fn of(quantities: Option<&BTreeMap<String, Quantity>>) -> Self {
        let amount = |name: &String, quantity: &Quantity| match name.as_str() {
            "cpu" => milli_value(quantity),
            _ => value(quantity),
        };
        let all = quantities.into_iter().flatten();
        Self(
            all.filter_map(|(name, quantity)| Some((name.clone(), amount(name, quantity)?.into()))).collect(),
        )
    }

    /// The amount of a resource; 0 if it is not listed.
    pub fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds, resource by resource.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_insert(0) += amount;
        }
    }

    /// Subtracts, resource by resource.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_insert(0) -= amount;
        }
    }

    /// Takes the maximum, resource by resource.
    fn max(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = (*own).max(*amount);
        }
    }
}

/// What a pod requests at its peak: its main containers and sidecars together, or an init container with the sidecars started
/// before it, whichever is more; plus the pod's overhead. Pod-level requests replace the sum where they are set.
pub fn pod_requests(spec: &PodSpec) -> Resources {
    let of = |container: &Container| {
        Resources::of(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
    };
    let mut total = Resources::default();
    spec.containers.iter().for_each(|container| total.add(&of(container)));
    let (mut sidecars, mut peak) = (Resources::default(), Resources::default());
    for container in spec.init_containers.iter().flatten() {
        if crate::restart_policy::is_sidecar(container) {
            sidecars.add(&of(container));
            peak.max(&sidecars);
        } else {
            let mut all = of(container);
            all.add(&sidecars);
            peak.max(&all);
        }
    }
    total.add(&sidecars);
    total.max(&peak);
    let pod_level = Resources::of(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
    total.0.extend(pod_level.0);
    total.add(&Resources::of(spec.overhead.as_ref()));
    total.0.retain(|_, amount| *amount != 0);
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_requests_what_it_needs_at_its_peak() {
        let asks = |cpu: &str| serde_json::json!({"requests": {"cpu": cpu}});
        let spec = serde_json::from_value(serde_json::json!({
            "initContainers": [
                {"name": "side", "restartPolicy": "Always", "resources": asks("100m")},
                {"name": "init", "resources": asks("2")},
            ],
            "containers": [{"name": "a", "resources": asks("500m")}, {"name": "b", "resources": asks("300m")}],
            "overhead": {"cpu": "50m"},
        }))
        .unwrap();
        assert_eq!(pod_requests(&spec).get("cpu"), 2150, "the init container, with the sidecar before it");
    }
}
