//! What every target does with its bytes; no bytes may make any of it panic.

mod tables;

use serde_json::Value;
use std::sync::Arc;
use windlass_schema::apply::{self, Context, ResetFields, Same};
use windlass_schema::field::ErrorKind;
use windlass_schema::selector::{Fields, Labels};
use windlass_schema::{
    Path, Quantity, Schedule, Schema, default, embedded, json, meta, patch, proto, prune, strategic, structural,
    validate,
};

/// Two JSON texts, split at the first zero byte.
fn two(bytes: &[u8]) -> Option<(Value, Value)> {
    let at = bytes.iter().position(|&byte| byte == 0)?;
    Some((json::read(&bytes[..at]).ok()?.value, json::read(&bytes[at + 1..]).ok()?.value))
}

/// Reads, writes and reads again.
pub fn json_read(bytes: &[u8]) {
    if let Ok(document) = json::read(bytes) {
        let again = json::read(&json::write(&document.value)).expect("what was written can be read");
        assert_eq!(json::write(&again.value).len(), json::write(&document.value).len());
    }
}

/// A schema and a value: check, read, prune, default, validate.
pub fn schema_check(bytes: &[u8]) {
    let Some((schema, value)) = two(bytes) else { return };
    let errors = structural::check(&schema, &Path::new("schema"));
    let _ = windlass_schema::field::aggregate(&errors);
    let Ok(read) = Schema::from_json(&schema) else {
        assert!(!errors.is_empty(), "a schema that cannot be read is refused");
        return;
    };
    let schema = Arc::new(read);
    let mut pruned = value.clone();
    prune::prune(&schema, &mut pruned, true);
    assert!(prune::prune(&schema, &mut pruned, true).is_empty());
    default::fill(&schema, &mut pruned);
    let _ = embedded::coerce(&schema, &mut pruned, &Path::root());
    let _ = validate::validate(&schema, &pruned, &Path::root());
    let _ = validate::validate_update(&schema, &pruned, &value, &Path::root());
    let mut metadata = value;
    if meta::decode(&mut metadata).is_ok() {
        let _ = meta::validate(&metadata, true, meta::NameRule::Subdomain, &Path::new("metadata"));
        let _ = meta::validate_update(&metadata, &pruned, &Path::new("metadata"));
    }
}

/// A rule about a fixed schema: refused, or compiled and run on values that keep to the schema and values that do not.
pub fn rules(bytes: &[u8]) {
    let rule = String::from_utf8_lossy(bytes);
    let schema = serde_json::json!({
        "type": "object", "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
            "e": {"x-kubernetes-int-or-string": true}, "t": {"type": "string", "format": "date-time"},
            "d": {"type": "string", "format": "duration"}, "y": {"type": "string", "format": "byte"},
            "l": {"type": "array", "items": {"type": "string"}},
            "k": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "x-kubernetes-validations": [{"rule": rule, "messageExpression": rule}],
    });
    let Ok(schema) = Schema::from_json(&schema) else { return };
    // One that may cost too much is refused as well, and so is one with a message that is none: both would run.
    let errors = windlass_schema::rules::check(&schema, &Path::new("schema"));
    let refused = errors.iter().any(|error| error.kind == ErrorKind::Invalid && error.path.ends_with(".rule"));
    let Some(rules) = windlass_schema::rules::Rules::compile(&schema) else { return };
    let good = serde_json::json!({"s": "a\u{e9}b", "i": -1, "n": 1.5, "b": true, "e": "5%", "t": "2024-02-29T00:00:00Z",
        "d": "1h", "y": "aGk=", "l": ["a", "b"], "k": [{"a": "x"}], "m": {"q": 7}});
    let odd = serde_json::json!({"s": 1, "l": {}, "k": [{}], "e": 1.5, "t": "x", "m": null});
    for (new, old) in
        [(&good, None), (&odd, None), (&good, Some(&odd)), (&odd, Some(&good)), (&good, Some(&good))]
    {
        let verdict = rules.validate(new, old);
        assert!(!refused || !verdict.errors.is_empty() || old.is_some(), "a rule that was refused holds");
    }
}

