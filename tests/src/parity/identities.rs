//! Who may do what: RBAC, its reviews, escalation and impersonation.

use super::{Behaviour, Script};
use crate::compare::exchange::media;
use crate::compare::{Answer, Request};
use anyhow::ensure;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

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

/// The headers of a request that an administrator, or somebody with rights of impersonation, sends as another.
const IMPERSONATIONS: &[(&str, &[(&str, &str)])] = &[
    ("a user", &[("impersonate-user", "joe")]),
    ("a user with a space", &[("impersonate-user", "joe doe")]),
    ("nobody", &[("impersonate-user", "system:anonymous")]),
    ("a user in a group", &[("impersonate-user", "joe"), ("impersonate-group", "devs")]),
    (
        "a user in groups",
        &[("impersonate-user", "joe"), ("impersonate-group", "devs"), ("impersonate-group", "ops")],
    ),
    (
        "a user in many groups",
        &[
            ("impersonate-user", "joe"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-group", "c"),
            ("impersonate-group", "d"),
            ("impersonate-group", "e"),
        ],
    ),
    (
        "a user among the unauthenticated",
        &[("impersonate-user", "joe"), ("impersonate-group", "system:unauthenticated")],
    ),
    (
        "a user among the authenticated",
        &[("impersonate-user", "joe"), ("impersonate-group", "system:authenticated")],
    ),
    ("a member of system:masters", &[("impersonate-user", "joe"), ("impersonate-group", "system:masters")]),
    ("a user with a uid", &[("impersonate-user", "joe"), ("impersonate-uid", "1234")]),
    (
        "a user with extras",
        &[
            ("impersonate-user", "joe"),
            ("impersonate-extra-scopes", "view"),
            ("impersonate-extra-scopes", "edit"),
        ],
    ),
    (
        "a user with an escaped extra",
        &[("impersonate-user", "joe"), ("impersonate-extra-example.com%2fscope", "view")],
    ),
    (
        "a user with a prefixed extra",
        &[
            ("impersonate-user", "joe"),
            ("impersonate-extra-example.com%2fscope", "view"),
            ("impersonate-extra-example.com%2fother", ""),
        ],
    ),
    (
        "a user with a wrong extra",
        &[("impersonate-user", "joe"), ("impersonate-extra-exa_mple.com%2fsc%20ope", "view")],
    ),
    ("a service account", &[("impersonate-user", "system:serviceaccount:default:default")]),
    (
        "a service account in a group",
        &[("impersonate-user", "system:serviceaccount:default:default"), ("impersonate-group", "devs")],
    ),
    ("what is no service account", &[("impersonate-user", "system:serviceaccount:default")]),
    ("a service account of no namespace", &[("impersonate-user", "system:serviceaccount::default")]),
    ("a node", &[("impersonate-user", "system:node:node-1")]),
    (
        "a node in its group",
        &[("impersonate-user", "system:node:node-1"), ("impersonate-group", "system:nodes")],
    ),
    ("a group alone", &[("impersonate-group", "devs")]),
    ("a uid alone", &[("impersonate-uid", "1")]),
    ("an extra alone", &[("impersonate-extra-scopes", "view")]),
    ("an empty user in a group", &[("impersonate-user", ""), ("impersonate-group", "devs")]),
];

/// The rights of somebody who impersonates.
const IMPERSONATORS: &[(&str, &str)] = &[
    ("an administrator", ""),
    ("somebody without the right", "[]"),
    ("who may be any user", r#"[{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"]}]"#),
    (
        "who may be joe",
        r#"[{"apiGroups":[""],"resources":["users"],"resourceNames":["joe"],"verbs":["impersonate"]}]"#,
    ),
    (
        "who may be users and groups",
        r#"[{"apiGroups":[""],"resources":["users","groups"],"verbs":["impersonate"]},{"apiGroups":["authentication.k8s.io"],"resources":["userextras/scopes","uids"],"verbs":["impersonate"]}]"#,
    ),
    (
        "who may be service accounts",
        r#"[{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["impersonate"]}]"#,
    ),
    (
        "who may be users while reviewing themselves",
        r#"[{"apiGroups":["authentication.k8s.io"],"resources":["users","groups","uids","userextras/scopes","userextras/example.com/scope"],"verbs":["impersonate:user-info"]},{"apiGroups":["authentication.k8s.io"],"resources":["selfsubjectreviews"],"verbs":["impersonate-on:user-info:create"]}]"#,
    ),
    (
        "who may be nodes and service accounts while reviewing themselves",
        r#"[{"apiGroups":["authentication.k8s.io"],"resources":["nodes","serviceaccounts"],"verbs":["impersonate:arbitrary-node","impersonate:serviceaccount"]},{"apiGroups":["authentication.k8s.io"],"resources":["selfsubjectreviews"],"verbs":["impersonate-on:arbitrary-node:create","impersonate-on:serviceaccount:create"]}]"#,
    ),
];

/// Reviews: the resource, and a spec in which `jane` is the user of the policy.
const REVIEWED: &[(&str, &str, &str)] = &[
    (
        "what is allowed",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "what is not",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"delete","resource":"configmaps"}}"#,
    ),
    (
        "elsewhere",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"kube-system","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "everywhere",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "by a group",
        "subjectaccessreviews",
        r#"{"groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "by a group and a user",
        "subjectaccessreviews",
        r#"{"user":"x","groups":["system:authenticated"],"nonResourceAttributes":{"verb":"get","path":"/api/v1"}}"#,
    ),
    (
        "a path of anybody",
        "subjectaccessreviews",
        r#"{"user":"x","groups":["system:unauthenticated"],"nonResourceAttributes":{"verb":"get","path":"/healthz"}}"#,
    ),
    (
        "a path",
        "subjectaccessreviews",
        r#"{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/metrics"}}"#,
    ),
    (
        "a name",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps","name":"a"}}"#,
    ),
    (
        "a subresource",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps","subresource":"status"}}"#,
    ),
    (
        "a resource with a slash",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps/status"}}"#,
    ),
    (
        "any verb",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"*","resource":"configmaps"}}"#,
    ),
    (
        "another group",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","group":"apps","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "another version",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","version":"v7","verb":"get","resource":"configmaps"}}"#,
    ),
    ("nobody", "subjectaccessreviews", r#"{"resourceAttributes":{"verb":"get","resource":"configmaps"}}"#),
    ("nothing", "subjectaccessreviews", r#"{"user":"jane"}"#),
    (
        "both",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"verb":"get","resource":"configmaps"},"nonResourceAttributes":{"path":"/","verb":"get"}}"#,
    ),
    ("nobody and nothing", "subjectaccessreviews", "{}"),
    (
        "an unknown field",
        "subjectaccessreviews",
        r#"{"user":"jane","who":"knows","resourceAttributes":{"verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "a selector",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"list","resource":"configmaps","fieldSelector":{"rawSelector":"metadata.name=a"}}}"#,
    ),
    (
        "an empty selector",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"list","resource":"configmaps","labelSelector":{}}}"#,
    ),
    (
        "a selector twice",
        "subjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"verb":"list","resource":"configmaps","labelSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}}}"#,
    ),
    (
        "in a namespace",
        "namespaces/NAMESPACE/localsubjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "in another namespace",
        "namespaces/NAMESPACE/localsubjectaccessreviews",
        r#"{"user":"jane","resourceAttributes":{"namespace":"default","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "a path in a namespace",
        "namespaces/NAMESPACE/localsubjectaccessreviews",
        r#"{"user":"jane","nonResourceAttributes":{"path":"/","verb":"get"}}"#,
    ),
    (
        "oneself",
        "selfsubjectaccessreviews",
        r#"{"resourceAttributes":{"namespace":"NAMESPACE","verb":"get","resource":"configmaps"}}"#,
    ),
    (
        "oneself in vain",
        "selfsubjectaccessreviews",
        r#"{"resourceAttributes":{"namespace":"NAMESPACE","verb":"delete","resource":"configmaps"}}"#,
    ),
    ("oneself and nothing", "selfsubjectaccessreviews", "{}"),
    (
        "oneself and a path",
        "selfsubjectaccessreviews",
        r#"{"nonResourceAttributes":{"path":"/healthz","verb":"get"}}"#,
    ),
    ("one's rules of no namespace", "selfsubjectrulesreviews", "{}"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = vec![
        Behaviour::new("a binding to a role that is missing allows nothing and says so", missing_role),
        Behaviour::new("a subject of a binding may be a service account of its namespace", service_account),
        Behaviour::new("who may bind a role binds it, and who may not, does not", binding),
        Behaviour::new("a role that aggregates others wants all rights", aggregation),
        Behaviour::new("the owners and finalizers of a role may change without its rights", only_collected),
        Behaviour::new("the rules that somebody has in a namespace", own_rules),
    ];
    for (policy, rules) in POLICIES {
        for (attempt, requests) in ATTEMPTS {
            all.push(Behaviour::new(format!("with rights to {policy} somebody {attempt}"), move |script| {
                attempted(script, rules, requests)
            }));
        }
    }
    for (name, held, granted) in ESCALATIONS {
        all.push(Behaviour::new(format!("somebody grants {name}"), move |script| {
            escalated(script, held, granted)
        }));
    }
    for (who, rules) in IMPERSONATORS {
        for (name, headers) in IMPERSONATIONS {
            // The reference first tries the mode that last succeeded: which groups this is in depends on what came before.
            if rules.is_empty() && *name == "a node" {
                continue;
            }
            all.push(Behaviour::new(format!("impersonation: {who} is {name}"), move |script| {
                impersonated(script, rules, headers)
            }));
        }
    }
    for (name, resource, spec) in REVIEWED {
        all.push(Behaviour::new(format!("an access review of {name}"), move |script| {
            reviewed(script, resource, spec)
        }));
    }
    all
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
    let role_object = json!({"kind": role, "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name}, "rules": rules});
    let binding_object = json!({"kind": binding, "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": role, "name": name, "apiGroup": "rbac.authorization.k8s.io"}});
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

async fn escalated(mut script: Script, held: &str, granted: &str) -> anyhow::Result<Script> {
    let mut rules: Vec<Value> = serde_json::from_str(held)?;
    let managing = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
        "verbs": ["create", "get", "update", "patch", "list"]});
    rules.push(managing);
    allow_in(&mut script, rules, false).await?;
    let granted: Value = serde_json::from_str(granted)?;
    let roles = script.path(RBAC, "roles");
    let role = |rules: &Value| json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}, "rules": rules});
    let user = user(&script);
    let request = Request::new("POST", &roles).body(media::JSON, role(&granted));
    script.send(request.impersonating(&user)).await?;
    // An update of a role that gives nothing yet.
    let mut empty = role(&json!([]));
    empty["metadata"]["name"] = json!("s");
    script.quiet(Request::new("POST", &roles).body(media::JSON, empty)).await?;
    let patch = json!({"rules": granted});
    let request = Request::new("PATCH", format!("{roles}/s")).body(media::MERGE_PATCH, patch);
    script.send(request.impersonating(&user)).await?;
    let mut applied = role(&granted);
    applied["metadata"]["name"] = json!("t");
    let request = Request::new("PATCH", format!("{roles}/t")).with("fieldManager", "somebody");
    script.send(request.body(media::APPLY_PATCH, applied).impersonating(&user)).await?;
    // And a binding to a role of the administrator's.
    let mut others = role(&granted);
    others["metadata"]["name"] = json!("u");
    script.quiet(Request::new("POST", &roles).body(media::JSON, others)).await?;
    wait_for_role(&mut script, "u").await?;
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": "joe", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}});
    let bindings = script.path(RBAC, "rolebindings");
    script.send(Request::new("POST", bindings).body(media::JSON, binding).impersonating(&user)).await?;
    Ok(script)
}

