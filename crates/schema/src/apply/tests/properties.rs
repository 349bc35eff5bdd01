//! Properties of all field sets, objects and applied configurations.

use super::*;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        3 => select(vec!["a", "b", "c"]).prop_map(PathElement::field),
        1 => (0..3i64, option::of("[xy<]")).prop_map(|(port, name)| {
            let mut key = vec![("port".to_owned(), json!(port))];
            key.extend(name.map(|name| ("name".to_owned(), json!(name))));
            PathElement::key(key)
        }),
        1 => prop_oneof![(-2..12i64).prop_map(Value::from), "[a\"<]".prop_map(Value::from), any::<bool>().prop_map(Value::from)]
            .prop_map(PathElement::value),
    ]
}

fn field_sets() -> impl Strategy<Value = FieldSet> {
    vec(vec(element(), 1..4), 0..12).prop_map(|paths| {
        paths.iter().fold(FieldSet::new(), |mut set, path| {
            set.insert(path);
            set
        })
    })
}

fn word() -> impl Strategy<Value = Value> {
    select(vec!["1", "2"]).prop_map(Value::from)
}

fn free(depth: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![word(), Just(json!(1)), Just(json!(1.5)), Just(json!([1, "a"])), Just(json!({}))];
    if depth == 0 {
        return leaf.boxed();
    }
    prop_oneof![leaf, btree_map("[pq]", free(depth - 1), 0..3).prop_map(|map| json!(map))].boxed()
}

/// A spec of the test's kind, with nothing in it that the schema refuses.
fn spec() -> impl Strategy<Value = Value> {
    let shuffled =
        |names: &'static [&'static str]| subsequence(names.to_vec(), 0..=names.len()).prop_shuffle();
    let item = (option::of(word()), option::of(word()));
    let list = (shuffled(&["a", "b", "c"]), vec(item, 3)).prop_map(|(names, fields)| {
        let items = names.into_iter().zip(fields).map(|(name, (x, y))| {
            let mut item = json!({"name": name});
            x.into_iter().for_each(|x| item["x"] = x);
            y.into_iter().for_each(|y| item["y"] = y);
            item
        });
        Value::from(items.collect::<Vec<_>>())
    });
    let ports = btree_set((1..3u8, select(vec!["TCP", "UDP"])), 0..4).prop_map(|ports| {
        let ports = ports.into_iter().map(|(port, protocol)| match protocol {
            "TCP" => json!({"port": port}),
            _ => json!({"port": port, "protocol": protocol}),
        });
        Value::from(ports.collect::<Vec<_>>())
    });
    let fields: Vec<(&str, BoxedStrategy<Value>)> = vec![
        ("a", word().boxed()),
        ("b", word().boxed()),
        ("n", (1..3).prop_map(Value::from).boxed()),
        ("nullable", prop_oneof![word(), Just(Value::Null)].boxed()),
        ("struct", btree_map("[xy]", word(), 0..3).prop_map(|map| json!(map)).boxed()),
        ("map", btree_map("[klm]", word(), 0..4).prop_map(|map| json!(map)).boxed()),
        ("free", btree_map("[pqr]", free(2), 0..4).prop_map(|map| json!(map)).boxed()),
        ("any", free(2)),
        ("atomicList", shuffled(&["p", "q"]).prop_map(|list| json!(list)).boxed()),
        ("set", shuffled(&["p", "q", "r"]).prop_map(|list| json!(list)).boxed()),
        ("list", list.boxed()),
        ("ports", ports.boxed()),
    ];
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = fields.into_iter().map(|(_, value)| option::weighted(0.35, value)).collect();
    values.prop_map(move |values| {
        let fields = names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
        Value::Object(fields.collect())
    })
}

