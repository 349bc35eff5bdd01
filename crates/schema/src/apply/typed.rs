//! Typed values: is a value of its type, which fields does it set, and which path element identifies a list item.

use super::fieldset::{FieldSet, Node};
use super::path::PathElement;
use super::types::{ListKind, MapKind, Member, Scalar, Shape, TypeView};
use super::values;
use crate::go;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// How deep an object may nest. Everything that walks objects checks them first, so that this bounds all recursion.
pub(crate) const MAX_DEPTH: usize = 256;

/// Where a value is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypeError {
    path: String,
    message: String,
}

/// All that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TypeErrors(Vec<TypeError>);

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "{only}");
        }
        write!(f, "errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl TypeErrors {
    fn push(&mut self, message: impl Into<String>) {
        self.0.push(TypeError { path: String::new(), message: message.into() });
    }

    /// Runs a check of what is inside `element`, and puts the element before the paths of what it found.
    fn inside(&mut self, element: &PathElement, check: impl FnOnce(&mut Self)) {
        let before = self.0.len();
        check(self);
        if self.0.len() > before {
            let prefix = element.to_string();
            for error in &mut self.0[before..] {
                error.path.insert_str(0, &prefix);
            }
        }
    }
}

/// Checks that a value is of its type. Sets and associative lists of stored objects may hold duplicates, those of an applied
/// intent may not.
pub(crate) fn check(view: &TypeView, value: &Value, duplicates: bool) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    check_value(view, value, duplicates, MAX_DEPTH, &mut errors);
    if errors.0.is_empty() { Ok(()) } else { Err(errors) }
}

/// The same for an object that may hold duplicates, beside one that was checked: what both have alike is not looked at twice.
pub(crate) fn check_beside(view: &TypeView, value: &Value, checked: &Value) -> Result<(), TypeErrors> {
    let (Value::Object(fields), Value::Object(known)) = (value, checked) else {
        return check(view, value, true);
    };
    let differing = fields.iter().filter(|(name, value)| known.get(*name) != Some(*value));
    let mut errors = TypeErrors::default();
    check_fields(view, differing, true, MAX_DEPTH - 1, &mut errors);
    if errors.0.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_value(view: &TypeView, value: &Value, duplicates: bool, depth: usize, errors: &mut TypeErrors) {
    let Some(depth) = depth.checked_sub(1) else {
        return errors.push(format!("nested deeper than {MAX_DEPTH} levels"));
    };
    match view.shapes().of(Some(value)).first() {
        Shape::Invalid => errors.push("schema error: invalid atom: inlined"),
        Shape::Scalar(scalar) => {
            if let Some(message) = scalar_error(scalar, value) {
                errors.push(message);
            }
        }
        Shape::Map(_) => match value {
            Value::Object(fields) => check_fields(view, fields, duplicates, depth, errors),
            Value::Null => {}
            _ => errors.push(format!("expected map, got &{{{}}}", values::plain(value))),
        },
        Shape::List(kind) => match value {
            Value::Array(items) => check_items(view, kind, items, duplicates, depth, errors),
            Value::Null => {}
            _ => errors.push(format!("expected list, got &{{{}}}", values::plain(value))),
        },
    }
}

fn check_fields<'a>(
    view: &TypeView,
    fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
    duplicates: bool,
    depth: usize,
    errors: &mut TypeErrors,
) {
    for (name, value) in fields {
        match view.field(name) {
            Member::Undeclared => {
                errors
                    .inside(&PathElement::field(name), |errors| errors.push("field not declared in schema"));
                return;
            }
            Member::Declared(field) | Member::Additional(field) => {
                // The element's text is needed for errors only, and most fields have none.
                let before = errors.0.len();
                check_value(&field, value, duplicates, depth, errors);
                for error in &mut errors.0[before..] {
                    error.path.insert_str(0, &format!(".{name}"));
                }
            }
        }
    }
}

fn check_items(
    view: &TypeView,
    kind: ListKind,
    items: &[Value],
    duplicates: bool,
    depth: usize,
    errors: &mut TypeErrors,
) {
    let item_view = view.item();
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if kind == ListKind::Atomic {
            PathElement::Index(index as i64)
        } else {
            match item_element(view, kind, &item_view, item) {
                Ok(element) => element,
                Err(message) => return errors.push(format!("element {index}: {message}")),
            }
        };
        if kind != ListKind::Atomic && !duplicates && !seen.insert(element.clone()) {
            errors.push(format!("duplicate entries for key {element}"));
        }
        errors.inside(&element, |errors| check_value(&item_view, item, duplicates, depth, errors));
    }
}

