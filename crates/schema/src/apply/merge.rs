//! Merges an applied configuration into an object: fields are combined, and lists keep an order that suits both sides.

use super::path::PathElement;
use super::typed::{item_element, items_of, scalar_error};
use super::types::{ListKind, MapKind, Shape, Shapes, TypeView};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What `live` becomes when `intent` is laid over it; both must have been checked. Nothing is removed.
pub(crate) fn merge(view: &TypeView, live: &Value, intent: &Value) -> Value {
    merged(view, Some(live), Some(intent)).unwrap_or(Value::Null)
}

fn merged(view: &TypeView, live: Option<&Value>, intent: Option<&Value>) -> Option<Value> {
    match (live, intent) {
        (Some(_), Some(_)) => in_shape(view, view.shapes().of(intent), live, intent),
        // One side alone is the result.
        (one, other) => one.or(other).cloned(),
    }
}

fn in_shape(view: &TypeView, shapes: Shapes, live: Option<&Value>, intent: Option<&Value>) -> Option<Value> {
    match shapes.first() {
        Shape::Invalid => None,
        Shape::Scalar(scalar) => {
            let wrong =
                |value: Option<&Value>| value.is_some_and(|value| scalar_error(scalar, value).is_some());
            if wrong(live) && wrong(intent) { None } else { leaf(live, intent) }
        }
        Shape::Map(kind) => {
            let (live_fields, intent_fields) =
                (live.and_then(Value::as_object), intent.and_then(Value::as_object));
            let empty = live_fields.is_none_or(Map::is_empty) && intent_fields.is_none_or(Map::is_empty);
            // Both empty is a leaf: it keeps null apart from `{}`.
            if kind == MapKind::Atomic || empty {
                return leaf(live, intent);
            }
            let fields = fields(view, live_fields, intent_fields);
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        Shape::List(kind) => {
            let (live_items, intent_items) = (items_of(live), items_of(intent));
            if kind == ListKind::Atomic || (live_items.is_empty() && intent_items.is_empty()) {
                return leaf(live, intent);
            }
            let items = list(view, kind, live_items, intent_items);
            (!items.is_empty()).then_some(Value::Array(items))
        }
    }
}

fn leaf(live: Option<&Value>, intent: Option<&Value>) -> Option<Value> {
    intent.or(live).cloned()
}

fn fields(
    view: &TypeView,
    live: Option<&Map<String, Value>>,
    intent: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in live.into_iter().flatten() {
        let value = match intent.and_then(|intent| intent.get(name)) {
            None => Some(value.clone()),
            intent => merged(&view.field(name).view(), Some(value), intent),
        };
        out.extend(value.map(|value| (name.clone(), value)));
    }
    for (name, value) in intent.into_iter().flatten() {
        if live.is_none_or(|live| !live.contains_key(name)) {
            out.insert(name.clone(), value.clone());
        }
    }
    out
}

/// A list's items with their elements.
fn indexed<'a>(
    view: &TypeView,
    kind: ListKind,
    item: &TypeView,
    items: &'a [Value],
) -> Vec<(PathElement, &'a Value)> {
    items.iter().filter_map(|value| Some((item_element(view, kind, item, value).ok()?, value))).collect()
}

/// The intent's items keep their order; the live items that only the object has stay before the shared item they preceded.
fn list(view: &TypeView, kind: ListKind, live: &[Value], intent: &[Value]) -> Vec<Value> {
    static NULL: Value = Value::Null;
    let item_view = view.item();
    let live = indexed(view, kind, &item_view, live);
    let intent = indexed(view, kind, &item_view, intent);
    let intended: BTreeMap<&PathElement, &Value> =
        intent.iter().map(|(element, value)| (element, *value)).collect();
    let mut lived: BTreeMap<&PathElement, &Value> = BTreeMap::new();
    for (element, value) in &live {
        // What is there twice is not merged with but replaced by the intent's item.
        lived.entry(element).and_modify(|value| *value = &NULL).or_insert(value);
    }

    let mut shared = intent.iter().map(|(element, _)| element).filter(|element| lived.contains_key(element));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(intent.len()));
    let both = |element: &PathElement| {
        merged(&item_view, lived.get(element).copied(), intended.get(element).copied())
    };
    let (mut at_live, mut at_intent) = (0, 0);
    while at_live < live.len() || at_intent < intent.len() {
        if let (Some((element, _)), Some((wanted, _))) = (live.get(at_live), intent.get(at_intent)) {
            if element == wanted {
                done.insert(element);
                out.extend(both(element));
                at_live += 1;
                at_intent += 1;
                next_shared = shared.next();
                continue;
            }
            if intended.contains_key(element) && next_shared.is_some_and(|next| next != element) {
                // Shared, but its turn in the intent comes later or has been.
                at_live += 1;
                continue;
            }
        }
        if let Some((element, value)) = live.get(at_live) {
            if !intended.contains_key(element) {
                out.push((*value).clone());
                at_live += 1;
                continue;
            }
            if done.contains(element) {
                at_live += 1;
            }
        }
        if let Some((element, _)) = intent.get(at_intent) {
            done.insert(element);
            out.extend(both(element));
            at_intent += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    out
}
