//! What validations decide: their expressions, messages and reasons, and what a failure means.

use super::{Kind, only, writes};
use crate::parity::Behaviour;
use serde_json::json;

/// Validations of a policy, and perhaps more of its spec.
const POLICIES: &[(&str, &str)] = &[
    ("that hold", r#"{"validations":[{"expression":"true"}]}"#),
    ("that do not hold", r#"{"validations":[{"expression":"false"}]}"#),
    ("with a message", r#"{"validations":[{"expression":"false","message":" no way "}]}"#),
    ("with blanks around the expression", r#"{"validations":[{"expression":"  1 > 2 "}]}"#),
    (
        "with a message of their own",
        r#"{"validations":[{"expression":"false","messageExpression":"'no ' + request.name"}]}"#,
    ),
    (
        "with both messages",
        r#"{"validations":[{"expression":"false","message":"static","messageExpression":"'made'"}]}"#,
    ),
    (
        "with a message that fails",
        r#"{"validations":[{"expression":"false","message":"static","messageExpression":"string(object.missing)"}]}"#,
    ),
    (
        "with a message of two lines",
        r#"{"validations":[{"expression":"false","message":"static","messageExpression":"'a\\nb'"}]}"#,
    ),
    (
        "with an empty message",
        r#"{"validations":[{"expression":"false","message":"static","messageExpression":"' '"}]}"#,
    ),
    (
        "with an empty message and no other",
        r#"{"validations":[{"expression":"1 == 2","messageExpression":"''"}]}"#,
    ),
    ("that are invalid", r#"{"validations":[{"expression":"false","reason":"Invalid"}]}"#),
    ("that are forbidden", r#"{"validations":[{"expression":"false","reason":"Forbidden"}]}"#),
    ("that are too large", r#"{"validations":[{"expression":"false","reason":"RequestEntityTooLarge"}]}"#),
    (
        "of which the second does not hold",
        r#"{"validations":[{"expression":"true"},{"expression":"false","message":"second"}]}"#,
    ),
    (
        "of which two do not hold",
        r#"{"validations":[{"expression":"false","message":"one","reason":"Forbidden"},{"expression":"false","message":"two"}]}"#,
    ),
    ("that fail", r#"{"validations":[{"expression":"object.missing == 1"}]}"#),
    (
        "that fail and are ignored",
        r#"{"failurePolicy":"Ignore","validations":[{"expression":"object.missing == 1"}]}"#,
    ),
    (
        "that fail and are ignored beside one that does not hold",
        r#"{"failurePolicy":"Ignore","validations":[{"expression":"object.missing == 1"},{"expression":"false"}]}"#,
    ),
    ("about what is deleted", r#"{"validations":[{"expression":"object != null"}]}"#),
    ("about what was", r#"{"validations":[{"expression":"oldObject == null"}]}"#),
    (
        "about the operation",
        r#"{"validations":[{"expression":"request.operation in ['CREATE', 'DELETE']"}]}"#,
    ),
    ("about data", r#"{"validations":[{"expression":"!has(object.data) || int(object.data.x) < 10"}]}"#),
    (
        "about a label",
        r#"{"validations":[{"expression":"has(object.metadata.labels) && object.metadata.labels.app == 'web'"}]}"#,
    ),
    ("about the namespace", r#"{"validations":[{"expression":"namespaceObject.metadata.name == 'other'"}]}"#),
    (
        "about labels of the namespace",
        r#"{"validations":[{"expression":"namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace && namespaceObject.status.phase == 'Active' && 'kubernetes' in namespaceObject.spec.finalizers"}]}"#,
    ),
    (
        "about the kind",
        r#"{"validations":[{"expression":"request.kind.kind == 'ConfigMap' && request.requestKind.version == 'v1' && request.resource.resource == 'configmaps' && request.requestResource.group == ''"}]}"#,
    ),
    (
        "about options",
        r#"{"validations":[{"expression":"has(request.options.fieldManager) && request.options.fieldManager == 'me'"}]}"#,
    ),
    (
        "about no subresource",
        r#"{"validations":[{"expression":"!has(request.subResource) || request.subResource == ''"}]}"#,
    ),
    (
        "that ask the authorizer",
        r#"{"validations":[{"expression":"authorizer.group('').resource('configmaps').namespace('default').check('delete').allowed()"}]}"#,
    ),
    (
        "that ask the authorizer about the request",
        r#"{"validations":[{"expression":"!authorizer.requestResource.check('improve').allowed()"}]}"#,
    ),
    (
        "that ask about an account",
        r#"{"validations":[{"expression":"authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()","message":"nobody may"}]}"#,
    ),
    (
        "that ask too much at once",
        r#"{"validations":[{"expression":"authorizer.path('/a').check('get').allowed() && authorizer.path('/b').check('get').allowed() && authorizer.path('/c').check('get').allowed()"}]}"#,
    ),
    (
        "that cost too much together",
        r#"{"validations":[{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"}]}"#,
    ),
    (
        "under a condition that holds",
        r#"{"matchConditions":[{"name":"a","expression":"request.name == 'a'"}],"validations":[{"expression":"false"}]}"#,
    ),
    (
        "under conditions of which one does not hold",
        r#"{"matchConditions":[{"name":"a","expression":"true"},{"name":"b","expression":"false"}]}"#,
    ),
    (
        "under a condition that fails",
        r#"{"matchConditions":[{"name":"a","expression":"object.missing == 1"}]}"#,
    ),
    (
        "under a condition that fails and is ignored",
        r#"{"failurePolicy":"Ignore","matchConditions":[{"name":"a","expression":"object.missing == 1"}]}"#,
    ),
    (
        "under conditions that fail twice",
        r#"{"matchConditions":[{"name":"a","expression":"object.missing == 1"},{"name":"b","expression":"object.other == 1"}]}"#,
    ),
    (
        "under a condition about the namespace",
        r#"{"matchConditions":[{"name":"a","expression":"namespaceObject == null"}]}"#,
    ),
    (
        "under a condition that asks the authorizer",
        r#"{"matchConditions":[{"name":"a","expression":"authorizer.requestResource.check('delete').allowed()"}]}"#,
    ),
    (
        "under a condition that costs too much",
        r#"{"matchConditions":[{"name":"a","expression":"[1,2].all(i, authorizer.path('/a').check('get').allowed())"},{"name":"b","expression":"[1,2].all(i, authorizer.path('/b').check('get').allowed())"},{"name":"c","expression":"[1,2].all(i, authorizer.path('/c').check('get').allowed())"},{"name":"d","expression":"[1,2].all(i, authorizer.path('/d').check('get').allowed())"}]}"#,
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, spec) in POLICIES {
        all.push(Behaviour::new(format!("a policy with validations {name}"), move |mut script| async move {
            script.map("before", json!({"app": "web"})).await?;
            only(&mut script, Kind::Validating, serde_json::from_str(spec)?, json!({})).await?;
            writes(&mut script).await?;
            Ok(script)
        }));
    }
    all
}
