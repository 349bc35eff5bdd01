//! Every field that `allOf`, `anyOf`, `oneOf` or `not` mentions must also be specified outside of them.

use super::node::Node;
use crate::field::{FieldError, Path};

pub(super) fn check(root: Node<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    logic(root, root, path, path, errors);
}

/// The schemas inside of `node`'s logic, against the structure they apply to.
fn logic(node: Node<'_>, structure: Node<'_>, path: &Path, logic_path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(nested) = node.one("not") {
        specified(nested, Some(structure), path, &logic_path.child("not"), errors);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in node.several(keyword) {
            let logic_path = logic_path.child(keyword).index(index);
            specified(nested, Some(structure), path, &logic_path, errors);
        }
    }
}

fn specified(
    nested: Node<'_>,
    structure: Option<Node<'_>>,
    path: &Path,
    logic_path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let Some(structure) = structure else {
        let why = format!("because it is defined in {logic_path}");
        errors.push(FieldError::required(path, why));
        return;
    };
    logic(nested, structure, path, logic_path, errors);
    if let Some(items) = nested.items() {
        specified(items, structure.items(), &path.child("items"), &logic_path.child("items"), errors);
    }
    for (name, property) in nested.properties() {
        let path = path.child("properties").key(name);
        let logic_path = logic_path.child("properties").key(name);
        specified(property, structure.property(name), &path, &logic_path, errors);
    }
}
