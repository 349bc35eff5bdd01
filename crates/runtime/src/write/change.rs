//! Would applying this change anything? Read from one's own `managedFields` entry, which says both what was applied
//! before and how the server takes the type apart: lists by key, sets by value, and what is one piece.

use super::requests::Subresource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is as intended, and nothing more is ours.
    Same,
    /// Something is to be changed, or it cannot be told from here: a value may differ only in how it is written.
    Differs,
}

/// Compares an intent with the live object. `live` needs no `managedFields` but those of `manager`.
pub fn would_change(intent: &Value, live: &Value, manager: &str, subresource: Subresource) -> Verdict {
    match compare(intent, live, manager, subresource) {
        Found::Same => Verdict::Same,
        Found::Unclear | Found::Other => Verdict::Differs,
    }
}

/// What a comparison came to. The last is the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    /// Everything is as intended, and nothing more is ours.
    Same,
    /// A schema may know that it is only written differently.
    Unclear,
    /// A text or a truth that is ours by itself is another: no schema makes that the same.
    Other,
}

impl Found {
    fn same_if(same: bool) -> Self {
        if same { Self::Same } else { Self::Unclear }
    }

    /// The strongest of all; nothing is stronger than the last.
    fn strongest(all: impl Iterator<Item = Self>) -> Self {
        let mut strongest = Self::Same;
        for one in all {
            strongest = strongest.max(one);
            if strongest == Self::Other {
                break;
            }
        }
        strongest
    }
}

/// As [`would_change`], and how sure it is.
pub(super) fn compare(intent: &Value, live: &Value, manager: &str, subresource: Subresource) -> Found {
    match own_entry(live, manager, subresource) {
        Some(owned) => compare_objects(intent, live, owned),
        None => Found::Unclear,
    }
}

/// As [`same`], but for the fields that name the object: they are never managed.
fn compare_objects(intent: &Value, live: &Value, owned: &Map<String, Value>) -> Found {
    let (Value::Object(wanted), Value::Object(there)) = (intent, live) else { return Found::Unclear };
    let naming = |field: &str| matches!(field, "name" | "namespace" | "uid" | "resourceVersion");
    let meta = wanted.get("metadata").and_then(Value::as_object);
    let meta_says = meta.map_or(0, |meta| meta.keys().filter(|field| !naming(field)).count());
    let says = |field: &str| match field {
        "apiVersion" | "kind" => false,
        "metadata" => meta.is_none() || meta_says > 0,
        _ => true,
    };
    let parts = || owned.iter().filter(|(part, _)| *part != ".");
    if parts().count() != wanted.keys().filter(|field| says(field)).count() {
        return Found::Unclear;
    }
    let fields = parts().map(|(part, below)| {
        let (Some(field), Some(below)) = (part.strip_prefix("f:"), below.as_object()) else {
            return Found::Unclear;
        };
        let (Some(wanted), Some(there)) = (wanted.get(field), there.get(field)) else {
            return Found::Unclear;
        };
        match (field, meta) {
            ("metadata", Some(meta)) => {
                let below_parts = || below.iter().filter(|(part, _)| *part != ".");
                if below_parts().count() != meta_says {
                    return Found::Unclear;
                }
                Found::strongest(below_parts().map(|(part, below)| {
                    let field = part.strip_prefix("f:").filter(|field| !naming(field));
                    let (Some(field), Some(below)) = (field, below.as_object()) else {
                        return Found::Unclear;
                    };
                    match (meta.get(field), there.get(field)) {
                        (Some(wanted), Some(there)) => same(wanted, there, below, 2),
                        _ => Found::Unclear,
                    }
                }))
            }
            _ => same(wanted, there, below, 1),
        }
    });
    Found::strongest(fields)
}

/// As [`applied_before`], by metadata alone.
pub(super) fn applied_by(meta: &ObjectMeta, manager: &str, subresource: Subresource) -> bool {
    meta.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default() == subresource.subresource()
    })
}

/// Whether a manager applied anything through a subresource.
pub(super) fn applied_before(live: &Value, manager: &str, subresource: Subresource) -> bool {
    own_entry(live, manager, subresource).is_some()
}

fn own_entry<'a>(live: &'a Value, manager: &str, subresource: Subresource) -> Option<&'a Map<String, Value>> {
    let entries = live.get("metadata")?.get("managedFields")?.as_array()?;
    entries.iter().find(|entry| own_entry_of(entry, manager, subresource))?.get("fieldsV1")?.as_object()
}

/// Whether an entry of `managedFields` says what a manager applied through a subresource.
pub(super) fn own_entry_of(entry: &Value, manager: &str, subresource: Subresource) -> bool {
    let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    text("manager") == manager
        && text("operation") == "Apply"
        && text("subresource") == subresource.subresource()
}

