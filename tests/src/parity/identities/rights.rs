//! What somebody with some rights may do.

use super::{GROUP, RBAC, allow, binding, role, subject, user};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Rules of a role, which binds the user in the behaviour's namespace or in the whole cluster.
const POLICIES: &[(&str, &str)] = &[
    ("nothing", "[]"),
    (
        "reading config maps",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]"#,
    ),
    ("every verb on config maps", r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}]"#),
    (
        "one config map by name",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["*"]}]"#,
    ),
    ("everything of the core group", r#"[{"apiGroups":[""],"resources":["*"],"verbs":["*"]}]"#),
    ("everything of another group", r#"[{"apiGroups":["apps"],"resources":["*"],"verbs":["*"]}]"#),
    ("reading anything", r#"[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]}]"#),
    ("scaling anything", r#"[{"apiGroups":["*"],"resources":["*/scale"],"verbs":["get","update","patch"]}]"#),
    ("a status", r#"[{"apiGroups":["apps"],"resources":["deployments/status"],"verbs":["get","patch"]}]"#),
    (
        "a resource without its subresources",
        r#"[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["*"]}]"#,
    ),
    (
        "patching but not creating",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","patch","update"]}]"#,
    ),
    ("creating but not reading", r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]}]"#),
    ("deleting one by one", r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["delete"]}]"#),
    ("deleting all", r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["deletecollection"]}]"#),
    (
        "roles",
        r#"[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["*"]}]"#,
    ),
    (
        "two rules that add up",
        r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]},{"apiGroups":["","apps"],"resources":["configmaps","deployments"],"verbs":["list"]}]"#,
    ),
];

