//! Expressions over named variables, as the configuration of a server has them: match conditions and mappings of claims.

use super::ast::{Expr, Fold, Kind};
use super::declared::declare;
use super::evaluate::Evaluator;
use super::library::authorizer::{Asking, AuthorizerAnswers, AuthorizerCheck, Said};
use super::types::{self, Type};
use super::value::{Entries, Failure, Key, Meter, Text, Value};
use super::{Complaints, MOST_COST, check, data, escape, parse};
use crate::schema::Schema;
use serde_json::Value as Json;
use std::rc::Rc;

/// An expression that was parsed and whose types were checked.
#[derive(Debug)]
pub struct Expression {
    source: String,
    pub(super) expression: Expr,
    pub(super) found: Type,
    output: String,
}

/// What a variable holds.
#[derive(Debug, Clone, Copy)]
pub enum VariableType<'a> {
    /// An object of this name, with the fields of a schema.
    Object(&'a str, &'a Schema),
    /// A JSON object with keys of any name and values of any type; numbers are doubles.
    AnyMap,
    /// Any JSON; integers are integers.
    Dyn,
    /// JSON that is declared to be an object of this name, with the fields of a schema, and taken as it is.
    Declared(&'a str, &'a Schema),
    /// Who may do what; it has no value, but what [`Expression::evaluate_asking`] is told.
    Authorizer,
    /// The same about the resource of a request.
    RequestResource,
}

/// What became of an evaluation that may ask an authorizer.
#[derive(Debug)]
pub enum Evaluated {
    /// The value, or why there is none; and what it cost.
    Done(Result<Json, String>, u64),
    /// This must be asked first.
    Unanswered(Box<AuthorizerCheck>),
}

