//! What Kubernetes does, observed on a real API server and written down.

use super::*;

#[test]
fn what_an_applier_gives_up_goes_unless_somebody_else_has_it() {
    let mut world = World::new();
    world
        .apply("a", json!({"spec": {"a": "1", "list": [{"name": "x", "x": "1"}, {"name": "y"}], "map": {"k": "v", "l": "w"}}}))
        .apply("b", json!({"spec": {"list": [{"name": "x", "y": "2"}]}}));
    assert_eq!(world.spec()["list"], json!([{"name": "x", "x": "1", "y": "2"}, {"name": "y"}]));
    world.apply("a", json!({"spec": {"a": "1"}}));
    assert_eq!(world.spec(), json!({"a": "1", "list": [{"name": "x", "y": "2"}]}));
    world.expect_owners(&[
        (
            "b",
            "Apply",
            json!({"f:spec": {"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:y": {}}}}}),
        ),
        ("a", "Apply", json!({"f:spec": {"f:a": {}}})),
    ]);
}

#[test]
fn a_field_goes_with_its_last_owner() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1", "b": "1"}})).apply("b", json!({"spec": {"a": "1"}}));
    // Whoever only joins gets no time.
    assert_eq!(entries(world.live.as_ref().unwrap()).unwrap()[0].time, None);
    world.apply("a", json!({"spec": {"b": "1"}}));
    assert_eq!(world.spec(), json!({"a": "1", "b": "1"}));
    world.apply("b", json!({"spec": {}}));
    assert_eq!(world.spec(), json!({"b": "1"}));
    world.expect_owners(&[
        ("a", "Apply", json!({"f:spec": {"f:b": {}}})),
        ("b", "Apply", json!({"f:spec": {}})),
    ]);
}

#[test]
fn conflicts_are_told_and_force_takes() {
    let mut world = World::new();
    world.patch("u", json!({"spec": {"a": "1", "n": 1}}));
    world.expect_owners(&[("u", "Update", json!({"f:spec": {".": {}, "f:a": {}, "f:n": {}}}))]);

    let Err(ApplyError::Conflicts(conflicts)) =
        world.try_apply("a", json!({"spec": {"a": "2", "n": 1}}), false)
    else {
        panic!("a conflict was expected");
    };
    assert_eq!(
        conflicts.to_string(),
        r#"Apply failed with 1 conflict: conflict with "u" using apply.example.com/v1: .spec.a"#
    );
    assert_eq!(
        conflicts.causes(),
        [ConflictCause {
            reason: "FieldManagerConflict",
            message: r#"conflict with "u" using apply.example.com/v1"#.into(),
            field: ".spec.a".into(),
        }]
    );

    world.try_apply("a", json!({"spec": {"a": "2", "n": 1}}), true).unwrap();
    world.expect_owners(&[
        ("a", "Apply", json!({"f:spec": {"f:a": {}, "f:n": {}}})),
        ("u", "Update", json!({"f:spec": {".": {}, "f:n": {}}})),
    ]);
    world.patch("u", json!({"spec": {"a": "3"}}));
    world.expect_owners(&[
        ("a", "Apply", json!({"f:spec": {"f:n": {}}})),
        ("u", "Update", json!({"f:spec": {".": {}, "f:a": {}, "f:n": {}}})),
    ]);
}

#[test]
fn several_conflicts_are_listed_by_owner() {
    let mut world = World::new();
    world
        .apply("m1", json!({"metadata": {"labels": {"l": "1"}}, "spec": {"a": "1"}}))
        .apply("m3", json!({"metadata": {"labels": {"l": "1"}}}))
        .through("status")
        .patch("u", json!({"status": {"phase": "A"}}));
    let intent = json!({"metadata": {"labels": {"l": "2"}}, "spec": {"a": "2"}, "status": {"phase": "B"}});
    let refused = world.through("").try_apply("b", intent, false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"m1\":\n- .metadata.labels.l\n- .spec.a\n\
         conflicts with \"m3\":\n- .metadata.labels.l"
    );
    let refused =
        world.through("status").try_apply("b", json!({"status": {"phase": "B"}}), false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"u\" with subresource \"status\" using apply.example.com/v1: .status.phase"
    );
}

