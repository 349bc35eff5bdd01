//! ClusterRoles for users, by kind; nothing binds them.

use super::Manifest;
use crate::description::DescribedKind;
use serde_json::{Value, json};

const VIEW: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const ALL: &[&str] = &["*"];

/// Each is added to the cluster role of its name that a stock cluster has, which is how a namespace's admins get it.
pub(super) fn roles(kind: &DescribedKind<'_>) -> Vec<Manifest> {
    let role = |who: &str, adds_to: &str, verbs: &[&str]| {
        let name = format!("{}-{who}-role", kind.kind.to_lowercase());
        let to = format!("rbac.authorization.k8s.io/aggregate-to-{adds_to}");
        let object: Value = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name, "labels": { to: "true", "app.kubernetes.io/managed-by": "windlass" } },
            "rules": [
                { "apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs },
                { "apiGroups": [kind.group], "resources": [format!("{}/status", kind.plural)], "verbs": ["get"] },
            ],
        });
        Manifest::aside(format!("rbac/{}_{who}_role.yaml", kind.kind.to_lowercase()), vec![object])
    };
    vec![role("admin", "admin", ALL), role("editor", "edit", EDIT), role("viewer", "view", VIEW)]
}
