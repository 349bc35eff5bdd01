//! Nodes: a kubelet registers its own, and does not steer pods to itself by labels or taints.

use super::equality::same;
use super::{Action, NodeWrite};
use crate::object::at;
use crate::status::Status;
use serde_json::Value;
use std::collections::BTreeSet;

/// Labels of Kubernetes that kubelets may set.
const KUBELET_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// And whole domains of them.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

impl NodeWrite<'_> {
    pub(super) fn node(&self) -> Result<(), Status> {
        let (node, name) = (self.node, self.name());
        if name != node {
            return self.refuse(format!("node {node:?} is not allowed to modify node {name:?}"));
        }
        match self.action {
            Action::Create(new) => self.new_node(new),
            Action::Update { new, old } => self.changed_node(new, old),
            Action::Delete(_) => Ok(()),
        }
    }

    fn new_node(&self, new: &Value) -> Result<(), Status> {
        let node = self.node;
        if at(new, CONFIG_SOURCE).is_some_and(|source| !source.is_null()) {
            return self
                .refuse(format!("node {node:?} is not allowed to create pods with a non-nil configSource"));
        }
        match forbidden_labels(new, None) {
            labels if labels.is_empty() => Ok(()),
            labels => {
                self.refuse(format!("node {node:?} is not allowed to set the following labels: {labels}"))
            }
        }
    }

    fn changed_node(&self, new: &Value, old: &Value) -> Result<(), Status> {
        let node = self.node;
        let kept = |path: &[&str]| same(at(new, path), at(old, path));
        if at(new, CONFIG_SOURCE).is_some_and(|source| !source.is_null()) && !kept(CONFIG_SOURCE) {
            let why =
                format!("node {node:?} is not allowed to update configSource to a new non-nil configSource");
            return self.refuse(why);
        }
        if !kept(&["spec", "taints"]) {
            return self.refuse(format!("node {node:?} is not allowed to modify taints"));
        }
        if !kept(&["metadata", "ownerReferences"]) {
            return self.refuse(format!("node {node:?} is not allowed to modify ownerReferences"));
        }
        match forbidden_labels(new, Some(old)) {
            labels if labels.is_empty() => Ok(()),
            labels => self.refuse(format!("is not allowed to modify labels: {labels}")),
        }
    }
}

const CONFIG_SOURCE: &[&str] = &["spec", "configSource"];

/// The labels that differ and are not the kubelet's to set, in order.
fn forbidden_labels(new: &Value, old: Option<&Value>) -> String {
    let labels = |object: &Value| at(object, &["metadata", "labels"])?.as_object().cloned();
    let (new, old) = (labels(new).unwrap_or_default(), old.and_then(labels).unwrap_or_default());
    let changed = new.keys().chain(old.keys()).filter(|key| new.get(*key) != old.get(*key));
    let forbidden: BTreeSet<&str> = changed.map(String::as_str).filter(|key| !is_free(key)).collect();
    forbidden.into_iter().collect::<Vec<_>>().join(", ")
}

/// Whether kubelets may set a label: any that does not belong to Kubernetes, and some that do.
fn is_free(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let within = |parent: &str| {
        domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
    };
    if within("node-restriction.kubernetes.io") {
        return false;
    }
    let of_kubernetes = within("kubernetes.io") || within("k8s.io");
    !of_kubernetes || KUBELET_LABELS.contains(&label) || KUBELET_DOMAINS.into_iter().any(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_of_kubernetes_are_not_free() {
        for free in
            ["app", "example.com/a", "kubernetes.io/os", "node.kubernetes.io/x", "a.kubelet.kubernetes.io/x"]
        {
            assert!(is_free(free), "{free}");
        }
        for taken in [
            "kubernetes.io/x",
            "a.k8s.io/x",
            "node-role.kubernetes.io/master",
            "node-restriction.kubernetes.io/x",
            "a.node-restriction.kubernetes.io/x",
        ] {
            assert!(!is_free(taken), "{taken}");
        }
        assert!(is_free("notk8s.io/x"));
    }

    #[test]
    fn only_what_changed_is_forbidden() {
        let node = |labels: Value| json!({"metadata": {"labels": labels}});
        let old = node(json!({"k8s.io/b": "1", "k8s.io/a": "1", "k8s.io/kept": "1", "app": "x"}));
        let new = node(json!({"k8s.io/b": "2", "k8s.io/kept": "1", "app": "y"}));
        assert_eq!(forbidden_labels(&new, Some(&old)), "k8s.io/a, k8s.io/b");
        assert_eq!(forbidden_labels(&new, None), "k8s.io/b, k8s.io/kept");
    }
}
