//! Recursive validation of a value by its schema.

use super::numbers;
use super::outcome::{Outcome, Trail};
use crate::correlate::{Correlated, unchanged};
use crate::field::ErrorKind;
use crate::formats;
use crate::go;
use crate::json;
use crate::pattern::{self, Pattern};
use crate::schema::{Additional, Schema, Type};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Checks the value. Where `old` is given, what is wrong but unchanged is let through.
pub(super) fn check(schema: &Arc<Schema>, value: &Value, old: Option<&Value>) -> Outcome {
    ratcheted(schema, value, old, &Trail::Root)
}

/// One node whose old value is known: its errors vanish if it did not change.
fn ratcheted(schema: &Arc<Schema>, value: &Value, old: Option<&Value>, trail: &Trail<'_>) -> Outcome {
    let found = node(schema, value, old, trail);
    match old {
        Some(old) if !found.is_valid() && unchanged(schema, value, old) => found.forgiven(),
        _ => found,
    }
}

fn node(schema: &Arc<Schema>, value: &Value, old: Option<&Value>, trail: &Trail<'_>) -> Outcome {
    let schema = &schema.resolved();
    let format = formats::known(schema);
    let mut out = Outcome::default();
    if value.is_null() {
        null_type(schema, trail, &mut out);
        enumeration(schema, value, trail, &mut out);
        return out;
    }
    // Every group of rules that applies counts as one match, and so does the node: alternatives are ranked by it.
    if schema.kind.is_some() || schema.int_or_string || format.is_some() {
        json_type(schema, format, value, trail, &mut out);
        out.count_match();
    }
    alternatives(schema, value, trail, &mut out);
    out.count_match();
    match value {
        Value::String(text) => {
            string(schema, text, trail, &mut out);
            out.count_match();
            if let Some(format) = format.filter(|format| formats::of_strings(format)) {
                if !formats::matches(format, text) {
                    out.wrong_type(trail, format, text);
                }
                out.count_match();
            }
        }
        Value::Number(number) => {
            numbers::check(schema, format, number, trail, &mut out);
            out.count_match();
            out.count_match();
        }
        Value::Array(items) => {
            array(schema, items, old, trail, &mut out);
            out.count_match();
            out.count_match();
        }
        _ => {}
    }
    enumeration(schema, value, trail, &mut out);
    out.count_match();
    if let Value::Object(fields) = value {
        object(schema, fields, old, trail, &mut out);
        out.count_match();
    }
    out.count_match();
    out
}

/// The types a schema allows, as messages name them.
fn type_names(schema: &Schema) -> String {
    match schema.kind {
        _ if schema.int_or_string => "integer,string".to_owned(),
        Some(kind) => kind.name().to_owned(),
        None => String::new(),
    }
}

fn allows(schema: &Schema, kind: Type) -> bool {
    if schema.int_or_string {
        matches!(kind, Type::Integer | Type::String)
    } else {
        schema.kind == Some(kind)
    }
}

fn null_type(schema: &Schema, trail: &Trail<'_>, out: &mut Outcome) {
    let names = type_names(schema);
    if names.is_empty() || schema.nullable {
        out.count_match();
    } else {
        out.wrong_type(trail, &names, "null");
    }
}

fn json_type(schema: &Schema, format: Option<&str>, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
    let (kind, native_format) = match value {
        Value::Bool(_) => (Type::Boolean, ""),
        Value::String(_) => (Type::String, ""),
        Value::Array(_) => (Type::Array, ""),
        Value::Number(number) if number.is_f64() => (Type::Number, "float64"),
        Value::Number(_) => (Type::Integer, "int64"),
        Value::Object(_) | Value::Null => (Type::Object, ""),
    };
    let whole_float = kind == Type::Number
        && allows(schema, Type::Integer)
        && value.as_f64().is_some_and(numbers::is_json_integer);
    let fits = allows(schema, kind) || whole_float || (kind == Type::Integer && allows(schema, Type::Number));
    if let Some(format) = format {
        let textual = matches!(kind, Type::String | Type::Array);
        if !textual && !fits && format != native_format {
            return out.wrong_type(trail, format, native_format);
        }
        // A format speaks for strings, and, as the real server has it, for arrays too.
        if textual && !allows(schema, Type::Number) && !allows(schema, Type::Integer) {
            return out.count_match();
        }
    }
    if fits {
        out.count_match();
    } else {
        out.wrong_type(trail, &type_names(schema), kind.name());
    }
}

