//! Match conditions: what they see, and what their failure means.

use super::server::denied;
use super::{Kind, configure, hook, map, serve};
use crate::compare::Request;
use crate::compare::exchange::media;
use crate::parity::Behaviour;
use serde_json::{Value, json};

/// Conditions of a webhook that refuses whatever it is asked about.
const CONDITIONS: &[(&str, &[&str])] = &[
    ("that hold", &["true", "1 < 2"]),
    ("of which one does not hold", &["true", "false"]),
    ("about the object", &["object.metadata.name == 'a'"]),
    ("about labels", &["has(object.metadata.labels) && object.metadata.labels.app == 'web'"]),
    ("about data that is not there", &["has(object.data) && 'x' in object.data"]),
    ("about what was", &["oldObject == null"]),
    ("about the operation", &["request.operation == 'CREATE'"]),
    ("about the resource", &["request.resource.resource == 'configmaps' && request.resource.group == ''"]),
    ("about the kind", &["request.kind.kind == 'ConfigMap' && request.kind.version == 'v1'"]),
    ("about the name", &["request.name == 'a'", "request.namespace.startsWith('')"]),
    ("about dry runs", &["!request.dryRun"]),
    ("about options", &["has(request.options.fieldManager) ? request.options.fieldManager == 'me' : true"]),
    ("about the user", &["size(request.userInfo.groups) > 0 && request.userInfo.username != ''"]),
    ("about numbers", &["size(object.metadata.name) + 1 == 2", "1.5 > double(1)"]),
    ("that fail", &["object.missing == 1"]),
    ("that fail beside one that holds", &["true", "object.spec.missing == 1"]),
    ("that fail beside one that does not hold", &["object.missing == 1", "false"]),
    ("that fail twice", &["object.missing == 1", "object.other == 2"]),
    ("that compare what cannot be compared", &["object.metadata.name > 5"]),
    (
        "that ask the authorizer",
        &["authorizer.group('').resource('configmaps').namespace('default').check('delete').allowed()"],
    ),
    ("that ask the authorizer about the request", &["authorizer.requestResource.check('delete').allowed()"]),
    (
        "that ask about an account",
        &[
            "authorizer.serviceAccount('default', 'default').group('').resource('secrets').check('get').allowed()",
        ],
    ),
    ("that ask about a path", &["authorizer.path('/healthz').check('get').allowed()"]),
    (
        "that ask for reasons",
        &[
            "authorizer.serviceAccount('default', 'nobody').group('apps').resource('deployments').subresource('scale').name('x').check('update').reason() == ''",
        ],
    ),
    (
        "that ask too much",
        &[
            "authorizer.path('/a').check('get').allowed() && authorizer.path('/b').check('get').allowed() && authorizer.path('/c').check('get').allowed()",
        ],
    ),
    ("about the namespace", &["namespaceObject == null"]),
];

/// Conditions that no configuration may have.
const INVALID: &[(&str, &str)] = &[
    ("that are no truths", r#"[{"name":"a","expression":"'text'"}]"#),
    ("that may be anything", r#"[{"name":"a","expression":"object.metadata"}]"#),
    ("about an unknown variable", r#"[{"name":"a","expression":"params.x == 1"}]"#),
    ("about an unknown field", r#"[{"name":"a","expression":"request.nothing == ''"}]"#),
    ("of an unknown function", r#"[{"name":"a","expression":"object.improve()"}]"#),
    ("of the wrong types", r#"[{"name":"a","expression":"request.name == 5"}]"#),
    ("without an expression", r#"[{"name":"a"}]"#),
    ("of blanks", r#"[{"name":"a","expression":"  "}]"#),
    ("without a name", r#"[{"expression":"true"}]"#),
    ("of a bad name", r#"[{"name":"not a name","expression":"true"}]"#),
    ("of the same name", r#"[{"name":"a","expression":"true"},{"name":"a","expression":"false"}]"#),
    ("that misuse the authorizer", r#"[{"name":"a","expression":"authorizer.check('get').allowed()"}]"#),
    ("that are a decision", r#"[{"name":"a","expression":"authorizer.path('/x').check('get')"}]"#),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, expressions) in CONDITIONS {
        for policy in ["Fail", "Ignore"] {
            let name = format!("match conditions {name}, with failure policy {policy}");
            all.push(Behaviour::new(name, move |mut script| async move {
                let conditions: Vec<Value> = expressions
                    .iter()
                    .enumerate()
                    .map(|(index, expression)| json!({"name": format!("c{index}"), "expression": expression}))
                    .collect();
                let maps = script.maps();
                script.map("before", json!({"app": "web"})).await?;
                let server = serve(|_, _| denied("asked")).await?;
                let fields = json!({"matchConditions": conditions, "failurePolicy": policy});
                let hooks = vec![hook(&script, &server, "hook", fields)];
                configure(&mut script, &server, Kind::Validating, "it", hooks).await?;
                let post = Request::new("POST", &maps).with("fieldManager", "me");
                script.send(post.body(media::JSON, map("a", json!({"labels": {"app": "web"}})))).await?;
                script.post(&maps, map("bc", json!({"data": {"x": "y"}}))).await?;
                script.merge(&format!("{maps}/before"), json!({"data": {"x": "z"}})).await?;
                script.delete(&format!("{maps}/before"), Value::Null).await?;
                Ok(script)
            }));
        }
    }
    for (name, conditions) in INVALID {
        let name = format!("a configuration is refused for match conditions {name}");
        all.push(Behaviour::new(name, move |mut script| async move {
            let conditions: Value = serde_json::from_str(conditions)?;
            let body = super::configurations::with(&script, json!({"matchConditions": conditions}));
            script.post(Kind::Validating.path(), body).await?;
            Ok(script)
        }));
    }
    all.push(Behaviour::new("too many match conditions are refused", |mut script| async move {
        let one = |index: usize| json!({"name": format!("c{index}"), "expression": "true"});
        let conditions: Vec<Value> = (0..65).map(one).collect();
        let body = super::configurations::with(&script, json!({"matchConditions": conditions}));
        script.post(Kind::Validating.path(), body).await?;
        Ok(script)
    }));
    all
}
