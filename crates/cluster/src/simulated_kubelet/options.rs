//! The options of a simulated kubelet.

use super::stages::Stage;
use std::collections::BTreeMap;

/// The node that a simulated kubelet registers, and how its pods behave where their annotations do not say.
///
/// ```
/// use windlass_cluster::simulated_kubelet::Options;
///
/// let options = Options::named("node-1").label("topology.kubernetes.io/zone", "a").capacity("cpu", "8");
/// assert_eq!(options.name(), "node-1");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<k8s_openapi::api::core::v1::Taint>,
    pub(super) capacity: BTreeMap<String, String>,
    pub(super) stages: Vec<Stage>,
}

/// The default capacity: enough for thousands of pods with requests.
const CAPACITY: [(&str, &str); 4] =
    [("cpu", "1024"), ("memory", "4Ti"), ("ephemeral-storage", "16Ti"), ("pods", "16000")];

impl Options {
    /// A node of this name, with capacity for thousands of pods.
    pub fn named(name: impl Into<String>) -> Self {
        let capacity = CAPACITY.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned()));
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            capacity: capacity.collect(),
            stages: Vec::new(),
        }
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Adds a taint, which the node is registered with.
    pub fn taint(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
        effect: impl Into<String>,
    ) -> Self {
        self.taints.push(k8s_openapi::api::core::v1::Taint {
            key: key.into(),
            value: Some(value.into()).filter(|value: &String| !value.is_empty()),
            effect: effect.into(),
            time_added: None,
        });
        self
    }

    /// Sets the capacity of a resource: `cpu`, `memory`, `pods`, or any other.
    pub fn capacity(mut self, resource: impl Into<String>, amount: impl Into<String>) -> Self {
        self.capacity.insert(resource.into(), amount.into());
        self
    }

    /// Sets the stages: the first that matches a pod applies, unless the pod's annotations say otherwise.
    pub fn stages(mut self, stages: Vec<Stage>) -> Self {
        self.stages = stages;
        self
    }
}
