//! What differs between two values of a type: fields added, modified and removed.

use super::fieldset::{FieldSet, Filter, Node};
use super::path::PathElement;
use super::typed::{item_element, items_of, scalar_error};
use super::types::{ListKind, MapKind, Shape, Shapes, TypeView};
use super::values;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields in which two values differ; no field is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// The comparison without the fields that a request may not own.
    pub(crate) fn filtered(self, filter: Option<&Filter>) -> Comparison {
        match filter {
            None => self,
            Some(filter) => Comparison {
                added: filter.apply(&self.added),
                modified: filter.apply(&self.modified),
                removed: filter.apply(&self.removed),
            },
        }
    }
}

/// Compares two values of a type, both checked.
pub(crate) fn compare(view: &TypeView, old: &Value, new: &Value) -> Comparison {
    difference(view, Some(old), Some(new)).inside
}

/// What differs at a value, and inside it.
#[derive(Default)]
struct Difference {
    added: bool,
    modified: bool,
    removed: bool,
    inside: Comparison,
}

/// The differences of one level on their way to a [`Comparison`].
#[derive(Default)]
struct Level {
    added: Vec<Node>,
    modified: Vec<Node>,
    removed: Vec<Node>,
}

impl Level {
    fn push(&mut self, element: PathElement, found: Difference) {
        let Difference { added, modified, removed, inside } = found;
        for (nodes, member, children) in [
            (&mut self.added, added, inside.added),
            (&mut self.modified, modified, inside.modified),
            (&mut self.removed, removed, inside.removed),
        ] {
            if member || !children.is_empty() {
                nodes.push(Node::new(element.clone(), member, children));
            }
        }
    }

    fn finish(self) -> Comparison {
        Comparison {
            added: FieldSet::from_nodes(self.added),
            modified: FieldSet::from_nodes(self.modified),
            removed: FieldSet::from_nodes(self.removed),
        }
    }
}

fn difference(view: &TypeView, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let shapes = view.shapes();
    let (old_shapes, new_shapes) = (shapes.of(old), shapes.of(new));
    match (old, new) {
        (None, None) => Difference::default(),
        (_, None) => in_shape(view, old_shapes, old, new),
        (None, _) => in_shape(view, new_shapes, old, new),
        _ if old_shapes == new_shapes => in_shape(view, new_shapes, old, new),
        // The value changed its form: the fields of the old form go, and those of the new one come.
        _ => {
            let before = in_shape(view, old_shapes, old, new);
            let after = in_shape(view, new_shapes, old, new);
            Difference {
                added: after.added,
                modified: before.modified || after.modified,
                removed: after.removed,
                inside: Comparison {
                    added: before.inside.added.union(&after.inside.added),
                    modified: before.inside.modified.union(&after.inside.modified),
                    removed: before.inside.removed.union(&after.inside.removed),
                },
            }
        }
    }
}

fn in_shape(view: &TypeView, shapes: Shapes, old: Option<&Value>, new: Option<&Value>) -> Difference {
    match shapes.first() {
        Shape::Invalid => Difference::default(),
        Shape::Scalar(scalar) => {
            let wrong =
                |value: Option<&Value>| value.is_some_and(|value| scalar_error(scalar, value).is_some());
            if wrong(old) && wrong(new) { Difference::default() } else { leaf(old, new) }
        }
        Shape::Map(kind) => {
            let (old_fields, new_fields) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let empty = old_fields.is_none_or(Map::is_empty) && new_fields.is_none_or(Map::is_empty);
            if kind == MapKind::Atomic || empty {
                return leaf(old, new);
            }
            around(old, new, fields(view, old_fields, new_fields))
        }
        Shape::List(kind) => {
            let (old_items, new_items) = (items_of(old), items_of(new));
            if kind == ListKind::Atomic || (old_items.is_empty() && new_items.is_empty()) {
                return leaf(old, new);
            }
            around(old, new, list(view, kind, old_items, new_items))
        }
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Difference {
    let modified = matches!((old, new), (Some(old), Some(new)) if !values::equal(old, new));
    Difference { added: old.is_none(), modified, removed: new.is_none(), inside: Comparison::default() }
}

fn around(old: Option<&Value>, new: Option<&Value>, inside: Comparison) -> Difference {
    Difference { added: old.is_none(), modified: false, removed: new.is_none(), inside }
}

/// Most of an object stays as it is: that is seen quicker than a walk along its type could tell.
fn fields(view: &TypeView, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) -> Comparison {
    let mut level = Level::default();
    let mut visit = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        if old != new {
            let found = difference(&view.field(name).view(), old, new);
            level.push(PathElement::field(name), found);
        }
    };
    for (name, value) in old.into_iter().flatten() {
        visit(name, Some(value), new.and_then(|new| new.get(name)));
    }
    for (name, value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            visit(name, None, Some(value));
        }
    }
    level.finish()
}

fn list(view: &TypeView, kind: ListKind, old: &[Value], new: &[Value]) -> Comparison {
    let item_view = view.item();
    let mut items: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in old {
        if let Ok(element) = item_element(view, kind, &item_view, item) {
            items.entry(element).or_default().0.push(item);
        }
    }
    for item in new {
        if let Ok(element) = item_element(view, kind, &item_view, item) {
            items.entry(element).or_default().1.push(item);
        }
    }
    let mut level = Level::default();
    for (element, (old, new)) in items {
        let (first_old, first_new) = (old.first().copied(), new.first().copied());
        let found = match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => difference(&item_view, first_old, first_new),
            // Duplicates on both sides are compared as a whole.
            (2.., 2..) => {
                let same = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| values::equal(a, b));
                Difference { modified: !same, ..Difference::default() }
            }
            // From duplicates to one or none.
            (2.., _) => Difference { removed: true, ..difference(&item_view, None, first_new) },
            // From one or none to duplicates.
            (_, _) => Difference { added: true, ..difference(&item_view, first_old, None) },
        };
        level.push(element, found);
    }
    level.finish()
}