/// A method, a path and a body.
type Attempt = (&'static str, &'static str, &'static str);

/// What the user of each policy tries, by a name.
const ATTEMPTS: &[(&str, &[Attempt])] = &[
    (
        "reads",
        &[
            ("GET", "configmaps/a", ""),
            ("GET", "configmaps", ""),
            ("GET", "configmaps/missing", ""),
            ("GET", "secrets", ""),
        ],
    ),
    (
        "watches",
        &[
            (
                "GET",
                "configmaps?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name=none",
                "",
            ),
            ("GET", "configmaps?fieldSelector=metadata.name=a", ""),
            ("GET", "configmaps?fieldSelector=metadata.name==a,metadata.namespace=x", ""),
            ("GET", "configmaps?fieldSelector=metadata.name!=a", ""),
        ],
    ),
    (
        "creates",
        &[
            ("POST", "configmaps", r#"{"metadata":{"name":"b"}}"#),
            ("POST", "configmaps", r#"{"metadata":{"generateName":"b-"}}"#),
            ("POST", "secrets", r#"{"metadata":{"name":"b"}}"#),
        ],
    ),
    (
        "updates",
        &[
            ("PUT", "configmaps/a", r#"{"metadata":{"name":"a"},"data":{"x":"y"}}"#),
            ("PUT", "configmaps/new", r#"{"metadata":{"name":"new"}}"#),
            ("PATCH", "configmaps/a", r#"{"data":{"x":"z"}}"#),
            ("APPLY", "configmaps/a", r#"{"data":{"w":"z"}}"#),
            ("APPLY", "configmaps/fresh", r#"{"data":{"w":"z"}}"#),
        ],
    ),
    (
        "deletes",
        &[("DELETE", "configmaps/a", ""), ("DELETE", "configmaps/missing", ""), ("DELETE", "configmaps", "")],
    ),
    (
        "asks for subresources",
        &[
            ("GET", "apps/deployments/d", ""),
            ("GET", "apps/deployments/d/scale", ""),
            ("GET", "apps/deployments/d/status", ""),
            ("PATCH", "apps/deployments/d/scale", r#"{"spec":{"replicas":2}}"#),
            ("PATCH", "apps/deployments/d/status", r#"{"status":{"replicas":0}}"#),
            ("GET", "apps/deployments/d/nothing", ""),
        ],
    ),
    (
        "goes elsewhere",
        &[
            ("GET", "//api/v1/namespaces/kube-system/configmaps", ""),
            ("GET", "//api/v1/configmaps", ""),
            ("GET", "//api/v1/nodes", ""),
            ("GET", "//apis/nothing.example.com/v1/things", ""),
            ("GET", "//api/v1/namespaces", ""),
        ],
    ),
    (
        "asks for paths",
        &[
            ("GET", "//healthz", ""),
            ("GET", "//readyz", ""),
            ("GET", "//api", ""),
            ("GET", "//apis/apps/v1", ""),
            ("GET", "//metrics", ""),
            ("POST", "//version", ""),
            ("GET", "//logs", ""),
            ("GET", "//openapi/v2/nothing", ""),
        ],
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        Behaviour::new("a binding to a role that is missing allows nothing and says so", missing_role),
        Behaviour::new("a subject of a binding may be a service account of its namespace", service_account),
    ];
    for (policy, rules) in POLICIES {
        for (attempt, requests) in ATTEMPTS {
            all.push(Behaviour::new(format!("with rights to {policy} somebody {attempt}"), move |script| {
                attempted(script, rules, requests)
            }));
        }
    }
    all
}

async fn attempted(mut script: Script, rules: &str, requests: &[Attempt]) -> anyhow::Result<Script> {
    script.map("a", json!({})).await?;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let deployments = script.path("/apis/apps/v1", "deployments");
    script.quiet(Request::new("POST", deployments).body(media::JSON, deployment)).await?;
    allow(&mut script, rules).await?;
    for (method, path, body) in requests {
        let path = match (path.strip_prefix("//"), path.strip_prefix("apps/")) {
            (Some(path), _) => format!("/{path}"),
            (_, Some(path)) => script.path("/apis/apps/v1", path),
            _ => script.path("/api/v1", path),
        };
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let mut request = Request::new(if *method == "APPLY" { "PATCH" } else { method }, path);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            request = request.with(parameter(name), value);
        }
        if !body.is_empty() {
            let mut body: Value = serde_json::from_str(body)?;
            let kind = match path.contains("/configmaps") {
                true => "ConfigMap",
                false => "Secret",
            };
            if *method != "PATCH" {
                body["apiVersion"] = json!("v1");
                body["kind"] = json!(kind);
            }
            let media = match *method {
                "PATCH" => media::MERGE_PATCH,
                "APPLY" => media::APPLY_PATCH,
                _ => media::JSON,
            };
            request = request.body(media, body);
        }
        if *method == "APPLY" {
            request = request.with("fieldManager", "somebody");
        }
        let as_user = request.impersonating(user(&script));
        script.send(as_user).await?;
    }
    Ok(script)
}

fn parameter(name: &str) -> &'static str {
    match name {
        "watch" => "watch",
        "timeoutSeconds" => "timeoutSeconds",
        "resourceVersion" => "resourceVersion",
        _ => "fieldSelector",
    }
}

async fn missing_role(mut script: Script) -> anyhow::Result<Script> {
    allow(&mut script, "[]").await?;
    let user = user(&script);
    let binding = binding("b", ("Role", "missing"), json!([subject(&user)]));
    let bindings = script.path(RBAC, "rolebindings");
    script.quiet(Request::new("POST", bindings).body(media::JSON, binding)).await?;
    let maps = Request::new("GET", script.maps()).impersonating(user);
    script
        .until_asked(maps.clone(), |answer| {
            answer.body["message"].as_str().is_some_and(|text| text.contains("missing"))
        })
        .await?;
    script.send(maps).await?;
    Ok(script)
}

async fn service_account(mut script: Script) -> anyhow::Result<Script> {
    let role = role("r", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]));
    let (roles, bindings) = (script.path(RBAC, "roles"), script.path(RBAC, "rolebindings"));
    script.quiet(Request::new("POST", roles).body(media::JSON, role)).await?;
    let group = format!("group-{}", script.namespace());
    let subjects = json!([
        {"kind": "ServiceAccount", "name": "worker", "namespace": script.namespace()},
        {"kind": "ServiceAccount", "name": "visitor", "namespace": "kube-system"},
        {"kind": "Group", "name": group, "apiGroup": GROUP},
    ]);
    let binding = binding("b", ("Role", "r"), subjects);
    script.quiet(Request::new("POST", bindings).body(media::JSON, binding)).await?;
    let maps = script.maps();
    let worker = format!("system:serviceaccount:{}:worker", script.namespace());
    let as_worker = Request::new("GET", &maps).impersonating(worker);
    script.until_asked(as_worker.clone(), Answer::is_success).await?;
    script.send(as_worker).await?;
    let other = format!("system:serviceaccount:{}:other", script.namespace());
    for user in [other.as_str(), "system:serviceaccount:kube-system:visitor", "worker"] {
        script.send(Request::new("GET", &maps).impersonating(user)).await?;
    }
    let member = Request::new("GET", &maps).impersonating("somebody").header("impersonate-group", group);
    script.send(member).await?;
    Ok(script)
}
