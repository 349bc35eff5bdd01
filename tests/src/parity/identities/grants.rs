//! Nobody grants what they do not have.

use super::{RBAC, allow, allow_in, binding, role, subject, user};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// What somebody with some rights writes as a role, and whether that gives more than they have.
const ESCALATIONS: &[(&str, &str, &str)] = &[
    (
        "what they have",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]"#,
    ),
    (
        "a verb more",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","delete","list"]}]"#,
    ),
    (
        "a resource more",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps","secrets"],"verbs":["get"]}]"#,
    ),
    (
        "all verbs",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch","create","update","patch","delete","deletecollection"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}]"#,
    ),
    (
        "all groups",
        r#"[{"apiGroups":["","apps"],"resources":["*"],"verbs":["*"]}]"#,
        r#"[{"apiGroups":["*"],"resources":["pods"],"verbs":["get"]}]"#,
    ),
    (
        "a name of all",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a","b"],"verbs":["get"]}]"#,
    ),
    (
        "all of a name",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]"#,
    ),
    (
        "another name",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a","b"],"verbs":["get"]}]"#,
    ),
    (
        "a subresource of all subresources",
        r#"[{"apiGroups":["apps"],"resources":["*/scale"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["get"]}]"#,
    ),
    (
        "a resource of its subresource",
        r#"[{"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}]"#,
    ),
    (
        "what two rules cover",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]},{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]"#,
        r#"[{"apiGroups":[""],"resources":["configmaps","secrets"],"verbs":["get"]}]"#,
    ),
    (
        "with the right to escalate",
        r#"[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}]"#,
        r#"[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]"#,
    ),
    ("no rules", "[]", "[]"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        Behaviour::new("who may bind a role binds it, and who may not, does not", bound),
        Behaviour::new("a role that aggregates others wants all rights", aggregation),
        Behaviour::new("the owners and finalizers of a role may change without its rights", only_collected),
    ];
    for (name, held, granted) in ESCALATIONS {
        all.push(Behaviour::new(format!("somebody grants {name}"), move |script| {
            escalated(script, held, granted)
        }));
    }
    all
}

async fn escalated(mut script: Script, held: &str, granted: &str) -> anyhow::Result<Script> {
    let mut rules: Vec<Value> = serde_json::from_str(held)?;
    let managing = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
        "verbs": ["create", "get", "update", "patch", "list"]});
    rules.push(managing);
    allow_in(&mut script, rules, false).await?;
    let granted: Value = serde_json::from_str(granted)?;
    let roles = script.path(RBAC, "roles");
    let user = user(&script);
    let request = Request::new("POST", &roles).body(media::JSON, role("r", granted.clone()));
    script.send(request.impersonating(&user)).await?;
    // An update of a role that gives nothing yet.
    script.quiet(Request::new("POST", &roles).body(media::JSON, role("s", json!([])))).await?;
    let patch = json!({"rules": granted});
    let request = Request::new("PATCH", format!("{roles}/s")).body(media::MERGE_PATCH, patch);
    script.send(request.impersonating(&user)).await?;
    let applied = role("t", granted.clone());
    let request = Request::new("PATCH", format!("{roles}/t")).with("fieldManager", "somebody");
    script.send(request.body(media::APPLY_PATCH, applied).impersonating(&user)).await?;
    // And a binding to a role of the administrator's.
    script.quiet(Request::new("POST", &roles).body(media::JSON, role("u", granted))).await?;
    wait_for_role(&mut script, "u").await?;
    let binding = binding("b", ("Role", "u"), json!([subject("joe")]));
    let bindings = script.path(RBAC, "rolebindings");
    script.send(Request::new("POST", bindings).body(media::JSON, binding).impersonating(&user)).await?;
    Ok(script)
}

/// Waits until a role is known to the authorizer: a rehearsed binding of somebody without rights names what is missing in
/// another way.
async fn wait_for_role(script: &mut Script, role: &str) -> anyhow::Result<()> {
    let binding = binding("probe", ("Role", role), json!([]));
    let request = Request::new("POST", script.path(RBAC, "rolebindings")).with("dryRun", "All");
    let request = request.body(media::JSON, binding).impersonating(user(script));
    script.until_asked(request, |answer| answer.status != 404).await
}

async fn bound(mut script: Script) -> anyhow::Result<Script> {
    let rules = r#"[
        {"apiGroups":["rbac.authorization.k8s.io"],"resources":["rolebindings"],"verbs":["*"]},
        {"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"resourceNames":["view"],"verbs":["bind"]}
    ]"#;
    allow(&mut script, rules).await?;
    let (user, bindings) = (user(&script), script.path(RBAC, "rolebindings"));
    for (name, kind, role) in [
        ("a", "ClusterRole", "view"),
        ("b", "ClusterRole", "edit"),
        ("c", "ClusterRole", "missing"),
        ("d", "Role", "missing"),
    ] {
        let binding = binding(name, (kind, role), json!([subject("joe")]));
        let request = Request::new("POST", &bindings).body(media::JSON, binding);
        script.send(request.impersonating(&user)).await?;
    }
    let patch = json!({"subjects": [subject("jim")]});
    let request = Request::new("PATCH", format!("{bindings}/a")).body(media::MERGE_PATCH, patch);
    script.send(request.impersonating(&user)).await?;
    Ok(script)
}

async fn aggregation(mut script: Script) -> anyhow::Result<Script> {
    // Every verb but those that let one escalate.
    let rules = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
        "verbs": ["create", "get", "update", "patch", "delete"]});
    allow_in(&mut script, vec![rules], true).await?;
    let name = format!("aggregated-{}", script.namespace());
    let mut role = role(&name, json!([]));
    role["kind"] = json!("ClusterRole");
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": script.namespace()}}]});
    let roles = format!("{RBAC}/clusterroles");
    let user = user(&script);
    let request = Request::new("POST", &roles).body(media::JSON, role);
    script.send(request.clone().impersonating(&user)).await?;
    script.leave(format!("{roles}/{name}"));
    script.send(request).await?;
    let patch = json!({"aggregationRule": null});
    let request = Request::new("PATCH", format!("{roles}/{name}")).body(media::MERGE_PATCH, patch);
    script.send(request.impersonating(&user)).await?;
    Ok(script)
}

async fn only_collected(mut script: Script) -> anyhow::Result<Script> {
    let rules = r#"[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["get","patch","update"]}]"#;
    allow(&mut script, rules).await?;
    let (user, roles) = (user(&script), script.path(RBAC, "roles"));
    let role = role("r", json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]));
    script.quiet(Request::new("POST", &roles).body(media::JSON, role)).await?;
    for patch in [
        json!({"metadata": {"finalizers": ["example.com/x"]}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
    ] {
        let request = Request::new("PATCH", format!("{roles}/r")).body(media::MERGE_PATCH, patch);
        script.send(request.impersonating(&user)).await?;
    }
    Ok(script)
}
