//! Expressions over named variables, as the configuration of a server has them: match conditions and mappings of claims.

use super::ast::{Expr, Fold, Kind};
use super::declared::declare;
use super::evaluate::Evaluator;
use super::types::Type;
use super::value::{Entries, Key, Meter, Text, Value};
use super::{Complaints, MOST_COST, check, data, escape, parse};
use crate::schema::Schema;
use serde_json::Value as Json;
use std::rc::Rc;

/// An expression that was parsed and whose types were checked.
#[derive(Debug)]
pub struct Expression {
    source: String,
    expression: Expr,
    output: String,
}

/// What a variable holds.
#[derive(Debug, Clone, Copy)]
pub enum VariableType<'a> {
    /// An object of this name, with the fields of a schema.
    Object(&'a str, &'a Schema),
    /// A JSON object with keys of any name and values of any type; numbers are doubles.
    AnyMap,
}

impl Expression {
    /// Parses an expression and checks its types.
    ///
    /// # Errors
    /// What is wrong, and where, as Kubernetes shows it.
    pub fn compile(source: &str, variables: &[(&str, VariableType<'_>)]) -> Result<Self, String> {
        let characters: Vec<char> = source.chars().collect();
        let shown = |complaints: Complaints| complaints.shown(&characters);
        let mut expression = parse::parse(&characters).map_err(shown)?;
        let declared = variables.iter().map(|(name, kind)| (*name, kind.declared())).collect::<Vec<_>>();
        let checked = check::check(&expression, &declared).map_err(shown)?;
        if let Some(why) = checked.broken {
            return Err(why);
        }
        unescape_keys(&mut expression);
        Ok(Self { source: source.to_owned(), expression, output: checked.found.to_string() })
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
        let mut scope = Vec::new();
        for (name, kind, json) in values {
            let value = match kind {
                VariableType::Object(_, schema) => {
                    data::value(json, schema).map_err(|failure| failure.text)?
                }
                VariableType::AnyMap => any(json),
            };
            scope.push((*name, value));
        }
        let mut evaluator = Evaluator { scope, meter: Meter::new(MOST_COST) };
        let value = evaluator.evaluate(&self.expression).map_err(|failure| failure.text)?;
        as_json(&value).ok_or_else(|| "it evaluates to no plain value".to_owned())
    }
}

impl VariableType<'_> {
    fn declared(&self) -> Type {
        match self {
            Self::Object(name, schema) => declare(schema, name).unwrap_or(Type::Dyn),
            Self::AnyMap => Type::Map(Type::String.into(), Type::Dyn.into()),
        }
    }
}

/// JSON whose types nobody declared.
fn any(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Double(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(Rc::new(items.iter().map(any).collect())),
        Json::Object(fields) => {
            let entries = fields.iter().map(|(key, value)| (Key::String(Text::Borrowed(key)), any(value)));
            Value::Map(Rc::new(entries.collect::<Entries<'_>>()))
        }
    }
}

fn as_json(value: &Value<'_>) -> Option<Json> {
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
        Value::Unknown(json) => (*json).clone(),
        _ => return None,
    })
}

/// Keys of maps may be escaped as properties are, for maps come from JSON here.
fn unescape_keys(expression: &mut Expr) {
    let mut parts = vec![expression];
    while let Some(part) = parts.pop() {
        match &mut part.kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Message(_) => {}
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