/// The items of a list; null and absent are lists without any.
pub(crate) fn items_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What is wrong with a scalar; null is of every type.
pub(crate) fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null) => None,
        (Scalar::Numeric, Value::Number(_)) => None,
        (Scalar::Numeric, _) => {
            Some(format!("expected numeric (int or float), got {}", values::type_name(value)))
        }
        (Scalar::String, Value::String(_)) => None,
        (Scalar::String, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            values::as_source(value)
        )),
        (Scalar::Boolean, Value::Bool(_)) => None,
        (Scalar::Boolean, _) => Some(format!("expected boolean, got &{{{}}}", values::plain(value))),
        (Scalar::Any, Value::Array(_) | Value::Object(_)) => {
            Some(format!("expected any scalar, got &{{{}}}", values::plain(value)))
        }
        (Scalar::Any, _) => None,
    }
}

/// The element that stands for an item of a set or an associative list.
pub(crate) fn item_element(
    list: &TypeView,
    kind: ListKind,
    item_view: &TypeView,
    item: &Value,
) -> Result<PathElement, String> {
    match kind {
        ListKind::Atomic => Err("invalid indexing of non-associative list".into()),
        ListKind::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            scalar => Ok(PathElement::value(scalar.clone())),
        },
        ListKind::Keyed => match item {
            Value::Object(fields) => keyed_element(list.keys(), item_view, fields),
            Value::Null => Err("associative list with keys may not have a null element".into()),
            _ => Err("associative list with keys may not have non-map elements".into()),
        },
    }
}

fn keyed_element(
    keys: &[String],
    item_view: &TypeView,
    fields: &Map<String, Value>,
) -> Result<PathElement, String> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let value = match fields.get(key) {
            Some(value) => Some(value),
            None if item_view.shapes().map.is_none() => {
                let why = "associative list may not have non-map types";
                return Err(format!("couldn't find default value for {key}: {why}"));
            }
            None => item_view.default_of(key),
        };
        found.extend(value.map(|value| (key.clone(), value.clone())));
    }
    if found.is_empty() {
        let keys: Vec<_> = keys.iter().map(|key| go::quote(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(PathElement::key(found))
}

/// Every leaf and item that a value mentions. The value must have been checked.
pub(crate) fn field_set(view: &TypeView, value: &Value) -> FieldSet {
    mentioned(view, value).1
}

/// Whether a value is itself a leaf, and what it mentions inside.
fn mentioned(view: &TypeView, value: &Value) -> (bool, FieldSet) {
    match (view.shapes().of(Some(value)).first(), value) {
        (Shape::Scalar(_), _) | (Shape::Map(MapKind::Atomic), _) | (Shape::List(ListKind::Atomic), _) => {
            (true, FieldSet::new())
        }
        (Shape::Map(_), Value::Object(fields)) => {
            let nodes = fields.iter().map(|(name, value)| {
                let member = view.field(name);
                let declared = matches!(member, Member::Declared(_));
                let (leaf, inside) = mentioned(&member.view(), value);
                let empty = matches!(value, Value::Null) || value.as_object().is_some_and(Map::is_empty);
                Node::new(PathElement::field(name), leaf || empty || !declared, inside)
            });
            (false, FieldSet::from_nodes(nodes.collect()))
        }
        (Shape::List(kind), Value::Array(items)) => {
            let item_view = view.item();
            let mut nodes: Vec<(PathElement, &Value)> = items
                .iter()
                .filter_map(|item| Some((item_element(view, kind, &item_view, item).ok()?, item)))
                .collect();
            nodes.sort_by(|a, b| a.0.cmp(&b.0));
            let nodes = nodes.chunk_by(|a, b| a.0 == b.0).map(|same| match same {
                [(element, item)] => Node::new(element.clone(), true, mentioned(&item_view, item).1),
                // Duplicates are owned as a whole, not field by field.
                _ => Node::new(same[0].0.clone(), true, FieldSet::new()),
            });
            (false, FieldSet::from_nodes(nodes.collect()))
        }
        _ => (false, FieldSet::new()),
    }
}

/// The set with every declared field added that leads to one of its paths: removing such a field when all inside it is gone
/// must be possible, though nobody owns it.
pub(crate) fn with_named_fields(view: &TypeView, set: &FieldSet) -> FieldSet {
    let shapes = view.shapes();
    let nodes = set.nodes().iter().map(|node| {
        let Some(children) = &node.children else { return node.clone() };
        let (inside, declared) = match &node.element {
            PathElement::Field(name) if shapes.map.is_some() => {
                let member = view.field(name);
                let declared = matches!(member, Member::Declared(_));
                (member.view(), declared)
            }
            PathElement::Key(_) if shapes.list.is_some() => (view.item(), false),
            _ => (TypeView::Nothing, false),
        };
        Node::new(node.element.clone(), node.member || declared, with_named_fields(&inside, children))
    });
    FieldSet::from_nodes(nodes.collect())
}
