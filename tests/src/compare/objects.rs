//! Random values for a schema: valid ones, and ones that are wrong in an interesting way now and then.

use super::Random;
use super::schemas::FIELDS;
use serde_json::{Map, Value, json};

/// A value that fits the schema, small.
pub fn valid(schema: &Value, random: &mut Random) -> Value {
    value(schema, random, 0)
}

/// A value that may be wrong: each node is, `wrong` times in a hundred.
pub fn value(schema: &Value, random: &mut Random, wrong: usize) -> Value {
    if wrong > 0 && random.chance(wrong) {
        return anything(random, 0);
    }
    if schema["nullable"] == json!(true) && random.chance(15) {
        return Value::Null;
    }
    if schema["x-kubernetes-int-or-string"] == json!(true) {
        return if random.chance(50) { json!(random.below(5)) } else { json!("50%") };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, random, wrong),
        Some("array") => array(schema, random, wrong),
        Some("string") => string(schema, random),
        Some("integer") => json!(2 * random.below(5)),
        Some("number") => json!(*random.pick(&[0.5, 1.0, -2.25, 3.0])),
        Some("boolean") => json!(random.chance(50)),
        _ => anything(random, 0),
    }
}

fn string(schema: &Value, random: &mut Random) -> Value {
    match schema["format"].as_str() {
        Some("date") => return json!("2026-01-31"),
        Some("date-time") => return json!("2026-01-31T10:00:00Z"),
        Some("byte") => return json!("aGVsbG8="),
        Some("uuid") => return json!("123e4567-e89b-12d3-a456-426614174000"),
        Some("ipv4") => return json!("192.0.2.1"),
        Some("duration") => return json!("1h30m"),
        _ => {}
    }
    match schema["enum"].as_array() {
        Some(allowed) => random.pick(allowed).clone(),
        None => json!(random.pick(&["x", "y", "abc", "q"])),
    }
}

fn object(schema: &Value, random: &mut Random, wrong: usize) -> Value {
    let mut fields = Map::new();
    let most = schema["maxProperties"].as_u64().unwrap_or(100);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let needed = required.contains(&name.as_str());
        let missing = wrong > 0 && random.chance(wrong);
        if (needed && !missing)
            || (!needed && (fields.len() as u64) < most.saturating_sub(1) && random.chance(45))
        {
            fields.insert(name.clone(), value(property, random, wrong));
        }
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|additional| additional.is_object()) {
        for _ in 0..random.below(3) {
            fields.insert((*random.pick(&FIELDS)).to_owned(), value(additional, random, wrong));
        }
    }
    if schema["x-kubernetes-embedded-resource"] == json!(true) {
        embedded(&mut fields, random, wrong);
    }
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == json!(true);
    if preserves || (wrong > 0 && random.chance(wrong)) {
        fields.insert(format!("un{}", random.pick(&FIELDS)), anything(random, 0));
    }
    Value::Object(fields)
}

/// A resource inside of an object, with a kind and metadata of its own.
fn embedded(fields: &mut Map<String, Value>, random: &mut Random, wrong: usize) {
    fields.insert("apiVersion".into(), json!("v1"));
    fields.insert("kind".into(), json!("Inner"));
    if random.chance(60) {
        let metadata = [
            json!({"name": "n"}),
            json!({"labels": {"l": random.pick(&["1", "2"])}}),
            json!({"name": "n", "annotations": {}, "finalizers": ["e.io/a"]}),
            json!({}),
        ];
        fields.insert("metadata".into(), random.pick(&metadata).clone());
    }
    if wrong > 0 && random.chance(30) {
        let name = *random.pick(&["apiVersion", "kind", "metadata"]);
        match random.below(3) {
            0 => drop(fields.remove(name)),
            1 => drop(fields.insert(name.into(), anything(random, 1))),
            _ => drop(
                fields.insert("metadata".into(), json!({"name": "B@d", "unknown": 1, "labels": {"l": "?"}})),
            ),
        }
    }
}

fn array(schema: &Value, random: &mut Random, wrong: usize) -> Value {
    let mut items: Vec<Value> = Vec::new();
    for _ in 0..random.below(4) {
        let mut item = value(&schema["items"], random, wrong);
        if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array()
            && item.is_object()
        {
            item["k"] = json!(random.pick(&["one", "two", "three"]));
            let same = |other: &Value| {
                keys.iter().all(|key| other[key.as_str().unwrap_or("")] == item[key.as_str().unwrap_or("")])
            };
            // A second entry of the same key is an error worth having, but not in every list.
            if items.iter().any(same) && !(wrong > 0 && random.chance(20)) {
                continue;
            }
            // A missing key that has a default is the default.
            if wrong == 0 && keys.len() > 1 && items.iter().any(|other| other["k"] == item["k"]) {
                continue;
            }
        } else if schema["x-kubernetes-list-type"] == json!("set")
            && items.contains(&item)
            && !(wrong > 0 && random.chance(20))
        {
            continue;
        }
        items.push(item);
    }
    Value::Array(items)
}

/// Any JSON.
pub fn anything(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth > 2 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(random.chance(50)),
        2 => json!(random.below(100)),
        3 => json!(-1.5),
        4 => json!(random.pick(&["", "x", "A long string", "3", "50%"])),
        5 => json!(30_000_000_000_i64),
        6 => Value::Array((0..random.below(3)).map(|_| anything(random, depth + 1)).collect()),
        _ => Value::Object(
            (0..random.below(3))
                .map(|_| ((*random.pick(&FIELDS)).to_owned(), anything(random, depth + 1)))
                .collect(),
        ),
    }
}
