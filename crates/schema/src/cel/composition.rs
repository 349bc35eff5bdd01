//! Expressions of a policy: its own variables, each of which sees those before it, and all that is evaluated with them.
//!
//! A variable is evaluated when it is first asked for, and once per evaluation. What it costs counts for the policy and not for
//! the expression that asks.

use super::evaluate::Evaluator;
use super::expression::{AUTHORIZER, REQUEST_RESOURCE, as_json, scope};
use super::library::authorizer::{Asking, AuthorizerAnswers, AuthorizerCheck, Said};
use super::types::{self, ObjectType, Type};
use super::value::{Failure, Made, Meter, Outcome, Value};
use super::{Evaluated, Expression, MOST_COST, VariableType};
use serde_json::{Value as Json, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What the variables of a policy are called together, and their type.
const VARIABLES: &str = "variables";
const VARIABLES_TYPE: &str = "kubernetes.variables";

/// How many levels of expressions may wait for each other, over all variables: each is recursion.
const MOST_LEVELS: u16 = 400;

/// What expressions of one sort see.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    /// The variables that every policy has.
    pub variables: &'a [(&'a str, VariableType<'a>)],
    /// The policy's own, if it may have any.
    pub composed: Option<&'a Composition>,
    /// Whether objects and patches can be made.
    pub patches: bool,
}

/// The variables of a policy.
#[derive(Debug, Default)]
pub struct Composition {
    variables: BTreeMap<String, Result<Expression, String>>,
    types: BTreeMap<String, Type>,
}

impl Environment<'_> {
    /// Parses an expression and checks its types.
    ///
    /// # Errors
    /// What is wrong, and where, as Kubernetes shows it.
    pub fn compile(&self, source: &str) -> Result<Expression, String> {
        let mut declared: Vec<(&str, Type)> =
            self.variables.iter().map(|(name, kind)| (*name, kind.declared())).collect();
        if let Some(composed) = self.composed {
            let fields = composed.types.clone();
            let kind = ObjectType { name: VARIABLES_TYPE.to_owned(), fields, open: false };
            declared.push((VARIABLES, Type::Object(kind.into())));
        }
        Expression::declared(source, &declared, self.patches)
    }
}

impl Composition {
    /// Adds a variable, which those after it can use; also one that does not compile, whose use fails.
    pub fn add(&mut self, name: &str, compiled: Result<Expression, String>) {
        let kind = compiled.as_ref().map_or(Type::Dyn, |expression| kept(&expression.found));
        self.types.insert(name.to_owned(), kind);
        self.variables.insert(name.to_owned(), compiled);
    }
}

/// What is known of the type of a variable where it is used.
fn kept(found: &Type) -> Type {
    match found {
        Type::List(item) => Type::List(kept(item).into()),
        Type::Map(key, value) => Type::Map(kept(key).into(), kept(value).into()),
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Timestamp
        | Type::Duration => found.clone(),
        _ => Type::Dyn,
    }
}

/// What is known of variables during an evaluation.
#[derive(Debug, Clone)]
pub(super) struct Lazy<'a> {
    composition: &'a Composition,
    known: Rc<RefCell<BTreeMap<&'a str, Outcome<'a>>>>,
    cost: Rc<Cell<u64>>,
    /// How many levels wait for this one.
    levels: u16,
}

impl<'a> Lazy<'a> {
    fn new(composition: &'a Composition) -> Self {
        Self { composition, known: Rc::default(), cost: Rc::default(), levels: 0 }
    }