/// Waits until a role is known to the authorizer: a rehearsed binding of somebody without rights names what is missing in
/// another way.
async fn wait_for_role(script: &mut Script, role: &str) -> anyhow::Result<()> {
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "probe"},
        "subjects": [], "roleRef": {"kind": "Role", "name": role, "apiGroup": "rbac.authorization.k8s.io"}});
    let request = Request::new("POST", script.path(RBAC, "rolebindings")).with("dryRun", "All");
    let request = request.body(media::JSON, binding).impersonating(user(script));
    script.until_asked(request, |answer| answer.status != 404).await
}

async fn impersonated(
    mut script: Script,
    rules: &str,
    headers: &[(&'static str, &str)],
) -> anyhow::Result<Script> {
    if !rules.is_empty() {
        // Nobody can be impersonated twice.
        let account = script.become_account("jane").await?;
        let mut rules: Vec<Value> = serde_json::from_str(rules)?;
        rules.push(json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}));
        allow_user(&mut script, &account, rules, true).await?;
    }
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let with_headers = |mut request: Request| {
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        request
    };
    let requests = [
        Request::new("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews").body(media::JSON, review),
        Request::new("GET", script.maps()),
        Request::new("GET", "/healthz"),
    ];
    for request in requests {
        let request = with_headers(request);
        script.send(request).await?;
    }
    Ok(script)
}

