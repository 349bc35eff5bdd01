//! Expressions of admission policies: what they know, in CEL, and what they must evaluate to.

use super::match_conditions::{NAMESPACE, REQUEST};
use crate::object::text;
use serde_json::Value;
use windlass_schema::{Composition, Environment, Expression, Schema, VariableType};

/// What an expression must evaluate to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Anything,
    Bool,
    String,
    StringOrNull,
    /// What is laid over an object.
    Object,
    /// A JSON patch.
    Patches,
}

impl Wanted {
    fn types(self) -> &'static [&'static str] {
        match self {
            Self::Anything => &[],
            Self::Bool => &["bool"],
            Self::String => &["string"],
            Self::StringOrNull => &["string", "null_type"],
            Self::Object => &["Object"],
            Self::Patches => &["list(JSONPatch)"],
        }
    }
}

/// Compiles the expressions of one policy.
pub(crate) struct Compiler {
    /// Whether there is a kind of parameters.
    pub(crate) params: bool,
    /// The policy's own variables, as far as they were read; none where there can be none.
    pub(crate) variables: Option<Composition>,
}

impl Compiler {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What the API says of one that is not valid.
    pub(crate) fn compile(
        &self,
        source: &str,
        wanted: Wanted,
        authorizer: bool,
    ) -> Result<Expression, String> {
        let variables = declared(self.params, authorizer);
        let patches = matches!(wanted, Wanted::Object | Wanted::Patches);
        let environment = Environment { variables: &variables, composed: self.variables.as_ref(), patches };
        let compiled = environment.compile(source).map_err(|why| format!("compilation failed: {why}"))?;
        let got = compiled.output();
        match wanted.types() {
            [] => Ok(compiled),
            types if types.contains(&got) => Ok(compiled),
            [one] => Err(format!("must evaluate to {one} but got {got}")),
            types => Err(format!("must evaluate to one of [{}] but got {got}", types.join(" "))),
        }
    }

    /// Compiles a variable, which the expressions after it see.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub(crate) fn add_variable(&mut self, name: &str, source: &str) -> Result<(), String> {
        let compiled = self.compile(source, Wanted::Anything, true);
        let outcome = compiled.as_ref().map(drop).map_err(Clone::clone);
        self.variables.get_or_insert_default().add(name, compiled);
        outcome
    }
}

/// What every policy knows.
fn declared(params: bool, authorizer: bool) -> Vec<(&'static str, VariableType<'static>)> {
    let mut variables = vec![
        ("object", VariableType::Dyn),
        ("oldObject", VariableType::Dyn),
        ("namespaceObject", VariableType::Declared("kubernetes.Namespace", &NAMESPACE)),
        ("request", VariableType::Declared("kubernetes.AdmissionRequest", &REQUEST)),
    ];
    if params {
        variables.push(("params", VariableType::Dyn));
    }
    if authorizer {
        variables.push(("authorizer", VariableType::Authorizer));
        variables.push(("authorizer.requestResource", VariableType::RequestResource));
    }
    variables
}

/// The values that expressions of policies see.
#[derive(Debug, Default, Clone)]
pub(crate) struct PolicyVariables {
    pub(crate) object: Value,
    pub(crate) old: Value,
    pub(crate) request: Value,
    pub(crate) namespace: Value,
    pub(crate) params: Value,
}

impl PolicyVariables {
    /// Each with its name. Match conditions are not told of the namespace.
    pub(crate) fn named(&self, namespace: bool) -> [(&'static str, VariableType<'static>, &Value); 5] {
        let shown = if namespace { &self.namespace } else { &Value::Null };
        [
            ("object", VariableType::Dyn, &self.object),
            ("oldObject", VariableType::Dyn, &self.old),
            ("request", VariableType::Dyn, &self.request),
            ("namespaceObject", VariableType::Dyn, shown),
            ("params", VariableType::Dyn, &self.params),
        ]
    }
}

/// A variable of a type, if that is known.
fn of<'a>(schema: Option<&'a Schema>, name: &'a str) -> VariableType<'a> {
    match schema {
        Some(schema) => VariableType::Object(name, schema),
        None => VariableType::Dyn,
    }
}

/// What expressions of a policy see where the types are known.
pub(crate) struct TypeCheckedVariables<'a> {
    pub(crate) object: Option<&'a Schema>,
    /// None if the policy has no parameters; inside it the type, if it is known.
    pub(crate) params: Option<Option<&'a Schema>>,
    /// The policy's own variables, as they are written.
    pub(crate) own: &'a [Value],
}

/// Compiles an expression where the types are known.
///
/// # Errors
/// What does not fit.
pub(crate) fn type_checked(known: &TypeCheckedVariables<'_>, source: &str) -> Result<(), String> {
    let mut variables = vec![
        ("object", of(known.object, "object")),
        ("oldObject", of(known.object, "object")),
        ("namespaceObject", VariableType::Declared("kubernetes.Namespace", &NAMESPACE)),
        ("request", VariableType::Declared("kubernetes.AdmissionRequest", &REQUEST)),
        ("authorizer", VariableType::Authorizer),
    ];
    variables.extend(known.params.map(|schema| ("params", of(schema, "params"))));
    let mut composition = Composition::default();
    for variable in known.own {
        let environment = Environment { variables: &variables, composed: Some(&composition), patches: false };
        let compiled = environment.compile(text(variable, &["expression"]));
        composition.add(text(variable, &["name"]), compiled);
    }
    let environment = Environment { variables: &variables, composed: Some(&composition), patches: false };
    environment.compile(source).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_know_what_there_is() {
        let mut compiler = Compiler { params: false, variables: None };
        assert!(compiler.compile("params.x == 1", Wanted::Bool, true).is_err());
        assert!(compiler.compile("variables.x == 1", Wanted::Bool, true).is_err());
        assert!(compiler.compile("namespaceObject.metadata.name == 'a'", Wanted::Bool, true).is_ok());
        assert!(compiler.compile("namespaceObject.nothing == 'a'", Wanted::Bool, true).is_err());
        assert!(
            compiler.compile("authorizer.path('/').check('get').allowed()", Wanted::Bool, false).is_err()
        );
        compiler.params = true;
        assert_eq!(compiler.add_variable("x", "params.x"), Ok(()));
        assert!(compiler.compile("variables.x == 1", Wanted::Bool, true).is_ok());
    }

    #[test]
    fn what_they_evaluate_to_must_be_wanted() {
        let compiler = Compiler { params: false, variables: None };
        let refused = |source: &str, wanted| compiler.compile(source, wanted, true).map(drop);
        assert_eq!(refused("1", Wanted::Bool), Err("must evaluate to bool but got int".to_owned()));
        assert_eq!(refused("null", Wanted::StringOrNull), Ok(()));
        let why = "must evaluate to one of [string null_type] but got bool";
        assert_eq!(refused("true", Wanted::StringOrNull), Err(why.to_owned()));
        assert_eq!(refused("Object{spec: Object.spec{a: 1}}", Wanted::Object), Ok(()));
        let why = "must evaluate to list(JSONPatch) but got list(int)";
        assert_eq!(refused("[1]", Wanted::Patches), Err(why.to_owned()));
    }
}
