//! The ConfigMaps and Secrets that a pod refers to.

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// ConfigMaps and Secrets of a pod's namespace, by name; one that is not in here does not exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct Objects {
    pub(crate) config_maps: BTreeMap<String, Arc<ConfigMap>>,
    pub(crate) secrets: BTreeMap<String, Arc<Secret>>,
}

impl Objects {
    /// A ConfigMap; `None` if it is optional and does not exist.
    pub(crate) fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<&ConfigMap>, String> {
        match self.config_maps.get(name) {
            None if optional != Some(true) => Err(format!("configmap {name:?} not found")),
            found => Ok(found.map(|found| &**found)),
        }
    }

    /// A Secret; `None` if it is optional and does not exist.
    pub(crate) fn secret(&self, name: &str, optional: Option<bool>) -> Result<Option<&Secret>, String> {
        match self.secrets.get(name) {
            None if optional != Some(true) => Err(format!("secret {name:?} not found")),
            found => Ok(found.map(|found| &**found)),
        }
    }
}

/// The names of the objects that a pod refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) config_maps: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<String>,
}

/// The objects that a pod refers to, in its volumes and in its containers' environment.
pub(crate) fn names(pod: &Pod) -> Names {
    let mut names = Names::default();
    let Some(spec) = &pod.spec else { return names };
    let ephemeral: Vec<Container> = super::ephemeral_containers::containers(spec).collect();
    for container in spec.init_containers.iter().flatten().chain(&spec.containers).chain(&ephemeral) {
        for from in container.env_from.iter().flatten() {
            names.config_maps.extend(from.config_map_ref.as_ref().map(|reference| reference.name.clone()));
            names.secrets.extend(from.secret_ref.as_ref().map(|reference| reference.name.clone()));
        }
        for from in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            names
                .config_maps
                .extend(from.config_map_key_ref.as_ref().map(|reference| reference.name.clone()));
            names.secrets.extend(from.secret_key_ref.as_ref().map(|reference| reference.name.clone()));
        }
    }
    for volume in spec.volumes.iter().flatten() {
        names.config_maps.extend(volume.config_map.as_ref().map(|source| source.name.clone()));
        names.secrets.extend(volume.secret.as_ref().and_then(|source| source.secret_name.clone()));
        let parts = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for part in parts {
            names.config_maps.extend(part.config_map.as_ref().map(|source| source.name.clone()));
            names.secrets.extend(part.secret.as_ref().map(|source| source.name.clone()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_reference_is_found() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "a"}}]}],
            "ephemeralContainers": [{"name": "e", "envFrom": [{"secretRef": {"name": "g"}}]}],
            "containers": [{"name": "c", "env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}}]}],
            "volumes": [
                {"name": "v", "configMap": {"name": "c"}},
                {"name": "w", "secret": {"secretName": "d"}},
                {"name": "x", "projected": {"sources": [{"configMap": {"name": "e"}}, {"secret": {"name": "f"}}]}},
            ],
        }}))
        .unwrap();
        let names = names(&pod);
        assert_eq!(Vec::from_iter(&names.config_maps), ["a", "c", "e"]);
        assert_eq!(Vec::from_iter(&names.secrets), ["b", "d", "f", "g"]);
    }
}