async fn reviewed(mut script: Script, resource: &str, spec: &str) -> anyhow::Result<Script> {
    allow(&mut script, r#"[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]"#).await?;
    let (namespace, user) = (script.namespace().to_owned(), user(&script));
    let spec: Value = serde_json::from_str(&spec.replace("NAMESPACE", &namespace).replace("jane", &user))?;
    let plural = resource.rsplit('/').next().unwrap_or_default();
    let kind = match plural {
        "subjectaccessreviews" => "SubjectAccessReview",
        "localsubjectaccessreviews" => "LocalSubjectAccessReview",
        "selfsubjectaccessreviews" => "SelfSubjectAccessReview",
        _ => "SelfSubjectRulesReview",
    };
    let review = json!({"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    let path = format!("{REVIEWS}/{}", resource.replace("NAMESPACE", &namespace));
    let request = Request::new("POST", path).body(media::JSON, review);
    let request = if kind.starts_with("Self") { request.impersonating(user) } else { request };
    script.send(request).await?;
    Ok(script)
}

async fn missing_role(mut script: Script) -> anyhow::Result<Script> {
    allow(&mut script, "[]").await?;
    let user = user(&script);
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "missing", "apiGroup": "rbac.authorization.k8s.io"}});
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
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    let (roles, bindings) = (script.path(RBAC, "roles"), script.path(RBAC, "rolebindings"));
    script.quiet(Request::new("POST", roles).body(media::JSON, role)).await?;
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b"},
        "subjects": [
            {"kind": "ServiceAccount", "name": "worker", "namespace": script.namespace()},
            {"kind": "ServiceAccount", "name": "visitor", "namespace": "kube-system"},
            {"kind": "Group", "name": format!("group-{}", script.namespace()), "apiGroup": "rbac.authorization.k8s.io"},
        ],
        "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}});
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
    let group = format!("group-{}", script.namespace());
    let member = Request::new("GET", &maps).impersonating("somebody").header("impersonate-group", group);
    script.send(member).await?;
    Ok(script)
}

