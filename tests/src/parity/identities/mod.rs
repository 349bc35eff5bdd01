//! Who may do what: RBAC, its reviews, escalation and impersonation.

mod access_reviews;
mod certificates;
mod grants;
mod impersonation;
mod node_restriction;
mod nodes;
mod rights;

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media;
use anyhow::ensure;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

pub(super) fn behaviours() -> Vec<Behaviour> {
    [
        rights::behaviours(),
        grants::behaviours(),
        impersonation::behaviours(),
        access_reviews::behaviours(),
        certificates::behaviours(),
        nodes::behaviours(),
        node_restriction::behaviours(),
    ]
    .concat()
}

/// A Role.
fn role(name: &str, rules: Value) -> Value {
    json!({"kind": "Role", "apiVersion": format!("{GROUP}/v1"), "metadata": {"name": name}, "rules": rules})
}

/// A RoleBinding to a role of this kind and name.
fn binding(name: &str, (kind, role): (&str, &str), subjects: Value) -> Value {
    json!({"kind": "RoleBinding", "apiVersion": format!("{GROUP}/v1"), "metadata": {"name": name},
        "subjects": subjects, "roleRef": {"kind": kind, "name": role, "apiGroup": GROUP}})
}

/// A user, as the subject of a binding.
fn subject(user: &str) -> Value {
    json!({"kind": "User", "name": user, "apiGroup": GROUP})
}

/// The user of a behaviour: no other has rights by that name.
fn user(script: &Script) -> String {
    format!("jane-{}", script.namespace())
}

/// Lets the user of the behaviour have these rules in its namespace, and waits until that counts.
async fn allow(script: &mut Script, rules: &str) -> anyhow::Result<()> {
    let rules: Vec<Value> = serde_json::from_str(rules)?;
    allow_in(script, rules, false).await
}

async fn allow_in(script: &mut Script, rules: Vec<Value>, everywhere: bool) -> anyhow::Result<()> {
    let user = user(script);
    allow_user(script, &user, rules, everywhere).await
}

async fn allow_user(
    script: &mut Script,
    user: &str,
    mut rules: Vec<Value>,
    everywhere: bool,
) -> anyhow::Result<()> {
    // What shows that it counts.
    rules.push(json!({"apiGroups": ["probe.example.com"], "resources": ["probes"], "verbs": ["probe"]}));
    let name = format!("rights-{}", script.namespace());
    let (role, binding, place) = match everywhere {
        true => ("ClusterRole", "ClusterRoleBinding", RBAC.to_owned()),
        false => ("Role", "RoleBinding", format!("{RBAC}/namespaces/{}", script.namespace())),
    };
    let mut role_object = self::role(&name, json!(rules));
    role_object["kind"] = json!(role);
    let mut binding_object = self::binding(&name, (role, &name), json!([subject(user)]));
    binding_object["kind"] = json!(binding);
    for (kind, object) in [(role, role_object), (binding, binding_object)] {
        let path = format!("{place}/{}s", kind.to_lowercase());
        let answer = script.quiet(Request::new("POST", &path).body(media::JSON, object)).await?;
        ensure!(answer.is_success(), "{kind}: {answer}");
        if everywhere {
            script.leave(format!("{path}/{name}"));
        }
    }
    let review = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"user": user,
        "resourceAttributes": {"namespace": script.namespace(), "verb": "probe", "group": "probe.example.com",
            "resource": "probes"}}});
    let request = Request::new("POST", format!("{REVIEWS}/subjectaccessreviews")).body(media::JSON, review);
    script.until_asked(request, |answer| answer.body["status"]["allowed"] == true).await
}