impl Expression {
    /// Parses an expression and checks its types.
    ///
    /// # Errors
    /// What is wrong, and where, as Kubernetes shows it.
    pub fn compile(source: &str, variables: &[(&str, VariableType<'_>)]) -> Result<Self, String> {
        let declared = variables.iter().map(|(name, kind)| (*name, kind.declared())).collect::<Vec<_>>();
        Self::declared(source, &declared, false)
    }

    /// The same with variables of these types; `patches` is whether it may make objects and patches.
    pub(super) fn declared(source: &str, variables: &[(&str, Type)], patches: bool) -> Result<Self, String> {
        let characters: Vec<char> = source.chars().collect();
        let shown = |complaints: Complaints| complaints.shown(&characters);
        let mut expression = parse::parse(&characters).map_err(shown)?;
        let checked = check::check(&expression, variables, patches).map_err(shown)?;
        if let Some(why) = checked.broken {
            return Err(why);
        }
        unescape_keys(&mut expression);
        let output = checked.found.declared_name();
        Ok(Self { source: source.to_owned(), expression, found: checked.found, output })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The type that it evaluates to, such as `bool`.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// Does it select `field` of `variable` anywhere?
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let mut found = false;
        self.expression.visit(&mut |part| {
            if let Kind::Select(select) = &part.kind {
                let of = matches!(&select.operand.kind, Kind::Ident(name) if name == variable);
                found |= of && select.field == field;
            }
        });
        found
    }

    /// Evaluates it with these values of its variables, within a bound of cost.
    ///
    /// # Errors
    /// Why there is no value, or that the value has no form in JSON.
    pub fn evaluate(&self, values: &[(&str, VariableType<'_>, &Json)]) -> Result<Json, String> {
        let answers = AuthorizerAnswers::default();
        match self.evaluate_asking(values, &answers, &AuthorizerCheck::default()) {
            Evaluated::Done(outcome, _) => outcome,
            Evaluated::Unanswered(_) => Err("there is no authorizer to ask".to_owned()),
        }
    }

    /// The same for an expression that may ask an authorizer, of which these answers are known; `on` is what a request is about.
    pub fn evaluate_asking(
        &self,
        values: &[(&str, VariableType<'_>, &Json)],
        answers: &AuthorizerAnswers,
        on: &AuthorizerCheck,
    ) -> Evaluated {
        let mut scope = match scope(values) {
            Ok(scope) => scope,
            Err(failure) => return Evaluated::Done(Err(failure.text), 0),
        };
        let asking = |check, said| Value::Authorizer(Rc::new(Asking { answers, check, said }));
        scope.push((AUTHORIZER, asking(AuthorizerCheck::default(), Said::Nothing)));
        scope.push((REQUEST_RESOURCE, asking(on.clone(), Said::Resource)));
        let mut evaluator = Evaluator::new(scope, Meter::new(MOST_COST));
        let value = evaluator.evaluate(&self.expression);
        if let Some(wanted) = answers.take_wanted() {
            return Evaluated::Unanswered(Box::new(wanted));
        }
        let outcome = value
            .map_err(|failure| failure.text)
            .and_then(|value| as_json(&value).ok_or_else(|| "it evaluates to no plain value".to_owned()));
        Evaluated::Done(outcome, evaluator.meter.cost)
    }
}

/// What the authorizer, and it about the resource of a request, are called.
pub(super) const AUTHORIZER: &str = "authorizer";
pub(super) const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// The variables that have values.
pub(super) fn scope<'a>(
    values: &[(&'a str, VariableType<'a>, &'a Json)],
) -> Result<Vec<(&'a str, Value<'a>)>, Failure> {
    let mut scope = Vec::with_capacity(values.len() + 2);
    for (name, kind, json) in values {
        let value = match *kind {
            VariableType::Object(_, schema) => data::value(json, schema)?,
            VariableType::AnyMap => any(json, &|number| Value::Double(number.as_f64().unwrap_or_default())),
            VariableType::Dyn | VariableType::Declared(..) => any(json, &|number| match number.as_i64() {
                Some(number) => Value::Int(number),
                None => Value::Double(number.as_f64().unwrap_or_default()),
            }),
            VariableType::Authorizer | VariableType::RequestResource => continue,
        };
        scope.push((*name, value));
    }
    Ok(scope)
}

impl VariableType<'_> {
    pub(super) fn declared(&self) -> Type {
        match self {
            Self::Object(name, schema) => declare(schema, name).unwrap_or(Type::Dyn),
            Self::AnyMap => Type::Map(Type::String.into(), Type::Dyn.into()),
            Self::Dyn => Type::Dyn,
            Self::Declared(name, schema) => declare(schema, name).unwrap_or(Type::Dyn),
            Self::Authorizer => Type::Opaque(types::AUTHORIZER),
            Self::RequestResource => Type::Opaque(types::RESOURCE_CHECK),
        }
    }
}

/// JSON whose types nobody declared.
fn any<'a>(json: &'a Json, number: &dyn Fn(&serde_json::Number) -> Value<'a>) -> Value<'a> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(given) => number(given),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(Rc::new(items.iter().map(|item| any(item, number)).collect())),
        Json::Object(fields) => {
            let entry =
                |(key, value): (&'a String, &'a Json)| (Key::String(Text::Borrowed(key)), any(value, number));
            Value::Map(Rc::new(fields.iter().map(entry).collect::<Entries<'_>>()))
        }
    }
}

pub(super) fn as_json(value: &Value<'_>) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(number) => (*number).into(),
        Value::Uint(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::String(text) => (**text).into(),
        Value::List(items) => Json::Array(items.iter().map(as_json).collect::<Option<_>>()?),
        Value::Items(items) => Json::Array(items.list.to_vec()),
        Value::Object(object) => Json::Object(object.fields.clone()),
        Value::Map(entries) => {
            let mut fields = serde_json::Map::new();
            for (key, value) in entries.iter() {
                let Key::String(key) = key else { return None };
                fields.insert(key.to_string(), as_json(value)?);
            }
            Json::Object(fields)
        }
        Value::Made(made) => {
            let fields = made.fields.iter().map(|(name, value)| Some(((*name).to_owned(), as_json(value)?)));
            Json::Object(fields.collect::<Option<_>>()?)
        }
        Value::Unknown(json) => (*json).clone(),
        _ => return None,
    })
}

/// Keys of maps may be escaped as properties are, for maps come from JSON here.
fn unescape_keys(expression: &mut Expr) {
    let mut parts = vec![expression];
    while let Some(part) = parts.pop() {
        match &mut part.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Message(message) => parts.extend(message.fields.iter_mut().map(|field| &mut field.value)),
            Kind::Select(select) => {
                if let Some(plain) = escape::unescape(&select.field) {
                    select.field = plain.into_owned();
                }
                parts.push(&mut select.operand);
            }
            Kind::Logic(_, terms) => parts.extend(terms),
            Kind::Choice(choice) => parts.extend(choice.iter_mut()),
            Kind::Call(call) => parts.extend(call.target.iter_mut().chain(&mut call.args)),
            Kind::List(items) => parts.extend(items.iter_mut().map(|(item, _)| item)),
            Kind::Map(entries) => {
                parts.extend(entries.iter_mut().flat_map(|(key, value, _)| [key, value]));
            }
            Kind::Fold(fold) => {
                let Fold { range, filter, body, .. } = &mut **fold;
                parts.extend([range, body].into_iter().chain(filter));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::authorizer::AuthorizerDecision;
    use super::*;
    use serde_json::json;

    fn claims(source: &str) -> Result<Json, String> {
        let expression = Expression::compile(source, &[("claims", VariableType::AnyMap)])?;
        let claims = json!({"sub": "jane", "exp": 20, "roles": ["a", "b"], "a.b": {"c-d": 1}, "no": null});
        expression.evaluate(&[("claims", VariableType::AnyMap, &claims)])
    }

    #[test]
    fn claims_are_json_without_a_schema() {
        assert_eq!(claims("claims.sub + ':' + claims.roles[1]"), Ok(json!("jane:b")));
        assert_eq!(claims("claims.exp - 0.5 < 20"), Ok(json!(true)));
        assert_eq!(claims("claims.roles.filter(r, r != 'a')"), Ok(json!(["b"])));
        assert_eq!(claims("claims.a__dot__b.c__dash__d == 1"), Ok(json!(true)));
        assert_eq!(claims("claims.?other.orValue('none')"), Ok(json!("none")));
        assert_eq!(claims("claims.no == null"), Ok(json!(true)));
        assert_eq!(claims("claims.other"), Err("no such key: other".to_owned()));
        assert!(claims("claims.").unwrap_err().starts_with("ERROR: <input>:1:8: Syntax error"));
        assert!(claims("duration('1s')").is_err());
    }

    #[test]
    fn the_authorizer_is_asked_before_an_expression_goes_on() {
        let source = "object.spec.replicas > 2 || authorizer.group('apps').resource('deployments')\
                      .namespace('n').check('delete').allowed() || authorizer.requestResource.check('x').errored()";
        let variables = [
            ("object", VariableType::Dyn),
            ("authorizer", VariableType::Authorizer),
            ("authorizer.requestResource", VariableType::RequestResource),
        ];
        let expression = Expression::compile(source, &variables).unwrap();
        assert_eq!(expression.output(), "bool");
        let (object, mut answers) = (json!({"spec": {"replicas": 2}}), AuthorizerAnswers::default());
        let on = AuthorizerCheck { resource: "pods".into(), ..AuthorizerCheck::default() };
        let values = [("object", VariableType::Dyn, &object)];
        let mut asked = Vec::new();
        let (outcome, cost) = loop {
            match expression.evaluate_asking(&values, &answers, &on) {
                Evaluated::Done(outcome, cost) => break (outcome, cost),
                Evaluated::Unanswered(check) => {
                    asked.push((check.resource.clone(), check.namespace.clone(), check.verb.clone()));
                    let error = if asked.len() == 2 { "it failed" } else { "" };
                    let decision = AuthorizerDecision { error: error.into(), ..Default::default() };
                    answers.learn(*check, decision);
                }
            }
        };
        assert_eq!(outcome, Ok(json!(true)));
        assert!(cost > 700_000, "{cost}");
        let asked: Vec<_> = asked.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
        assert_eq!(asked, [("deployments", "n", "delete"), ("pods", "", "x")]);
        let error = Expression::compile("authorizer.check('get')", &variables).unwrap_err();
        assert!(error.contains("found no matching overload for 'check'"), "{error}");
    }

    #[test]
    fn objects_have_the_fields_of_their_schema() {
        let schema = json!({"type": "object", "properties": {
            "user": {"type": "string"}, "groups": {"type": "array", "items": {"type": "string"}}}});
        let schema = Schema::from_json(&schema).unwrap();
        let kind = VariableType::Object("kubernetes.Request", &schema);
        let compile = |source: &str| Expression::compile(source, &[("request", kind)]);
        let expression = compile("'admins' in request.groups && request.user != ''").unwrap();
        assert_eq!(expression.output(), "bool");
        assert!(expression.selects("request", "user") && !expression.selects("request", "uid"));
        let asked = json!({"user": "jane", "groups": ["admins"]});
        assert_eq!(expression.evaluate(&[("request", kind, &asked)]), Ok(json!(true)));
        let error = compile("request.users == ''").unwrap_err();
        assert!(error.contains("undefined field 'users'"), "{error}");
    }
}