async fn binding(mut script: Script) -> anyhow::Result<Script> {
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
        let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {"name": name},
            "subjects": [{"kind": "User", "name": "joe", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": kind, "name": role, "apiGroup": "rbac.authorization.k8s.io"}});
        let request = Request::new("POST", &bindings).body(media::JSON, binding);
        script.send(request.impersonating(&user)).await?;
    }
    let patch =
        json!({"subjects": [{"kind": "User", "name": "jim", "apiGroup": "rbac.authorization.k8s.io"}]});
    let request = Request::new("PATCH", format!("{bindings}/a")).body(media::MERGE_PATCH, patch);
    script.send(request.impersonating(&user)).await?;
    Ok(script)
}

async fn aggregation(mut script: Script) -> anyhow::Result<Script> {
    let rules =
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["*"]}]);
    let rules: Vec<Value> = serde_json::from_value(rules)?;
    // Every verb but those that let one escalate.
    let verbs = json!(["create", "get", "update", "patch", "delete"]);
    let rules = rules.into_iter().map(|mut rule| {
        rule["verbs"] = verbs.clone();
        rule
    });
    allow_in(&mut script, rules.collect(), true).await?;
    let name = format!("aggregated-{}", script.namespace());
    let role = json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": script.namespace()}}]}, "rules": []});
    let roles = format!("{RBAC}/clusterroles");
    let user = user(&script);
    let request = Request::new("POST", &roles).body(media::JSON, role.clone());
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
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
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

async fn own_rules(mut script: Script) -> anyhow::Result<Script> {
    let rules =
        r#"[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["get","list"]}]"#;
    allow(&mut script, rules).await?;
    let review = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": script.namespace()}});
    let request =
        Request::new("POST", format!("{REVIEWS}/selfsubjectrulesreviews")).body(media::JSON, review);
    let mut answer = script.quiet(request.impersonating(user(&script))).await?;
    // In whatever order they are found.
    for rules in ["/status/resourceRules", "/status/nonResourceRules"] {
        if let Some(rules) = answer.body.pointer_mut(rules).and_then(Value::as_array_mut) {
            rules.sort_by_key(ToString::to_string);
        }
    }
    script.note(&answer);
    Ok(script)
}
