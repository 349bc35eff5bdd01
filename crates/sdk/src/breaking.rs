//! Whether a kind's new definition would break objects that are stored under the old one.
//!
//! Judged is what can make a stored object invalid, lose a field, or mean something else; that a field is added, or a bound made
//! wider, breaks nothing.

use crate::described::Defined;
use serde_json::{Map, Value};
use std::fmt;

/// One change that breaks stored objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The field, as `spec.size`; `spec.items[]` in a list, `spec.labels{}` in a map.
    pub field: String,
    /// What becomes of it.
    pub what: String,
}

impl Break {
    fn new(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self { field: field.into(), what: what.into() }
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

/// What breaks when the definition `new` takes the place of `old`.
pub fn breaks(old: &Value, new: &Value) -> Vec<Break> {
    let mut found = Vec::new();
    let (Some(before), Some(after)) = (Defined::of(old), Defined::of(new)) else {
        return found;
    };
    if before.namespaced != after.namespaced {
        found.push(Break::new("spec.scope", "a kind's scope cannot be changed"));
    }
    if before.kind != after.kind {
        found.push(Break::new("spec.names.kind", format!("{} becomes {}", before.kind, after.kind)));
    }
    for version in versions(old) {
        let name = &version["name"];
        match versions(new).into_iter().find(|other| other["name"] == *name) {
            None => found.push(Break::new("spec.versions", format!("{} is gone", text(name)))),
            Some(other) if version["served"] == true && other["served"] != true => {
                found.push(Break::new("spec.versions", format!("{} is not served any more", text(name))));
            }
            Some(other) => {
                let schema = "/schema/openAPIV3Schema";
                if let (Some(old), Some(new)) = (version.pointer(schema), other.pointer(schema)) {
                    compare("", old, new, &mut found);
                }
            }
        }
    }
    found
}

fn versions(definition: &Value) -> Vec<&Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten().collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Break>) {
    let field = if path.is_empty() { "the object" } else { path };
    let mut say = |what: String| found.push(Break::new(field, what));
    let kind = |schema: &Value| match schema["x-kubernetes-int-or-string"] == true {
        true => "int-or-string".to_owned(),
        false => text(&schema["type"]),
    };
    if kind(old) != kind(new) {
        say(format!("{} becomes {}", kind(old), kind(new)));
        return;
    }
    for (bound, lower) in LOWER.iter().map(|name| (name, true)).chain(UPPER.iter().map(|name| (name, false)))
    {
        if let Some(what) = narrower(bound, lower, &old[*bound], &new[*bound]) {
            say(what);
        }
    }
    for name in ["pattern", "format", "multipleOf"] {
        if !new[name].is_null() && new[name] != old[name] {
            say(format!("{name} is now {}", new[name]));
        }
    }
    if let Some(allowed) = new["enum"].as_array() {
        match old["enum"].as_array() {
            None => say("only certain values are allowed now".to_owned()),
            Some(before) => {
                for gone in before.iter().filter(|value| !allowed.contains(value)) {
                    say(format!("{gone} is not allowed any more"));
                }
            }
        }
    }
    if old["nullable"] == true && new["nullable"] != true {
        say("null is not allowed any more".to_owned());
    }
    for required in list(&new["required"]).iter().filter(|name| !list(&old["required"]).contains(name)) {
        let name = text(required);
        if new["properties"][&name]["default"].is_null() {
            found.push(Break::new(join(path, &name), "is required now, and has no default"));
        }
    }
    inside(path, old, new, found);
}

const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];

fn narrower(name: &str, lower: bool, old: &Value, new: &Value) -> Option<String> {
    let new = new.as_f64()?;
    let tighter = match old.as_f64() {
        None => true,
        Some(old) if lower => new > old,
        Some(old) => new < old,
    };
    tighter.then(|| format!("{name} is now {new}"))
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

/// The fields, the items and the values of a map.
fn inside(path: &str, old: &Value, new: &Value, found: &mut Vec<Break>) {
    let empty = Map::new();
    let fields = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_else(|| empty.clone());
    let keeps_unknown =
        new["x-kubernetes-preserve-unknown-fields"] == true || new["additionalProperties"] != Value::Null;
    let after = fields(new);
    for (name, schema) in fields(old) {
        let path = join(path, &name);
        match after.get(&name) {
            Some(now) => compare(&path, &schema, now, found),
            None if keeps_unknown => {}
            None => found.push(Break::new(path, "is gone: what is stored of it is dropped")),
        }
    }
    if let (Value::Object(_), Value::Object(_)) = (&old["items"], &new["items"]) {
        compare(&format!("{path}[]"), &old["items"], &new["items"], found);
    }
    if let (Value::Object(_), Value::Object(_)) = (&old["additionalProperties"], &new["additionalProperties"])
    {
        compare(&format!("{path}{{}}"), &old["additionalProperties"], &new["additionalProperties"], found);
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(size: Value, required: Value) -> Value {
        json!({"spec": {
            "group": "g", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {
                    "type": "object", "required": required,
                    "properties": {"size": size, "names": {"type": "array", "items": {"type": "string"}}},
                }},
            }}}],
        }})
    }

    fn told(old: &Value, new: &Value) -> Vec<String> {
        breaks(old, new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_wider_or_new_breaks_nothing() {
        let old = definition(json!({"type": "integer", "minimum": 1, "enum": [1, 2]}), json!(["size"]));
        let new = definition(json!({"type": "integer", "minimum": 0, "enum": [1, 2, 3]}), json!([]));
        assert_eq!(told(&old, &new), Vec::<String>::new());
        assert_eq!(told(&old, &old), Vec::<String>::new());
    }

    #[test]
    fn each_narrower_bound_is_named_with_its_field() {
        let old = definition(json!({"type": "integer", "enum": [1, 2]}), json!([]));
        let new =
            definition(json!({"type": "integer", "minimum": 1, "maximum": 9, "enum": [2]}), json!(["size"]));
        assert_eq!(
            told(&old, &new),
            [
                "spec.size: is required now, and has no default",
                "spec.size: minimum is now 1",
                "spec.size: maximum is now 9",
                "spec.size: 1 is not allowed any more",
            ]
        );
    }

    #[test]
    fn a_type_that_changes_and_a_field_that_goes_are_named() {
        let old = definition(json!({"type": "integer"}), json!([]));
        let mut new = definition(json!({"type": "string"}), json!([]));
        assert_eq!(told(&old, &new), ["spec.size: integer becomes string"]);
        let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        new.pointer_mut(fields).unwrap().as_object_mut().unwrap().remove("size");
        assert_eq!(told(&old, &new), ["spec.size: is gone: what is stored of it is dropped"]);
        let items = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/names/items";
        let mut narrow = old.clone();
        narrow.pointer_mut(items).unwrap()["maxLength"] = json!(3);
        assert_eq!(told(&old, &narrow), ["spec.names[]: maxLength is now 3"]);
    }

    #[test]
    fn a_version_that_goes_and_a_scope_that_changes_are_named() {
        let old = definition(json!({"type": "integer"}), json!([]));
        let mut new = old.clone();
        new["spec"]["scope"] = json!("Cluster");
        new["spec"]["versions"][0]["name"] = json!("v2");
        assert_eq!(
            told(&old, &new),
            ["spec.scope: a kind's scope cannot be changed", "spec.versions: v1 is gone"]
        );
    }
}
