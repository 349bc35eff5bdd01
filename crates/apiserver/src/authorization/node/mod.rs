//! The Node authorizer: a kubelet may do what it needs for its own node and the pods on it, and nothing for others.
//!
//! The decision is a pure function over an index (`graph.rs`) that follows the store. What kubelets may do alike is the
//! stock role `system:node`; what they create, and what they write into it, is for the NodeRestriction admission plug-in.

mod graph;
mod references;

use super::{Attributes, On, PolicyRule, ResourceAttributes};
use crate::facts::BOOTSTRAP;
use crate::following::Following;
use crate::request::Identity;
use crate::request::identity::{NODE_PREFIX, NODES};
use graph::{Graph, Vertex};
pub(crate) use references::{MIRROR, is_mirror};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use windlass_schema::selector::Fields;
use windlass_store::Store;

/// Where nodes keep their leases.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";

/// What every node may do, as the first role of that name says.
static RULES: LazyLock<Vec<PolicyRule>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Role {
        rules: Vec<PolicyRule>,
    }
    let line = BOOTSTRAP
        .lines()
        .find_map(|line| line.strip_prefix("rbac.authorization.k8s.io/clusterroles\t\tsystem:node\t"));
    let text = line.and_then(|line| line.split_once('\t')).map(|(_, text)| text);
    let role = text.and_then(|text| serde_json::from_str::<Role>(text).ok());
    role.expect("the facts are part of the crate").rules
});

/// What the authorizer says; why not, if there is more to say.
type Verdict = Result<(), String>;

/// Decides what kubelets may do.
pub(crate) struct NodeAuthorizer(Following<Graph>);

/// Whose kubelet somebody is: none for those who are none, and an empty name for one that does not say.
pub(crate) fn node_of(identity: &Identity) -> Option<&str> {
    let name = identity.user.strip_prefix(NODE_PREFIX)?;
    identity.groups.iter().any(|group| group == NODES).then_some(name)
}

/// Whether a pod names objects of these kinds, wherever in it.
pub(crate) struct PodNames {
    pub(crate) secrets: bool,
    pub(crate) config_maps: bool,
}

pub(crate) fn pod_names(pod: &Value) -> PodNames {
    let used = references::used_by(pod);
    let any = |vertex: Vertex| used.iter().any(|(kind, _)| *kind == vertex);
    PodNames { secrets: any(Vertex::Secret), config_maps: any(Vertex::ConfigMap) }
}

impl NodeAuthorizer {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self(Following::new(store))
    }

    /// Whether a kubelet may do something; none if it is not one who asks.
    pub(crate) fn authorize(&self, asked: &Attributes<'_>) -> Option<Verdict> {
        let node = node_of(asked.identity)?;
        if node.is_empty() {
            return Some(Err(format!("unknown node for user {:?}", asked.identity.user)));
        }
        let on = match &asked.on {
            On::Resource(on) => on,
            On::Path(_) => return Some(by_rules(asked)),
        };
        let request = NodeRequest { authorizer: self, node, verb: asked.verb, on };
        Some(match (on.group, on.resource) {
            ("", "secrets") => request.read(Vertex::Secret),
            ("", "configmaps") => request.read(Vertex::ConfigMap),
            ("", "persistentvolumeclaims") if on.subresource == "status" => {
                request.update_status(Vertex::Claim)
            }
            ("", "persistentvolumeclaims") => request.get(Vertex::Claim),
            ("", "persistentvolumes") => request.get(Vertex::Volume),
            ("resource.k8s.io", "resourceclaims") => request.get(Vertex::ResourceClaim),
            ("storage.k8s.io", "volumeattachments") => request.get(Vertex::VolumeAttachment),
            ("", "serviceaccounts") => request.service_account(),
            ("coordination.k8s.io", "leases") => request.lease(),
            ("storage.k8s.io", "csinodes") => request.csi_node(),
            ("resource.k8s.io", "resourceslices") => request.resource_slice(),
            ("", "nodes") => request.node(),
            ("", "pods") => request.pod(),
            _ => by_rules(asked),
        })
    }
}

fn by_rules(asked: &Attributes<'_>) -> Verdict {
    match RULES.iter().any(|rule| rule.allows(asked)) {
        true => Ok(()),
        false => Err(String::new()),
    }
}

fn refused(why: &str) -> Verdict {
    Err(why.to_owned())
}

/// What a kubelet wants to do to an object.
struct NodeRequest<'a> {
    authorizer: &'a NodeAuthorizer,
    node: &'a str,
    verb: &'a str,
    on: &'a ResourceAttributes<'a>,
}

