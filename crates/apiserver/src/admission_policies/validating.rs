//! What the validations of a policy decide about a request.

use super::budget::{Budget, EXHAUSTED, Stopped, WHOLE};
use super::conditions::{self, Matched};
use super::policy::Policy;
use crate::kinds::policy_expressions::{PolicyVariables, Wanted};
use crate::object::{list, text};
use serde_json::Value;
use windlass_schema::{AuthorizerAnswers, AuthorizerCheck, Composition, Evaluation, Expression};

/// How long a message may be that an expression makes.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The expressions of a policy, compiled.
pub(crate) struct Validator {
    fails_open: bool,
    variables: Composition,
    conditions: Vec<Compiled>,
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
}

type Compiled = Result<Expression, String>;

struct Validation {
    source: String,
    expression: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: String,
}

/// What a policy says of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// One for each validation.
    pub(crate) decisions: Vec<Decision>,
    pub(crate) annotations: Vec<AuditAnnotation>,
}

/// What one validation says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Admit,
    /// It could not be evaluated, which does not matter.
    Ignored,
    Deny {
        message: String,
        /// Empty if there is none.
        reason: String,
    },
}

/// What is written into the audit log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuditAnnotation {
    Publish { key: String, value: String },
    Exclude,
    Failed(String),
}

impl Validator {
    pub(super) fn compile(policy: &Policy) -> Self {
        let (spec, compiler) = (policy.spec(), policy.compiler());
        let validation = |validation: &Value| {
            let message = text(validation, &["messageExpression"]);
            let source = text(validation, &["expression"]);
            Validation {
                source: source.to_owned(),
                expression: compiler.compile(source, Wanted::Bool, true),
                message: text(validation, &["message"]).to_owned(),
                message_expression: (!message.is_empty())
                    .then(|| compiler.compile(message, Wanted::String, false)),
                reason: text(validation, &["reason"]).to_owned(),
            }
        };
        let annotation = |annotation: &Value| {
            let source = text(annotation, &["valueExpression"]);
            (text(annotation, &["key"]).to_owned(), compiler.compile(source, Wanted::StringOrNull, true))
        };
        Self {
            fails_open: policy.fails_open,
            conditions: policy.conditions(&compiler),
            validations: list(spec, &["validations"]).iter().map(validation).collect(),
            annotations: list(spec, &["auditAnnotations"]).iter().map(annotation).collect(),
            variables: compiler.variables.unwrap_or_default(),
        }
    }

    /// What the policy says of a request; `on` is what it is about, for an authorizer of which these answers are known.
    ///
    /// # Errors
    /// What an authorizer must be asked first.
    pub(crate) fn decide(
        &self,
        seen: &PolicyVariables,
        answers: &AuthorizerAnswers,
        on: &AuthorizerCheck,
    ) -> Result<Decided, Box<AuthorizerCheck>> {
        let failed = |why: &str| Decided { decisions: vec![self.failed(why)], annotations: Vec::new() };
        if !self.conditions.is_empty() {
            let values = seen.named(false);
            let evaluation = match Evaluation::new(&values, Some(&self.variables)) {
                Ok(evaluation) => evaluation,
                Err(why) => return Ok(failed(&why)),
            };
            match conditions::hold(&self.conditions, &mut evaluation.asking(answers, on), self.fails_open) {
                Matched::Yes => {}
                Matched::No => return Ok(Decided::default()),
                Matched::Failed(why) => return Ok(failed(&why)),
                Matched::Unanswered(check) => return Err(check),
            }
        }
        let values = seen.named(true);
        let plain = match Evaluation::new(&values, Some(&self.variables)) {
            Ok(evaluation) => evaluation,
            Err(why) => return Ok(failed(&why)),
        };
        let mut budget = Budget::new(WHOLE);
        let mut asking = plain.asking(answers, on);
        let mut outcomes = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            match budget.evaluate(&mut asking, &validation.expression) {
                Ok(outcome) => outcomes.push(outcome),
                Err(Stopped::Unanswered(check)) => return Err(check),
                Err(Stopped::Exhausted) => return Ok(failed(EXHAUSTED)),
            }
        }
        let messages = self.messages(&mut plain.again(), budget.left())?;
        let decisions = self.validations.iter().zip(outcomes).enumerate();
        let decisions = decisions
            .map(|(index, (validation, outcome))| match (outcome, &messages) {
                (Err(why), _) => self.failed(&why),
                (_, None) => self.failed(&format!("failed messageExpression: {EXHAUSTED}")),
                (Ok(Value::Bool(true)), _) => Decision::Admit,
                (Ok(_), Some(messages)) => validation.denied(messages.get(index)),
            })
            .collect();
        let Some(annotations) = self.annotate(&mut plain.again())? else { return Ok(failed(EXHAUSTED)) };
        Ok(Decided { decisions, annotations })
    }

    fn failed(&self, why: &str) -> Decision {
        match self.fails_open {
            true => Decision::Ignored,
            false => Decision::Deny { message: why.to_owned(), reason: String::new() },
        }
    }

    /// The messages that validations make, if they cost no more than is left.
    fn messages<'a>(
        &'a self,
        evaluation: &mut Evaluation<'a>,
        left: u64,
    ) -> Result<Option<Vec<Option<String>>>, Box<AuthorizerCheck>> {
        let mut budget = Budget::new(left);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let Some(expression) = &validation.message_expression else {
                messages.push(None);
                continue;
            };
            match budget.evaluate(evaluation, expression) {
                Ok(outcome) => messages.push(outcome.ok().and_then(|value| Some(value.as_str()?.to_owned()))),
                Err(Stopped::Exhausted) => return Ok(None),
                Err(Stopped::Unanswered(check)) => return Err(check),
            }
        }
        Ok(Some(messages))
    }

    /// What is written into the audit log; none if that costs too much.
    fn annotate<'a>(
        &'a self,
        evaluation: &mut Evaluation<'a>,
    ) -> Result<Option<Vec<AuditAnnotation>>, Box<AuthorizerCheck>> {
        let mut budget = Budget::new(WHOLE);
        let mut annotations = Vec::with_capacity(self.annotations.len());
        for (key, expression) in &self.annotations {
            let annotation = match budget.evaluate(evaluation, expression) {
                Ok(Ok(Value::String(value))) if !value.trim().is_empty() => {
                    AuditAnnotation::Publish { key: key.clone(), value: value.trim().to_owned() }
                }
                Ok(Err(why)) if !self.fails_open => AuditAnnotation::Failed(why),
                Ok(_) => AuditAnnotation::Exclude,
                Err(Stopped::Exhausted) => return Ok(None),
                Err(Stopped::Unanswered(check)) => return Err(check),
            };
            annotations.push(annotation);
        }
        Ok(Some(annotations))
    }
}