#[test]
fn status_is_owned_apart() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1"}, "status": {"phase": "A"}}));
    world.expect_owners(&[("a", "Apply", json!({"f:spec": {"f:a": {}}}))]);
    world.through("status").apply("a", json!({"spec": {"a": "9"}, "status": {"phase": "A"}}));
    world.patch("u", json!({"status": {"conditions": [{"type": "R", "status": "T"}]}}));
    assert_eq!(world.spec(), json!({"a": "1"}));
    world.expect_owners(&[
        ("a", "Apply", json!({"f:spec": {"f:a": {}}})),
        ("a", "Apply", json!({"f:status": {"f:phase": {}}})),
        (
            "u",
            "Update",
            json!({"f:status": {"f:conditions": {".": {}, "k:{\"type\":\"R\"}": {".": {}, "f:status": {}, "f:type": {}}}}}),
        ),
    ]);
    assert_eq!(world.live.as_ref().unwrap()["metadata"]["managedFields"][1]["subresource"], "status");
}

#[test]
fn set_items_are_owned_one_by_one() {
    let mut world = World::new();
    world
        .apply("a", json!({"spec": {"set": ["p", "q"], "intSet": [2, 10]}}))
        .apply("b", json!({"spec": {"set": ["q", "r"]}}));
    assert_eq!(world.spec(), json!({"intSet": [2, 10], "set": ["p", "q", "r"]}));
    world.apply("a", json!({"spec": {"set": ["q"]}}));
    assert_eq!(world.spec(), json!({"set": ["q", "r"]}));
}

#[test]
fn atomic_values_have_one_content() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"atomicList": ["x"], "atomicStruct": {"x": "1", "d": "dflt"}}}));
    let refused = world.try_apply("b", json!({"spec": {"atomicList": ["x", "y"]}}), false).unwrap_err();
    assert_eq!(refused.to_string(), r#"Apply failed with 1 conflict: conflict with "a": .spec.atomicList"#);
    world.apply("b", json!({"spec": {"atomicStruct": {"x": "1", "d": "dflt"}}}));
    world.expect_owners(&[
        ("b", "Apply", json!({"f:spec": {"f:atomicStruct": {}}})),
        ("a", "Apply", json!({"f:spec": {"f:atomicList": {}, "f:atomicStruct": {}}})),
    ]);
}

#[test]
fn keys_take_their_defaults() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"ports": [{"port": 80}]}}));
    world.expect_owners(&[(
        "a",
        "Apply",
        json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}),
    )]);
    world.apply("b", json!({"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}]}}));
    let both = json!([{"name": "web", "port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]);
    assert_eq!(world.spec()["ports"], both);
    world.apply("a", json!({"spec": {"ports": []}}));
    assert_eq!(world.spec()["ports"], both);
    assert_eq!(world.owners().len(), 1);
}

#[test]
fn free_maps_merge_and_free_lists_do_not() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"free": {"m": {"x": 1, "l": [1]}, "e": {}}, "any": [1]}}));
    world.expect_owners(&[(
        "a",
        "Apply",
        json!({"f:spec": {"f:any": {}, "f:free": {"f:e": {}, "f:m": {".": {}, "f:l": {}, "f:x": {}}}}}),
    )]);
    world.patch("u", json!({"spec": {"free": {"m": {"x": 2}, "n": "s"}}}));
    world.apply("a", json!({"spec": {"free": {"m": {"l": [1]}}}}));
    assert_eq!(world.spec(), json!({"free": {"m": {"l": [1], "x": 2}, "n": "s"}}));
    world.expect_owners(&[
        ("a", "Apply", json!({"f:spec": {"f:free": {"f:m": {".": {}, "f:l": {}}}}})),
        ("u", "Update", json!({"f:spec": {"f:free": {"f:m": {"f:x": {}}, "f:n": {}}}})),
    ]);
}

#[test]
fn empty_maps_and_nulls_are_owned_and_empty_lists_are_not() {
    let mut world = World::new();
    let spec = json!({"nullable": null, "struct": {}, "map": {}, "list": [], "set": []});
    world.apply("a", json!({"spec": spec}));
    assert_eq!(world.spec(), spec);
    world.expect_owners(&[(
        "a",
        "Apply",
        json!({"f:spec": {"f:map": {}, "f:nullable": {}, "f:struct": {}}}),
    )]);
}