/// Whether a manager applied the field at a JSON pointer, or something around it in one piece.
pub(super) fn owns(live: &Value, manager: &str, pointer: &str) -> bool {
    let Some(mut owned) = own_entry(live, manager, Subresource::None) else { return false };
    for part in pointer.split('/').skip(1) {
        let field = part.replace("~1", "/").replace("~0", "~");
        match owned.get(&format!("f:{field}")).and_then(Value::as_object) {
            Some(below) => owned = below,
            // One piece has no parts.
            None => return !owned.is_empty() && owned.keys().all(|part| part == "."),
        }
        if owned.is_empty() {
            return true;
        }
    }
    true
}

/// The fields of an object that a manager applied through a subresource, with their values: what it would have to apply again
/// to change nothing.
pub fn own_fields(live: &Value, manager: &str, subresource: Subresource) -> Option<Value> {
    extract(live, own_entry(live, manager, subresource)?, 0)
}

fn extract(live: &Value, owned: &Map<String, Value>, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    let parts = || owned.iter().filter(|(part, _)| *part != ".");
    if parts().next().is_none() {
        return Some(live.clone());
    }
    match live {
        Value::Object(fields) => {
            let kept = parts().filter_map(|(part, below)| {
                let field = part.strip_prefix("f:")?;
                Some((field.to_owned(), extract(fields.get(field)?, below.as_object()?, depth + 1)?))
            });
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            let mut kept: Vec<(usize, Value)> = parts()
                .filter_map(|(part, below)| {
                    let position = position(items, part)?;
                    Some((position, extract(&items[position], below.as_object()?, depth + 1)?))
                })
                .collect();
            kept.sort_by_key(|(position, _)| *position);
            Some(kept.into_iter().map(|(_, item)| item).collect())
        }
        _ => None,
    }
}

/// Deeper than any object that a server takes.
const MAX_DEPTH: usize = 128;

/// Whether `intent` owns exactly the fields in `owned`, and `live` has its values there.
fn same(intent: &Value, live: &Value, owned: &Map<String, Value>, depth: usize) -> Found {
    if depth > MAX_DEPTH {
        return Found::Unclear;
    }
    let parts = owned.iter().filter(|(part, _)| *part != ".");
    if parts.clone().next().is_none() {
        return match (intent, live) {
            (Value::String(wanted), Value::String(there)) if wanted != there => Found::Other,
            (Value::Bool(wanted), Value::Bool(there)) if wanted != there => Found::Other,
            // One piece, or an empty map or list that is owned as such.
            _ => Found::same_if(intent == live || (is_empty(intent) && is_empty(live))),
        };
    }
    match (intent, live) {
        (Value::Object(wanted), Value::Object(there)) => {
            if parts.clone().count() != wanted.len() {
                return Found::Unclear;
            }
            Found::strongest(parts.map(|(part, below)| {
                let field = part.strip_prefix("f:");
                let found =
                    field.and_then(|field| Some((wanted.get(field)?, there.get(field)?, below.as_object()?)));
                found.map_or(Found::Unclear, |(wanted, there, below)| same(wanted, there, below, depth + 1))
            }))
        }
        (Value::Array(wanted), Value::Array(there)) => {
            let found = parts.clone().map(|(part, below)| {
                Some((position(wanted, part)?, position(there, part)?, below.as_object()?))
            });
            let Some(mut found) = found.collect::<Option<Vec<_>>>() else { return Found::Unclear };
            // Those that are ours must stand in the same order in both.
            found.sort_unstable_by_key(|(wanted, there, _)| (*wanted, *there));
            if found.len() != wanted.len() || !found.is_sorted_by_key(|(_, there, _)| *there) {
                return Found::Unclear;
            }
            Found::strongest(
                found.into_iter().map(|(at, of, below)| same(&wanted[at], &there[of], below, depth + 1)),
            )
        }
        _ => Found::Unclear,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The item that a path element such as `k:{"name":"a"}` or `v:"x"` means.
pub(super) fn item<'a>(items: &'a [Value], part: &str) -> Option<&'a Value> {
    position(items, part).map(|position| &items[position])
}

