//! OpenAPI v2 as protobuf, in the messages of the gnostic project: what client-go asks for. A value of any type is YAML there.

use serde_json::Value;
use windlass_schema::yaml;

/// The media types by which it is asked for; it is answered as the second.
pub(super) const MEDIA: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// The document, from its JSON.
pub(super) fn document(json: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &json["swagger"]);
    out.message(2, &json["info"], |info| {
        let mut out = Message::default();
        out.text(1, &info["title"]);
        out.text(2, &info["version"]);
        out
    });
    out.message(8, &json["paths"], |paths| named(2, paths, path));
    out.message(9, &json["definitions"], |definitions| named(1, definitions, schema));
    out.0
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// What is empty is not there.
    fn text(&mut self, number: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    fn texts(&mut self, number: u32, value: &Value) {
        for text in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.bytes(number, text.as_bytes());
        }
    }

    fn flag(&mut self, number: u32, value: &Value) {
        if value == true {
            self.varint(u64::from(number << 3));
            self.varint(1);
        }
    }

    fn whole(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_i64().filter(|value| *value != 0) {
            self.varint(u64::from(number << 3));
            self.varint(value as u64);
        }
    }

    fn real(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
            self.varint(u64::from(number << 3 | 1));
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn any(&mut self, number: u32, value: &Value) {
        if !value.is_null() {
            self.bytes(number, &any(value).0);
        }
    }

    fn message(&mut self, number: u32, value: &Value, write: impl Fn(&Value) -> Message) {
        if !value.is_null() {
            self.bytes(number, &write(value).0);
        }
    }

    fn messages(&mut self, number: u32, value: &Value, write: impl Fn(&Value) -> Message) {
        for item in value.as_array().into_iter().flatten() {
            self.bytes(number, &write(item).0);
        }
    }

    /// The members that begin with `x-`.
    fn extensions(&mut self, number: u32, value: &Value) {
        for (name, value) in
            value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-"))
        {
            self.bytes(number, &pair(name, &any(value)).0);
        }
    }
}

fn any(value: &Value) -> Message {
    let mut out = Message::default();
    out.bytes(2, yaml::write(value).as_bytes());
    out
}

fn pair(name: &str, value: &Message) -> Message {
    let mut out = Message::default();
    out.bytes(1, name.as_bytes());
    out.bytes(2, &value.0);
    out
}

/// Members by their names, in a message of their own.
fn named(number: u32, value: &Value, write: impl Fn(&Value) -> Message) -> Message {
    let mut out = Message::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        out.bytes(number, &pair(name, &write(value)).0);
    }
    out
}

/// One of several things, by the number of its kind.
fn one_of(number: u32, inner: &Message) -> Message {
    let mut out = Message::default();
    out.bytes(number, &inner.0);
    out
}

fn path(path: &Value) -> Message {
    let mut out = Message::default();
    for (number, method) in
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")]
    {
        out.message(number, &path[method], operation);
    }
    out.messages(9, &path["parameters"], parameter);
    out.extensions(10, path);
    out
}

fn operation(operation: &Value) -> Message {
    let mut out = Message::default();
    out.texts(1, &operation["tags"]);
    out.text(2, &operation["summary"]);
    out.text(3, &operation["description"]);
    out.text(5, &operation["operationId"]);
    out.texts(6, &operation["produces"]);
    out.texts(7, &operation["consumes"]);
    out.messages(8, &operation["parameters"], parameter);
    out.message(9, &operation["responses"], |responses| named(1, responses, response));
    out.texts(10, &operation["schemes"]);
    out.flag(11, &operation["deprecated"]);
    out.extensions(13, operation);
    out
}

fn parameter(parameter: &Value) -> Message {
    if parameter["$ref"].is_string() {
        let mut reference = Message::default();
        reference.text(1, &parameter["$ref"]);
        return one_of(2, &reference);
    }
    let mut out = Message::default();
    let place = parameter["in"].as_str().unwrap_or_default();
    if place == "body" {
        out.text(1, &parameter["description"]);
        out.text(2, &parameter["name"]);
        out.text(3, &parameter["in"]);
        out.flag(4, &parameter["required"]);
        out.message(5, &parameter["schema"], schema);
        out.extensions(6, parameter);
        return one_of(1, &one_of(1, &out));
    }
    // Those of a query may be empty, and so all that follows is counted from one more.
    let (kind, more) = match place {
        "query" => (3, 1),
        "path" => (4, 0),
        _ => (1, 0),
    };
    out.flag(1, &parameter["required"]);
    out.text(2, &parameter["in"]);
    out.text(3, &parameter["description"]);
    out.text(4, &parameter["name"]);
    out.text(5 + more, &parameter["type"]);
    out.text(6 + more, &parameter["format"]);
    out.flag(19 + more, &parameter["uniqueItems"]);
    out.extensions(22 + more, parameter);
    one_of(1, &one_of(2, &one_of(kind, &out)))
}

fn response(response: &Value) -> Message {
    let mut out = Message::default();
    out.text(1, &response["description"]);
    out.message(2, &response["schema"], |inner| one_of(1, &schema(inner)));
    out.extensions(5, response);
    one_of(1, &out)
}

fn schema(given: &Value) -> Message {
    let mut out = Message::default();
    for (number, name) in
        [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern"), (26, "discriminator")]
    {
        out.text(number, &given[name]);
    }
    for (number, name) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        out.real(number, &given[name]);
    }
    for (number, name) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        out.whole(number, &given[name]);
    }
    for (number, name) in
        [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems"), (27, "readOnly")]
    {
        out.flag(number, &given[name]);
    }
    out.any(5, &given["default"]);
    out.any(30, &given["example"]);
    out.texts(19, &given["required"]);
    out.messages(20, &given["enum"], any);
    out.message(21, &given["additionalProperties"], |more| match more {
        Value::Bool(allowed) => {
            let mut out = Message::default();
            out.varint(2 << 3);
            out.varint(u64::from(*allowed));
            out
        }
        more => one_of(1, &schema(more)),
    });
    out.message(22, &given["type"], |kind| {
        let mut out = Message::default();
        out.text(1, kind);
        out.texts(1, kind);
        out
    });
    out.message(23, &given["items"], |items| one_of(1, &schema(items)));
    out.messages(24, &given["allOf"], schema);
    out.message(25, &given["properties"], |properties| named(1, properties, schema));
    out.extensions(31, given);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_named_and_its_extensions_are_yaml() {
        let json = json!({"definitions": {"A": {"type": "object", "x-kind": {"k": "v"}}}});
        let kind = [&[0xb2, 1, 8, 10, 6], &b"object"[..]].concat();
        let extension = [&[0xfa, 1, 17, 10, 6], &b"x-kind"[..], &[18, 7, 18, 5], b"k: v\n"].concat();
        let schema = [kind, extension].concat();
        let named = [&[10, 1, b'A', 18, schema.len() as u8], &schema[..]].concat();
        let definitions = [&[10, named.len() as u8], &named[..]].concat();
        assert_eq!(document(&json), [&[9 << 3 | 2, definitions.len() as u8], &definitions[..]].concat());
    }
}
