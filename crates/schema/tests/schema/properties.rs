//! Properties that hold for every value.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};
use std::sync::Arc;
use windlass_schema::selector::{Fields, Labels};
use windlass_schema::{Path, Schema, default, json, patch, prune, structural, validate};

/// Values over few names, so that schemas, objects and patches meet.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        prop_oneof![Just("a".to_owned()), Just(String::new()), any::<String>()].prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "metadata", "kind"]).prop_map(str::to_owned)
}

/// Structural or almost structural schemas.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = (prop::sample::select(vec!["string", "integer", "number", "boolean"]), any::<bool>())
        .prop_map(|(kind, nullable)| {
            let default = match kind {
                "string" => json!("a"),
                "boolean" => json!(true),
                _ => json!(1),
            };
            let mut schema = json!({"type": kind, "nullable": nullable});
            if !nullable {
                schema["default"] = default;
            }
            schema
        });
    let leaf = prop_oneof![
        leaf,
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "object"})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let properties = prop::collection::btree_map(name(), inner.clone(), 0..4);
        prop_oneof![
            (properties, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
                |(properties, preserve, embedded, default)| {
                    let properties: Map<String, Value> = properties.into_iter().collect();
                    let mut schema = json!({"type": "object", "properties": properties});
                    if preserve {
                        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                    }
                    if embedded {
                        schema["x-kubernetes-embedded-resource"] = true.into();
                    } else if default {
                        schema["default"] = json!({});
                    }
                    schema
                }
            ),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|further| json!({"type": "object", "additionalProperties": further})),
        ]
    })
}

fn read(schema: &Value) -> Arc<Schema> {
    Arc::new(Schema::from_json(schema).unwrap())
}

fn drop_nulls_in_lists(value: &mut Value, inside: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| drop_nulls_in_lists(item, true)),
        Value::Object(fields) => fields.retain(|_, field| {
            drop_nulls_in_lists(field, inside);
            !inside || !field.is_null()
        }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back(value in value()) {
        let document = json::read(&json::write(&value)).unwrap();
        prop_assert!(document.duplicates.is_empty());
        // A whole float comes back as an integer, as in Go; everything else as it was.
        let again = json::read(&json::write(&document.value)).unwrap();
        prop_assert_eq!(&again, &document);
        prop_assert_eq!(json::to_string(&value).replace("-0", "0"), json::to_string(&again.value).replace("-0", "0"));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json::read(&bytes);
    }

    #[test]
    fn any_almost_json_is_read_or_refused(text in r#"[\[\]{}:,"\\ue0-9.+\-truefalsn ]{0,40}"#) {
        let ours = json::read(text.as_bytes());
        let theirs = serde_json::from_str::<Value>(&text);
        if theirs.is_ok() {
            prop_assert!(ours.is_ok());
        } else if let Ok(document) = ours {
            // Lone surrogates are fine in Go; so is nothing else that serde refuses.
            prop_assert!(text.contains("\\u"), "{}", document.value);
        }
    }

    #[test]
    fn defaulting_is_idempotent(schema in schema(), value in value()) {
        let schema = read(&schema);
        let mut once = value;
        default::fill(&schema, &mut once);
        let mut twice = once.clone();
        default::fill(&schema, &mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn pruning_is_idempotent_and_says_what_it_drops(schema in schema(), value in value(), root: bool) {
        let schema = read(&schema);
        let mut once = value.clone();
        let dropped = prune::prune(&schema, &mut once, root);
        prop_assert!(dropped.is_empty() || once != value);
        let mut twice = once.clone();
        prop_assert!(prune::prune(&schema, &mut twice, root).is_empty());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn defaults_of_a_sound_schema_survive_pruning(schema in schema(), value in value()) {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        prop_assume!(structural::check(&schema, &Path::root()).is_empty());
        let schema = read(&schema);
        let mut object = json!({"spec": value});
        prune::prune(&schema, &mut object, true);
        default::fill(&schema, &mut object);
        let before = object.clone();
        prop_assert!(prune::prune(&schema, &mut object, true).is_empty());
        prop_assert_eq!(before, object);
    }

    #[test]
    fn any_value_is_validated_and_updates_forgive_what_was(schema in schema(), value in value(), old in value()) {
        let schema = read(&schema);
        let errors = validate::validate(&schema, &value, &Path::root());
        let update = validate::validate_update(&schema, &value, &old, &Path::root());
        for error in &update {
            prop_assert!(errors.contains(error), "{error}");
        }
    }

    #[test]
    fn any_json_is_checked_as_a_schema(schema in prop_oneof![schema(), value()]) {
        let errors = structural::check(&schema, &Path::new("s"));
        prop_assert!(!errors.is_empty() || Schema::from_json(&schema).is_ok());
    }

    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(target in value(), mut patch in value()) {
        // The server keeps nulls inside of a list that replaces an object, and only then.
        drop_nulls_in_lists(&mut patch, false);
        let mut once = target;
        patch::merge(&mut once, &patch);
        let mut twice = once.clone();
        patch::merge(&mut twice, &patch);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn an_empty_merge_patch_changes_no_object(target in value()) {
        prop_assume!(target.is_object());
        let mut merged = target.clone();
        patch::merge(&mut merged, &json!({}));
        prop_assert_eq!(merged, target);
    }

    #[test]
    fn a_json_patch_applies_or_says_why(
        doc in value(),
        operations in prop::collection::vec((prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]),
            "(/[abc0-3-]){0,3}", "(/[abc0-3-]){0,3}", value()), 0..6),
    ) {
        let operations: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        let _ = patch::json_patch(&doc, &Value::Array(operations));
    }

    #[test]
    fn selectors_print_what_they_read(text in prop_oneof![any::<String>(), "[ab!=,()<> notin.0-9\\\\]{0,20}"]) {
        if let Ok(labels) = Labels::parse(&text) {
            prop_assert_eq!(&Labels::parse(&labels.to_string()).unwrap(), &labels);
        }
        if let Ok(fields) = Fields::parse(&text) {
            prop_assert_eq!(Fields::parse(&fields.to_string()).unwrap().requirements().len(), fields.requirements().len());
        }
    }
}

#[test]
fn the_deepest_value_fits_a_small_stack() {
    fn walk() {
        let definitions =
            json!({"Tree": {"type": "object", "additionalProperties": {"$ref": "#/definitions/Tree"}}});
        let definitions = windlass_schema::schema::link(definitions.as_object().unwrap()).unwrap();
        let tree = &definitions["Tree"];
        let text = [r#"{"a":"#.repeat(json::MAX_DEPTH - 1).as_str(), "{}", &"}".repeat(json::MAX_DEPTH - 1)]
            .concat();
        let mut value = json::read(text.as_bytes()).unwrap().value;
        let old = value.clone();
        assert!(prune::prune(tree, &mut value, true).is_empty());
        default::fill(tree, &mut value);
        assert!(validate::validate(tree, &value, &Path::root()).is_empty());
        assert!(validate::validate_update(tree, &value, &old, &Path::root()).is_empty());
        patch::merge(&mut value, &old);
        assert_eq!(json::to_string(&value), text);
        let mut schema = json!({"type": "string"});
        for _ in 0..120 {
            schema = json!({"type": "object", "properties": {"a": schema}, "allOf": [{"minProperties": 0}]});
        }
        assert_eq!(structural::check(&schema, &Path::new("s")), []);
    }
    std::thread::Builder::new().stack_size(1 << 20).spawn(walk).unwrap().join().unwrap();
}