pub(super) fn position(items: &[Value], part: &str) -> Option<usize> {
    if let Some(keys) = part.strip_prefix("k:") {
        let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
        // An item that leaves a key out means its default, which only a schema tells: then it counts as different.
        return items.iter().position(|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)));
    }
    let value: Value = serde_json::from_str(part.strip_prefix("v:")?).ok()?;
    items.iter().position(|item| *item == value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(fields: Value, mut object: Value) -> Value {
        object["metadata"]["managedFields"] =
            json!([{"manager": "us", "operation": "Apply", "fieldsV1": fields}]);
        object
    }

    fn verdict(intent: Value, live: &Value) -> Verdict {
        would_change(&intent, live, "us", Subresource::None)
    }

    #[test]
    fn what_is_there_and_ours_needs_no_apply() {
        let live = live(
            json!({"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}),
            json!({"metadata": {"labels": {"l": "1", "theirs": "2"}}, "data": {"a": "1", "theirs": "x"}}),
        );
        let intent = |a: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                   "metadata": {"name": "n", "namespace": "s", "labels": {"l": "1"}}, "data": {"a": a}})
        };
        assert_eq!(verdict(intent("1"), &live), Verdict::Same);
        assert_eq!(verdict(intent("2"), &live), Verdict::Differs);
        let mut more = intent("1");
        more["data"]["b"] = json!("new");
        assert_eq!(verdict(more, &live), Verdict::Differs, "a field that is not ours yet");
        let less = json!({"metadata": {"name": "n", "labels": {"l": "1"}}});
        assert_eq!(verdict(less, &live), Verdict::Differs, "a field to give up");
    }

    #[test]
    fn a_text_that_is_another_is_told_apart_from_what_may_be_written_differently() {
        let live = live(
            json!({"f:spec": {"f:text": {}, "f:on": {}, "f:count": {}, "f:list": {}}}),
            json!({"spec": {"text": "a", "on": true, "count": 1, "list": ["b"]}}),
        );
        let found = |text: &str, on: bool, count: Value, list: Value| {
            let intent = json!({"spec": {"text": text, "on": on, "count": count, "list": list}});
            compare(&intent, &live, "us", Subresource::None)
        };
        assert_eq!(found("a", true, json!(1), json!(["b"])), Found::Same);
        assert_eq!(found("c", true, json!(1), json!(["b"])), Found::Other);
        assert_eq!(found("a", false, json!(1), json!(["b"])), Found::Other);
        assert_eq!(found("a", true, json!("1"), json!(["b"])), Found::Unclear, "a number or a text");
        assert_eq!(
            found("a", true, json!(1), json!(["c"])),
            Found::Unclear,
            "one piece may have defaults in it"
        );
        assert_eq!(found("c", true, json!("1"), json!(["b"])), Found::Other, "whatever else is unclear");
    }

    #[test]
    fn an_object_that_was_never_applied_differs() {
        assert_eq!(verdict(json!({"data": {}}), &json!({"data": {}})), Verdict::Differs);
        let others = live(json!({"f:data": {}}), json!({"data": {}}));
        assert_eq!(would_change(&json!({"data": {}}), &others, "them", Subresource::None), Verdict::Differs);
        assert_eq!(would_change(&json!({"data": {}}), &others, "us", Subresource::Status), Verdict::Differs);
    }

    #[test]
    fn lists_are_compared_by_key_value_or_as_one_piece() {
        let live = live(
            json!({"f:by": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:v": {}}}, "f:set": {"v:\"x\"": {}}, "f:piece": {}}),
            json!({"by": [{"name": "z"}, {"name": "a", "v": 1, "theirs": 2}], "set": ["y", "x"], "piece": [1, 2]}),
        );
        let intent = |v: i64, set: &str, piece: Value| json!({"by": [{"name": "a", "v": v}], "set": [set], "piece": piece});
        assert_eq!(verdict(intent(1, "x", json!([1, 2])), &live), Verdict::Same);
        assert_eq!(verdict(intent(2, "x", json!([1, 2])), &live), Verdict::Differs);
        assert_eq!(
            verdict(intent(1, "y", json!([1, 2])), &live),
            Verdict::Differs,
            "y is there, and not ours"
        );
        assert_eq!(verdict(intent(1, "x", json!([2, 1])), &live), Verdict::Differs);
    }

    #[test]
    fn the_order_of_our_items_counts() {
        let owned = json!({"f:set": {"v:1": {}, "v:2": {}}});
        let there = live(owned, json!({"set": [1, 7, 2]}));
        assert_eq!(verdict(json!({"set": [1, 2]}), &there), Verdict::Same);
        assert_eq!(verdict(json!({"set": [2, 1]}), &there), Verdict::Differs);
    }

    #[test]
    fn what_is_ours_can_be_taken_out_and_applied_again() {
        let live = live(
            json!({"f:status": {"f:phase": {}, "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}}),
            json!({"status": {"phase": "Up", "theirs": 1, "list": [{"name": "z"}, {"name": "a", "more": 2}]}}),
        );
        let ours = own_fields(&live, "us", Subresource::None).unwrap();
        assert_eq!(ours, json!({"status": {"phase": "Up", "list": [{"name": "a"}]}}));
        assert_eq!(verdict(ours, &live), Verdict::Same);
        assert_eq!(own_fields(&live, "them", Subresource::None), None);
    }

    #[test]
    fn nonsense_in_managed_fields_is_no_panic() {
        for fields in
            [json!({"f:a": 1}), json!({"k:{": {}}), json!({"v:": {}}), json!({"": {}}), json!({"x:y": {}})]
        {
            let live = live(fields, json!({"a": [1], "b": {}}));
            assert_eq!(verdict(json!({"a": [1]}), &live), Verdict::Differs);
        }
    }
}
