//! Acting as somebody else.

use super::allow_user;
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

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

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
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
    all
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
    let requests = [
        Request::new("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews").body(media::JSON, review),
        Request::new("GET", script.maps()),
        Request::new("GET", "/healthz"),
    ];
    for request in requests {
        let with_headers =
            |request: Request, (name, value): &(&'static str, &str)| request.header(name, *value);
        script.send(headers.iter().fold(request, with_headers)).await?;
    }
    Ok(script)
}
