use super::decide::*;
use super::observe::{Observation, Observations};
use super::{EvictionConfig, Pressure, Signal};
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

fn uses(memory: u64, disk: u64) -> PodUsage {
    let usage = ContainerUsage { memory, disk, files: 1, processes: 1 };
    PodUsage { containers: [("main".to_owned(), usage)].into(), ..PodUsage::default() }
}

fn observed(memory: u64, disk: u64) -> Observations {
    let left = |available| Observation { available, capacity: 1000 << 20 };
    [(Signal::Memory, left(memory)), (Signal::Disk, left(disk))].into()
}

#[test]
fn a_pressure_condition_is_true_below_the_threshold_and_for_the_transition_period() {
    let eviction: EvictionConfig = "memory.available<100Mi,nodefs.available<10%".parse().unwrap();
    let mut tracker = PressureTracker::default();
    let at = |second| Timestamp::from_second(second).unwrap();
    assert_eq!(
        thresholds_met(&eviction, &observed(100 << 20, 100 << 20)),
        [],
        "at the threshold it is not met"
    );
    let met = thresholds_met(&eviction, &observed(101 << 20, 99 << 20));
    assert_eq!(met, [MetThreshold { signal: Signal::Disk, threshold: 100 << 20, available: 99 << 20 }]);
    assert_eq!(tracker.update(&met, &eviction, at(0)), [Pressure::Disk].into());
    assert_eq!(tracker.update(&[], &eviction, at(299)), [Pressure::Disk].into(), "it does not oscillate");
    assert_eq!(tracker.update(&[], &eviction, at(300)), [].into());
    assert_eq!(thresholds_met(&EvictionConfig::never(), &observed(0, 0)), []);
}

#[test]
fn pods_that_exceed_their_requests_are_evicted_first() {
    let modest = pod("modest", 0, json!({"resources": {"requests": {"memory": "200Mi"}}}));
    let greedy = pod("greedy", 0, json!({}));
    let greedier = pod("greedier", 0, json!({}));
    let important = pod("important", 10, json!({}));
    let system = pod("system", 2_000_000_000, json!({}));
    let mut all = vec![
        (&system, uses(900 << 20, 0)),
        (&modest, uses(100 << 20, 0)),
        (&important, uses(500 << 20, 0)),
        (&greedy, uses(10 << 20, 0)),
        (&greedier, uses(20 << 20, 0)),
    ];
    for expected in ["greedier", "greedy", "important", "modest"] {
        let (victim, _) = first_to_evict(Signal::Memory, &all).unwrap();
        assert_eq!(victim.metadata.name.as_deref(), Some(expected));
        all.retain(|(pod, _)| pod.metadata.name != victim.metadata.name);
    }
    assert_eq!(first_to_evict(Signal::Memory, &all), None, "system-critical pods are never evicted");
}

#[test]
fn the_message_is_a_kubelets() {
    let met = MetThreshold { signal: Signal::Disk, threshold: 10 << 20, available: 1_000_001 };
    assert_eq!(
        message(&met, &pod("greedy", 0, json!({})), &uses(0, 3 << 10)),
        "The node was low on resource: ephemeral-storage. Threshold quantity: 10Mi, available: 1000001. \
         Container main was using 3Ki, request is 0, has larger consumption of ephemeral-storage. "
    );
    assert_eq!((amount(0), amount(1 << 30), amount(1500)), ("0".into(), "1Gi".into(), "1500".into()));
}

#[test]
fn a_pod_that_exceeds_its_limit_is_evicted_without_node_pressure() {
    let limited = pod("a", 0, json!({"resources": {"limits": {"ephemeral-storage": "1Mi"}}}));
    assert!(has_storage_limits(&limited) && !has_storage_limits(&pod("b", 0, json!({}))));
    assert_eq!(exceeded_limit(&limited, &uses(0, 1 << 20)), None);
    assert_eq!(
        exceeded_limit(&limited, &uses(0, (1 << 20) + 1)).as_deref(),
        Some("Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ")
    );
    let mut sized = pod("c", 0, json!({}));
    let volumes = json!([{"name": "data", "emptyDir": {"sizeLimit": "1Ki"}}]);
    sized.spec.as_mut().unwrap().volumes = serde_json::from_value(volumes).unwrap();
    let usage = PodUsage { volumes: [("data".to_owned(), (2048, 1))].into(), ..PodUsage::default() };
    assert_eq!(
        exceeded_limit(&sized, &usage).as_deref(),
        Some("Usage of EmptyDir volume \"data\" exceeds the limit \"1Ki\". ")
    );
}

#[test]
fn a_node_under_pressure_rejects_pods() {
    let best_effort = pod("a", 0, json!({}));
    let asks = pod("b", 0, json!({"resources": {"requests": {"memory": "1Mi"}}}));
    let (memory, disk) = ([Pressure::Memory].into(), [Pressure::Disk].into());
    assert_eq!(
        rejected(&best_effort, &memory).as_deref(),
        Some("The node had condition: [MemoryPressure]. ")
    );
    assert_eq!(rejected(&asks, &memory), None);
    assert_eq!(rejected(&asks, &disk).as_deref(), Some("The node had condition: [DiskPressure]. "));
    assert_eq!(rejected(&pod("c", 2_000_000_000, json!({})), &disk), None);
    assert_eq!(rejected(&best_effort, &[].into()), None);
}