impl Validation {
    /// A refusal in the words of the expression if it has any that will do, or else of the message.
    fn denied(&self, made: Option<&Option<String>>) -> Decision {
        let made = made.and_then(Option::as_deref).unwrap_or_default().trim();
        let made = if made.len() > LONGEST_MESSAGE || made.contains('\n') { "" } else { made };
        let message = match (made, self.message.trim()) {
            ("", "") => format!("failed expression: {}", self.source.trim()),
            ("", message) => message.to_owned(),
            (made, _) => made.to_owned(),
        };
        let reason = if self.reason.is_empty() { "Invalid" } else { &self.reason };
        Decision::Deny { message, reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_schema::AuthorizerDecision;

    fn decided(spec: Value) -> Decided {
        let policy = Policy::read("it", spec);
        let seen = PolicyVariables {
            object: json!({"metadata": {"name": "a"}, "spec": {"replicas": 3}}),
            request: json!({"operation": "CREATE"}),
            params: json!({"most": 2}),
            ..PolicyVariables::default()
        };
        let mut answers = AuthorizerAnswers::default();
        let on = AuthorizerCheck::default();
        loop {
            match policy.validator().decide(&seen, &answers, &on) {
                Ok(decided) => return decided,
                Err(check) => answers.learn(*check, AuthorizerDecision::default()),
            }
        }
    }

    fn denied(message: &str) -> Vec<Decision> {
        vec![Decision::Deny { message: message.to_owned(), reason: "Invalid".to_owned() }]
    }

    #[test]
    fn a_validation_that_fails_denies_in_its_own_words() {
        let validation = |change: Value| {
            let mut validation = json!({"expression": " object.spec.replicas <= params.most "});
            for (name, value) in change.as_object().unwrap() {
                validation[name] = value.clone();
            }
            decided(
                json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [validation]}),
            )
            .decisions
        };
        assert_eq!(validation(json!({})), denied("failed expression: object.spec.replicas <= params.most"));
        assert_eq!(validation(json!({"message": " too many "})), denied("too many"));
        let made = json!({"message": "too many", "messageExpression": "'at most ' + string(params.most)"});
        assert_eq!(validation(made), denied("at most 2"));
        for useless in ["'a\\nb'", "'  '", "object.missing"] {
            let made = json!({"message": "too many", "messageExpression": useless});
            assert_eq!(validation(made), denied("too many"), "{useless}");
        }
        let asked =
            json!({"expression": "authorizer.path('/x').check('get').allowed()", "reason": "Forbidden"});
        let message = "failed expression: authorizer.path('/x').check('get').allowed()".to_owned();
        assert_eq!(validation(asked), [Decision::Deny { message, reason: "Forbidden".to_owned() }]);
    }

    #[test]
    fn what_cannot_be_evaluated_is_denied_or_ignored() {
        let spec = |policy: &str| json!({"failurePolicy": policy, "validations": [{"expression": "object.missing.x"}]});
        let compiled = "compilation error: must evaluate to bool but got dyn";
        let decision = Decision::Deny { message: compiled.to_owned(), reason: String::new() };
        assert_eq!(decided(spec("Fail")).decisions, [decision]);
        assert_eq!(decided(spec("Ignore")).decisions, [Decision::Ignored]);
    }

    #[test]
    fn conditions_decide_whether_a_policy_is_asked() {
        let spec = |condition: &str| json!({"matchConditions": [{"name": "a", "expression": condition}], "validations": [{"expression": "false"}]});
        assert_eq!(decided(spec("request.operation == 'DELETE'")), Decided::default());
        assert_eq!(
            decided(spec("request.operation == 'CREATE'")).decisions,
            denied("failed expression: false")
        );
        let why = "expression 'object.missing == 1' resulted in error: no such key: missing".to_owned();
        let failed = Decision::Deny { message: why, reason: String::new() };
        assert_eq!(decided(spec("object.missing == 1")).decisions, [failed]);
    }

    #[test]
    fn annotations_are_texts() {
        let spec =
            |expression: &str| json!({"auditAnnotations": [{"key": "k", "valueExpression": expression}]});
        let annotations = |expression: &str| decided(spec(expression)).annotations;
        let publish = AuditAnnotation::Publish { key: "k".to_owned(), value: "a".to_owned() };
        assert_eq!(annotations("' ' + string(object.metadata.name)"), [publish]);
        assert_eq!(annotations("null"), [AuditAnnotation::Exclude]);
        assert_eq!(annotations("''"), [AuditAnnotation::Exclude]);
        assert!(matches!(&annotations("string(object.missing)")[..], [AuditAnnotation::Failed(_)]));
    }
}
