//! Reconciles field sets with a changed schema: if a type became atomic, its owner owns it as a whole.

use super::fieldset::{FieldSet, Node};
use super::path::PathElement;
use super::types::{ListKind, MapKind, Member, Shape, TypeView};

/// What becomes of the owned fields at one place.
enum Outcome {
    Same,
    /// The place itself is owned, nothing inside it.
    Whole,
    Inside(FieldSet),
}

/// The set as the schema now has it, or `None` if it stays.
pub(crate) fn reconcile(view: &TypeView, set: &FieldSet) -> Option<FieldSet> {
    match outcome(view, Some(set), false) {
        Outcome::Inside(set) => Some(set),
        // Nobody owns the whole object.
        Outcome::Same | Outcome::Whole => None,
    }
}

fn outcome(view: &TypeView, set: Option<&FieldSet>, owned_whole: bool) -> Outcome {
    match view.shapes().first() {
        Shape::Scalar(_) | Shape::Invalid => Outcome::Same,
        Shape::List(ListKind::Atomic) if !owned_whole => Outcome::Whole,
        Shape::List(_) => inside(set, |_| Some(view.item())),
        Shape::Map(_) if view.is_free_map() => Outcome::Same,
        Shape::Map(MapKind::Atomic) if !owned_whole => match set {
            Some(_) => Outcome::Whole,
            None => Outcome::Same,
        },
        Shape::Map(_) => inside(set, |element| match element {
            PathElement::Field(name) => match view.field(name) {
                Member::Declared(view) | Member::Additional(view) => Some(view),
                Member::Undeclared => None,
            },
            _ => None,
        }),
    }
}

fn inside(set: Option<&FieldSet>, view_of: impl Fn(&PathElement) -> Option<TypeView>) -> Outcome {
    let Some(set) = set else { return Outcome::Same };
    let mut changed: Option<Vec<Node>> = None;
    for (at, node) in set.nodes().iter().enumerate() {
        let Some(view) = view_of(&node.element) else { continue };
        let whole = node.member && node.children.is_none();
        let new = match outcome(&view, node.children.as_deref(), whole) {
            Outcome::Same => continue,
            Outcome::Whole => Node::new(node.element.clone(), true, FieldSet::new()),
            Outcome::Inside(set) => Node::new(node.element.clone(), node.member, set),
        };
        changed.get_or_insert_with(|| set.nodes().to_vec())[at] = new;
    }
    match changed {
        Some(nodes) => Outcome::Inside(FieldSet::from_nodes(nodes)),
        None => Outcome::Same,
    }
}
