//! A smallest object of a kind: what its schema requires, and nothing that has a default.
//!
//! A field takes its `example` where the schema has one. Whether the whole is valid, its rules included, is for an API server to
//! say: `windlass generate` asks one.

use super::Manifest;
use crate::description::DescribedKind;
use serde_json::{Map, Value, json};

pub(super) fn sample(kind: &DescribedKind<'_>) -> Manifest {
    let name = kind.kind.to_lowercase();
    let mut object = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": { "name": format!("{name}-sample") },
    });
    if let Some(spec) = kind.schema.pointer("/properties/spec") {
        object["spec"] = smallest(spec);
    }
    Manifest::aside(format!("samples/{}_{}_{name}.yaml", kind.group, kind.version), vec![object])
}

/// A value that the schema takes, as far as its type, its bounds and its enum say so.
fn smallest(schema: &Value) -> Value {
    for given in ["example", "default"] {
        if !schema[given].is_null() {
            return schema[given].clone();
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields: Map<String, Value> =
                required.map(|name| (name.to_owned(), smallest(&schema["properties"][name]))).collect();
            fields.into()
        }
        Some("array") => {
            let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0).min(16)).unwrap_or(0);
            vec![smallest(&schema["items"]); least].into()
        }
        Some("integer") => json!(least(schema, 1.0).ceil() as i64),
        Some("number") => json!(least(schema, 1.0)),
        Some("boolean") => json!(false),
        Some("string") if schema["format"].as_str().is_some_and(|name| of_format(name).is_some()) => {
            schema["format"].as_str().and_then(of_format).into()
        }
        _ => {
            let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0).min(256)).unwrap_or(0);
            let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(64)).unwrap_or(64);
            let text: String = "sample".chars().cycle().take(least.max(6).min(most.max(least))).collect();
            text.into()
        }
    }
}

/// A text of a format.
fn of_format(name: &str) -> Option<&'static str> {
    Some(match name {
        "date" => "2026-01-01",
        "date-time" | "datetime" => "2026-01-01T00:00:00Z",
        "duration" => "1m",
        "email" => "somebody@example.com",
        "hostname" => "example.com",
        "ipv4" | "ip" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "cidr" => "192.0.2.0/24",
        "byte" => "c2FtcGxl",
        "uri" | "url" => "https://example.com",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        _ => return None,
    })
}

/// The wanted number, or the nearest that the bounds allow.
fn least(schema: &Value, wanted: f64) -> f64 {
    let low = schema["minimum"].as_f64().unwrap_or(f64::MIN);
    let high = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    wanted.max(low).min(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_there_and_within_its_bounds() {
        let schema = json!({
            "type": "object",
            "required": ["size", "name", "mode", "hosts", "ratio", "storage", "since"],
            "properties": {
                "size": {"type": "integer", "minimum": 3},
                "name": {"type": "string", "maxLength": 3},
                "mode": {"type": "string", "enum": ["fast", "safe"]},
                "hosts": {"type": "array", "minItems": 2, "items": {"type": "string", "default": "h"}},
                "ratio": {"type": "number", "maximum": 0.5},
                "storage": {"x-kubernetes-int-or-string": true, "pattern": "^[0-9]+Gi$"},
                "since": {"type": "string", "format": "date"},
                "left": {"type": "string"},
            },
        });
        assert_eq!(
            smallest(&schema),
            json!({"size": 3, "name": "sam", "mode": "fast", "hosts": ["h", "h"], "ratio": 0.5, "storage": 1,
                "since": "2026-01-01"})
        );
    }
}
