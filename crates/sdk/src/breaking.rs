//! Breaking changes of a CRD: whether its new version would break custom resources that are stored under the old one.
//!
//! A change breaks if a stored object can become invalid, lose a field, or mean something else; adding a field or widening a bound
//! breaks nothing.

use crate::description::DescribedKind;
use serde_json::{Map, Value};
use std::fmt;

/// One change that breaks stored objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakingChange {
    /// The field, as `spec.size`; `spec.items[]` in a list, `spec.labels{}` in a map.
    pub field: String,
    /// What becomes of it.
    pub what: String,
}

impl BreakingChange {
    fn new(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self { field: field.into(), what: what.into() }
    }
}

impl fmt::Display for BreakingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

const SCHEMA: &str = "/schema/openAPIV3Schema";

/// What breaks when the definition `new` takes the place of `old`.
pub fn breaking_changes(old: &Value, new: &Value) -> Vec<BreakingChange> {
    let mut found = Vec::new();
    let (Some(before), Some(after)) = (DescribedKind::of(old), DescribedKind::of(new)) else {
        return found;
    };
    if before.namespaced != after.namespaced {
        found.push(BreakingChange::new("spec.scope", "a kind's scope cannot be changed"));
    }
    if before.kind != after.kind {
        found.push(BreakingChange::new("spec.names.kind", format!("{} becomes {}", before.kind, after.kind)));
    }
    for version in versions(old) {
        let name = &version["name"];
        match versions(new).into_iter().find(|other| other["name"] == *name) {
            None => found.push(BreakingChange::new("spec.versions", format!("{} is gone", text(name)))),
            Some(other) if version["served"] == true && other["served"] != true => {
                found.push(BreakingChange::new(
                    "spec.versions",
                    format!("{} is not served any more", text(name)),
                ));
            }
            Some(other) => {
                if let (Some(old), Some(new)) = (version.pointer(SCHEMA), other.pointer(SCHEMA)) {
                    compare("", old, new, &mut found);
                }
            }
        }
    }
    let stored = |definition| versions(definition).into_iter().find(|version| version["storage"] == true);
    if let (Some(before), Some(after)) = (stored(old), stored(new))
        && before["name"] != after["name"]
        && new.pointer("/spec/conversion/strategy").is_none_or(|strategy| *strategy == "None")
        && let (Some(from), Some(to)) = (before.pointer(SCHEMA), after.pointer(SCHEMA))
    {
        // Nobody converts: what was stored under the one version is read as the other.
        let mut lost = Vec::new();
        compare("", from, to, &mut lost);
        let (from, to) = (text(&before["name"]), text(&after["name"]));
        let told = |one: BreakingChange| {
            BreakingChange::new(one.field, format!("stored as {to}, no longer {from}: {}", one.what))
        };
        found.extend(lost.into_iter().map(told));
    }
    found
}

fn versions(definition: &Value) -> Vec<&Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten().collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<BreakingChange>) {
    let field = if path.is_empty() { "the object" } else { path };
    let mut say = |what: String| found.push(BreakingChange::new(field, what));
    let kind = |schema: &Value| match schema["x-kubernetes-int-or-string"] == true {
        true => "int-or-string".to_owned(),
        false => text(&schema["type"]),
    };
    if kind(old) != kind(new) {
        say(format!("{} becomes {}", kind(old), kind(new)));
        return;
    }
    bounds(old, new, &mut say);
    values(old, new, &mut say);
    rules(old, new, &mut say);
    structure(old, new, &mut say);
    for required in list(&new["required"]) {
        let name = text(required);
        let default = |schema: &Value| !schema["properties"][&name]["default"].is_null();
        let what = match (list(&old["required"]).contains(&required), default(old), default(new)) {
            (false, _, false) => "is required now, and has no default",
            (true, true, false) => "has no default any more, and is required",
            _ => continue,
        };
        found.push(BreakingChange::new(join(path, &name), what));
    }
    inside(path, old, new, found);
}

fn bounds(old: &Value, new: &Value, say: &mut impl FnMut(String)) {
    for (bound, lower) in LOWER.iter().map(|name| (name, true)).chain(UPPER.iter().map(|name| (name, false)))
    {
        if let Some(what) = narrower(bound, lower, &old[*bound], &new[*bound]) {
            say(what);
        }
    }
    for (bound, strictly) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if new[strictly] == true && old[strictly] != true && same(&old[bound], &new[bound]) {
            say(format!("{bound} itself is not allowed any more"));
        }
    }
}

fn values(old: &Value, new: &Value, say: &mut impl FnMut(String)) {
    for name in ["pattern", "format", "multipleOf"] {
        if !new[name].is_null() && !same(&new[name], &old[name]) {
            say(format!("{name} is now {}", new[name]));
        }
    }
    for name in ["anyOf", "oneOf", "allOf", "not"] {
        if !new[name].is_null() && new[name] != old[name] {
            say(format!("{name} is other than before"));
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
}

fn rules(old: &Value, new: &Value, say: &mut impl FnMut(String)) {
    for rule in list(&new["x-kubernetes-validations"]) {
        let was_there = list(&old["x-kubernetes-validations"]).iter().any(|one| one["rule"] == rule["rule"]);
        // A rule about changes says nothing of what is there, unless it says that it does.
        let of_changes = text(&rule["rule"]).contains("oldSelf") && rule["optionalOldSelf"] != true;
        if !was_there && !of_changes {
            say(format!("has a new rule: {}", text(&rule["rule"])));
        }
    }
}

/// How its items are told apart, and what of it is kept.
fn structure(old: &Value, new: &Value, say: &mut impl FnMut(String)) {
    let (before, after) = (&old["x-kubernetes-list-type"], &new["x-kubernetes-list-type"]);
    let keys = "x-kubernetes-list-map-keys";
    if (*after == "set" || *after == "map") && (before != after || old[keys] != new[keys]) {
        say(format!("its items must differ now, as those of a {}", text(after)));
    }
    if new["x-kubernetes-embedded-resource"] == true && old["x-kubernetes-embedded-resource"] != true {
        say("must be an object of Kubernetes now".to_owned());
    }
    let keeps = "x-kubernetes-preserve-unknown-fields";
    if old[keeps] == true && new[keeps] != true && new["additionalProperties"].is_null() {
        say("fields that its schema does not name are dropped now".to_owned());
    }
    if !old["additionalProperties"].is_null() && new["additionalProperties"].is_null() && new[keeps] != true {
        say("is no map any more: what its schema does not name is dropped".to_owned());
    }
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

/// Whether two values are the same; 5 is 5.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    }
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

/// The fields, the items and the values of a map.
fn inside(path: &str, old: &Value, new: &Value, found: &mut Vec<BreakingChange>) {
    let empty = Map::new();
    let fields = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_else(|| empty.clone());
    let keeps_unknown =
        new["x-kubernetes-preserve-unknown-fields"] == true || new["additionalProperties"] != Value::Null;
    let after = fields(new);
    for (name, schema) in fields(old) {
        let path = join(path, &name);
        match after.get(&name) {
            Some(now) => compare(&path, &schema, now, found),
            None if new["additionalProperties"].is_object() => {
                compare(&path, &schema, &new["additionalProperties"], found);
            }
            None if keeps_unknown => {}
            None => found.push(BreakingChange::new(path, "is gone: what is stored of it is dropped")),
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
mod tests;