impl NodeRequest<'_> {
    /// Whether the object belongs to the node.
    fn related(&self, vertex: Vertex) -> Verdict {
        if self.on.name.is_empty() {
            return refused("No Object name found");
        }
        let graph = self.authorizer.0.current();
        match graph.leads_to(self.node, vertex, self.on.namespace, self.on.name) {
            true => Ok(()),
            false => Err(format!("no relationship found between node '{}' and this object", self.node)),
        }
    }

    fn get(&self, vertex: Vertex) -> Verdict {
        match (self.verb, self.on.subresource) {
            ("get", "") => self.related(vertex),
            ("get", _) => refused("cannot get subresource"),
            _ => refused("can only get individual resources of this type"),
        }
    }

    fn read(&self, vertex: Vertex) -> Verdict {
        if !matches!(self.verb, "get" | "list" | "watch") {
            return refused("can only read resources of this type");
        }
        if !self.on.subresource.is_empty() {
            return refused("cannot read subresource");
        }
        if self.on.namespace.is_empty() {
            return refused("can only read namespaced object of this type");
        }
        self.related(vertex)
    }

    fn update_status(&self, vertex: Vertex) -> Verdict {
        match self.verb {
            "update" | "patch" => self.related(vertex),
            _ => refused("can only get/update/patch this type"),
        }
    }

    fn service_account(&self) -> Verdict {
        match (self.verb, self.on.subresource) {
            ("get", "") => self.read(Vertex::ServiceAccount),
            ("create", _) if self.on.name.is_empty() => {
                refused("can only create tokens for individual service accounts")
            }
            ("create", "token") => self.related(Vertex::ServiceAccount),
            ("create", _) => refused("can only create token subresource of serviceaccount"),
            _ => refused("can only create tokens for individual service accounts"),
        }
    }

    /// Whether it is about an object of the node's own name; nobody knows the name of what is created.
    fn is_own(&self) -> bool {
        self.verb == "create" || self.on.name == self.node
    }

    fn lease(&self) -> Verdict {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return refused("can only get, create, update, patch, or delete a node lease");
        }
        if self.on.namespace != NODE_LEASES {
            return Err(format!("can only access leases in the {NODE_LEASES:?} system namespace"));
        }
        match self.is_own() {
            true => Ok(()),
            false => refused("can only access node lease with the same name as the requesting node"),
        }
    }

    fn csi_node(&self) -> Verdict {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return refused("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.on.subresource.is_empty() {
            return refused("cannot authorize CSINode subresources");
        }
        match self.is_own() {
            true => Ok(()),
            false => refused("can only access CSINode with the same name as the requesting node"),
        }
    }

    fn resource_slice(&self) -> Verdict {
        if !self.on.subresource.is_empty() {
            return refused("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(Vertex::ResourceSlice),
            "watch" | "list" | "deletecollection" if self.selects("spec.nodeName") => Ok(()),
            "watch" | "list" | "deletecollection" => {
                refused("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => refused(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, \
                 deletecollection",
            ),
        }
    }

    fn node(&self) -> Verdict {
        match (self.on.subresource, self.verb, self.on.name) {
            ("", "create" | "update" | "patch", _) | ("status", "update" | "patch", _) => Ok(()),
            ("", "get" | "list" | "watch", name) if name == self.node => Ok(()),
            ("", "get" | "list" | "watch", "") => {
                Err(format!("node '{}' cannot read all nodes, only its own Node object", self.node))
            }
            ("", "get" | "list" | "watch", name) => {
                Err(format!("node '{}' cannot read '{name}', only its own Node object", self.node))
            }
            _ => refused(""),
        }
    }

    fn pod(&self) -> Verdict {
        match (self.on.subresource, self.verb) {
            ("", "get") => self.get(Vertex::Pod),
            ("", "list" | "watch") if self.selects("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if !self.on.name.is_empty() => self.related(Vertex::Pod),
            ("", "list" | "watch") => refused("can only list/watch pods with spec.nodeName field selector"),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
            _ => refused(""),
        }
    }

    /// Whether only what is of the node is selected.
    fn selects(&self, field: &str) -> bool {
        Fields::parse(self.on.field_selector).is_ok_and(|fields| fields.exact(field) == Some(self.node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_clock::Clock;
    use windlass_store::{Body, Change, Key, Options};

    struct World {
        store: Arc<Store>,
        authorizer: NodeAuthorizer,
    }

    impl World {
        async fn new(objects: &[(&str, &str, &str, Value)]) -> Self {
            let store = Store::new(Options::default(), Clock::real());
            for (resource, namespace, name, object) in objects {
                let mut object = object.clone();
                object["metadata"]["name"] = json!(name);
                object["metadata"]["namespace"] = json!(namespace);
                let body = Body::encode(&object, Vec::new());
                store
                    .commit(Change::Create { key: Key::new(*resource, *namespace, *name), body })
                    .await
                    .unwrap();
            }
            Self { authorizer: NodeAuthorizer::new(store.clone()), store }
        }

        fn asks(&self, verb: &str, on: ResourceAttributes<'_>) -> Verdict {
            let identity = Identity::node("n1");
            let asked = Attributes { identity: &identity, verb, on: On::Resource(on) };
            self.authorizer.authorize(&asked).unwrap()
        }

        fn gets(&self, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
            let on = ResourceAttributes { group, resource, namespace, name, ..ResourceAttributes::default() };
            self.asks("get", on).is_ok()
        }
    }

    fn pod(node: &str) -> Value {
        json!({"spec": {"nodeName": node, "serviceAccountName": "robot", "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}],
            "envFrom": [{"configMapRef": {"name": "settings"}}]}],
        "volumes": [
            {"name": "a", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "ca"}}]}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {}},
        ]}})
    }

    #[tokio::test]
    async fn a_node_reads_what_its_pods_use() {
        let volume = json!({"spec": {"claimRef": {"namespace": "shop", "name": "data"},
            "csi": {"nodeStageSecretRef": {"namespace": "storage", "name": "stage"},
                "controllerPublishSecretRef": {"namespace": "storage", "name": "publish"}}}});
        let world = World::new(&[
            ("pods", "shop", "mine", pod("n1")),
            ("pods", "other", "theirs", pod("n2")),
            ("persistentvolumes", "", "pv", volume),
            ("storage.k8s.io/volumeattachments", "", "va", json!({"spec": {"nodeName": "n1"}})),
        ])
        .await;
        for secret in ["pull", "env", "projected"] {
            assert!(world.gets("", "secrets", "shop", secret), "{secret}");
            assert!(!world.gets("", "secrets", "other", secret), "{secret}");
        }
        for (group, resource, namespace, name) in [
            ("", "configmaps", "shop", "settings"),
            ("", "configmaps", "shop", "ca"),
            ("", "persistentvolumeclaims", "shop", "data"),
            ("", "persistentvolumeclaims", "shop", "mine-scratch"),
            ("", "persistentvolumes", "", "pv"),
            ("", "secrets", "storage", "stage"),
            ("", "serviceaccounts", "shop", "robot"),
            ("", "pods", "shop", "mine"),
            ("storage.k8s.io", "volumeattachments", "", "va"),
        ] {
            assert!(world.gets(group, resource, namespace, name), "{resource} {name}");
        }
        for (resource, namespace, name) in
            [("secrets", "storage", "publish"), ("secrets", "shop", "another"), ("pods", "other", "theirs")]
        {
            assert!(!world.gets("", resource, namespace, name), "{resource} {name}");
        }
        let key = Key::new("pods", "shop", "mine");
        let expected = world.store.get(&key).unwrap().revision();
        world.store.commit(Change::Delete { key, expected }).await.unwrap();
        assert!(!world.gets("", "secrets", "shop", "pull"), "the pod is gone");
        assert!(!world.gets("", "persistentvolumes", "", "pv"));
    }

    #[tokio::test]
    async fn mirror_pods_give_no_rights() {
        let mut mirror = pod("n1");
        mirror["metadata"] = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
        let world = World::new(&[("pods", "shop", "mirror", mirror)]).await;
        assert!(world.gets("", "pods", "shop", "mirror"));
        assert!(!world.gets("", "secrets", "shop", "env"));
    }

    #[tokio::test]
    async fn a_node_lists_what_is_its_own() {
        let world = World::new(&[]).await;
        let pods = |field_selector: &'static str| ResourceAttributes {
            resource: "pods",
            field_selector,
            ..ResourceAttributes::default()
        };
        assert_eq!(world.asks("list", pods("spec.nodeName=n1")), Ok(()));
        assert_eq!(world.asks("watch", pods("status.phase!=Failed,spec.nodeName==n1")), Ok(()));
        let why = "can only list/watch pods with spec.nodeName field selector";
        for other in ["", "spec.nodeName=n2", "spec.nodeName!=n1"] {
            assert_eq!(world.asks("list", pods(other)), Err(why.to_owned()), "{other}");
        }
        let lease = |name: &'static str| ResourceAttributes {
            group: "coordination.k8s.io",
            resource: "leases",
            namespace: NODE_LEASES,
            name,
            ..ResourceAttributes::default()
        };
        assert_eq!(world.asks("update", lease("n1")), Ok(()));
        assert!(world.asks("update", lease("n2")).is_err());
        assert_eq!(world.asks("create", lease("")), Ok(()));
        let reviews = ResourceAttributes {
            group: "authentication.k8s.io",
            resource: "tokenreviews",
            ..ResourceAttributes::default()
        };
        assert_eq!(world.asks("create", reviews), Ok(()), "as the rules say");
    }

    #[test]
    fn only_members_of_the_group_are_nodes() {
        let mut identity = Identity { user: "system:node:n".into(), ..Identity::default() };
        assert_eq!(node_of(&identity), None);
        identity.groups = vec![NODES.into()];
        assert_eq!(node_of(&identity), Some("n"));
        identity.user = "jane".into();
        assert_eq!(node_of(&identity), None);
    }
}
