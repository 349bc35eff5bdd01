use super::judge::*;
use super::seen::{Left, Seen};
use super::{Eviction, Short, Signal};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn pod(name: &str, priority: i32, container: Value) -> Pod {
    let mut container = container;
    container["name"] = "main".into();
    serde_json::from_value(
        json!({"metadata": {"name": name}, "spec": {"priority": priority, "containers": [container]}}),
    )
    .unwrap()
}

fn holds(memory: u64, disk: u64) -> PodHeld {
    let held = Held { memory, disk, files: 1, processes: 1 };
    PodHeld { containers: [("main".to_owned(), held)].into(), ..PodHeld::default() }
}

fn seen(memory: u64, disk: u64) -> Seen {
    let left = |available| Left { available, capacity: 1000 << 20 };
    [(Signal::Memory, left(memory)), (Signal::Disk, left(disk))].into()
}

#[test]
fn a_node_is_short_below_its_threshold_and_for_a_while_after() {
    let eviction: Eviction = "memory.available<100Mi,nodefs.available<10%".parse().unwrap();
    let mut shortages = Shortages::default();
    let at = |second| Timestamp::from_second(second).unwrap();
    assert_eq!(crossed(&eviction, &seen(100 << 20, 100 << 20)), [], "at the threshold is enough");
    let short = crossed(&eviction, &seen(101 << 20, 99 << 20));
    assert_eq!(short, [Crossed { signal: Signal::Disk, least: 100 << 20, available: 99 << 20 }]);
    assert_eq!(shortages.after(&short, &eviction, at(0)), [Short::Disk].into());
    assert_eq!(shortages.after(&[], &eviction, at(299)), [Short::Disk].into(), "it does not sway");
    assert_eq!(shortages.after(&[], &eviction, at(300)), [].into());
    assert_eq!(crossed(&Eviction::never(), &seen(0, 0)), []);
}

#[test]
fn who_holds_more_than_was_asked_for_goes_first() {
    let modest = pod("modest", 0, json!({"resources": {"requests": {"memory": "200Mi"}}}));
    let greedy = pod("greedy", 0, json!({}));
    let greedier = pod("greedier", 0, json!({}));
    let important = pod("important", 10, json!({}));
    let system = pod("system", 2_000_000_000, json!({}));
    let mut all = vec![
        (&system, holds(900 << 20, 0)),
        (&modest, holds(100 << 20, 0)),
        (&important, holds(500 << 20, 0)),
        (&greedy, holds(10 << 20, 0)),
        (&greedier, holds(20 << 20, 0)),
    ];
    for expected in ["greedier", "greedy", "important", "modest"] {
        let (victim, _) = first(Signal::Memory, &all).unwrap();
        assert_eq!(victim.metadata.name.as_deref(), Some(expected));
        all.retain(|(pod, _)| pod.metadata.name != victim.metadata.name);
    }
    assert_eq!(first(Signal::Memory, &all), None, "the system's own never go");
}

#[test]
fn it_is_told_why_as_a_kubelet_tells_it() {
    let short = Crossed { signal: Signal::Disk, least: 10 << 20, available: 1_000_001 };
    assert_eq!(
        message(&short, &pod("greedy", 0, json!({})), &holds(0, 3 << 10)),
        "The node was low on resource: ephemeral-storage. Threshold quantity: 10Mi, available: 1000001. \
         Container main was using 3Ki, request is 0, has larger consumption of ephemeral-storage. "
    );
    assert_eq!((amount(0), amount(1 << 30), amount(1500)), ("0".into(), "1Gi".into(), "1500".into()));
}

#[test]
fn who_holds_more_than_it_may_goes_without_any_pressure() {
    let limited = pod("a", 0, json!({"resources": {"limits": {"ephemeral-storage": "1Mi"}}}));
    assert!(is_bounded(&limited) && !is_bounded(&pod("b", 0, json!({}))));
    assert_eq!(exceeds(&limited, &holds(0, 1 << 20)), None);
    assert_eq!(
        exceeds(&limited, &holds(0, (1 << 20) + 1)).as_deref(),
        Some("Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ")
    );
    let mut sized = pod("c", 0, json!({}));
    let volumes = json!([{"name": "data", "emptyDir": {"sizeLimit": "1Ki"}}]);
    sized.spec.as_mut().unwrap().volumes = serde_json::from_value(volumes).unwrap();
    let held = PodHeld { volumes: [("data".to_owned(), (2048, 1))].into(), ..PodHeld::default() };
    assert_eq!(
        exceeds(&sized, &held).as_deref(),
        Some("Usage of EmptyDir volume \"data\" exceeds the limit \"1Ki\". ")
    );
}

#[test]
fn a_node_that_is_short_takes_in_no_more() {
    let best_effort = pod("a", 0, json!({}));
    let asks = pod("b", 0, json!({"resources": {"requests": {"memory": "1Mi"}}}));
    let (memory, disk) = ([Short::Memory].into(), [Short::Disk].into());
    assert_eq!(refused(&best_effort, &memory).as_deref(), Some("The node had condition: [MemoryPressure]. "));
    assert_eq!(refused(&asks, &memory), None);
    assert_eq!(refused(&asks, &disk).as_deref(), Some("The node had condition: [DiskPressure]. "));
    assert_eq!(refused(&pod("c", 2_000_000_000, json!({})), &disk), None);
    assert_eq!(refused(&best_effort, &[].into()), None);
}