/// Inside of logic nothing is let through because it did not change: the real server does not look back there.
fn alternatives(schema: &Schema, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
    if !schema.any_of.is_empty() {
        let mut best: Option<Outcome> = None;
        let mut success = false;
        for alternative in &schema.any_of {
            let found = node(alternative, value, None, trail);
            if found.is_valid() {
                (best, success) = (Some(found), true);
                break;
            }
            if best.as_ref().is_none_or(|best| found.matches > best.matches) {
                best = Some(found);
            }
        }
        if !success {
            out.overall(format!(
                "{} must validate at least one schema (anyOf)",
                go::quote(&trail.to_string())
            ));
        }
        best.into_iter().for_each(|best| out.merge(best));
    }
    if !schema.one_of.is_empty() {
        one_of(schema, value, trail, out);
    }
    if !schema.all_of.is_empty() {
        let mut valid = 0;
        for part in &schema.all_of {
            let found = node(part, value, None, trail);
            valid += usize::from(found.is_valid());
            out.merge(found);
        }
        if valid != schema.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            out.overall(format!(
                "{} must validate all the schemas (allOf){none}",
                go::quote(&trail.to_string())
            ));
        }
    }
    if schema.not.as_ref().is_some_and(|not| node(not, value, None, trail).is_valid()) {
        out.overall(format!("{} must not validate the schema (not)", go::quote(&trail.to_string())));
    }
    out.count_match();
}

fn one_of(schema: &Schema, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    let mut success: Option<Outcome> = None;
    let mut valid = 0;
    for alternative in &schema.one_of {
        let found = node(alternative, value, None, trail);
        if found.is_valid() {
            valid += 1;
            best = None;
            success.get_or_insert(found);
        } else if valid == 0 && best.as_ref().is_none_or(|best| found.matches > best.matches) {
            best = Some(found);
        }
    }
    if valid == 1 {
        success.into_iter().for_each(|success| out.merge(success));
        return;
    }
    let found = if valid == 0 { "none valid".to_owned() } else { format!("{valid} valid alternatives") };
    out.overall(format!(
        "{} must validate one and only one schema (oneOf). Found {found}",
        go::quote(&trail.to_string())
    ));
    best.into_iter().for_each(|best| out.merge(best));
}

fn string(schema: &Schema, text: &str, trail: &Trail<'_>, out: &mut Outcome) {
    let length = || text.chars().count() as u64;
    if let Some(max) = schema.max_length.filter(|&max| length() > max) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        return out.plain(ErrorKind::TooLong, trail, None, "too long", detail);
    }
    if let Some(min) = schema.min_length.filter(|&min| length() < min) {
        return out.invalid(trail, text.into(), &format!("should be at least {min} chars long"));
    }
    let Some(source) = &schema.pattern else { return };
    match schema.compiled.get_or_init(|| pattern::compile(source)) {
        Pattern::Compiled(regex) if regex.is_match(text) => {}
        Pattern::Compiled(_) => out.invalid(trail, text.into(), &format!("should match '{source}'")),
        Pattern::Broken(why) => {
            out.invalid(
                trail,
                text.into(),
                &format!("should match '{source}, but pattern is invalid: {why}'"),
            );
        }
    }
}

