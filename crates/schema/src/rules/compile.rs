//! Compiles the rules of a schema.

use super::{Node, Rule, Rules, field_path};
use crate::cel::{Declared, Program, Refusal, Wanted, as_seen};
use crate::schema::{Additional, Schema};
use serde_json::Value;
use std::sync::Arc;

impl Rules {
    /// The rules of a resource's schema; none if it has none.
    pub fn compile(schema: &Schema) -> Option<Self> {
        Self::of(schema, true)
    }

    /// The same for a part of a schema, which may be the root of a resource.
    pub(crate) fn of(schema: &Schema, root: bool) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let seen = Arc::new(as_seen(schema, root));
        node(schema, &seen).map(Self)
    }
}

fn has_rules(schema: &Schema) -> bool {
    let values = match &schema.additional {
        Some(Additional::Schema(values)) => Some(values),
        _ => None,
    };
    let mut inside =
        schema.items.iter().chain(values).chain(schema.properties.values()).chain(&schema.all_of);
    !schema.validations.is_empty() || inside.any(|inner| has_rules(inner))
}

/// The rules that `schema` has for what looks like `seen`. Both are the same, but inside of `allOf`.
fn node(schema: &Schema, seen: &Arc<Schema>) -> Option<Node> {
    let declared = if schema.validations.is_empty() { None } else { Declared::of(seen) };
    let rules: Vec<Rule> =
        schema.validations.iter().map(|rule| compile(rule, declared.as_ref(), seen)).collect();
    let inner = |schema: &Option<Arc<Schema>>, seen: &Option<Arc<Schema>>| {
        node(schema.as_ref()?, seen.as_ref()?).map(Box::new)
    };
    let properties = schema.properties.iter().filter_map(|(name, property)| {
        // What expressions cannot name is not looked into, unless its name alone is the reason.
        let seen = seen.properties.get(name)?;
        Some((name.clone(), node(property, seen)?))
    });
    let properties = properties.collect();
    let values = |schema: &Schema| match &schema.additional {
        Some(Additional::Schema(values)) => Some(values.clone()),
        _ => None,
    };
    let found = Node {
        schema: seen.clone(),
        rules,
        items: inner(&schema.items, &seen.items),
        properties,
        additional: inner(&values(schema), &values(seen)),
        all_of: schema.all_of.iter().filter_map(|nested| node(nested, seen)).collect(),
    };
    let empty = found.rules.is_empty()
        && found.items.is_none()
        && found.properties.is_empty()
        && found.additional.is_none()
        && found.all_of.is_empty();
    (!empty).then_some(found)
}

pub(super) fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn optional_old(rule: &Value) -> bool {
    rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default()
}

/// What a rule's expression is compiled to, or the words for why not.
pub(super) fn program(rule: &Value, declared: Option<&Declared>) -> Result<Program, String> {
    compiled(text(rule, "rule"), rule, declared, Wanted::Bool).map_err(|refusal| match refusal {
        Refusal::Compilation(why) => format!("compilation failed: {why}"),
        Refusal::Instantiation(why) => format!("program instantiation failed: {why}"),
        Refusal::OtherType => "cel expression must evaluate to a bool".to_owned(),
        Refusal::NoTypes => "unable to convert structural schema to CEL declarations".to_owned(),
    })
}

/// The same for the expression that makes its message.
pub(super) fn message_program(rule: &Value, declared: Option<&Declared>) -> Option<Result<Program, String>> {
    let source = text(rule, "messageExpression");
    if source.is_empty() {
        return None;
    }
    Some(compiled(source, rule, declared, Wanted::String).map_err(|refusal| match refusal {
        Refusal::Compilation(why) => format!("messageExpression compilation failed: {why}"),
        Refusal::Instantiation(why) => format!("messageExpression instantiation failed: {why}"),
        Refusal::OtherType => "messageExpression must evaluate to a string".to_owned(),
        Refusal::NoTypes => "unable to convert structural schema to CEL declarations".to_owned(),
    }))
}

fn compiled(
    source: &str,
    rule: &Value,
    declared: Option<&Declared>,
    wanted: Wanted,
) -> Result<Program, Refusal> {
    Program::compile(source, declared.ok_or(Refusal::NoTypes)?, optional_old(rule), wanted)
}

fn compile(rule: &Value, declared: Option<&Declared>, seen: &Schema) -> Rule {
    let path = text(rule, "fieldPath");
    let found = if path.is_empty() { None } else { field_path::find(path, seen, true).ok() };
    Rule {
        source: text(rule, "rule").to_owned(),
        message: text(rule, "message").to_owned(),
        reason: rule.get("reason").and_then(Value::as_str).map(str::to_owned),
        field_path: found.map_or(String::new(), |found| found.path),
        optional_old: optional_old(rule),
        program: program(rule, declared),
        message_program: message_program(rule, declared).and_then(Result::ok),
        message_source: text(rule, "messageExpression").to_owned(),
    }
}