    /// A variable by its name in expressions, evaluated with what is given to all.
    pub(super) fn get(&self, name: &str, given: &[(&'a str, Value<'a>)]) -> Option<Outcome<'a>> {
        let (name, compiled) = self.composition.variables.get_key_value(name)?;
        if let Some(known) = self.known.borrow().get(name.as_str()) {
            return Some(known.clone());
        }
        let outcome = match compiled {
            Err(why) => Err(Failure::new(format!("composited variable {name:?} fails to compile: {why}"))),
            Ok(expression) => self.evaluate(name, expression, given),
        };
        // What an authorizer has to say first is not known yet.
        if !matches!(&outcome, Err(failure) if failure.is_unanswered()) {
            self.known.borrow_mut().insert(name, outcome.clone());
        }
        Some(outcome)
    }

    fn evaluate(
        &self,
        name: &str,
        expression: &'a Expression,
        given: &[(&'a str, Value<'a>)],
    ) -> Outcome<'a> {
        let levels = self.levels.saturating_add(expression.expression.depth);
        if levels > MOST_LEVELS {
            return Err(Failure::new(format!("composited variable {name:?} depends on too many others")));
        }
        let inner = Self { levels, ..self.clone() };
        let mut evaluator = Evaluator::composed(given.to_vec(), Meter::new(MOST_COST), inner);
        let outcome = evaluator.evaluate(&expression.expression);
        self.cost.set(self.cost.get().saturating_add(evaluator.meter.cost));
        outcome.map_err(|failure| match failure.is_unanswered() {
            true => failure,
            false => {
                Failure::new(format!("composited variable {name:?} fails to evaluate: {}", failure.text))
            }
        })
    }
}

/// Evaluates expressions of a policy with the same values.
pub struct Evaluation<'a> {
    given: Vec<(&'a str, Value<'a>)>,
    answers: Option<&'a AuthorizerAnswers>,
    lazy: Option<Lazy<'a>>,
    /// What is wrong with the names of the types of what the last expression made.
    misnamed: Vec<String>,
}

