//! Patches and their results, as observed on a real kube-apiserver.

use super::{Position, StrategicError, Strategy, Way, merge};
use serde_json::{Value, json};

/// A type small enough to be read here: an object with containers, which have ports.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Spec,
    Container,
    Port,
    Labels,
    Text,
}

type Row = (Place, &'static str, Place, &'static str, &'static str);

const FIELDS: [Row; 9] = [
    (Place::Root, "spec", Place::Spec, "", ""),
    (Place::Root, "labels", Place::Labels, "", ""),
    (Place::Root, "finalizers", Place::Text, "merge", ""),
    (Place::Spec, "containers", Place::Container, "merge", "name"),
    (Place::Spec, "plain", Place::Container, "", ""),
    (Place::Spec, "whole", Place::Container, "replace", ""),
    (Place::Spec, "keyless", Place::Container, "merge", ""),
    (Place::Container, "ports", Place::Port, "merge", "port"),
    (Place::Container, "args", Place::Text, "", ""),
];

impl Position for Place {
    fn field(&self, name: &str) -> Result<(Self, Strategy<'_>), String> {
        let row = FIELDS.iter().find(|row| row.0 == *self && row.1 == name);
        let Some((.., place, tag, merge_key)) = row else { return Err(format!("no field {name}")) };
        Ok((*place, Strategy { way: Way::parse(tag), merge_key }))
    }

    fn items(&self, name: &str) -> Result<(Self, Strategy<'_>), String> {
        self.field(name)
    }

    fn kind(&self) -> &str {
        match self {
            Self::Text => "string",
            Self::Labels => "map",
            _ => "struct",
        }
    }
}

fn patched(original: Value, patch: Value) -> Result<Value, StrategicError> {
    let mut patch = patch.as_object().cloned().expect("an object");
    merge(original.as_object().cloned().expect("an object"), &mut patch, &Place::Root).map(Value::Object)
}

#[track_caller]
fn becomes(original: Value, patch: Value, result: Value) {
    assert_eq!(patched(original, patch), Ok(result));
}

#[track_caller]
fn fails(original: Value, patch: Value, why: &str) {
    assert_eq!(patched(original, patch).expect_err("refused").to_string(), why);
}

fn containers(list: Value) -> Value {
    json!({"spec": {"containers": list}})
}

#[test]
fn items_of_a_keyed_list_merge_by_their_key_and_new_ones_come_first() {
    becomes(
        containers(json!([{"name": "a", "image": "1"}, {"name": "b", "args": ["x"]}])),
        containers(json!([{"name": "c"}, {"name": "b", "image": "2", "args": ["y"]}])),
        containers(
            json!([{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2", "args": ["y"]}]),
        ),
    );
}

#[test]
fn keys_of_other_types_are_other_keys() {
    becomes(
        containers(json!([{"name": "a", "ports": [{"port": 1}, {"port": 2}]}])),
        containers(json!([{"name": "a", "ports": [{"port": 2, "x": 1}, {"port": "2"}, {"port": 2.0}]}])),
        containers(
            json!([{"name": "a", "ports": [{"port": 1}, {"port": 2, "x": 1}, {"port": "2"}, {"port": 2.0}]}]),
        ),
    );
}

#[test]
fn an_item_is_deleted_and_a_list_replaced_by_directive() {
    let original = || containers(json!([{"name": "a"}, {"name": "b"}]));
    becomes(
        original(),
        containers(json!([{"name": "a", "$patch": "delete"}])),
        containers(json!([{"name": "b"}])),
    );
    becomes(
        original(),
        containers(json!([{"name": "c"}, {"$patch": "replace"}])),
        containers(json!([{"name": "c"}])),
    );
    becomes(original(), json!({"spec": {"$patch": "replace", "x": 1}}), json!({"spec": {"x": 1}}));
    becomes(original(), json!({"spec": {"$patch": "delete", "x": 1}}), json!({"spec": {}}));
}

#[test]
fn an_element_order_sorts_what_it_lists_and_leaves_the_rest_where_it_was() {
    let original = || containers(json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]));
    let order = |names: &[&str], list: Option<Value>| {
        let order: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let mut spec = json!({"$setElementOrder/containers": order});
        if let Some(list) = list {
            spec["containers"] = list;
        }
        json!({"spec": spec})
    };
    becomes(
        original(),
        order(&["c", "a"], None),
        containers(json!([{"name": "b"}, {"name": "c"}, {"name": "a"}])),
    );
    becomes(
        original(),
        order(&["d", "a"], Some(json!([{"name": "d"}, {"name": "b", "$patch": "delete"}]))),
        containers(json!([{"name": "c"}, {"name": "d"}, {"name": "a"}])),
    );
    fails(
        original(),
        order(&["a"], Some(json!([{"name": "b"}]))),
        "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
    );
}

#[test]
fn lists_of_scalars_are_sets_with_deletions_beside_them() {
    becomes(
        json!({"finalizers": ["a", "b"]}),
        json!({"finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]}),
        json!({"finalizers": ["c", "a"]}),
    );
    becomes(
        json!({"finalizers": ["a", "b"]}),
        json!({"finalizers": ["c"], "$setElementOrder/finalizers": ["b", "c"]}),
        json!({"finalizers": ["a", "b", "c"]}),
    );
}

#[test]
fn other_lists_are_replaced() {
    becomes(
        json!({"spec": {"plain": [{"name": "a"}], "whole": {"a": 1}}}),
        json!({"spec": {"plain": [{"name": null}], "whole": {"b": null}}}),
        json!({"spec": {"plain": [{"name": null}], "whole": {"b": null}}}),
    );
}

#[test]
fn null_removes_and_what_is_new_loses_its_nulls_and_directives() {
    becomes(
        json!({"labels": {"a": "1", "b": "2"}}),
        json!({"labels": {"a": null, "c": null}, "spec": {"x": null, "plain": [{"$patch": "delete"}, {"y": null}]}}),
        json!({"labels": {"b": "2"}, "spec": {"plain": [{}]}}),
    );
}

#[test]
fn retained_keys_remove_the_others() {
    becomes(
        json!({"spec": {"a": 1, "b": 2, "c": 3}}),
        json!({"spec": {"$retainKeys": ["b", "d"], "d": 4}}),
        json!({"spec": {"b": 2, "d": 4}}),
    );
    fails(
        json!({"spec": {}}),
        json!({"spec": {"$retainKeys": ["b"], "d": 4}}),
        "invalid patch format of retainKeys",
    );
}

#[test]
fn a_patch_that_does_not_fit_is_refused_with_the_reasons_of_the_reference() {
    let original = || containers(json!([{"name": "a"}]));
    for (patch, why) in [
        (containers(json!([{"image": "x"}])), "map: map[image:x] does not contain declared merge key: name"),
        (containers(json!(["x"])), "list element types are not identical: [[map[name:a]] [x]]"),
        (
            containers(json!([{"name": "a", "$patch": "merge"}])),
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({"$patch": "x"}), "unknown patch type: x in map: map[$patch:x]"),
        (json!({"$patch": 5}), "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        (json!({"spec": {"$setElementOrder": 1}}), "expected a []interface {}, but received a int64"),
        (json!({"spec": {"$setElementOrder": []}}), "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveListx": []}), "invalid patch format of primitive list"),
        (containers(json!([{"name": {"a": 1}}])), "a patch cannot compare objects or lists as keys"),
    ] {
        fails(original(), patch, why);
    }
    fails(
        json!({"spec": {"plain": [{}]}}),
        json!({"spec": {"$setElementOrder/plain": [{}]}}),
        "a patch cannot compare objects or lists as keys",
    );
    fails(
        json!({"spec": {"keyless": [{}]}}),
        json!({"spec": {"keyless": [{}]}}),
        "cannot merge lists without merge key for struct",
    );
    fails(json!({"finalizers": [["a"]]}), json!({"finalizers": [["b"]]}), "lists of lists are not supported");
}

#[test]
fn a_long_list_merges_in_no_time() {
    let list = |prefix: &str| -> Vec<Value> {
        (0..10_000).map(|number| json!({"name": format!("{prefix}{number}")})).collect()
    };
    let mut patch = json!({"spec": {"containers": list("b"), "$setElementOrder/containers": list("b")}});
    patch["spec"]["containers"].as_array_mut().expect("a list").reverse();
    patch["spec"]["$setElementOrder/containers"].as_array_mut().expect("a list").reverse();
    let result = patched(containers(Value::Array(list("a"))), patch).expect("it fits");
    assert_eq!(result["spec"]["containers"].as_array().map(Vec::len), Some(20_000));
}
