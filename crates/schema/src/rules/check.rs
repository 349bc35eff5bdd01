//! Validates the rules of a schema: each is compiled against the types that the schema declares there.

use super::compile::{message_program, optional_old, program, text};
use super::costs::{self, Costs};
use super::field_path;
use crate::cel::{Declared, as_seen};
use crate::field::{FieldError, Path};
use crate::schema::{Additional, ListType, Schema};
use serde_json::Value;

const KEYWORD: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The errors of rules that need no type check.
pub(crate) fn shape(rules: &[Value], schema: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = path.child(KEYWORD);
    let schema = Schema::from_json(schema).ok();
    for (index, rule) in rules.iter().enumerate() {
        shape_of(rule, schema.as_ref(), &path.index(index), &mut errors);
    }
    errors
}

fn breaks_line(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn shape_of(rule: &Value, schema: Option<&Schema>, path: &Path, errors: &mut Vec<FieldError>) {
    let (source, message) = (text(rule, "rule"), text(rule, "message"));
    let trimmed = message.trim();
    if source.trim().is_empty() {
        errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !message.is_empty() && trimmed.is_empty() {
        errors.push(FieldError::invalid(&path.child("message"), message, "must be non-empty if specified"));
    } else if breaks_line(trimmed) {
        errors.push(FieldError::invalid(&path.child("message"), message, "must not contain line breaks"));
    } else if breaks_line(source.trim()) && trimmed.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&path.child("message"), why));
    }
    let expression = text(rule, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(&path.child("messageExpression"), why));
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
    }
    let field_path = text(rule, "fieldPath");
    let wrong = |why: &str| FieldError::invalid(&path.child("fieldPath"), field_path, why);
    if !field_path.is_empty() && field_path.trim().is_empty() {
        errors.push(wrong("must be non-empty if specified"));
    }
    if breaks_line(field_path) {
        errors.push(wrong("must not contain line breaks"));
    }
    if !field_path.is_empty()
        && schema.is_some_and(|schema| field_path::find(field_path, schema, true).is_err())
    {
        errors.push(wrong("must be a valid path"));
    }
}

/// Compiles every rule of a valid schema, and reports those that do not compile or could cost too much.
pub fn check(schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut checker = Checker { errors: Vec::new(), costs: Costs::default() };
    let once = Place { uncorrelated: None, most_often: Some(1) };
    checker.node(&as_seen(schema, true), path, once);
    checker.errors.extend(checker.costs.judge(path));
    checker.errors
}

struct Checker {
    errors: Vec<FieldError>,
    costs: Costs,
}

/// What a schema is told by those around it.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The list around it whose items have no old values.
    uncorrelated: Option<&'a Path>,
    /// How often what it describes can be there, if they say.
    most_often: Option<u64>,
}

impl Checker {
    fn node(&mut self, schema: &Schema, path: &Path, place: Place<'_>) {
        let most_often = place.most_often.zip(costs::most_inside(schema));
        let most_often = most_often.map(|(outside, inside)| outside.saturating_mul(inside));
        let inside = Place { most_often, ..place };
        if let Some(Additional::Schema(values)) = &schema.additional {
            self.node(values, &path.child("additionalProperties"), inside);
        }
        for (name, property) in &schema.properties {
            self.node(property, &path.child("properties").key(name), inside);
        }
        if let Some(items) = &schema.items {
            let list = (schema.list_type != Some(ListType::Map)).then_some(path);
            let uncorrelated = place.uncorrelated.or(list);
            self.node(items, &path.child("items"), Place { uncorrelated, ..inside });
        }
        if schema.validations.is_empty() {
            return;
        }
        let path = path.child(KEYWORD);
        let Some(declared) = Declared::of(schema) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                       unable to convert structural schema to CEL declarations";
            return self.errors.push(FieldError::internal(&path, why));
        };
        for (index, rule) in schema.validations.iter().enumerate() {
            self.rule(rule, &declared, &path.index(index), place);
        }
    }

    fn rule(&mut self, rule: &Value, declared: &Declared, path: &Path, place: Place<'_>) {
        let program = program(rule, Some(declared));
        if let Ok(program) = &program {
            let times = place.most_often.unwrap_or_else(|| declared.most_often());
            let cost = program.estimate().saturating_mul(times);
            self.errors.extend(self.costs.observe("rule", &path.child("rule"), cost));
        }
        if let Err(why) = &program {
            self.errors.push(
                FieldError::invalid(&path.child("rule"), rule.clone(), why.as_str()).showing(in_go(rule)),
            );
        }
        // The message is looked at only if there is a rule that it could be about.
        let message = if program.is_ok() { message_program(rule, Some(declared)) } else { None };
        let path_of_message = path.child("messageExpression");
        match message {
            Some(Err(why)) => {
                let error = FieldError::invalid(&path_of_message, rule.clone(), why);
                self.errors.push(error.showing(in_go(rule)));
            }
            Some(Ok(program)) => {
                let error = self.costs.observe("messageExpression", &path_of_message, program.estimate());
                self.errors.extend(error);
            }
            None => {}
        }
        let uses_old = program.is_ok_and(|program| program.uses_old());
        if uses_old && let Some(list) = place.uncorrelated {
            let why =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
            self.errors.push(FieldError::invalid(&path.child("rule"), text(rule, "rule"), why));
        } else if !uses_old && rule.get("optionalOldSelf").is_some_and(Value::is_boolean) {
            let why = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(&path.child("optionalOldSelf"), optional_old(rule), why));
        }
    }
}

/// A rule as the reference quotes it: by the names of its fields in Go.
fn in_go(rule: &Value) -> String {
    let shown = |value: Value| crate::json::to_string(&value);
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        shown(text(rule, "rule").into()),
        shown(text(rule, "message").into()),
        shown(text(rule, "messageExpression").into()),
        shown(rule.get("reason").cloned().unwrap_or_default()),
        shown(text(rule, "fieldPath").into()),
        shown(rule.get("optionalOldSelf").cloned().unwrap_or_default()),
    )
}
