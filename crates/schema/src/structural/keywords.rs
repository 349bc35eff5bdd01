//! Which keywords a CRD may use, where, and with which others.

use super::node::{Further, Node};
use crate::field::{FieldError, Path};
use serde_json::Value;
use std::collections::BTreeSet;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const RULES: &str = "x-kubernetes-validations";

/// What holds for a part of the schema because of where it is.
#[derive(Clone, Default)]
struct Context {
    /// Why defaults may not be set here.
    no_defaults: Option<String>,
    inside_meta: bool,
}

#[derive(Default)]
struct Checker {
    errors: Vec<FieldError>,
}

pub(super) fn check(root: Node<'_>, path: &Path, errors: &mut Vec<FieldError>) {
    let mut checker = Checker::default();
    checker.node(root, path, &Context::default(), true);
    errors.append(&mut checker.errors);
}

impl Checker {
    fn forbid(&mut self, path: &Path, keyword: &str, why: &str) {
        self.errors.push(FieldError::forbidden(&path.child(keyword), why));
    }

    fn node(&mut self, node: Node<'_>, path: &Path, context: &Context, root: bool) {
        self.standard(node, path, context);
        if node.flag("uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path, "uniqueItems", why);
        }
        if let Some(further) = node.further() {
            self.further(node, further, path, context);
        }
        for (name, property) in node.properties() {
            let mut context = context.clone();
            if (root || node.flag(EMBEDDED)) && matches!(name, "metadata" | "kind" | "apiVersion") {
                context.inside_meta = true;
                if root {
                    context.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.node(property, &path.child("properties").key(name), &context, false);
        }
        if let Some(nested) = node.one("not") {
            self.node(nested, &path.child("not"), context, false);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for (index, nested) in node.several(keyword) {
                self.node(nested, &path.child(keyword).index(index), context, false);
            }
        }
        if let Some(items) = node.items() {
            self.node(items, &path.child("items"), context, false);
        }
        for (index, items) in node.several("items") {
            self.node(items, &path.child("items").index(index), context, false);
        }
        self.extensions(node, path);
    }

    /// What of the standard's keywords is allowed at all.
    fn standard(&mut self, node: Node<'_>, path: &Path, context: &Context) {
        let kind = node.kind();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
        }
        if node.get("default").is_some()
            && let Some(reason) = &context.no_defaults
        {
            self.forbid(path, "default", &format!("must not be set {reason}"));
        }
        for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            let set = match node.get(keyword) {
                Some(Value::String(text)) => !text.is_empty() || keyword == "$ref",
                Some(Value::Object(map)) => {
                    !map.is_empty() || matches!(keyword, "additionalItems" | "dependencies")
                }
                other => other.is_some(),
            };
            if set {
                self.forbid(path, keyword, &format!("{keyword} is not supported"));
            }
        }
        if kind == "null" {
            self.forbid(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if !node.list("items").is_empty() {
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if context.inside_meta && node.flag(EMBEDDED) {
            self.forbid(path, EMBEDDED, "must not be used inside of resource meta");
        }
    }

    fn further(&mut self, node: Node<'_>, further: Further<'_>, path: &Path, context: &Context) {
        let bare = matches!(further, Further::Allowed(true));
        if node.properties().next().is_some() && !bare {
            let why = "additionalProperties and properties are mutual exclusive";
            self.forbid(path, "additionalProperties", why);
        }
        if let Further::Schema(further) = further {
            let mut context = context.clone();
            if context.inside_meta {
                let reason = "inside additionalProperties applying to object metadata";
                context.no_defaults = Some(reason.to_owned());
            }
            self.node(further, &path.child("additionalProperties"), &context, false);
        }
    }

    fn extensions(&mut self, node: Node<'_>, path: &Path) {
        let preserve = "x-kubernetes-preserve-unknown-fields";
        if node.get(preserve) == Some(&Value::Bool(false)) {
            let why = "must be true or undefined";
            self.errors.push(FieldError::invalid(&path.child(preserve), false, why));
        }
        if let Some(map_type) = node.get(MAP_TYPE).and_then(Value::as_str) {
            self.needs_type(node, "object", MAP_TYPE, path);
            if !matches!(map_type, "atomic" | "granular") {
                let path = path.child(MAP_TYPE);
                self.errors.push(FieldError::not_supported(&path, map_type, &["atomic", "granular"]));
            }
        }
        let list_type = node.get(LIST_TYPE).and_then(Value::as_str);
        if let Some(list_type) = list_type {
            self.list_type(node, list_type, path);
        }
        let keys = node.texts(MAP_KEYS);
        if !keys.is_empty() && list_type != Some("map") {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            let path = path.child(LIST_TYPE);
            self.errors.push(match list_type {
                None => FieldError::required(&path, why),
                Some(list_type) => FieldError::invalid(&path, list_type, why),
            });
        }
        if list_type == Some("map") {
            self.map_keys(node, &keys, path);
        }
        if let Some(list_type @ ("set" | "map")) = list_type {
            self.items_of(node, list_type, &keys, path);
        }
        let rules = node.list(RULES);
        if !rules.is_empty() {
            self.errors.extend(crate::rules::shape(rules, &node.json(), path));
        }
    }

    fn needs_type(&mut self, node: Node<'_>, wanted: &str, extension: &str, path: &Path) {
        let why = format!("must be {wanted} if {extension} is specified");
        match node.kind() {
            kind if kind == wanted => {}
            "" => self.errors.push(FieldError::required(&path.child("type"), why)),
            kind => self.errors.push(FieldError::invalid(&path.child("type"), kind, why)),
        }
    }

    fn list_type(&mut self, node: Node<'_>, list_type: &str, path: &Path) {
        self.needs_type(node, "array", LIST_TYPE, path);
        if node.kind() == "array"
            && list_type == "set"
            && let Some(items) = node.items()
        {
            let inner_list_type = items.get(LIST_TYPE).cloned().unwrap_or_default();
            let extension = match items.kind() {
                "array" if !inner_list_type.is_null() && inner_list_type != "atomic" => Some(LIST_TYPE),
                "object" if items.text(MAP_TYPE) != "atomic" => Some(MAP_TYPE),
                _ => None,
            };
            if let Some(extension) = extension {
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                let path = path.child("items").child(extension);
                self.errors.push(FieldError::invalid(&path, inner_list_type, why));
            }
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let path = path.child(LIST_TYPE);
            self.errors.push(FieldError::not_supported(&path, list_type, &["atomic", "set", "map"]));
        }
    }

    fn map_keys(&mut self, node: Node<'_>, keys: &[&str], path: &Path) {
        let keys_path = path.child(MAP_KEYS);
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(&keys_path, why));
        }
        let items_path = path.child("items");
        let items = match node.get("items") {
            None => {
                let why = "must have a schema if x-kubernetes-list-type is map";
                return self.errors.push(FieldError::required(&items_path, why));
            }
            Some(items) => items,
        };
        let Some(items) = Node::of(items) else {
            let why = "must only have a single schema if x-kubernetes-list-type is map";
            return self.errors.push(FieldError::invalid(&items_path, items.clone(), why));
        };
        if items.kind() != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            return self.errors.push(FieldError::invalid(&items_path.child("type"), items.kind(), why));
        }
        let shown = || Value::from(keys.to_vec());
        let mut seen = BTreeSet::new();
        for key in keys {
            match items.property(key) {
                Some(property) if matches!(property.kind(), "array" | "object") => {
                    let path = items_path.child("properties").key(key).child("type");
                    let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors.push(FieldError::invalid(&path, items.kind(), why));
                }
                Some(_) => {}
                None => {
                    let why = "entries must all be names of item properties";
                    self.errors.push(FieldError::invalid(&keys_path, shown(), why));
                }
            }
            if !seen.insert(key) {
                let why = "must not contain duplicate entries";
                self.errors.push(FieldError::invalid(&keys_path, shown(), why));
            }
        }
    }

    fn items_of(&mut self, node: Node<'_>, list_type: &str, keys: &[&str], path: &Path) {
        let Some(items) = node.items() else { return };
        let items_path = path.child("items");
        if items.flag("nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(&items_path, "nullable", &why);
        }
        if list_type != "map" {
            return;
        }
        let required = items.texts("required");
        for key in keys {
            let Some(property) = items.property(key) else { continue };
            let path = items_path.child("properties").key(key);
            if !required.contains(key) && property.get("default").is_none() {
                let why = "this property is in x-kubernetes-list-map-keys, \
                           so it must have a default or be a required property";
                self.errors.push(FieldError::required(&path.child("default"), why));
            }
            if property.flag("nullable") {
                let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&path, "nullable", why);
            }
        }
    }
}
