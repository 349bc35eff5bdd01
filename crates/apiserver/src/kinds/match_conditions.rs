//! Match conditions: expressions in CEL that all must hold for a webhook to be asked.

use serde_json::{Value, json};
use std::sync::LazyLock;
use windlass_schema::{AuthorizerAnswers, AuthorizerCheck, Evaluated, Expression, Schema, VariableType};

/// What all conditions of a webhook may cost together.
const BUDGET: u64 = 2_500_000;

/// The conditions of one webhook, compiled.
pub(crate) struct MatchConditions(Vec<Result<Expression, String>>);

/// What conditions see.
pub(crate) struct ConditionVariables {
    pub(crate) object: Value,
    pub(crate) old: Value,
    pub(crate) request: Value,
    /// The resource of the request, as an authorizer is asked about it.
    pub(crate) on: AuthorizerCheck,
}

/// Whether all conditions hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
    /// Some fail, for these reasons, and none says no.
    Failed(Vec<String>),
    /// This must be asked first.
    Unanswered(Box<AuthorizerCheck>),
}

impl MatchConditions {
    pub(crate) fn new<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Self {
        Self(expressions.into_iter().map(|expression| compiled(expression.trim())).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A condition that does not hold counts before one that fails.
    pub(crate) fn hold(&self, seen: &ConditionVariables, answers: &AuthorizerAnswers) -> Holds {
        let nothing = Value::Null;
        let values = variables().map(|(name, kind)| {
            let value = match name {
                "object" => &seen.object,
                "oldObject" => &seen.old,
                "request" => &seen.request,
                _ => &nothing,
            };
            (name, kind, value)
        });
        let (mut failed, mut left) = (Vec::new(), BUDGET);
        for condition in &self.0 {
            let expression = match condition {
                Ok(expression) => expression,
                Err(why) => {
                    failed.push(format!("compilation error: {why}"));
                    continue;
                }
            };
            let (outcome, cost) = match expression.evaluate_asking(&values, answers, &seen.on) {
                Evaluated::Done(outcome, cost) => (outcome, cost),
                Evaluated::Unanswered(check) => return Holds::Unanswered(check),
            };
            if cost > left {
                let why = "validation failed due to running out of cost budget, no further validation rules will be run";
                return Holds::Failed(vec![why.to_owned()]);
            }
            left -= cost;
            match outcome {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Holds::No,
                Err(why) => {
                    failed.push(format!("expression '{}' resulted in error: {why}", expression.source()));
                }
            }
        }
        if failed.is_empty() { Holds::Yes } else { Holds::Failed(failed) }
    }
}

/// What is wrong with a condition, if anything.
///
/// # Errors
/// What the API says of it.
pub(crate) fn check_condition(expression: &str) -> Result<(), String> {
    compiled(expression).map(drop)
}

fn compiled(expression: &str) -> Result<Expression, String> {
    let compiled = Expression::compile(expression, &variables());
    let compiled = compiled.map_err(|why| format!("compilation failed: {why}"))?;
    match compiled.output() {
        "bool" => Ok(compiled),
        other => Err(format!("must evaluate to bool but got {other}")),
    }
}

/// What conditions know. The namespace is declared, and never there.
fn variables() -> [(&'static str, VariableType<'static>); 6] {
    [
        ("object", VariableType::Dyn),
        ("oldObject", VariableType::Dyn),
        ("namespaceObject", VariableType::Declared("kubernetes.Namespace", &NAMESPACE)),
        ("request", VariableType::Declared("kubernetes.AdmissionRequest", &REQUEST)),
        ("authorizer", VariableType::Authorizer),
        ("authorizer.requestResource", VariableType::RequestResource),
    ]
}

pub(super) static REQUEST: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let names = |names: [&str; 3]| {
        let fields: serde_json::Map<_, _> =
            names.map(|name| (name.to_owned(), text.clone())).into_iter().collect();
        json!({"type": "object", "properties": fields})
    };
    let (kind, resource) = (names(["group", "version", "kind"]), names(["group", "version", "resource"]));
    let user = json!({"type": "object", "properties": {
        "username": text, "uid": text, "groups": texts, "extra": {"type": "object", "additionalProperties": texts},
    }});
    // What may be a number or a text is anything to an expression, and so are options.
    let any = json!({"x-kubernetes-int-or-string": true});
    let schema = json!({"type": "object", "properties": {
        "kind": kind, "resource": resource, "subResource": text,
        "requestKind": kind, "requestResource": resource, "requestSubResource": text,
        "name": text, "namespace": text, "operation": text, "userInfo": user,
        "dryRun": {"type": "boolean"}, "options": any,
    }});
    Schema::from_json(&schema).expect("the schema of a request is valid")
});

