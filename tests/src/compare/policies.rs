//! Random roles, bindings and questions about them.

use super::Random;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The label of everything that a policy is made of.
pub const LABEL: &str = "windlass.test/policy";

/// Few enough words that rules and questions often meet.
const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "delete", "*", "use"];
const GROUPS: &[&str] = &["", "apps", "example.com", "*"];
const RESOURCES: &[&str] = &[
    "pods",
    "configmaps",
    "deployments",
    "*",
    "pods/log",
    "deployments/scale",
    "*/scale",
    "*/status",
    "pods/*",
];
const NAMES: &[&str] = &["a", "b", "*", ""];
const PATHS: &[&str] = &["/x", "/x/*", "/x/y", "/*", "*", "/x/y/z", "/healthz/*"];
const NAMESPACES: &[&str] = &["one", "two", "three"];
const USERS: &[&str] = &["ann", "bob", "system:serviceaccount:one:sa", "system:serviceaccount:two:sa"];
const USER_GROUPS: &[&str] = &["devs", "ops", "system:serviceaccounts:one"];

/// A random policy: objects in the order in which they are made, each with the collection that it belongs to. Names are
/// prefixed so that policies can be told apart; so are namespaces, users and groups.
pub struct Policies {
    random: Random,
    prefix: String,
}

impl Policies {
    /// Policies of this seed, whose names begin with `prefix`.
    pub fn new(seed: u64, prefix: impl Into<String>) -> Self {
        Self { random: Random::seeded(seed), prefix: prefix.into() }
    }

    fn pick(&mut self, from: &[&str]) -> String {
        from[self.random.below(from.len())].to_owned()
    }

    fn some(&mut self, from: &[&str], most: usize) -> Vec<String> {
        (0..=self.random.below(most)).map(|_| self.pick(from)).collect()
    }

    fn prefixed(&self, name: &str) -> String {
        // A service account's namespace is in its name.
        match name.strip_prefix("system:serviceaccount") {
            Some(rest) => {
                let parts: Vec<String> = rest.splitn(3, ':').map(str::to_owned).collect();
                let place = format!("{}-{}", self.prefix, parts.get(1).map_or("", String::as_str));
                match parts.get(2) {
                    Some(name) => format!("system:serviceaccount:{place}:{name}"),
                    None => format!("system:serviceaccounts:{place}"),
                }
            }
            None => format!("{}-{name}", self.prefix),
        }
    }

    /// The namespaces of the policy.
    pub fn namespaces(&self) -> Vec<String> {
        NAMESPACES.iter().map(|name| self.prefixed(name)).collect()
    }

    fn rule(&mut self) -> Value {
        if self.random.chance(15) {
            return json!({"verbs": self.some(VERBS, 2), "nonResourceURLs": self.some(PATHS, 2)});
        }
        let mut rule = json!({
            "verbs": self.some(VERBS, 3), "apiGroups": self.some(GROUPS, 2), "resources": self.some(RESOURCES, 3),
        });
        if self.random.chance(30) {
            let names: Vec<String> =
                self.some(NAMES, 2).into_iter().filter(|name| !name.is_empty()).collect();
            rule["resourceNames"] = json!(names);
        }
        rule
    }

    fn object(&self, kind: &str, name: &str, fields: Value) -> Value {
        let mut object = fields;
        object["kind"] = json!(kind);
        object["apiVersion"] = json!(format!("{GROUP}/v1"));
        object["metadata"] =
            json!({"name": format!("{}-{name}", self.prefix), "labels": {LABEL: self.prefix}});
        object
    }

    fn subject(&mut self) -> Value {
        match self.random.below(4) {
            0 => {
                let name = self.pick(USER_GROUPS);
                json!({"kind": "Group", "apiGroup": GROUP, "name": self.prefixed(&name)})
            }
            1 => {
                let namespace = self.pick(NAMESPACES);
                json!({"kind": "ServiceAccount", "name": "sa", "namespace": self.prefixed(&namespace)})
            }
            _ => {
                let name = self.pick(USERS);
                json!({"kind": "User", "apiGroup": GROUP, "name": self.prefixed(&name)})
            }
        }
    }

    /// The paths of collections and the objects to make in them.
    pub fn objects(&mut self) -> Vec<(String, Value)> {
        let root = format!("/apis/{GROUP}/v1");
        let mut objects = Vec::new();
        for number in 0..8 {
            let rules: Vec<Value> = (0..self.random.below(4)).map(|_| self.rule()).collect();
            let role = self.object("ClusterRole", &format!("c{number}"), json!({"rules": rules}));
            objects.push((format!("{root}/clusterroles"), role));
        }
        for number in 0..8 {
            let namespace = self.pick(NAMESPACES);
            let rules: Vec<Value> = (0..self.random.below(4)).map(|_| self.rule()).collect();
            // Paths are of the whole cluster.
            let rules: Vec<Value> =
                rules.into_iter().filter(|rule| rule["nonResourceURLs"].is_null()).collect();
            let role = self.object("Role", &format!("r{number}"), json!({"rules": rules}));
            objects.push((format!("{root}/namespaces/{}/roles", self.prefixed(&namespace)), role));
        }
        for number in 0..14 {
            let subjects: Vec<Value> = (0..1 + self.random.below(2)).map(|_| self.subject()).collect();
            let cluster = self.random.chance(40);
            // Some of these roles are in another namespace, or nowhere.
            let role = match cluster || self.random.chance(40) {
                true => ("ClusterRole", format!("{}-c{}", self.prefix, self.random.below(9))),
                false => ("Role", format!("{}-r{}", self.prefix, self.random.below(9))),
            };
            let fields =
                json!({"subjects": subjects, "roleRef": {"kind": role.0, "name": role.1, "apiGroup": GROUP}});
            let (kind, path) = match cluster {
                true => ("ClusterRoleBinding", format!("{root}/clusterrolebindings")),
                false => {
                    let namespace = self.pick(NAMESPACES);
                    let namespace = self.prefixed(&namespace);
                    ("RoleBinding", format!("{root}/namespaces/{namespace}/rolebindings"))
                }
            };
            objects.push((path, self.object(kind, &format!("b{number}"), fields)));
        }
        objects
    }

    /// The spec of a random SubjectAccessReview.
    pub fn question(&mut self) -> Value {
        let name = self.pick(USERS);
        let user = self.prefixed(&name);
        let mut spec = json!({"user": user});
        if self.random.chance(50) {
            let groups: Vec<String> = self.some(USER_GROUPS, 2);
            spec["groups"] = json!(groups.iter().map(|group| self.prefixed(group)).collect::<Vec<_>>());
        }
        if self.random.chance(12) {
            let path = ["/x", "/x/", "/x/y", "/x/y/z", "/healthz", "/healthz/ping", "/", "x", ""];
            spec["nonResourceAttributes"] = json!({"verb": self.pick(VERBS), "path": self.pick(&path)});
            return spec;
        }
        let resources = ["pods", "configmaps", "deployments", "secrets", "*", "pods/log"];
        let subresources = ["", "", "log", "scale", "status", "*"];
        let mut asked = json!({
            "verb": self.pick(VERBS), "group": self.pick(GROUPS), "resource": self.pick(&resources),
            "subresource": self.pick(&subresources), "name": self.pick(NAMES),
        });
        if self.random.chance(80) {
            let namespace = self.pick(NAMESPACES);
            asked["namespace"] = json!(self.prefixed(&namespace));
        }
        spec["resourceAttributes"] = asked;
        spec
    }
}
