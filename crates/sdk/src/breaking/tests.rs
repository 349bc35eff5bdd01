//! What breaks stored objects, and what does not.

use super::*;
use serde_json::json;

fn definition(size: Value, required: Value) -> Value {
    json!({"spec": {
        "group": "g", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {
                "type": "object", "required": required,
                "properties": {"size": size, "names": {"type": "array", "items": {"type": "string"}}},
            }},
        }}}],
    }})
}

fn told(old: &Value, new: &Value) -> Vec<String> {
    breaking_changes(old, new).iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_wider_or_new_breaks_nothing() {
    let old = definition(json!({"type": "integer", "minimum": 1, "enum": [1, 2]}), json!(["size"]));
    let new = definition(json!({"type": "integer", "minimum": 0, "enum": [1, 2, 3]}), json!([]));
    assert_eq!(told(&old, &new), Vec::<String>::new());
    assert_eq!(told(&old, &old), Vec::<String>::new());
}

#[test]
fn each_narrower_bound_is_named_with_its_field() {
    let old = definition(json!({"type": "integer", "enum": [1, 2]}), json!([]));
    let new =
        definition(json!({"type": "integer", "minimum": 1, "maximum": 9, "enum": [2]}), json!(["size"]));
    assert_eq!(
        told(&old, &new),
        [
            "spec.size: is required now, and has no default",
            "spec.size: minimum is now 1",
            "spec.size: maximum is now 9",
            "spec.size: 1 is not allowed any more",
        ]
    );
}

#[test]
fn a_type_that_changes_and_a_field_that_goes_are_named() {
    let old = definition(json!({"type": "integer"}), json!([]));
    let mut new = definition(json!({"type": "string"}), json!([]));
    assert_eq!(told(&old, &new), ["spec.size: integer becomes string"]);
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    new.pointer_mut(fields).unwrap().as_object_mut().unwrap().remove("size");
    assert_eq!(told(&old, &new), ["spec.size: is gone: what is stored of it is dropped"]);
    let items = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/names/items";
    let mut narrow = old.clone();
    narrow.pointer_mut(items).unwrap()["maxLength"] = json!(3);
    assert_eq!(told(&old, &narrow), ["spec.names[]: maxLength is now 3"]);
}

#[test]
fn whatever_else_becomes_stricter_is_named() {
    let of = |size: Value| definition(size, json!(["size"]));
    let text = || json!({"type": "string"});
    for (old, new, says) in [
        (
            json!({"type": "integer", "maximum": 9}),
            json!({"type": "integer", "maximum": 9.0, "exclusiveMaximum": true}),
            Some("maximum itself is not allowed any more"),
        ),
        (json!({"type": "integer", "multipleOf": 5}), json!({"type": "integer", "multipleOf": 5.0}), None),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!({"type": "integer", "multipleOf": 7}),
            Some("multipleOf is now 7"),
        ),
        (text(), json!({"type": "string", "not": {"pattern": "a"}}), Some("not is other than before")),
        (
            text(),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != 'a'"}]}),
            Some("has a new rule: self != 'a'"),
        ),
        (text(), json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}), None),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            Some("its items must differ now, as those of a set"),
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            Some("must be an object of Kubernetes now"),
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
            Some("fields that its schema does not name are dropped now"),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            Some("is no map any more: what its schema does not name is dropped"),
        ),
        (json!({"type": "string", "default": "a"}), text(), Some("has no default any more, and is required")),
    ] {
        let expected: Vec<String> = says.iter().map(|says| format!("spec.size: {says}")).collect();
        assert_eq!(told(&of(old), &of(new)), expected);
    }
    let old = of(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let new = of(json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}));
    assert_eq!(told(&old, &new), ["spec.size.a: maxLength is now 3"]);
}

#[test]
fn what_is_stored_under_another_version_is_compared_with_it() {
    let old = definition(json!({"type": "integer"}), json!([]));
    let mut new = old.clone();
    new["spec"]["versions"][0]["storage"] = json!(false);
    let mut later = definition(json!({"type": "string"}), json!([]))["spec"]["versions"][0].clone();
    later["name"] = json!("v2");
    new["spec"]["versions"].as_array_mut().unwrap().push(later);
    assert_eq!(told(&old, &new), ["spec.size: stored as v2, no longer v1: integer becomes string"]);
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(told(&old, &new), Vec::<String>::new());
}

#[test]
fn a_version_that_goes_and_a_scope_that_changes_are_named() {
    let old = definition(json!({"type": "integer"}), json!([]));
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["versions"][0]["name"] = json!("v2");
    assert_eq!(
        told(&old, &new),
        ["spec.scope: a kind's scope cannot be changed", "spec.versions: v1 is gone"]
    );
}
