//! Policies and bindings that are refused themselves.

use super::{Kind, binding, name, policy};
use crate::parity::{Behaviour, Script};
use serde_json::{Value, json};

/// Specs of policies that validate, laid over one that is in order.
const VALIDATING: &[(&str, &str)] = &[
    ("nothing wrong", "{}"),
    ("no constraints", r#"{"matchConstraints":null}"#),
    ("no rules", r#"{"matchConstraints":{}}"#),
    ("an unknown failure policy", r#"{"failurePolicy":"Maybe"}"#),
    (
        "an unknown match policy",
        r#"{"matchConstraints":{"matchPolicy":"Nearly","resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}}"#,
    ),
    (
        "an unknown operation",
        r#"{"matchConstraints":{"resourceRules":[{"operations":["READ"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}}"#,
    ),
    (
        "a name twice",
        r#"{"matchConstraints":{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"resourceNames":["a","a","b/c"]}]}}"#,
    ),
    (
        "a bad rule that excludes",
        r#"{"matchConstraints":{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}],"excludeResourceRules":[{"operations":["*"],"apiGroups":["*","a"],"apiVersions":["v1"],"resources":["*","pods"]}]}}"#,
    ),
    (
        "a bad selector",
        r#"{"matchConstraints":{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}],"objectSelector":{"matchLabels":{"not a key":"x"}}}}"#,
    ),
    ("no validations", r#"{"validations":null}"#),
    ("an empty expression", r#"{"validations":[{"expression":""}]}"#),
    ("a blank expression", r#"{"validations":[{"expression":"  "}]}"#),
    ("an expression that is no truth", r#"{"validations":[{"expression":"'text'"}]}"#),
    ("an expression that may be anything", r#"{"validations":[{"expression":"object.metadata"}]}"#),
    ("an unknown variable", r#"{"validations":[{"expression":"unknown == 1"}]}"#),
    ("parameters without a kind", r#"{"validations":[{"expression":"params.x == 1"}]}"#),
    ("variables without any", r#"{"validations":[{"expression":"variables.x == 1"}]}"#),
    ("an unknown field of the request", r#"{"validations":[{"expression":"request.nothing == ''"}]}"#),
    (
        "an unknown field of the namespace",
        r#"{"validations":[{"expression":"namespaceObject.nothing == ''"}]}"#,
    ),
    ("an unknown function", r#"{"validations":[{"expression":"object.improve()"}]}"#),
    ("the wrong types", r#"{"validations":[{"expression":"request.name == 5"}]}"#),
    ("two bad expressions", r#"{"validations":[{"expression":"request.name == 5"},{"expression":"1"}]}"#),
    ("an expression of two lines", r#"{"validations":[{"expression":"request.name ==\n 5"}]}"#),
    ("an object that is made", r#"{"validations":[{"expression":"Object{} == Object{}"}]}"#),
    ("a key that is escaped", r#"{"validations":[{"expression":"jsonpatch.escapeKey('a') == 'a'"}]}"#),
    ("a blank message", r#"{"validations":[{"expression":"true","message":"  "}]}"#),
    ("a message of two lines", r#"{"validations":[{"expression":"true","message":"a\nb"}]}"#),
    (
        "a blank expression of a message",
        r#"{"validations":[{"expression":"true","messageExpression":"  "}]}"#,
    ),
    (
        "an expression of a message that is no text",
        r#"{"validations":[{"expression":"true","messageExpression":"1"}]}"#,
    ),
    (
        "an expression of a message that may be anything",
        r#"{"validations":[{"expression":"true","messageExpression":"object.metadata.name"}]}"#,
    ),
    (
        "an expression of a message with the authorizer",
        r#"{"validations":[{"expression":"true","messageExpression":"authorizer.path('/').check('get').reason()"}]}"#,
    ),
    ("an unknown reason", r#"{"validations":[{"expression":"true","reason":"Whim"}]}"#),
    ("a variable without a name", r#"{"variables":[{"expression":"1"}]}"#),
    ("a variable of a bad name", r#"{"variables":[{"name":"a-b","expression":"1"}]}"#),
    ("a variable of a reserved name", r#"{"variables":[{"name":"in","expression":"1"}]}"#),
    ("a variable without an expression", r#"{"variables":[{"name":"a"}]}"#),
    (
        "a variable that does not compile",
        r#"{"variables":[{"name":"a","expression":"unknown"}],"validations":[{"expression":"variables.a == 1"}]}"#,
    ),
    (
        "a variable that uses a later one",
        r#"{"variables":[{"name":"a","expression":"variables.b"},{"name":"b","expression":"1"}]}"#,
    ),
    ("a variable that uses itself", r#"{"variables":[{"name":"a","expression":"variables.a"}]}"#),
    (
        "an unknown variable of its own",
        r#"{"variables":[{"name":"a","expression":"1"}],"validations":[{"expression":"variables.b == 1"}]}"#,
    ),
    (
        "a variable of the wrong type",
        r#"{"variables":[{"name":"a","expression":"'x'"}],"validations":[{"expression":"variables.a == 1"}]}"#,
    ),
    (
        "a list of the wrong type",
        r#"{"variables":[{"name":"a","expression":"['x']"}],"validations":[{"expression":"variables.a[0] == 1"}]}"#,
    ),
    ("a condition that is no truth", r#"{"matchConditions":[{"name":"a","expression":"1"}]}"#),
    (
        "a condition with variables",
        r#"{"variables":[{"name":"a","expression":"true"}],"matchConditions":[{"name":"a","expression":"variables.a"}]}"#,
    ),
    ("a condition without a name", r#"{"matchConditions":[{"expression":"true"}]}"#),
    (
        "two conditions of one name",
        r#"{"matchConditions":[{"name":"a","expression":"true"},{"name":"a","expression":"true"}]}"#,
    ),
    ("a kind of parameters without a version", r#"{"paramKind":{"kind":"ConfigMap"}}"#),
    ("parameters without a kind's name", r#"{"paramKind":{"apiVersion":"v1"}}"#),
    ("a bad version of parameters", r#"{"paramKind":{"apiVersion":"a/b/c","kind":"X"}}"#),
    ("a bad group of parameters", r#"{"paramKind":{"apiVersion":"Not_A/v1","kind":"X"}}"#),
    ("an empty version of parameters", r#"{"paramKind":{"apiVersion":"a/","kind":"X"}}"#),
    ("a slash for parameters", r#"{"paramKind":{"apiVersion":"/","kind":"X"}}"#),
    ("an odd version of parameters", r#"{"paramKind":{"apiVersion":"a/1","kind":"X"}}"#),
    ("an odd kind of parameters", r#"{"paramKind":{"apiVersion":"v1","kind":"X Y"}}"#),
    ("an annotation of a bad key", r#"{"auditAnnotations":[{"key":"not a key","valueExpression":"'x'"}]}"#),
    ("an annotation without a key", r#"{"auditAnnotations":[{"valueExpression":"'x'"}]}"#),
    ("an annotation without an expression", r#"{"auditAnnotations":[{"key":"a"}]}"#),
    ("an annotation that is no text", r#"{"auditAnnotations":[{"key":"a","valueExpression":"1"}]}"#),
    (
        "an annotation that is a time",
        r#"{"auditAnnotations":[{"key":"a","valueExpression":"timestamp('2020-01-01T00:00:00Z')"}]}"#,
    ),
    (
        "two annotations of one key",
        r#"{"auditAnnotations":[{"key":"a","valueExpression":"'x'"},{"key":"a","valueExpression":"'y'"}]}"#,
    ),
];

const VALIDATING_BINDINGS: &[(&str, &str)] = &[
    ("nothing wrong", "{}"),
    ("no policy", r#"{"policyName":null}"#),
    ("a bad name of a policy", r#"{"policyName":"Not A Name"}"#),
    ("no actions", r#"{"validationActions":null}"#),
    ("an unknown action", r#"{"validationActions":["Shout"]}"#),
    ("an action twice", r#"{"validationActions":["Deny","Deny"]}"#),
    ("two actions that do not fit", r#"{"validationActions":["Deny","Warn"]}"#),
    ("a parameter without anything", r#"{"paramRef":{}}"#),
    ("a parameter without an action", r#"{"paramRef":{"name":"a"}}"#),
    ("a parameter with an unknown action", r#"{"paramRef":{"name":"a","parameterNotFoundAction":"Shrug"}}"#),
    (
        "a parameter by two means",
        r#"{"paramRef":{"name":"a","selector":{},"parameterNotFoundAction":"Deny"}}"#,
    ),
    ("a parameter of a bad name", r#"{"paramRef":{"name":"a/b","parameterNotFoundAction":"Deny"}}"#),
    (
        "a parameter by a bad selector",
        r#"{"paramRef":{"selector":{"matchLabels":{"not a key":"x"}},"parameterNotFoundAction":"Deny"}}"#,
    ),
    (
        "a bad rule",
        r#"{"matchResources":{"resourceRules":[{"operations":["READ"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}}"#,
    ),
    ("no rules", r#"{"matchResources":{}}"#),
];

const MUTATING: &[(&str, &str)] = &[
    ("nothing wrong", "{}"),
    ("no mutations", r#"{"mutations":null}"#),
    ("no policy of invocation", r#"{"reinvocationPolicy":null}"#),
    ("an unknown policy of invocation", r#"{"reinvocationPolicy":"Sometimes"}"#),
    (
        "a deletion",
        r#"{"matchConstraints":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}}"#,
    ),
    ("no constraints", r#"{"matchConstraints":null}"#),
    ("no type of patch", r#"{"mutations":[{"applyConfiguration":{"expression":"Object{}"}}]}"#),
    ("an unknown type of patch", r#"{"mutations":[{"patchType":"Other"}]}"#),
    (
        "a patch of another type",
        r#"{"mutations":[{"patchType":"JSONPatch","applyConfiguration":{"expression":"Object{}"}}]}"#,
    ),
    (
        "a configuration of another type",
        r#"{"mutations":[{"patchType":"ApplyConfiguration","jsonPatch":{"expression":"[]"}}]}"#,
    ),
    (
        "an empty configuration",
        r#"{"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":""}}]}"#,
    ),
    ("an empty patch", r#"{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":" "}}]}"#),
    (
        "a configuration that is none",
        r#"{"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"1"}}]}"#,
    ),
    (
        "a configuration that is a map",
        r#"{"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"{'a': 1}"}}]}"#,
    ),
    (
        "a configuration of a part",
        r#"{"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object.spec{}"}}]}"#,
    ),
    (
        "a configuration of an unknown type",
        r#"{"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Other{}"}}]}"#,
    ),
    (
        "a patch that is no list",
        r#"{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"JSONPatch{op: 'add', path: '/a'}"}}]}"#,
    ),
    ("a patch that is empty", r#"{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[]"}}]}"#),
    (
        "a patch of the wrong types",
        r#"{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 1, path: '/a'}]"}}]}"#,
    ),
    (
        "a patch of two kinds",
        r#"{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'add', path: '/a'}, 1]"}}]}"#,
    ),
    ("a bad variable", r#"{"variables":[{"name":"a","expression":"unknown"}]}"#),
    ("an object in a variable", r#"{"variables":[{"name":"a","expression":"Object{}"}]}"#),
    (
        "a condition with an object",
        r#"{"matchConditions":[{"name":"a","expression":"Object{} == Object{}"}]}"#,
    ),
    ("a bad kind of parameters", r#"{"paramKind":{"apiVersion":"a/b/c","kind":"X"}}"#),
    ("an unknown failure policy", r#"{"failurePolicy":"Maybe"}"#),
];

const MUTATING_BINDINGS: &[(&str, &str)] = &[
    ("nothing wrong", "{}"),
    ("no policy", r#"{"policyName":null}"#),
    (
        "a deletion",
        r#"{"matchResources":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}}"#,
    ),
    ("a parameter without anything", r#"{"paramRef":{}}"#),
];

fn usual(kind: Kind, spec: &str) -> anyhow::Result<Value> {
    let mut spec: Value = serde_json::from_str(spec)?;
    if kind == Kind::Mutating && spec.get("mutations").is_none() {
        spec["mutations"] =
            json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]);
    }
    Ok(spec)
}

async fn tried(script: &mut Script, path: &str, body: Value) -> anyhow::Result<()> {
    let item = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
    if script.post(path, body).await?.is_success() {
        script.leave(item);
    }
    Ok(())
}

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (kind, specs, bindings) in
        [(Kind::Validating, VALIDATING, VALIDATING_BINDINGS), (Kind::Mutating, MUTATING, MUTATING_BINDINGS)]
    {
        for (what, spec) in specs {
            let told = format!("a {} with {what} is stored or refused", kind.name());
            all.push(Behaviour::new(told, move |mut script| async move {
                let body = policy(&script, kind, "it", &usual(kind, spec)?);
                tried(&mut script, &kind.policies(), body).await?;
                Ok(script)
            }));
        }
        for (what, spec) in bindings {
            let told = format!("a {}Binding with {what} is stored or refused", kind.name());
            all.push(Behaviour::new(told, move |mut script| async move {
                let body = binding(&script, kind, "it", &serde_json::from_str(spec)?);
                tried(&mut script, &kind.bindings(), body).await?;
                Ok(script)
            }));
        }
    }
    all.push(Behaviour::new("a policy is updated to what is not valid", |mut script| async move {
        let kind = Kind::Validating;
        let body = policy(&script, kind, "it", &json!({}));
        tried(&mut script, &kind.policies(), body).await?;
        let item = format!("{}/{}", kind.policies(), name(&script, "it"));
        script.merge(&item, json!({"spec": {"validations": [{"expression": "1"}]}})).await?;
        script.merge(&item, json!({"spec": {"validations": [{"expression": "true"}]}})).await?;
        script.merge(&item, json!({"metadata": {"labels": {"a": "b"}}})).await?;
        Ok(script)
    }));
    all
}