fn array(schema: &Schema, items: &[Value], old: Option<&Value>, trail: &Trail<'_>, out: &mut Outcome) {
    if let Some(item_schema) = &schema.items {
        let old_items = Correlated::of(schema, old);
        for (index, item) in items.iter().enumerate() {
            let old = old_items.as_ref().and_then(|old| old.item(item));
            out.merge(ratcheted(item_schema, item, old, &Trail::Index(trail, index)));
        }
    }
    let size = items.len() as u64;
    if let Some(min) = schema.min_items.filter(|&min| size < min) {
        out.invalid(trail, size.into(), &format!("should have at least {min} items"));
    }
    if let Some(max) = schema.max_items.filter(|&max| size > max) {
        too_many("items", trail, size, max, out);
    }
    if schema.unique_items {
        let mut seen = HashSet::new();
        if !items.iter().all(|item| seen.insert(json::write(item))) {
            out.invalid(trail, "".into(), "shouldn't contain duplicates");
        }
    }
}

fn too_many(what: &str, trail: &Trail<'_>, size: u64, max: u64, out: &mut Outcome) {
    let unit = if max == 1 { "item" } else { "items" };
    let detail = format!("must have at most {max} {unit}");
    out.plain(ErrorKind::TooMany, trail, Some(size.into()), what, detail);
}

fn object(
    schema: &Schema,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    trail: &Trail<'_>,
    out: &mut Outcome,
) {
    let size = fields.len() as u64;
    if let Some(min) = schema.min_properties.filter(|&min| size < min) {
        out.invalid(trail, size.into(), &format!("should have at least {min} properties"));
    }
    if let Some(max) = schema.max_properties.filter(|&max| size > max) {
        too_many("properties", trail, size, max, out);
    }
    let old_field = |name: &str| {
        // What is visible of these two at the root is always the same.
        let converted = matches!(trail, Trail::Root) && matches!(name, "apiVersion" | "kind");
        old.filter(|_| !converted)?.as_object()?.get(name)
    };
    let further = fields.iter().filter(|(name, _)| !schema.properties.contains_key(*name));
    match &schema.additional {
        Some(Additional::Allowed(false)) => {
            for (name, _) in further {
                let what = format!("{trail}.{name} in body is a forbidden property");
                out.plain(ErrorKind::Invalid, trail, Some(name.as_str().into()), &what, what.clone());
            }
        }
        Some(Additional::Schema(schema)) => {
            for (name, value) in further {
                out.merge(ratcheted(schema, value, old_field(name), &Trail::Dotted(trail, name)));
            }
        }
        Some(Additional::Allowed(true)) | None => {}
    }
    for (name, schema) in &schema.properties {
        if let Some(value) = fields.get(name) {
            out.merge(ratcheted(schema, value, old_field(name), &Trail::Field(trail, name)));
        }
    }
    for name in &schema.required {
        if !fields.contains_key(name) {
            let missing = Trail::Dotted(trail, name);
            out.plain(ErrorKind::Required, &missing, Some("".into()), "required", String::new());
        }
    }
}

fn enumeration(schema: &Schema, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
    let Some(supported) = schema.enumeration.as_ref().filter(|supported| !supported.is_empty()) else {
        return;
    };
    if supported.iter().any(|supported| same(value, supported)) {
        return;
    }
    let shown: Vec<String> = supported
        .iter()
        .map(|supported| match supported {
            Value::String(text) => go::quote(text),
            other => go::quote(&json::to_string(other)),
        })
        .collect();
    let detail = format!("supported values: {}", shown.join(", "));
    out.plain(ErrorKind::NotSupported, trail, Some(value.clone()), "enum", detail);
}

/// Equal after Go's conversion of the value to the type of the enumerated one; null never is.
fn same(value: &Value, supported: &Value) -> bool {
    match (value, supported) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(supported)) => {
            if supported.is_f64() {
                value.as_f64() == supported.as_f64()
            } else if value.is_f64() {
                // A conversion to an integer cuts the fraction off.
                value.as_f64().map(|value| value.trunc()) == supported.as_f64()
            } else {
                value == supported
            }
        }
        // Go turns an integer into the character of that code.
        (Value::Number(value), Value::String(supported)) => {
            let code = value.as_i64().filter(|_| !value.is_f64()).map(|code| u32::try_from(code).ok());
            let character = code.map(|code| code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
            character.is_some_and(|character| supported.chars().eq([character]))
        }
        (value, supported) => value == supported,
    }
}
