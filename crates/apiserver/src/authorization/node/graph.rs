//! Which objects lead to which nodes: by the pods there, by the claims and volumes of these, or by their own words.

use super::references::{pod_references, volume_secrets};
use crate::following::Index;
use crate::object::text;
use std::collections::{BTreeMap, HashMap};
use windlass_store::Entry;

/// What can lead to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Vertex {
    Pod,
    Secret,
    ConfigMap,
    Claim,
    Volume,
    ServiceAccount,
    ResourceClaim,
    VolumeAttachment,
    ResourceSlice,
}

/// A namespace and a name.
pub(super) type Name = (String, String);

/// The objects, and where they lead.
#[derive(Default)]
pub(super) struct Graph {
    /// The node of each pod, and what the pod uses.
    pods: HashMap<Name, (String, Vec<(Vertex, String)>)>,
    /// How many pods of each node use something.
    used: HashMap<(Vertex, String, String), BTreeMap<String, usize>>,
    /// The claim of each volume, and the Secrets that nodes need for it.
    volumes: HashMap<String, (Name, Vec<Name>)>,
    /// The node that others name themselves.
    attachments: HashMap<String, String>,
    slices: HashMap<String, String>,
}

const PODS: &str = "pods";
const VOLUMES: &str = "persistentvolumes";
const ATTACHMENTS: &str = "storage.k8s.io/volumeattachments";
const SLICES: &str = "resource.k8s.io/resourceslices";

impl Index for Graph {
    const RESOURCES: &'static [&'static str] = &[PODS, VOLUMES, ATTACHMENTS, SLICES];

    fn take(&mut self, entry: &Entry, gone: bool) {
        let key = entry.key();
        let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
        let object = if gone { None } else { Some(entry.value()) };
        match &*key.resource {
            PODS => {
                self.remove_pod(&(namespace.clone(), name.clone()));
                if let Some(pod) = object.filter(|pod| !text(pod, &["spec", "nodeName"]).is_empty()) {
                    let node = text(&pod, &["spec", "nodeName"]).to_owned();
                    self.add_pod((namespace, name), node, pod_references(&pod));
                }
            }
            VOLUMES => {
                self.volumes.remove(&name);
                let claimed = object.filter(|volume| !text(volume, &["spec", "claimRef", "name"]).is_empty());
                self.volumes.extend(claimed.map(|volume| {
                    let part = |part: &str| text(&volume, &["spec", "claimRef", part]).to_owned();
                    (name, ((part("namespace"), part("name")), volume_secrets(&volume)))
                }));
            }
            resource => {
                let kept = if resource == ATTACHMENTS { &mut self.attachments } else { &mut self.slices };
                kept.remove(&name);
                let node = object.map(|object| text(&object, &["spec", "nodeName"]).to_owned());
                kept.extend(node.filter(|node| !node.is_empty()).map(|node| (name, node)));
            }
        }
    }
}

impl Graph {
    fn add_pod(&mut self, pod: Name, node: String, uses: Vec<(Vertex, String)>) {
        for (vertex, name) in &uses {
            let nodes = self.used.entry((*vertex, pod.0.clone(), name.clone())).or_default();
            *nodes.entry(node.clone()).or_default() += 1;
        }
        self.pods.insert(pod, (node, uses));
    }

    fn remove_pod(&mut self, pod: &Name) {
        let Some((node, uses)) = self.pods.remove(pod) else { return };
        for (vertex, name) in uses {
            let key = (vertex, pod.0.clone(), name);
            let Some(nodes) = self.used.get_mut(&key) else { continue };
            if let Some(count) = nodes.get_mut(&node) {
                *count -= 1;
                if *count == 0 {
                    nodes.remove(&node);
                }
            }
            if nodes.is_empty() {
                self.used.remove(&key);
            }
        }
    }

    /// Whether an object leads to a node.
    pub(super) fn leads_to(&self, node: &str, vertex: Vertex, namespace: &str, name: &str) -> bool {
        let used = |vertex: Vertex, namespace: &str, name: &str| {
            let nodes = self.used.get(&(vertex, namespace.to_owned(), name.to_owned()));
            nodes.is_some_and(|nodes| nodes.contains_key(node))
        };
        let volume_used = |(claim, _): &(Name, Vec<Name>)| used(Vertex::Claim, &claim.0, &claim.1);
        match vertex {
            Vertex::Pod => {
                let pod = self.pods.get(&(namespace.to_owned(), name.to_owned()));
                pod.is_some_and(|(its_node, _)| its_node == node)
            }
            Vertex::Volume => self.volumes.get(name).is_some_and(volume_used),
            Vertex::VolumeAttachment => self.attachments.get(name).is_some_and(|its_node| its_node == node),
            Vertex::ResourceSlice => self.slices.get(name).is_some_and(|its_node| its_node == node),
            Vertex::Secret => {
                let of_volume = |volume: &&(Name, Vec<Name>)| {
                    volume
                        .1
                        .iter()
                        .any(|(its_namespace, its_name)| its_namespace == namespace && its_name == name)
                };
                used(vertex, namespace, name) || self.volumes.values().filter(of_volume).any(volume_used)
            }
            Vertex::ConfigMap | Vertex::Claim | Vertex::ServiceAccount | Vertex::ResourceClaim => {
                used(vertex, namespace, name)
            }
        }
    }
}