/// Whether an intent lists something empty. Emptying what one filled before leaves null in its place, which validation refuses
/// where a type is declared; here the null is dropped, and what is empty comes back with the next apply. Where nobody owned
/// anything then, the one after it finds a first owner.
fn lists_something_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty() || fields.values().any(lists_something_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Applies, until it must have settled.
fn settle(world: &mut World, spec: &Value) {
    let times = if lists_something_empty(spec) { 3 } else { 1 };
    for _ in 0..times {
        world.try_apply("m1", json!({"spec": spec}), true).expect("forced");
    }
}

/// A write by somebody: an apply, forced, or a replacement of some fields.
fn writes() -> impl Strategy<Value = Vec<(bool, &'static str, Value)>> {
    vec((any::<bool>(), select(vec!["m1", "m2", "m3"]), spec()), 0..5)
}

fn after(writes: Vec<(bool, &'static str, Value)>) -> World {
    let mut world = World::new();
    for (applies, manager, spec) in writes {
        if applies {
            world.try_apply(manager, json!({"spec": spec}), true).expect("forced");
        } else {
            world.patch(manager, json!({"spec": spec}));
        }
    }
    world
}

proptest! {
    #[test]
    fn field_sets_read_back_as_written(set in field_sets()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap(), set.clone());
        let text: Value = serde_json::from_str(&set.to_fields_v1_text()).unwrap();
        prop_assert_eq!(text, set.to_fields_v1());
    }

    #[test]
    fn field_sets_are_sets(a in field_sets(), b in field_sets(), at in any::<Index>()) {
        let (union, both, less) = (a.union(&b), a.intersection(&b), a.difference(&b));
        prop_assert_eq!(&union, &b.union(&a));
        prop_assert_eq!(&both, &b.intersection(&a));
        prop_assert_eq!(&less.union(&both), &a);
        prop_assert_eq!(&union.difference(&b), &less);
        prop_assert_eq!(union.len() + both.len(), a.len() + b.len());
        prop_assert!(less.intersection(&b).is_empty());
        prop_assert!(both.is_subset(&a) && a.is_subset(&union) && less.is_subset(&a));
        prop_assert!(a.recursive_difference(&b).is_subset(&less));
        prop_assert!(a.leaves().is_subset(&a));
        let mut paths = Vec::new();
        union.for_each(&mut |path| paths.push(path.to_vec()));
        if !paths.is_empty() {
            let path = at.get(&paths);
            prop_assert_eq!(less.has(path), a.has(path) && !b.has(path));
            prop_assert_eq!(both.has(path), a.has(path) && b.has(path));
        }
    }

    #[test]
    fn applying_twice_is_applying_once(writes in writes(), spec in spec()) {
        let mut world = after(writes);
        settle(&mut world, &spec);
        let once = world.live.clone();
        let changed = world.try_apply("m1", json!({"spec": spec}), false).expect("nothing to take");
        prop_assert!(!changed);
        prop_assert_eq!(world.live, once);
    }

    #[test]
    fn an_applied_intent_is_in_the_object_and_owned(writes in writes(), spec in spec()) {
        let mut world = after(writes);
        settle(&mut world, &spec);
        let own = world.with(|context| owned_by(world.live.as_ref().unwrap(), "m1", context));
        let view = TypeView::of_kind(Some(widget_schema()));
        let intent = widget(json!({"spec": spec}));
        let live = world.live.as_ref().unwrap();
        let laid_over = merge::merge(&view, live, &intent);
        prop_assert!(values::equal(&laid_over, live), "{laid_over} {live}");
        let listed = typed::field_set(&view, &intent).difference(&NEVER_OWNED);
        prop_assert_eq!(listed.is_empty(), own.is_none());
    }

    #[test]
    fn applying_what_one_owns_changes_nothing(writes in writes(), spec in spec()) {
        let mut world = after(writes);
        settle(&mut world, &spec);
        let own = world.with(|context| owned_by(world.live.as_ref().unwrap(), "m1", context));
        let before = world.live.clone();
        if let Some(own) = own {
            world.apply("m1", own);
            prop_assert_eq!(world.live, before);
        }
    }

    #[test]
    fn no_change_foreseen_is_no_change_made(writes in writes(), again in any::<bool>(), first in spec(), other in spec()) {
        let mut world = after(writes);
        settle(&mut world, &first);
        let intent = widget(json!({"spec": if again { first } else { other }}));
        let live = world.live.clone().unwrap();
        let (answer, outcome) = world.with(|context| {
            (would_change(&live, &intent, "m1", context), apply(Some(&live), &intent, "m1", true, context).unwrap())
        });
        // An object without any owner gets one, for what it holds, at the next apply.
        if again && !world.owners().is_empty() {
            prop_assert_eq!(answer, WouldChange::No);
        }
        if answer == WouldChange::No {
            prop_assert!(!outcome.changed);
            prop_assert_eq!(outcome.object, live);
        }
    }
}
