//! Objects from a schema: within its bounds, and the same for the same number. Small ones for small numbers.

use serde_json::{Map, Value, json};

/// Fields and items go no deeper.
const DEEPEST: usize = 12;

/// Makes one object.
pub(super) struct Generator {
    state: u64,
    /// How much there is of what may be there.
    fullness: u64,
}

impl Generator {
    /// The first has only what is required; from the hundredth on, all sorts.
    pub(super) fn new(case: u64) -> Self {
        Self { state: case.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66, fullness: case.min(100) }
    }

    /// All fields of an object but those of its metadata.
    pub(super) fn object(&mut self, schema: &Value) -> Value {
        let mut made = self.value(schema, 0).unwrap_or_else(|| json!({}));
        for field in ["spec", "status"] {
            let schema = &schema["properties"][field];
            if made[field].is_null() && !schema.is_null() && (field == "spec" || self.is_chosen()) {
                made[field] = self.value(schema, 1).unwrap_or_default();
            }
        }
        if let Some(fields) = made.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        made
    }

    /// A number, by SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn is_chosen(&mut self) -> bool {
        let fullness = self.fullness;
        self.below(130) < fullness
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(all) = schema["enum"].as_array() {
            let place = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
            return all.get(place).cloned();
        }
        if schema["x-kubernetes-int-or-string"] == true {
            let number = self.below(1000);
            return Some(if self.is_chosen() { json!(format!("{number}Mi")) } else { json!(number) });
        }
        Some(match schema["type"].as_str() {
            Some("object") => self.fields(schema, depth),
            Some("array") => {
                let (least, most) =
                    (schema["minItems"].as_u64().unwrap_or(0), schema["maxItems"].as_u64().unwrap_or(3));
                let length = least + self.below(most.min(least + 3) - least + 1);
                let mut items: Vec<Value> = Vec::new();
                for _ in 0..length {
                    let item = self.value(&schema["items"], depth + 1)?;
                    // Lists may be sets, or have keys.
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                Value::Array(items)
            }
            Some("integer") => {
                let (least, most) = bounds(schema, 0.0, 100_000.0);
                json!(
                    least.ceil() as i64
                        + i64::try_from(self.below((most - least) as u64 + 1)).unwrap_or_default()
                )
            }
            Some("number") => {
                let (least, most) = bounds(schema, 0.0, 1000.0);
                // Quarters are exact, in any type of number.
                json!(((least + (most - least) * self.below(1000) as f64 / 1000.0) * 4.0).round() / 4.0)
            }
            Some("boolean") => json!(self.is_chosen()),
            Some("string") => self.text(schema),
            // Anything goes.
            _ => json!({ "some": self.below(10) }),
        })
    }

    fn fields(&mut self, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let chosen = self.is_chosen();
            if (required.contains(&name.as_str()) || chosen)
                && let Some(value) = self.value(schema, depth + 1)
            {
                fields.insert(name.clone(), value);
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.below(3) {
                let name = format!("key-{}", self.below(100));
                if let Some(value) = self.value(&schema["additionalProperties"], depth + 1) {
                    fields.insert(name, value);
                }
            }
        }
        Value::Object(fields)
    }

    fn text(&mut self, schema: &Value) -> Value {
        let number = self.below(10_000);
        match schema["format"].as_str() {
            Some("date-time") => {
                return json!(format!("2026-01-01T00:{:02}:{:02}Z", number / 60 % 60, number % 60));
            }
            Some("date") => return json!(format!("2026-01-{:02}", 1 + number % 28)),
            Some("duration") => return json!(format!("{number}s")),
            Some("byte") => return json!("c2FtcGxl"),
            _ => {}
        }
        let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0).min(256)).unwrap_or_default();
        let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(64)).unwrap_or(64).max(least);
        // Empty ones, and such with more than ASCII, are where conversions go wrong.
        let text = match self.below(8) {
            0 => String::new(),
            1 => format!("größe/{number}: \"x\"\n"),
            _ => format!("sample-{number}"),
        };
        let mut text: String = text.chars().take(most).collect();
        while text.chars().count() < least {
            text.push('x');
        }
        json!(text)
    }
}

fn bounds(schema: &Value, low: f64, high: f64) -> (f64, f64) {
    let least = schema["minimum"].as_f64().unwrap_or(low);
    let most = schema["maximum"].as_f64().unwrap_or(high.max(least));
    (least, most.min(least + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_to_their_schema_and_differ() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 2, "maximum": 4}, "mode": {"type": "string", "enum": ["a", "b"]},
            "hosts": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "minLength": 3, "maxLength": 5}}}}}});
        let made: Vec<Value> =
            (0..200).map(|case| Generator::new(case).object(&schema)["spec"].take()).collect();
        assert!(made[0].get("mode").is_none() && made[0].get("hosts").is_none(), "{}", made[0]);
        for one in &made {
            assert!((2..=4).contains(&one["size"].as_i64().unwrap()), "{one}");
            for host in one["hosts"].as_array().into_iter().flatten() {
                assert!((3..=5).contains(&host.as_str().unwrap().chars().count()), "{one}");
            }
        }
        for (field, value) in
            [("mode", json!("a")), ("mode", json!("b")), ("size", json!(2)), ("size", json!(4))]
        {
            assert!(made.iter().any(|one| one[field] == value), "{field} {value}");
        }
        assert_eq!(Generator::new(77).object(&schema), Generator::new(77).object(&schema));
    }
}
