//! Removes fields from a value, or extracts the owned ones.

use super::fieldset::FieldSet;
use super::path::PathElement;
use super::typed::item_element;
use super::types::{ListKind, MapKind, Shape, TypeView};
use serde_json::{Map, Value};

/// The value without the fields of the set. A map or list that loses everything becomes null.
pub(crate) fn remove(view: &TypeView, value: &Value, fields: &FieldSet) -> Value {
    taken(view, value, fields, false).unwrap_or(Value::Null)
}

/// The value with the fields of the set only.
pub(crate) fn extract(view: &TypeView, value: &Value, fields: &FieldSet) -> Value {
    taken(view, value, fields, true).unwrap_or(Value::Null)
}

fn taken(view: &TypeView, value: &Value, set: &FieldSet, extract: bool) -> Option<Value> {
    match (view.shapes().of(Some(value)).first(), value) {
        (Shape::Scalar(_), _) => Some(value.clone()),
        (Shape::List(kind), Value::Array(items)) => {
            if items.is_empty() || kind == ListKind::Atomic {
                return extract.then(|| value.clone());
            }
            let items = list(view, kind, items, set, extract);
            (!items.is_empty()).then_some(Value::Array(items))
        }
        (Shape::Map(kind), Value::Object(fields)) => {
            if fields.is_empty() || kind == MapKind::Atomic {
                return extract.then(|| value.clone());
            }
            let fields = map(view, fields, set, extract);
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        _ => None,
    }
}

fn list(view: &TypeView, kind: ListKind, items: &[Value], set: &FieldSet, extract: bool) -> Vec<Value> {
    let item_view = view.item();
    let kept = items.iter().filter_map(|item| {
        let element = item_element(view, kind, &item_view, item).ok();
        let named = element.as_ref().is_some_and(|element| set.has_element(element));
        let inside = element.as_ref().and_then(|element| set.with_prefix(element));
        let inner = |inside: &FieldSet| taken(&item_view, item, inside, extract).unwrap_or(Value::Null);
        match (extract, named, inside) {
            (false, true, _) | (true, false, None) => None,
            (_, _, Some(inside)) => Some(inner(inside)),
            (_, _, None) => Some(item.clone()),
        }
    });
    kept.collect()
}

fn map(view: &TypeView, fields: &Map<String, Value>, set: &FieldSet, extract: bool) -> Map<String, Value> {
    let kept = fields.iter().filter_map(|(name, value)| {
        let element = PathElement::field(name);
        let named = set.has_element(&element);
        let inside = set.with_prefix(&element);
        let inner = |inside: &FieldSet| {
            taken(&view.field(name).view(), value, inside, extract).unwrap_or(Value::Null)
        };
        let kept = match (extract, named, inside) {
            (false, true, _) | (true, false, None) => return None,
            (_, _, Some(inside)) => inner(inside),
            (false, false, None) => value.clone(),
            (true, true, None) => inner(&FieldSet::new()),
        };
        Some((name.clone(), kept))
    });
    kept.collect()
}