#[test]
fn the_intents_order_wins_and_others_stay_in_place() {
    let mut world = World::new();
    world.patch("u", json!({"spec": {"list": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}));
    world.apply("a", json!({"spec": {"list": [{"name": "c"}, {"name": "x"}, {"name": "a"}]}}));
    assert_eq!(world.spec()["list"], json!([{"name": "b"}, {"name": "c"}, {"name": "x"}, {"name": "a"}]));
}

#[test]
fn intents_of_the_wrong_type_are_refused_with_the_servers_words() {
    for (spec, message) in [
        (
            json!({"list": [{"name": "a"}, {"name": "a"}]}),
            r#".spec.list: duplicate entries for key [name="a"]"#,
        ),
        (json!({"set": ["a", "a"]}), r#".spec.set: duplicate entries for key [="a"]"#),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            r#".spec.ports: duplicate entries for key [port=1,protocol="TCP"]"#,
        ),
        (json!({"zz": 1}), ".spec.zz: field not declared in schema"),
        (json!({"a": 1}), ".spec.a: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"n": "x"}), ".spec.n: expected numeric (int or float), got string"),
        (json!({"t": "x"}), ".spec.t: expected boolean, got &{x}"),
        (json!({"date": {}}), ".spec.date: expected any scalar, got &{map[]}"),
        (json!({"list": {"a": 1}}), ".spec.list: expected list, got &{map[a:1]}"),
        (json!({"struct": "x"}), ".spec.struct: expected map, got &{x}"),
        (
            json!({"list": [{"x": "1"}]}),
            ".spec.list: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
        (
            json!({"list": [{"name": "a", "x": 1}]}),
            r#".spec.list[name="a"].x: expected string, got &value.valueUnstructured{Value:1}"#,
        ),
        (
            json!({"set": [{}], "ports": [null]}),
            "errors:\n  .spec.ports: element 0: associative list with keys may not have a null element\n  \
             .spec.set: element 0: associative list without keys has an element that's a map type",
        ),
    ] {
        let refused = World::new().try_apply("a", json!({"spec": spec}), false);
        let message =
            format!("failed to create typed patch object (/w; apply.example.com/v1, Kind=Widget): {message}");
        assert_eq!(refused, Err(ApplyError::Internal(message)));
    }
}

#[test]
fn intents_for_something_else_are_bad_requests() {
    for (fields, message) in [
        (json!({"metadata": {"managedFields": []}}), "metadata.managedFields must be nil"),
        (json!({"kind": "Other"}), "invalid object type: apply.example.com/v1, Kind=Other"),
        (json!({"apiVersion": "v1"}), "invalid object type: /v1, Kind=Widget"),
    ] {
        let refused = World::new().try_apply("a", fields, false);
        assert_eq!(refused, Err(ApplyError::BadRequest(message.into())));
    }
}

#[test]
fn more_than_ten_updaters_become_ancient() {
    let mut world = World::new();
    world.patch("u0", json!({"spec": {"a": "1"}}));
    for i in 1..=10 {
        world.patch(&format!("u{i}"), json!({"spec": {"map": {format!("k{i}"): "v"}}}));
    }
    let owners = world.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(owners[0].0, "ancient-changes");
    assert_eq!(owners[0].2, json!({"f:spec": {".": {}, "f:a": {}, "f:map": {".": {}, "f:k1": {}}}}));
    assert_eq!(owners[9].0, "u10");
}

#[test]
fn who_was_not_tracked_owns_as_before_first_apply() {
    let mut world = World::new();
    world.patch("u", json!({"spec": {"a": "1"}})).patch("u", json!({"metadata": {"managedFields": [{}]}}));
    assert!(world.owners().is_empty());
    world.patch("u", json!({"spec": {"b": "1"}}));
    assert!(world.owners().is_empty());
    world.apply("a", json!({"spec": {"b": "1"}}));
    world.expect_owners(&[
        ("a", "Apply", json!({"f:spec": {"f:b": {}}})),
        ("before-first-apply", "Update", json!({"f:spec": {".": {}, "f:a": {}, "f:b": {}}})),
    ]);
}

#[test]
fn updates_may_edit_ownership_but_not_lose_it() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1"}})).patch("u", json!({"spec": {"b": "1"}}));
    let before = world.owners();
    world.patch("u", json!({"metadata": {"managedFields": null}}));
    assert_eq!(world.owners(), before);
    world.through("status").patch("u", json!({"metadata": {"managedFields": []}}));
    assert_eq!(world.owners(), before);
    let only = world.live.as_ref().unwrap()["metadata"]["managedFields"][0].clone();
    world.through("").patch("u", json!({"metadata": {"managedFields": [only]}}));
    assert_eq!(world.owners(), before[..1]);
}

#[test]
fn nothing_changed_means_no_new_time() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1"}})).patch("u", json!({"spec": {"b": "1"}}));
    let before = world.live.clone();
    world.apply("a", json!({"spec": {"a": "1"}})).patch("u", json!({"spec": {"b": "1"}}));
    assert_eq!(world.live, before);
}

#[test]
fn kubectl_moves_from_client_side_apply_without_conflicts() {
    const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let last = json!({"apiVersion": API_VERSION, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": "1", "b": "1"}});
    let mut world = World::new();
    world.patch(
        "kubectl",
        json!({"metadata": {"annotations": {LAST: last.to_string()}}, "spec": {"a": "1", "b": "2"}}),
    );
    // Only what is still as applied on the client's side may be taken.
    let refused = world.try_apply("kubectl", json!({"spec": {"a": "5", "b": "3"}}), false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"Apply failed with 1 conflict: conflict with "kubectl" using apply.example.com/v1: .spec.b"#
    );
    world.apply("kubectl", json!({"spec": {"a": "5", "b": "2"}}));
    assert_eq!(
        world.live.as_ref().unwrap()["metadata"]["annotations"][LAST],
        "{\"apiVersion\":\"apply.example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},\
         \"spec\":{\"a\":\"5\",\"b\":\"2\"}}\n"
    );
    world.apply("kubectl", json!({"spec": {"a": "5", "b": "6<"}}));
    let owners = world.owners();
    assert_eq!(owners[1].2["f:spec"], json!({}));
    assert!(
        world.live.unwrap()["metadata"]["annotations"][LAST].as_str().unwrap().contains("\"b\":\"6\\u003c\"")
    );
}

#[test]
fn owners_in_versions_that_are_gone_own_nothing() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1"}})).apply("b", json!({"spec": {"b": "1"}}));
    world.live.as_mut().unwrap()["metadata"]["managedFields"][0]["apiVersion"] =
        "apply.example.com/v0".into();
    world.apply("b", json!({"spec": {"b": "2"}}));
    world.expect_owners(&[("b", "Apply", json!({"f:spec": {"f:b": {}}}))]);
}

#[test]
fn duplicates_of_old_objects_are_owned_as_a_whole() {
    let mut world = World::new();
    world.patch("u", json!({"spec": {"list": [{"name": "a", "x": "1"}, {"name": "a", "x": "2"}]}}));
    world.expect_owners(&[(
        "u",
        "Update",
        json!({"f:spec": {".": {}, "f:list": {".": {}, "k:{\"name\":\"a\"}": {}}}}),
    )]);
    world.apply("a", json!({"spec": {"a": "1"}}));
    assert_eq!(world.spec()["list"].as_array().unwrap().len(), 2);
}

#[test]
fn what_became_atomic_is_owned_as_a_whole() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"atomicStruct": {"x": "1"}, "b": "1"}}));
    world.live.as_mut().unwrap()["metadata"]["managedFields"][0]["fieldsV1"] =
        json!({"f:spec": {"f:atomicStruct": {".": {}, "f:x": {}}, "f:b": {}}});
    world.patch("u", json!({"spec": {"n": 1}}));
    assert_eq!(world.owners()[0].2, json!({"f:spec": {"f:atomicStruct": {}, "f:b": {}}}));
}

#[test]
fn other_versions_are_reached_by_conversion() {
    let v2 = "apply.example.com/v2";
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1", "b": "1"}}));
    let context_in = |now: i64, run: &dyn Fn(&Context<'_>) -> Value| {
        let convert = Renaming { api_versions: vec![API_VERSION.into(), v2.into()] };
        let reset_fields = ResetFields::new();
        run(&Context {
            blank: None,
            settled: false,
            schema: &|_| Some(widget_schema()),
            convert: &convert,
            now: Timestamp::from_second(now).unwrap(),
            subresource: "",
            reset_fields: &reset_fields,
            api_version: v2,
            kind: "Widget",
        })
    };
    let live = world.live.clone();
    let applied = context_in(world.seconds + 1, &|context| {
        let mut intent = widget(json!({"spec": {"b": "1"}}));
        intent["apiVersion"] = v2.into();
        apply(live.as_ref(), &intent, "a", false, context).unwrap().object
    });
    assert_eq!((&applied["apiVersion"], &applied["spec"]), (&json!(v2), &json!({"b": "1"})));
    let entries = entries(&applied).unwrap();
    assert_eq!((entries.len(), entries[0].api_version.as_str()), (1, v2));
}
