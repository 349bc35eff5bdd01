//! What the mutations of a policy make of an object: a configuration to apply, or a JSON patch.

use super::budget::{Budget, EXHAUSTED, Stopped, WHOLE};
use super::conditions::{self, Matched};
use super::policy::Policy;
use crate::kinds::policy_expressions::{PolicyVariables, Wanted};
use crate::object::{list, text};
use serde_json::Value;
use windlass_schema::{AuthorizerAnswers, AuthorizerCheck, Composition, Evaluation, Expression};

/// The expressions of a policy, compiled.
pub(crate) struct Mutator {
    fails_open: bool,
    variables: Composition,
    conditions: Vec<Result<Expression, String>>,
    pub(crate) mutations: Vec<Mutation>,
}

/// One mutation.
pub(crate) struct Mutation {
    pub(crate) patch_type: PatchType,
    expression: Result<Expression, String>,
}

/// What an expression makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    ApplyConfiguration,
    JsonPatch,
}

/// What became of a mutation's expression.
pub(crate) enum Mutated {
    /// The configuration, or the patch.
    Patch(Value),
    Failed(String),
    /// This must be asked first.
    Unanswered(Box<AuthorizerCheck>),
}

impl Mutator {
    pub(super) fn compile(policy: &Policy) -> Self {
        let compiler = policy.compiler();
        let mutation = |mutation: &Value| {
            let (patch_type, field, wanted) = match text(mutation, &["patchType"]) {
                "JSONPatch" => (PatchType::JsonPatch, "jsonPatch", Wanted::Patches),
                _ => (PatchType::ApplyConfiguration, "applyConfiguration", Wanted::Object),
            };
            let source = text(mutation, &[field, "expression"]);
            Mutation { patch_type, expression: compiler.compile(source, wanted, true) }
        };
        Self {
            fails_open: policy.fails_open,
            conditions: policy.conditions(&compiler),
            mutations: list(policy.spec(), &["mutations"]).iter().map(mutation).collect(),
            variables: compiler.variables.unwrap_or_default(),
        }
    }

    /// Whether the match conditions hold.
    pub(crate) fn matches(
        &self,
        seen: &PolicyVariables,
        answers: &AuthorizerAnswers,
        on: &AuthorizerCheck,
    ) -> Matched {
        if self.conditions.is_empty() {
            return Matched::Yes;
        }
        let values = seen.named(false);
        match Evaluation::new(&values, Some(&self.variables)) {
            Ok(evaluation) => {
                conditions::hold(&self.conditions, &mut evaluation.asking(answers, on), self.fails_open)
            }
            Err(why) => Matched::Failed(why),
        }
    }

    /// What a mutation of it makes.
    pub(crate) fn evaluate(
        &self,
        mutation: &Mutation,
        seen: &PolicyVariables,
        answers: &AuthorizerAnswers,
        on: &AuthorizerCheck,
    ) -> Mutated {
        if let Err(why) = &mutation.expression {
            return Mutated::Failed(why.clone());
        }
        let values = seen.named(true);
        let mut evaluation = match Evaluation::new(&values, Some(&self.variables)) {
            Ok(evaluation) => evaluation.asking(answers, on),
            Err(why) => return Mutated::Failed(why),
        };
        match Budget::new(WHOLE).evaluate(&mut evaluation, &mutation.expression) {
            Err(Stopped::Unanswered(check)) => Mutated::Unanswered(check),
            Err(Stopped::Exhausted) => Mutated::Failed(EXHAUSTED.to_owned()),
            Ok(Err(why)) => Mutated::Failed(why),
            Ok(Ok(made)) => match evaluation.misnamed() {
                [] => Mutated::Patch(made),
                wrong => Mutated::Failed(format!("type mismatch: {}", wrong.join("\n"))),
            },
        }
    }
}
