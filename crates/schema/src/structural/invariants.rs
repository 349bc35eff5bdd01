//! The shape of a structural schema: a type at every node, and only value validations inside `allOf`, `anyOf`, `oneOf` and `not`.

use super::node::{Further, Node};
use crate::field::{FieldError, Path};
use crate::pattern::{self, Pattern};
use serde_json::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

pub(super) fn check(root: Node<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    structural(root, Level::Root, path, errors);
}

fn structural(node: Node<'_>, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let kind = node.kind();
    if kind == "array" && node.items().is_none() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if let Some(items) = node.items() {
        structural(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in node.properties() {
        structural(property, Level::Field, &path.child("properties").key(name), errors);
    }
    let further = node.further();
    if let Some(further) = further {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if let Further::Schema(further) = further {
            structural(further, Level::Field, &path, errors);
        }
    }
    extensions(node, path, errors);
    let skip_any_of = is_int_or_string(node);
    let skip_in_first_all_of = node.several("allOf").next().is_some_and(|(_, first)| is_int_or_string(first));
    value_checks(node, skip_any_of, skip_in_first_all_of, path, errors);
    types(node, level, path, errors);
    if let Some(metadata) = node.property("metadata") {
        let path = path.child("properties").key("metadata");
        metadata_rules(metadata, level, level == Level::Root || node.flag(EMBEDDED), &path, errors);
    }
    if node.flag(EMBEDDED) && !node.flag(PRESERVE) && node.properties().next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true \
                   without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), why));
    }
}

fn extensions(node: Node<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    for extension in [PRESERVE, EMBEDDED] {
        if node.flag(INT_OR_STRING) && node.flag(extension) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&path.child(extension), true, why));
        }
    }
}

fn types(node: Node<'_>, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let kind = node.kind();
    let type_path = path.child("type");
    let embedded = node.flag(EMBEDDED);
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&type_path, why)
        } else {
            FieldError::invalid(&type_path, kind, why)
        });
    } else if kind.is_empty() && !node.flag(INT_OR_STRING) && !node.flag(PRESERVE) {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&type_path, why));
    }
    if embedded && node.further().is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&type_path, kind, "must be object at the root"));
    }
    if level == Level::Root || embedded {
        for name in ["kind", "apiVersion"] {
            if let Some(property) = node.property(name).filter(|property| property.kind() != "string") {
                let path = path.child("properties").key(name).child("type");
                errors.push(FieldError::invalid(&path, property.kind(), "must be string"));
            }
        }
    }
}

fn metadata_rules(node: Node<'_>, level: Level, checked: bool, path: &Path, errors: &mut Vec<FieldError>) {
    if checked && node.kind() != "object" {
        errors.push(FieldError::invalid(&path.child("type"), node.kind(), "must be object"));
    }
    let more = |(keyword, value): (&str, &Value)| match keyword {
        "type" | "default" => false,
        "properties" => node.properties().any(|(name, _)| !matches!(name, "name" | "generateName")),
        _ => !matches!(value, Value::Bool(false)) && value.as_str() != Some(""),
    };
    if level == Level::Root && node.keywords().any(more) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, why));
    }
}

/// `anyOf` with exactly a bare integer and a bare string, which says the same as the extension.
fn is_int_or_string(node: Node<'_>) -> bool {
    let bare = |json: &Value, kind: &str| {
        Node::of(json).is_some_and(|node| node.keywords().eq([("type", &Value::from(kind))]))
    };
    matches!(node.list("anyOf"), [first, second] if bare(first, "integer") && bare(second, "string"))
}

fn value_checks(
    node: Node<'_>,
    skip_any_of: bool,
    skip_in_first_all_of: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any_of {
        for (index, nested) in node.several("anyOf") {
            logic(nested, false, &path.child("anyOf").index(index), errors);
        }
    }
    for (index, nested) in node.several("allOf") {
        logic(nested, skip_in_first_all_of && index == 0, &path.child("allOf").index(index), errors);
    }
    for (index, nested) in node.several("oneOf") {
        logic(nested, false, &path.child("oneOf").index(index), errors);
    }
    if let Some(nested) = node.one("not") {
        logic(nested, false, &path.child("not"), errors);
    }
    let source = node.text("pattern");
    if !source.is_empty()
        && let Pattern::Broken(why) = pattern::compile(source)
    {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(&path.child("pattern"), source, why));
    }
}

/// A schema inside of logic may only restrict values.
fn logic(node: Node<'_>, skip_any_of: bool, path: &Path, errors: &mut Vec<FieldError>) {
    value_checks(node, skip_any_of, false, path, errors);
    if let Some(items) = node.items() {
        logic(items, false, &path.child("items"), errors);
    }
    for (name, property) in node.properties() {
        logic(property, false, &path.child("properties").key(name), errors);
    }
    let mut forbid = |keyword: &str, set: bool, why: &str| {
        if set {
            errors
                .push(FieldError::forbidden(&path.child(keyword), format!("must be {why} to be structural")));
        }
    };
    forbid("type", !node.kind().is_empty(), "empty");
    let further = !matches!(node.further(), None | Some(Further::Allowed(false)));
    forbid("additionalProperties", further, "undefined");
    forbid("default", node.get("default").is_some(), "undefined");
    for keyword in ["title", "description"] {
        forbid(keyword, !node.text(keyword).is_empty(), "empty");
    }
    for keyword in ["nullable", PRESERVE, EMBEDDED, INT_OR_STRING] {
        forbid(keyword, node.flag(keyword), "false");
    }
    forbid("x-kubernetes-list-map-keys", !node.list("x-kubernetes-list-map-keys").is_empty(), "empty");
    for keyword in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        forbid(keyword, node.get(keyword).is_some(), "undefined");
    }
    forbid("x-kubernetes-validations", !node.list("x-kubernetes-validations").is_empty(), "empty");
    if node.property("metadata").is_some() {
        let path = path.child("properties").key("metadata");
        errors.push(FieldError::forbidden(&path, "must not be specified in a nested context"));
    }
}
