//! Least-privilege RBAC, from what the operator watches and writes.

use super::{Manifest, Options, labels};
use crate::description::OperatorDescription;
use serde_json::{Value, json};

pub(super) fn of(name: &str, operator: &OperatorDescription, options: &Options) -> Vec<Manifest> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": name, "namespace": options.namespace, "labels": labels(name) },
    });
    let role = match operator.namespaces.as_slice() {
        [] => bound(name, name, None, &operator.rules, options),
        several => several
            .iter()
            .flat_map(|namespace| bound(name, name, Some(namespace), &operator.rules, options))
            .collect(),
    };
    let election = format!("{name}-election");
    vec![
        Manifest::new("rbac/account.yaml", vec![account]),
        Manifest::new("rbac/role.yaml", role),
        Manifest::new(
            "rbac/election.yaml",
            bound(&election, name, Some(&options.namespace), &operator.election_rules, options),
        ),
    ]
}

/// A role and what gives it to the operator's account: in one namespace, or in the whole cluster.
pub(super) fn bound(
    role: &str,
    account: &str,
    namespace: Option<&str>,
    rules: &[Value],
    options: &Options,
) -> Vec<Value> {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let mut metadata = json!({ "name": role, "labels": labels(account) });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": metadata, "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": options.namespace }],
        }),
    ]
}
