//! Role-based access control: the stored roles and bindings decide.
//!
//! The decision is a pure function over an index (`policy.rs`) that follows the store, so that a grant or its withdrawal
//! counts from the next request on.

mod escalation;
mod policy;
mod rule;

pub(crate) use escalation::Grant;
pub(crate) use policy::{RoleRef, Source, Unresolved};
pub(crate) use rule::PolicyRule;

use super::Attributes;
use crate::following::{Following, Index};
use crate::request::Identity;
use policy::{Binding, Policy};
use serde::Deserialize;
use std::sync::Arc;
use windlass_store::{Entry, Store};

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// The roles and bindings of a store.
pub(crate) struct Rbac(Following<Policy>);

impl Rbac {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self(Following::new(store))
    }

    /// Which binding allows an action; if none does, which roles that could are missing.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> Result<Source, Vec<Unresolved>> {
        self.0.current().allows(asked)
    }

    /// All rules that count for `identity` in `namespace`, and what could not be found.
    pub(crate) fn rules_for(
        &self,
        identity: &Identity,
        namespace: &str,
    ) -> (Vec<PolicyRule>, Vec<Unresolved>) {
        self.0.current().rules_for(identity, namespace)
    }

    /// The rules of the role that a binding in `namespace` names.
    pub(crate) fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Vec<PolicyRule>, Unresolved> {
        self.0.current().rules_of(role, namespace).map(<[_]>::to_vec)
    }
}

impl Index for Policy {
    const RESOURCES: &'static [&'static str] = &[
        "rbac.authorization.k8s.io/clusterroles",
        "rbac.authorization.k8s.io/roles",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/rolebindings",
    ];

    fn take(&mut self, entry: &Entry, gone: bool) {
        #[derive(Deserialize)]
        struct Role {
            #[serde(default)]
            rules: Option<Vec<PolicyRule>>,
        }
        let key = entry.key();
        let (namespace, name) = (&*key.namespace, &*key.name);
        let is_role = key.resource.ends_with("roles");
        match (is_role, gone) {
            (true, true) => self.remove_role(namespace, name),
            (false, true) => self.remove_binding(namespace, name),
            (true, false) => match serde_json::from_slice::<Role>(&entry.json()) {
                Ok(role) => self.put_role(namespace, name, role.rules.unwrap_or_default()),
                Err(_) => self.remove_role(namespace, name),
            },
            (false, false) => match Binding::read(namespace, name, &entry.json()) {
                Some(binding) => self.put_binding(binding),
                None => self.remove_binding(namespace, name),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorization::{On, ResourceAttributes};
    use serde_json::{Value, json};
    use windlass_clock::Clock;
    use windlass_store::{Body, Change, Key, Options, Revision};

    struct World {
        store: Arc<Store>,
        rbac: Rbac,
    }

    impl World {
        fn new() -> Self {
            let store = Store::new(Options { history_events: 8, ..Options::default() }, Clock::real());
            Self { rbac: Rbac::new(store.clone()), store }
        }

        async fn put(&self, resource: &str, namespace: &str, name: &str, fields: Value) {
            let mut object = fields;
            object["metadata"] = json!({"name": name, "uid": "u"});
            let key = Key::new(format!("{GROUP}/{resource}"), namespace, name);
            let body = Body::encode(&object, Vec::new());
            let change = match self.store.get(&key) {
                Some(entry) => Change::Update { key, expected: entry.revision(), body },
                None => Change::Create { key, body },
            };
            self.store.commit(change).await.unwrap();
        }

        async fn remove(&self, resource: &str, namespace: &str, name: &str) {
            let key = Key::new(format!("{GROUP}/{resource}"), namespace, name);
            let expected: Revision = self.store.get(&key).unwrap().revision();
            self.store.commit(Change::Delete { key, expected }).await.unwrap();
        }

        /// May `user` get pods in `namespace`, and by which binding?
        fn allowed(&self, user: &str, namespace: &str) -> Option<String> {
            let on = ResourceAttributes { resource: "pods", namespace, ..ResourceAttributes::default() };
            let identity = Identity::user(user);
            let asked = Attributes { identity: &identity, verb: "get", on: On::Resource(on) };
            self.rbac.allows(&asked).ok().map(|source| source.to_string())
        }
    }

    fn pods() -> Value {
        json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    }

    fn bound(kind: &str, role: &str, subject: Value) -> Value {
        json!({"roleRef": {"kind": kind, "name": role}, "subjects": [subject]})
    }

    #[tokio::test]
    async fn a_grant_counts_at_once_and_so_does_its_withdrawal() {
        let world = World::new();
        let jane = json!({"kind": "User", "name": "jane"});
        assert_eq!(world.allowed("jane", "n"), None);
        world.put("rolebindings", "n", "b", bound("Role", "r", jane.clone())).await;
        assert_eq!(world.allowed("jane", "n"), None, "there is no such role yet");
        world.put("roles", "n", "r", pods()).await;
        let by = r#"RoleBinding "b/n" of Role "r" to User "jane""#;
        assert_eq!(world.allowed("jane", "n").as_deref(), Some(by));
        assert_eq!(world.allowed("jane", "other"), None);
        assert_eq!(world.allowed("jane", ""), None);
        world.put("roles", "n", "r", json!({"rules": null})).await;
        assert_eq!(world.allowed("jane", "n"), None);
        world.put("clusterroles", "", "r", pods()).await;
        world.put("clusterrolebindings", "", "b", bound("ClusterRole", "r", jane)).await;
        let by = r#"ClusterRoleBinding "b" of ClusterRole "r" to User "jane""#;
        assert_eq!(world.allowed("jane", "").as_deref(), Some(by));
        world.remove("clusterrolebindings", "", "b").await;
        assert_eq!(world.allowed("jane", ""), None);
    }

    #[tokio::test]
    async fn a_binding_that_changes_forgets_whom_it_named() {
        let world = World::new();
        world.put("clusterroles", "", "r", pods()).await;
        let account = json!({"kind": "ServiceAccount", "name": "sa"});
        world.put("rolebindings", "n", "b", bound("ClusterRole", "r", account)).await;
        let by = r#"RoleBinding "b/n" of ClusterRole "r" to ServiceAccount "sa/n""#;
        assert_eq!(world.allowed("system:serviceaccount:n:sa", "n").as_deref(), Some(by));
        let group = json!({"kind": "Group", "name": "system:authenticated"});
        world.put("rolebindings", "n", "b", bound("ClusterRole", "r", group)).await;
        assert!(world.allowed("anyone", "n").is_some());
        world.put("rolebindings", "n", "b", json!({"roleRef": {"kind": "ClusterRole", "name": "r"}})).await;
        assert_eq!(world.allowed("anyone", "n"), None);
        assert_eq!(world.allowed("system:serviceaccount:n:sa", "n"), None);
    }

    #[tokio::test]
    async fn who_falls_behind_the_history_reads_everything_anew() {
        let world = World::new();
        assert_eq!(world.allowed("jane", "n"), None);
        for number in 0..50 {
            let user = json!({"kind": "User", "name": format!("user-{number}")});
            world.put("rolebindings", "n", &format!("b{number}"), bound("Role", "r", user)).await;
        }
        world.put("roles", "n", "r", pods()).await;
        world.store.compact(world.store.revision());
        assert!((0..50).all(|number| world.allowed(&format!("user-{number}"), "n").is_some()));
        assert_eq!(world.allowed("user-50", "n"), None);
    }
}
