//! Random patches made of templates: merge patches, strategic merge patches and JSON patches.
//!
//! What may not be there yet is patched with all that it must have, so that most patches lead to a valid object.

use super::draw::{Presence, Resolved, draw, reconcile, resolve};
use super::{facts, piece};
use crate::compare::Random;
use serde_json::{Map, Value, json};

/// Is this one of several objects that exclude each other? Merged, they would both be there.
fn is_union(template: &'static Value) -> bool {
    match (template.get("?"), template.get("&").and_then(Value::as_str)) {
        (Some(choices), _) => choices.as_array().into_iter().flatten().any(Value::is_object),
        (_, Some(name)) => is_union(piece(name)),
        _ => template.get("?+").is_some(),
    }
}

/// A merge patch. One that is `whole` has all that must be there.
pub fn merge_patch(template: &'static Value, random: &mut Random, whole: bool) -> Value {
    match resolve(template, random) {
        Resolved::Fields(fields) => {
            let mut patch = Map::new();
            for (name, presence, value) in fields {
                let needed = whole && presence == Presence::Always;
                if !needed && !random.chance(if presence == Presence::Rarely { 6 } else { 30 }) {
                    continue;
                }
                let optional = presence != Presence::Always;
                let patched = if optional && (is_union(value) || random.chance(15)) {
                    Value::Null
                } else if is_union(value) {
                    draw(value, random)
                } else {
                    merge_patch(value, random, whole || optional)
                };
                patch.insert(name.to_owned(), patched);
            }
            Value::Object(patch)
        }
        Resolved::Exactly(value) => value.clone(),
        Resolved::Items(_) => draw(template, random),
    }
}

/// A strategic merge patch of an object of this Go type.
pub fn strategic_patch(template: &'static Value, of: &str, random: &mut Random, whole: bool) -> Value {
    if is_union(template) || random.chance(3) {
        let mut patch = draw(template, random);
        if let Some(fields) = patch.as_object_mut() {
            let keys: Vec<&String> = fields.keys().collect();
            let (directive, value) = match random.chance(50) {
                true => ("$patch", json!("replace")),
                false => ("$retainKeys", json!(keys)),
            };
            fields.insert(directive.to_owned(), value);
        }
        return patch;
    }
    let Resolved::Fields(fields) = resolve(template, random) else { return draw(template, random) };
    let mut patch = Map::new();
    for (name, presence, value) in fields {
        let needed = whole && presence == Presence::Always;
        if !needed && !random.chance(if presence == Presence::Rarely { 6 } else { 30 }) {
            continue;
        }
        let optional = presence != Presence::Always;
        if optional && random.chance(12) {
            patch.insert(name.to_owned(), Value::Null);
            continue;
        }
        let field = facts::field(of, name);
        let patched = match resolve(value, random) {
            Resolved::Items(items) if field.merges && !field.merge_key.is_empty() => {
                merged_list(&mut patch, name, field, items, random)
            }
            Resolved::Items(_) if field.merges => plain_list(&mut patch, name, draw(value, random), random),
            Resolved::Fields(_) if optional && random.chance(4) => json!({"$patch": "delete"}),
            Resolved::Fields(_) => strategic_patch(value, field.holds, random, whole || optional),
            _ => draw(value, random),
        };
        patch.insert(name.to_owned(), patched);
    }
    if random.chance(3) {
        patch.insert("$patch".to_owned(), json!("merge"));
    }
    Value::Object(patch)
}

/// Items that are merged by their keys, changed, added and deleted.
fn merged_list(
    patch: &mut Map<String, Value>,
    name: &str,
    field: facts::Field,
    items: Vec<(bool, &'static Value)>,
    random: &mut Random,
) -> Value {
    let replaced = random.chance(5);
    let (mut patched, mut order) = (Vec::new(), Vec::new());
    for (always, item) in items {
        let drawn = draw(item, random);
        let key = json!({field.merge_key: drawn[field.merge_key]});
        if replaced {
            if always || random.chance(50) {
                patched.push(drawn);
            }
            continue;
        }
        if random.chance(70) {
            order.push(key.clone());
        }
        if !random.chance(40) {
            continue;
        }
        if !always && random.chance(25) {
            let mut delete = key;
            delete["$patch"] = json!("delete");
            patched.push(delete);
        } else if is_union(item) {
            let keys: Vec<&String> =
                drawn.as_object().map(|fields| fields.keys().collect()).unwrap_or_default();
            let keys = json!(keys);
            let mut drawn = drawn;
            drawn["$retainKeys"] = keys;
            patched.push(drawn);
        } else {
            let mut item = strategic_patch(item, field.holds, random, true);
            item[field.merge_key] = key[field.merge_key].clone();
            patched.push(item);
        }
    }
    reconcile(&mut patched, random);
    if replaced {
        let at = random.below(patched.len() + 1);
        patched.insert(at, json!({"$patch": "replace"}));
    } else if random.chance(15) {
        reconcile(&mut order, random);
        patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
    }
    Value::Array(patched)
}

/// A list of plain values, to which some are added, and from which others are deleted.
fn plain_list(patch: &mut Map<String, Value>, name: &str, drawn: Value, random: &mut Random) -> Value {
    let mut added = drawn.as_array().cloned().unwrap_or_default();
    if !added.is_empty() && random.chance(40) {
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), json!([added.remove(0)]));
    }
    if random.chance(20) {
        let mut order = added.clone();
        reconcile(&mut order, random);
        patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
    }
    Value::Array(added)
}

/// One operation of a JSON patch somewhere in the template.
pub fn json_operation(template: &'static Value, random: &mut Random) -> Value {
    let (mut at, mut path, mut optional) = (template, String::new(), false);
    loop {
        match resolve(at, random) {
            Resolved::Fields(fields) if !fields.is_empty() && (!optional || !random.chance(35)) => {
                let (name, presence, value) = fields[random.below(fields.len())];
                path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                optional = presence != Presence::Always;
                at = value;
            }
            Resolved::Items(_) if random.chance(40) => {
                let from = format!("{path}/{}", random.below(3));
                return match random.below(4) {
                    0 => json!({"op": "remove", "path": from}),
                    1 => json!({"op": "move", "from": from, "path": format!("{path}/-")}),
                    2 => json!({"op": "test", "path": from, "value": {"name": "a"}}),
                    _ => json!({"op": "move", "from": from, "path": format!("{path}/0")}),
                };
            }
            _ => break,
        }
    }
    match random.below(8) {
        0 | 1 if optional => json!({"op": "remove", "path": path}),
        2 => json!({"op": "test", "path": path, "value": draw(at, random)}),
        3 | 4 => json!({"op": "replace", "path": path, "value": draw(at, random)}),
        _ => json!({"op": "add", "path": path, "value": draw(at, random)}),
    }
}
