//! Nodes that are being emptied: a primary leaves them before its pod is evicted, and none is elected there.

use crate::api::v1alpha1::SampleDBInstanceStatus;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where the instances of a database are.
#[derive(Debug, Default)]
pub(super) struct Nodes<'a> {
    /// Instances on cordoned nodes, with these.
    cordoned: Vec<(&'a str, &'a str)>,
    /// Instances whose pods are being deleted.
    terminating: BTreeSet<&'a str>,
    /// Instances on nodes that take pods, with the UIDs of their pods.
    staying: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Nodes<'a> {
    pub(super) fn of(pods: &'a [Arc<Pod>], nodes: &[Arc<Node>]) -> Self {
        let mut places = Self::default();
        for pod in pods {
            let Some(instance) = pod.metadata.name.as_deref() else { continue };
            if pod.metadata.deletion_timestamp.is_some() {
                places.terminating.insert(instance);
            }
            let Some(name) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else { continue };
            // Of one that is not known nothing is concluded.
            match nodes.iter().find(|node| node.name_any() == name) {
                Some(node) if is_cordoned(node) => places.cordoned.push((instance, name)),
                Some(_) if !places.terminating.contains(instance) => {
                    places.staying.insert(instance, pod.metadata.uid.as_deref());
                }
                _ => {}
            }
        }
        places
    }

    /// The cordoned node that an instance is on.
    pub(super) fn cordoned(&self, instance: &str) -> Option<&'a str> {
        self.cordoned.iter().find(|(one, _)| *one == instance).map(|(_, node)| *node)
    }

    /// Whether the pod of an instance from which this was reported is on a node that takes pods, and is not about to end.
    pub(super) fn stays(&self, instance: &str, report: &SampleDBInstanceStatus) -> bool {
        self.staying.get(instance).is_some_and(|uid| *uid == report.pod_uid.as_deref())
    }

    /// Instances that are about to end.
    pub(super) fn draining(&self) -> BTreeSet<&'a str> {
        self.cordoned.iter().map(|(instance, _)| *instance).chain(self.terminating.iter().copied()).collect()
    }
}

fn is_cordoned(node: &Node) -> bool {
    let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    unschedulable || node.metadata.deletion_timestamp.is_some()
}

/// Whether two versions of a node differ in what is decided by.
pub fn node_differs(one: &Node, other: &Node) -> bool {
    is_cordoned(one) != is_cordoned(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, node: Option<&str>, deleted: bool) -> Arc<Pod> {
        let deletion = deleted.then_some("2026-01-01T00:00:00Z");
        let pod = json!({
            "metadata": {"name": name, "uid": name, "deletionTimestamp": deletion},
            "spec": {"nodeName": node, "containers": []},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn node(name: &str, spec: Value) -> Arc<Node> {
        Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
    }

    #[test]
    fn an_instance_leaves_with_its_pod_or_its_node_and_stays_where_pods_may_be() {
        let pods = [
            pod("db-0", Some("a"), false),
            pod("db-1", Some("b"), false),
            pod("db-2", Some("b"), true),
            pod("db-3", Some("unknown"), false),
            pod("db-4", None, false),
        ];
        let nodes = [node("a", json!({"unschedulable": true})), node("b", json!({}))];
        let places = Nodes::of(&pods, &nodes);
        assert_eq!(places.draining(), BTreeSet::from(["db-0", "db-2"]));
        assert_eq!((places.cordoned("db-0"), places.cordoned("db-2")), (Some("a"), None));
        let reported =
            |uid: &str| SampleDBInstanceStatus { pod_uid: Some(uid.to_owned()), ..Default::default() };
        let stays = |name: &&str| places.stays(name, &reported(name));
        let staying: Vec<&str> = ["db-0", "db-1", "db-2", "db-3", "db-4"].into_iter().filter(stays).collect();
        assert_eq!(staying, ["db-1"]);
        assert!(!places.stays("db-1", &reported("the pod before")));
    }

    #[test]
    fn of_a_node_only_its_cordon_matters() {
        let plain = node("a", json!({}));
        assert!(!node_differs(&plain, &node("a", json!({"podCIDR": "10.0.0.0/24", "unschedulable": false}))));
        assert!(node_differs(&plain, &node("a", json!({"unschedulable": true}))));
    }
}
