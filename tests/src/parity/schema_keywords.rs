//! Custom resources: every keyword of a schema, with valid and invalid objects.

use super::{Behaviour, Script};
use serde_json::{Value, json};

/// A schema for `spec`, and values that are created one after the other.
const SCHEMAS: &[(&str, &str, &[&str])] = &[
    ("type object", r#"{"type":"object"}"#, &["{}", "[]", "\"x\"", "null"]),
    ("type array", r#"{"type":"array","items":{"type":"string"}}"#, &["[\"a\"]", "{}", "[1]"]),
    ("type string", r#"{"type":"string"}"#, &["\"a\"", "1", "true"]),
    ("type integer", r#"{"type":"integer"}"#, &["1", "1.0", "1.5", "\"1\""]),
    ("type number", r#"{"type":"number"}"#, &["1", "1.5", "\"1\"", "1e3"]),
    ("type boolean", r#"{"type":"boolean"}"#, &["true", "\"true\"", "0"]),
    ("int-or-string", r#"{"x-kubernetes-int-or-string":true}"#, &["1", "\"a\"", "1.5", "{}"]),
    ("nullable", r#"{"type":"string","nullable":true}"#, &["null", "\"a\""]),
    (
        "not nullable in a map",
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        &[r#"{"a":null}"#, r#"{"a":"b"}"#, r#"{"a":1}"#],
    ),
    (
        "required",
        r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}"#,
        &["{}", r#"{"a":""}"#, r#"{"a":null,"b":"x"}"#],
    ),
    ("enum", r#"{"type":"string","enum":["red","blue"]}"#, &["\"red\"", "\"green\"", "\"\""]),
    ("enum of numbers", r#"{"type":"integer","enum":[1,2]}"#, &["2", "3"]),
    ("maximum", r#"{"type":"integer","maximum":5}"#, &["5", "6"]),
    ("exclusive maximum", r#"{"type":"integer","maximum":5,"exclusiveMaximum":true}"#, &["4", "5"]),
    ("minimum", r#"{"type":"number","minimum":0.5}"#, &["0.5", "0.4", "-1"]),
    ("exclusive minimum", r#"{"type":"integer","minimum":1,"exclusiveMinimum":true}"#, &["2", "1"]),
    ("multipleOf", r#"{"type":"integer","multipleOf":3}"#, &["9", "10"]),
    ("maxLength", r#"{"type":"string","maxLength":3}"#, &["\"abc\"", "\"abcd\"", "\"äöü\""]),
    ("minLength", r#"{"type":"string","minLength":2}"#, &["\"ab\"", "\"a\""]),
    ("pattern", r#"{"type":"string","pattern":"^[a-z]+$"}"#, &["\"abc\"", "\"Abc\""]),
    (
        "pattern with classes",
        r#"{"type":"string","pattern":"^\\p{L}\\x{e9}\\101$"}"#,
        &["\"zéA\"", "\"1éA\""],
    ),
    ("maxItems", r#"{"type":"array","maxItems":1,"items":{"type":"integer"}}"#, &["[1]", "[1,2]"]),
    ("minItems", r#"{"type":"array","minItems":1,"items":{"type":"integer"}}"#, &["[]", "[1]"]),
    (
        "maxProperties",
        r#"{"type":"object","maxProperties":1,"additionalProperties":{"type":"integer"}}"#,
        &[r#"{"a":1}"#, r#"{"a":1,"b":2}"#],
    ),
    (
        "minProperties",
        r#"{"type":"object","minProperties":1,"additionalProperties":{"type":"integer"}}"#,
        &["{}", r#"{"a":1}"#],
    ),
    ("allOf", r#"{"type":"integer","allOf":[{"minimum":2},{"maximum":4}]}"#, &["3", "1", "5"]),
    ("anyOf", r#"{"type":"integer","anyOf":[{"minimum":10},{"maximum":4}]}"#, &["3", "7"]),
    ("oneOf", r#"{"type":"integer","oneOf":[{"minimum":3},{"maximum":5}]}"#, &["2", "4", "6"]),
    ("not", r#"{"type":"integer","not":{"enum":[4]}}"#, &["3", "4"]),
    (
        "format date-time",
        r#"{"type":"string","format":"date-time"}"#,
        &["\"2020-01-01T00:00:00Z\"", "\"today\""],
    ),
    ("format date", r#"{"type":"string","format":"date"}"#, &["\"2020-01-01\"", "\"2020-13-01\""]),
    ("format duration", r#"{"type":"string","format":"duration"}"#, &["\"1h\"", "\"an hour\""]),
    ("format email", r#"{"type":"string","format":"email"}"#, &["\"a@example.com\"", "\"a\""]),
    ("format ipv4", r#"{"type":"string","format":"ipv4"}"#, &["\"10.0.0.1\"", "\"10.0.0.256\"", "\"::1\""]),
    ("format ipv6", r#"{"type":"string","format":"ipv6"}"#, &["\"::1\"", "\"10.0.0.1\""]),
    ("format cidr", r#"{"type":"string","format":"cidr"}"#, &["\"10.0.0.0/8\"", "\"10.0.0.0\""]),
    ("format mac", r#"{"type":"string","format":"mac"}"#, &["\"00:11:22:33:44:55\"", "\"00\""]),
    ("format uri", r#"{"type":"string","format":"uri"}"#, &["\"http://example.com/a\"", "\"a b\""]),
    (
        "format uuid",
        r#"{"type":"string","format":"uuid"}"#,
        &["\"12345678-1234-1234-1234-123456789012\"", "\"1234\""],
    ),
    ("format byte", r#"{"type":"string","format":"byte"}"#, &["\"YQ==\"", "\"?\""]),
    ("format hostname", r#"{"type":"string","format":"hostname"}"#, &["\"a.example.com\"", "\"a_b\""]),
    ("format int32", r#"{"type":"integer","format":"int32"}"#, &["2147483647", "2147483648"]),
    (
        "format int64",
        r#"{"type":"integer","format":"int64"}"#,
        &["9223372036854775807", "9223372036854775808"],
    ),
    ("a format that is not known", r#"{"type":"string","format":"colour"}"#, &["\"any\""]),
    (
        "list type set",
        r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#,
        &[r#"["a","b"]"#, r#"["a","a"]"#],
    ),
    (
        "list type map",
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"string"}}}}"#,
        &[r#"[{"k":"a"},{"k":"b"}]"#, r#"[{"k":"a"},{"k":"a","v":"x"}]"#, r#"[{"v":"x"}]"#],
    ),
    (
        "defaults",
        r#"{"type":"object","default":{},"properties":{"a":{"type":"string","default":"x"},"n":{"type":"object","properties":{"b":{"type":"integer","default":3}}}}}"#,
        &["{}", r#"{"a":null}"#, r#"{"n":{}}"#, r#"{"a":"y"}"#, "null"],
    ),
    (
        "defaults in items",
        r#"{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}}"#,
        &["[{}]", r#"[{"a":"y"},{}]"#],
    ),
    (
        "a default for what is nullable",
        r#"{"type":"object","properties":{"a":{"type":"string","nullable":true,"default":"x"}}}"#,
        &["{}", r#"{"a":null}"#],
    ),
    (
        "unknown fields are pruned",
        r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}"#,
        &[r#"{"a":{"b":"x","c":"y"},"d":1}"#],
    ),
    (
        "unknown fields are kept where asked",
        r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}"#,
        &[r#"{"a":{"b":"x","c":"y"},"d":1}"#],
    ),
    (
        "an embedded resource",
        r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#,
        &[
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","colour":"red"}}"#,
            "{}",
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}"#,
        ],
    ),
    (
        "a rule",
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.a <= self.b","message":"a is at most b"}]}"#,
        &[r#"{"a":1,"b":2}"#, r#"{"a":3,"b":2}"#],
    ),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, schema, values) in SCHEMAS {
        all.push(Behaviour::new(format!("validation: {name}"), move |mut script: Script| async move {
            let defined = script.define(script.with_spec(serde_json::from_str(schema)?)).await?;
            for (index, value) in values.iter().enumerate() {
                let value: Value = serde_json::from_str(value)?;
                let object = defined.object(&format!("w{index}"), json!({"spec": value}));
                script.post(&defined.objects, object).await?;
            }
            script.get(&defined.objects).await?;
            Ok(script)
        }));
    }
    all
}