/// What expressions may know of a namespace.
pub(super) static NAMESPACE: LazyLock<Schema> = LazyLock::new(|| {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let time = json!({"type": "string", "format": "date-time"});
    let (texts, pairs) =
        (json!({"type": "array", "items": text}), json!({"type": "object", "additionalProperties": text}));
    let metadata = json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "labels": pairs, "annotations": pairs, "UID": text,
        "creationTimestamp": time, "deletionGracePeriodSeconds": number, "deletionTimestamp": time,
        "generation": number, "resourceVersion": text, "finalizers": texts,
    }});
    let condition = json!({"type": "object", "properties": {
        "status": text, "type": text, "lastTransitionTime": time, "message": text, "reason": text,
    }});
    let schema = json!({"type": "object", "properties": {
        "metadata": metadata,
        "spec": {"type": "object", "properties": {"finalizers": texts}},
        "status": {"type": "object", "properties": {
            "conditions": {"type": "array", "items": condition}, "phase": text,
        }},
    }});
    Schema::from_json(&schema).expect("the schema of a namespace is valid")
});

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_schema::AuthorizerDecision;

    fn conditions(expressions: &[&str]) -> MatchConditions {
        MatchConditions::new(expressions.iter().copied())
    }

    fn seen() -> ConditionVariables {
        ConditionVariables {
            object: json!({"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {"replicas": 3}}),
            old: Value::Null,
            request: json!({"operation": "CREATE", "userInfo": {"username": "jane", "groups": ["a"]},
                "options": {"fieldManager": "m"}, "dryRun": false}),
            on: AuthorizerCheck { resource: "pods".into(), ..AuthorizerCheck::default() },
        }
    }

    fn hold(expressions: &[&str]) -> Holds {
        conditions(expressions).hold(&seen(), &AuthorizerAnswers::default())
    }

    #[test]
    fn all_conditions_must_hold() {
        assert_eq!(hold(&["object.spec.replicas > 2", "request.operation == 'CREATE'"]), Holds::Yes);
        assert_eq!(hold(&["oldObject == null", "request.options.fieldManager == 'm'"]), Holds::Yes);
        assert_eq!(hold(&["'a' in request.userInfo.groups", "object.spec.replicas == 2"]), Holds::No);
        assert_eq!(hold(&["!has(request.subResource)", "namespaceObject == null"]), Holds::Yes);
    }

    #[test]
    fn one_that_does_not_hold_counts_before_one_that_fails() {
        assert_eq!(hold(&["object.missing == 1", "false"]), Holds::No);
        let why = "expression 'object.missing == 1' resulted in error: no such key: missing";
        assert_eq!(hold(&["object.missing == 1", "true"]), Holds::Failed(vec![why.to_owned()]));
        let why = "expression 'oldObject.spec == 1' resulted in error: no such key: spec";
        assert_eq!(hold(&["oldObject.spec == 1"]), Holds::Failed(vec![why.to_owned()]));
        assert_eq!(hold(&["!has(oldObject.spec)"]), Holds::Yes);
    }

    #[test]
    fn the_authorizer_is_asked_for_what_a_condition_needs() {
        let conditions = conditions(&["authorizer.requestResource.check('delete').allowed()"]);
        let mut answers = AuthorizerAnswers::default();
        let Holds::Unanswered(check) = conditions.hold(&seen(), &answers) else { panic!("it must ask") };
        assert_eq!((check.resource.as_str(), check.verb.as_str()), ("pods", "delete"));
        answers.learn(*check, AuthorizerDecision { allowed: true, ..AuthorizerDecision::default() });
        assert_eq!(conditions.hold(&seen(), &answers), Holds::Yes);
    }

    #[test]
    fn conditions_are_truths() {
        assert_eq!(check_condition("object.metadata.name == 'a'"), Ok(()));
        assert_eq!(check_condition("request.name"), Err("must evaluate to bool but got string".to_owned()));
        assert_eq!(check_condition("object.spec"), Err("must evaluate to bool but got dyn".to_owned()));
        assert!(check_condition("request.nothing == ''").unwrap_err().contains("undefined field 'nothing'"));
        assert!(check_condition("params.x == 1").unwrap_err().contains("undeclared reference to 'params'"));
    }
}
