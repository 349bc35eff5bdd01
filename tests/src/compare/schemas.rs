//! Random structural schemas, and the CRDs that carry them.

use super::Random;
use super::objects;
use serde_json::{Map, Value, json};

/// The names that fields have: few, so that objects of different steps meet.
pub const FIELDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A random CRD of one or two versions, named after its seed so that many live side by side.
pub fn crd(seed: u64, random: &mut Random) -> Value {
    let group = group(seed);
    let mut spec = object_schema(random, 0);
    if random.chance(10) {
        spec["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    let mut root = json!({
        "type": "object",
        "properties": {"spec": spec, "status": object_schema(random, 1)},
    });
    if random.chance(20) {
        root["required"] = json!(["spec"]);
    }
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": root},
    });
    if random.chance(70) {
        version["subresources"] = json!({"status": {}});
    }
    let mut versions = vec![version];
    if random.chance(25) {
        versions.push(second_version(&versions[0], random));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": versions,
        },
    })
}

/// The same in another version, which may know a field less.
fn second_version(first: &Value, random: &mut Random) -> Value {
    let mut second = first.clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let properties = &mut second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    if random.chance(50)
        && let Some(properties) = properties.as_object_mut()
    {
        properties.remove(*random.pick(&FIELDS));
    }
    second
}

/// The group of the CRD of this seed.
pub fn group(seed: u64) -> String {
    format!("s{seed}.windlass.test")
}

fn object_schema(random: &mut Random, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in FIELDS {
        if random.chance(60) {
            properties.insert(name.to_owned(), schema(random, depth + 1));
        }
    }
    let names: Vec<String> = properties.keys().cloned().collect();
    let mut result = json!({"type": "object", "properties": properties});
    if depth > 0 && !names.is_empty() && random.chance(15) {
        result["required"] = json!([random.pick(&names)]);
    }
    if random.chance(8) {
        result["x-kubernetes-map-type"] = json!(random.pick(&["atomic", "granular"]));
    }
    if depth > 0 && random.chance(5) {
        result["maxProperties"] = json!(2);
    }
    result
}

/// A random schema for one field.
fn schema(random: &mut Random, depth: usize) -> Value {
    let mut result = match random.below(if depth > 3 { 6 } else { 14 }) {
        0 => string(random),
        1 => integer(random),
        2 => json!({"type": "number", "minimum": -10}),
        3 => json!({"type": "boolean"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => string(random),
        6 => object_schema(random, depth),
        7 => map(random, depth),
        8 => list_of_scalars(random),
        9 | 10 => list_of_objects(random, depth),
        11 => list_of_lists(random),
        12 => embedded(random, depth),
        _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    let conditional = random.chance(12);
    if conditional {
        conditions(&mut result, random);
    }
    let can_be_null = result.get("x-kubernetes-int-or-string").is_none();
    if can_be_null && random.chance(12) {
        result["nullable"] = json!(true);
    }
    // A default that breaks a condition is refused with the whole CRD: worth having, but not often.
    if random.chance(if conditional { 1 } else { 20 }) {
        result["default"] = objects::valid(&result, random);
    }
    result
}

/// Conditions on the value alone: alternatives, and what it must not be.
fn conditions(schema: &mut Value, random: &mut Random) {
    let (one, other) = match schema["type"].as_str() {
        Some("string") => (json!({"minLength": 3}), json!({"pattern": "^[xq]"})),
        Some("integer" | "number") => (json!({"minimum": 4}), json!({"maximum": 2})),
        Some("array") => (json!({"minItems": 2}), json!({"maxItems": 1})),
        Some("object") => (json!({"required": ["a"]}), json!({"minProperties": 2})),
        _ => return,
    };
    match random.below(4) {
        0 => schema["anyOf"] = json!([one, other]),
        1 => schema["oneOf"] = json!([one, other]),
        2 => schema["allOf"] = json!([one]),
        _ => schema["not"] = one,
    }
}

fn embedded(random: &mut Random, depth: usize) -> Value {
    let mut result = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    if random.chance(50) {
        result["properties"] = json!({"spec": object_schema(random, depth + 2)});
    } else {
        result["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    result
}

fn list_of_lists(random: &mut Random) -> Value {
    let mut inner = json!({"type": "array", "items": {"type": "string"}});
    let mut result = json!({"type": "array"});
    match random.below(3) {
        0 => inner["x-kubernetes-list-type"] = json!("atomic"),
        1 => {
            inner["x-kubernetes-list-type"] = json!("atomic");
            result["x-kubernetes-list-type"] = json!("set");
        }
        _ => result["x-kubernetes-list-type"] = json!("atomic"),
    }
    result["items"] = inner;
    result
}

fn string(random: &mut Random) -> Value {
    match random.below(7) {
        0 => json!({"type": "string", "enum": ["x", "y", "z"]}),
        1 => json!({"type": "string", "maxLength": 3}),
        2 => json!({"type": "string", "pattern": "^[a-z]*$"}),
        3 => json!({"type": "string", "minLength": 1}),
        4 => {
            json!({"type": "string", "format": random.pick(&["date", "byte", "uuid", "date-time", "ipv4", "duration"])})
        }
        _ => json!({"type": "string"}),
    }
}

fn integer(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"type": "integer", "minimum": 0, "maximum": 10}),
        1 => json!({"type": "integer", "format": "int32"}),
        2 => json!({"type": "integer", "multipleOf": 2}),
        _ => json!({"type": "integer"}),
    }
}

fn map(random: &mut Random, depth: usize) -> Value {
    let mut result = json!({"type": "object", "additionalProperties": schema(random, depth + 1)});
    if random.chance(25) {
        result["x-kubernetes-map-type"] = json!(random.pick(&["atomic", "granular"]));
    }
    result
}

fn list_of_scalars(random: &mut Random) -> Value {
    let items = if random.chance(70) { json!({"type": "string"}) } else { json!({"type": "integer"}) };
    let mut result = json!({"type": "array", "items": items});
    match random.below(3) {
        0 => result["x-kubernetes-list-type"] = json!("set"),
        1 => result["x-kubernetes-list-type"] = json!("atomic"),
        _ => {}
    }
    if random.chance(15) {
        result["maxItems"] = json!(3);
    }
    result
}

fn list_of_objects(random: &mut Random, depth: usize) -> Value {
    let mut items = object_schema(random, depth + 1);
    items["x-kubernetes-map-type"] = json!("granular");
    let mut result = json!({"type": "array"});
    if random.chance(70) {
        let mut keys = vec!["k"];
        items["properties"]["k"] = json!({"type": "string"});
        items["required"] = json!(["k"]);
        if random.chance(35) {
            keys.push("port");
            items["properties"]["port"] = json!({"type": "integer", "default": 80});
        }
        items.as_object_mut().expect("it is one").remove("maxProperties");
        result["x-kubernetes-list-type"] = json!("map");
        result["x-kubernetes-list-map-keys"] = json!(keys);
    } else if random.chance(50) {
        result["x-kubernetes-list-type"] = json!("atomic");
    }
    result["items"] = items;
    result
}