/// Label and field selectors.
pub fn selectors(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(labels) = Labels::parse(&text) {
        assert_eq!(Labels::parse(&labels.to_string()).as_ref(), Ok(&labels));
        labels.matches(|_| Some("a"));
    }
    if let Ok(fields) = Fields::parse(&text) {
        fields.matches(|_| None);
    }
}

/// Two quantities, split at the first zero byte: written, read again, compared and added up.
pub fn quantities(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (one, other) = text.split_once('\0').unwrap_or((&text, "1"));
    let Ok(one) = one.trim().parse::<Quantity>() else { return };
    assert_eq!(one.to_string().parse().as_ref(), Ok(&one), "what was written can be read");
    let _ = (one.value(), one.milli_value(), one.as_approximate_f64(), one.as_i64());
    let Ok(other) = other.trim().parse::<Quantity>() else { return };
    let (sum, order) = (one.clone() + &other, one.cmp(&other));
    assert_eq!(order, other.cmp(&one).reverse());
    let _ = (sum.to_string(), (one - &other).to_string(), (other * -7).to_string());
}

/// A cron schedule: refused, or followed for a few times, each after the last.
pub fn schedules(bytes: &[u8]) {
    let Ok(schedule) = String::from_utf8_lossy(bytes).parse::<Schedule>() else { return };
    let mut now = Default::default();
    for _ in 0..3 {
        let Some(next) = schedule.next(now) else { return };
        assert!(next > now, "time goes on");
        now = next;
    }
}

/// A document and a patch of every kind.
pub fn merges(bytes: &[u8]) {
    let Some((doc, change)) = two(bytes) else { return };
    let _ = patch::json_patch(&doc, &change);
    if let (Value::Object(doc), Value::Object(mut change)) = (doc.clone(), change.clone()) {
        let _ = strategic::merge(doc, &mut change, &tables::Everywhere);
    }
    let mut merged = doc;
    patch::merge(&mut merged, &change);
}

/// A protobuf message, in an envelope and without.
pub fn protobuf(bytes: &[u8]) {
    if let Ok(envelope) = proto::open(bytes) {
        let _ = proto::decode(&tables::table(), "All", envelope.raw);
    }
    if let Ok(value) = proto::decode(&tables::table(), "All", bytes) {
        let text = json::write(&value);
        json::read(&text).expect("what was read can be written");
        proto::encode(&tables::table(), "All", "v1", "All", &text).expect("and so as a message");
    }
}

/// A schema, an object as it is and one that is wanted: applied by one, written by another, applied again.
pub fn apply_update(bytes: &[u8]) {
    let Some(at) = bytes.iter().position(|&byte| byte == 0) else { return };
    let Some((live, mut wanted)) = two(&bytes[at + 1..]) else { return };
    let Ok(schema) = json::read(&bytes[..at]) else { return };
    let Ok(schema) = Schema::from_json(&schema.value) else { return };
    let schema = Arc::new(schema);
    let (schema, reset_fields) = (|_: &str| Some(schema.clone()), ResetFields::new());
    let text = |field: &str| live.get(field).and_then(Value::as_str).unwrap_or_default();
    let context = Context {
        blank: None,
        settled: false,
        schema: &schema,
        convert: &Same,
        now: Default::default(),
        subresource: "",
        reset_fields: &reset_fields,
        api_version: text("apiVersion"),
        kind: text("kind"),
    };
    let applied = apply::apply(Some(&live), &wanted, "a", true, &context);
    let _ = apply::update(Some(&live), &mut wanted, "b", &context);
    let Ok(applied) = applied else { return };
    let _ = apply::apply(Some(&applied.object), &wanted, "c", false, &context);
    let _ = apply::owned_by(&applied.object, "a", &context);
    let _ = apply::would_change(&applied.object, &wanted, "a", &context);
    let mut kept = wanted;
    apply::keep_times_if_unchanged(&applied.object, &mut kept);
}
