//! `would_change` and the owned part of an object.

use super::*;

#[track_caller]
fn ask(world: &World, manager: &str, fields: Value) -> WouldChange {
    world.with(|context| would_change(world.live.as_ref().unwrap(), &widget(fields), manager, context))
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let mut world = World::new();
    let fields = json!({"spec": {"a": "1", "list": [{"name": "x"}], "ports": [{"port": 1}], "atomicStruct": {"x": "1"}}});
    world.apply("a", fields.clone());
    assert_eq!(ask(&world, "a", fields.clone()), WouldChange::No);
    // Others come and go beside it.
    world.patch("u", json!({"spec": {"b": "1", "map": {"k": "v"}}}));
    assert_eq!(ask(&world, "a", fields), WouldChange::No);
}

#[test]
fn other_fields_values_orders_or_names_do() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"a": "1", "list": [{"name": "x"}, {"name": "y"}]}}));
    for fields in [
        json!({"spec": {"a": "1"}}),
        json!({"spec": {"a": "2", "list": [{"name": "x"}, {"name": "y"}]}}),
        json!({"spec": {"a": "1", "list": [{"name": "y"}, {"name": "x"}]}}),
        json!({"spec": {"a": "1", "b": "1", "list": [{"name": "x"}, {"name": "y"}]}}),
    ] {
        assert_eq!(ask(&world, "a", fields.clone()), WouldChange::Yes, "{fields}");
    }
    assert_eq!(ask(&world, "b", json!({"spec": {"a": "1"}})), WouldChange::Yes);
    world.patch("u", json!({"spec": {"a": "3"}}));
    assert_eq!(
        ask(&world, "a", json!({"spec": {"a": "1", "list": [{"name": "x"}, {"name": "y"}]}})),
        WouldChange::Yes
    );
}

#[test]
fn defaults_inside_atomic_values_are_made_up_from_the_schema() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"atomicStruct": {"x": "1"}}}));
    world.live.as_mut().unwrap()["spec"]["atomicStruct"]["d"] = "dflt".into();
    assert_eq!(ask(&world, "a", json!({"spec": {"atomicStruct": {"x": "1"}}})), WouldChange::No);
    assert_eq!(ask(&world, "a", json!({"spec": {"atomicStruct": {"x": "2"}}})), WouldChange::Yes);
    // A default that the schema does not know.
    world.live.as_mut().unwrap()["spec"]["atomicStruct"]["y"] = "?".into();
    assert_eq!(ask(&world, "a", json!({"spec": {"atomicStruct": {"x": "1"}}})), WouldChange::Unsure);
}

#[test]
fn spellings_and_what_the_server_puts_back_make_unsure() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"date": "2020-01-01T00:00:00Z"}}));
    assert_eq!(ask(&world, "a", json!({"spec": {"date": "2020-01-01T00:00:00.000Z"}})), WouldChange::Unsure);
    let with_status = json!({"spec": {"date": "2020-01-01T00:00:00Z"}, "status": {"phase": "A"}});
    assert_eq!(ask(&world, "a", with_status), WouldChange::Unsure);
    let with_uid = json!({"metadata": {"uid": "two"}, "spec": {"date": "2020-01-01T00:00:00Z"}});
    assert_eq!(ask(&world, "a", with_uid), WouldChange::Unsure);
}

#[test]
fn ones_own_part_can_be_taken_out() {
    let mut world = World::new();
    world
        .apply("a", json!({"spec": {"a": "1", "list": [{"name": "x", "x": "1"}], "map": {"k": "v"}}}))
        .apply(
            "b",
            json!({"spec": {"b": "1", "list": [{"name": "x", "y": "1"}, {"name": "y"}], "map": {"l": "v"}}}),
        );
    let own = world.with(|context| owned_by(world.live.as_ref().unwrap(), "a", context));
    assert_eq!(own, Some(json!({"spec": {"a": "1", "list": [{"name": "x", "x": "1"}], "map": {"k": "v"}}})));
    assert_eq!(world.with(|context| owned_by(world.live.as_ref().unwrap(), "c", context)), None);
}