impl<'a> Evaluation<'a> {
    /// With these values, and variables of which none is known yet.
    ///
    /// # Errors
    /// When a value is none of its type.
    pub fn new(
        values: &[(&'a str, VariableType<'a>, &'a Json)],
        composition: Option<&'a Composition>,
    ) -> Result<Self, String> {
        let mut given = scope(values).map_err(|failure| failure.text)?;
        let lazy = composition.map(Lazy::new);
        if lazy.is_some() {
            given.push((VARIABLES, Value::Variables));
        }
        Ok(Self { given, answers: None, lazy, misnamed: Vec::new() })
    }

    /// The same values, where no variable is known yet.
    #[must_use]
    pub fn again(&self) -> Self {
        let lazy = self.lazy.as_ref().map(|lazy| Lazy::new(lazy.composition));
        Self { given: self.given.clone(), answers: self.answers, lazy, misnamed: Vec::new() }
    }

    /// The same, where an authorizer can be asked, of which these answers are known; `on` is what the request is about.
    #[must_use]
    pub fn asking(&self, answers: &'a AuthorizerAnswers, on: &AuthorizerCheck) -> Self {
        let mut asking = self.again();
        let said = |check, said| Value::Authorizer(Rc::new(Asking { answers, check, said }));
        asking.given.push((AUTHORIZER, said(AuthorizerCheck::default(), Said::Nothing)));
        asking.given.push((REQUEST_RESOURCE, said(on.clone(), Said::Resource)));
        asking.answers = Some(answers);
        asking
    }

    /// Evaluates an expression; its cost has that of the variables in it which were not known before.
    pub fn evaluate(&mut self, expression: &'a Expression) -> Evaluated {
        let meter = Meter::new(MOST_COST);
        let mut evaluator = match &self.lazy {
            Some(lazy) => {
                lazy.cost.set(0);
                Evaluator::composed(self.given.clone(), meter, lazy.clone())
            }
            None => Evaluator::new(self.given.clone(), meter),
        };
        let value = evaluator.evaluate(&expression.expression);
        if let Some(wanted) = self.answers.and_then(AuthorizerAnswers::take_wanted) {
            return Evaluated::Unanswered(Box::new(wanted));
        }
        let composed = self.lazy.as_ref().map_or(0, |lazy| lazy.cost.get());
        let cost = evaluator.meter.cost.saturating_add(composed);
        let outcome = value.map_err(|failure| failure.text).and_then(|value| {
            self.misnamed = misnamed(&value);
            shown(&value).ok_or_else(|| "it evaluates to no plain value".to_owned())
        });
        Evaluated::Done(outcome, cost)
    }

    /// What is wrong with the names of the types of what the last expression made: each says where in the object it is.
    pub fn misnamed(&self) -> &[String] {
        &self.misnamed
    }
}

/// A value as JSON; patches with all that a patch has.
fn shown(value: &Value<'_>) -> Option<Json> {
    match value {
        Value::List(items) => Some(Json::Array(items.iter().map(shown).collect::<Option<_>>()?)),
        Value::Made(made) if made.name == types::JSON_PATCH => {
            let text = |name: &str| match made.get(name) {
                Some(Value::String(text)) => text.to_string(),
                _ => String::new(),
            };
            let mut patch = json!({"op": text("op"), "path": text("path")});
            let from = text("from");
            if !from.is_empty() {
                patch["from"] = from.into();
            }
            if let Some(value) = made.get("value") {
                patch["value"] = as_json(value)?;
            }
            Some(patch)
        }
        other => as_json(other),
    }
}

fn misnamed(value: &Value<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    match value {
        Value::Made(made) if made.name != types::JSON_PATCH => look(made, made.name, &mut wrong),
        Value::List(items) => {
            // The first patch that is wrong is told.
            for item in items.iter() {
                if let Value::Made(patch) = item
                    && let Some(Value::Made(made)) = patch.get("value")
                    && wrong.is_empty()
                {
                    look(made, made.name, &mut wrong);
                }
            }
        }
        _ => {}
    }
    wrong
}

fn look(made: &Made<'_>, path: &str, wrong: &mut Vec<String>) {
    if made.name != path {
        wrong.push(format!(
            "unexpected type name {:?}, expected {path:?}, which matches field name path from root Object type",
            made.name
        ));
    }
    for (name, value) in &made.fields {
        look_into(value, &format!("{path}.{name}"), wrong);
    }
}

fn look_into(value: &Value<'_>, path: &str, wrong: &mut Vec<String>) {
    match value {
        Value::Made(made) => look(made, path, wrong),
        Value::List(items) => items.iter().for_each(|item| look_into(item, path, wrong)),
        Value::Map(entries) => entries.values().for_each(|value| look_into(value, path, wrong)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(variables: &[(&str, &str)]) -> Composition {
        let declared = [("object", VariableType::Dyn), ("authorizer", VariableType::Authorizer)];
        let mut composition = Composition::default();
        for (name, source) in variables {
            let environment =
                Environment { variables: &declared, composed: Some(&composition), patches: false };
            let compiled = environment.compile(source);
            composition.add(name, compiled);
        }
        composition
    }

    fn compiled(composition: &Composition, source: &str) -> Result<Expression, String> {
        let variables = [("object", VariableType::Dyn), ("authorizer", VariableType::Authorizer)];
        Environment { variables: &variables, composed: Some(composition), patches: true }.compile(source)
    }

    fn evaluated(variables: &[(&str, &str)], source: &str) -> (Result<Json, String>, u64) {
        let composition = policy(variables);
        let expression = compiled(&composition, source).unwrap();
        let object = json!({"n": 3, "items": [1, 2, 3], "name": "a/b"});
        let values = [("object", VariableType::Dyn, &object)];
        let mut evaluation = Evaluation::new(&values, Some(&composition)).unwrap();
        match evaluation.evaluate(&expression) {
            Evaluated::Done(outcome, cost) => (outcome, cost),
            Evaluated::Unanswered(_) => panic!("nobody is asked"),
        }
    }

    #[test]
    fn variables_see_those_before_them() {
        let variables = [("n", "object.n"), ("twice", "variables.n * 2"), ("many", "[variables.twice]")];
        assert_eq!(
            evaluated(&variables, "variables.many[0] == 6 && variables.twice == 6").0,
            Ok(json!(true))
        );
        let later = policy(&[("a", "variables.b"), ("b", "1")]);
        assert!(later.variables["a"].as_ref().unwrap_err().contains("undefined field 'b'"));
        assert!(compiled(&later, "variables.c").unwrap_err().contains("undefined field 'c'"));
        let typed = policy(&[("text", "'x'")]);
        assert!(compiled(&typed, "variables.text == 1").unwrap_err().contains("no matching overload"));
    }

    #[test]
    fn a_variable_is_evaluated_when_it_is_asked_for_and_once() {
        let broken = [("broken", "object.missing.x"), ("fine", "true")];
        assert_eq!(evaluated(&broken, "variables.fine || variables.broken").0, Ok(json!(true)));
        let why = "composited variable \"broken\" fails to evaluate: no such key: missing";
        assert_eq!(evaluated(&broken, "variables.broken == 1").0, Err(why.to_owned()));
        let sum = [("sum", "object.items.map(i, i * 2)")];
        let once = evaluated(&sum, "variables.sum[0] == 2").1;
        let twice = evaluated(&sum, "variables.sum[0] == 2 && variables.sum[1] == 4").1;
        assert!(twice < 2 * once, "{once} {twice}");
        let inside = [("i", "object.n")];
        assert_eq!(evaluated(&inside, "object.items.all(i, variables.i == 3)").0, Ok(json!(true)));
    }

    #[test]
    fn a_long_chain_of_variables_fails_and_does_not_overflow() {
        let names: Vec<(String, String)> = (0..2000)
            .map(|index| {
                let source = match index {
                    0 => "object.n".to_owned(),
                    _ => format!("variables.v{} + 1", index - 1),
                };
                (format!("v{index}"), source)
            })
            .collect();
        let variables: Vec<(&str, &str)> =
            names.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect();
        let (outcome, _) = evaluated(&variables, "variables.v1999 == 1");
        assert!(outcome.unwrap_err().contains("depends on too many others"));
        assert_eq!(evaluated(&variables[..50], "variables.v49 == 52").0, Ok(json!(true)));
    }

    #[test]
    fn objects_and_patches_are_made() {
        let object = "Object{spec: Object.spec{replicas: object.n, ?none: optional.none()}, metadata: Object.metadata{labels: {'a': 'b'}}}";
        let (made, _) = evaluated(&[], object);
        assert_eq!(made, Ok(json!({"spec": {"replicas": 3}, "metadata": {"labels": {"a": "b"}}})));
        let patch = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey(object.name), value: {'x': 1}}, \
                     JSONPatch{op: 'remove', path: '/x', from: '/y'}]";
        let (made, _) = evaluated(&[], patch);
        let wanted = json!([{"op": "add", "path": "/metadata/labels/a~1b", "value": {"x": 1}},
            {"op": "remove", "path": "/x", "from": "/y"}]);
        assert_eq!(made, Ok(wanted));
        assert_eq!(evaluated(&[], "Object{a: 1} == Object{a: 1} && Object{a: 1}.a == 1").0, Ok(json!(true)));
        let composition = Composition::default();
        let output =
            |source: &str| compiled(&composition, source).map(|compiled| compiled.output().to_owned());
        assert_eq!(output("Object{}"), Ok("Object".to_owned()));
        assert_eq!(output("[JSONPatch{op: 'test', path: '/a'}]"), Ok("list(JSONPatch)".to_owned()));
        let error = output("JSONPatch{op: 1}").unwrap_err();
        let why = "expected type of field 'op' is 'string' but provided type is 'int'";
        assert!(error.contains(why), "{error}");
        assert!(output("Other{}").unwrap_err().contains("undeclared reference to 'Other'"));
        let error = Expression::compile("Object{}", &[]).unwrap_err();
        assert!(error.contains("undeclared reference to 'Object'"), "{error}");
        assert!(Expression::compile("jsonpatch.escapeKey('a')", &[]).is_err());
    }

    #[test]
    fn what_is_made_is_named_by_its_place() {
        let composition = Composition::default();
        let wrong = |source: &str| {
            let expression = compiled(&composition, source).unwrap();
            let mut evaluation = Evaluation::new(&[], Some(&composition)).unwrap();
            assert!(matches!(evaluation.evaluate(&expression), Evaluated::Done(Ok(_), _)));
            evaluation.misnamed().join("; ")
        };
        assert_eq!(wrong("Object{spec: Object.spec{list: [Object.spec.list{a: 1}]}}"), "");
        let why = "unexpected type name \"Object.other\", expected \"Object.spec\", which matches field name path from root Object type";
        assert_eq!(wrong("Object{spec: Object.other{}}"), why);
        assert_eq!(
            wrong("[JSONPatch{op: 'add', path: '/spec', value: Object.spec{a: Object.spec.a{}}}]"),
            ""
        );
    }
}
