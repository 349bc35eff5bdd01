//! One policy, as it is stored, and its expressions once they are needed.

use super::mutating::Mutator;
use super::validating::Validator;
use crate::kinds::policy_expressions::{Compiler, Wanted};
use crate::match_resources::MatchResources;
use crate::object::{list, text};
use serde_json::Value;
use std::sync::OnceLock;
use windlass_schema::Expression;

/// A policy.
pub(crate) struct Policy {
    pub(crate) name: String,
    /// Whether a request goes on where the policy cannot be carried out.
    pub(crate) fails_open: bool,
    pub(crate) matching: MatchResources,
    pub(crate) param_kind: Option<ParamKind>,
    /// Whether it is asked again if others changed the object after it.
    pub(crate) reinvoked: bool,
    spec: Value,
    validator: OnceLock<Validator>,
    mutator: OnceLock<Mutator>,
}

/// The kind of a policy's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Policy {
    pub(super) fn read(name: &str, spec: Value) -> Self {
        let empty = Value::Null;
        let kind = spec.get("paramKind").filter(|kind| kind.is_object()).map(|kind| {
            let (group, version) =
                text(kind, &["apiVersion"]).rsplit_once('/').unwrap_or(("", text(kind, &["apiVersion"])));
            ParamKind {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: text(kind, &["kind"]).to_owned(),
            }
        });
        Self {
            name: name.to_owned(),
            fails_open: text(&spec, &["failurePolicy"]) == "Ignore",
            matching: MatchResources::of_policy(spec.get("matchConstraints").unwrap_or(&empty)),
            param_kind: kind,
            reinvoked: text(&spec, &["reinvocationPolicy"]) == "IfNeeded",
            spec,
            validator: OnceLock::new(),
            mutator: OnceLock::new(),
        }
    }

    pub(super) fn spec(&self) -> &Value {
        &self.spec
    }

    /// What it validates, compiled when it is first needed.
    pub(crate) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| Validator::compile(self))
    }

    /// What it mutates, compiled when it is first needed.
    pub(crate) fn mutator(&self) -> &Mutator {
        self.mutator.get_or_init(|| Mutator::compile(self))
    }

    /// A compiler that knows the policy's variables.
    pub(super) fn compiler(&self) -> Compiler {
        let mut compiler =
            Compiler { params: self.param_kind.is_some(), variables: Some(Default::default()) };
        for variable in list(&self.spec, &["variables"]) {
            // The use of one that does not compile fails.
            let _ = compiler.add_variable(text(variable, &["name"]), text(variable, &["expression"]));
        }
        compiler
    }

    pub(super) fn conditions(&self, compiler: &Compiler) -> Vec<Result<Expression, String>> {
        let conditions = list(&self.spec, &["matchConditions"]).iter();
        conditions
            .map(|condition| compiler.compile(text(condition, &["expression"]), Wanted::Bool, true))
            .collect()
    }
}

impl std::fmt::Display for ParamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
