//! The node for a pod, or why there is none. Pure.

use super::cache::SchedulerCache;
use super::filter::{NodeFilter, Rejection};
use super::info::{NodeInfo, PodInfo};
use super::score::best;
use super::volume_binding::Volumes;
use std::collections::BTreeMap;

/// The result for a pending pod.
#[derive(Debug)]
pub(super) enum ScheduleResult {
    /// It fits nowhere: the message of its condition, and the nodes on which preemption could help.
    Scheduled(String),
    /// It fits nowhere: the message for its condition, and the nodes where it would if others went.
    Unschedulable { message: String, resolvable: Vec<String> },
}

/// Finds the best node.
pub(super) fn decide(pod: &PodInfo, state: &SchedulerCache, volumes: &Volumes) -> ScheduleResult {
    let count = state.node_count();
    if count == 0 {
        return ScheduleResult::Unschedulable {
            message: "no nodes available to schedule pods".to_owned(),
            resolvable: Vec::new(),
        };
    }
    if let Err(why) = volumes.check(pod) {
        let message = format!("0/{count} nodes are available: {why}. {}", unhelpful(count));
        return ScheduleResult::Unschedulable { message, resolvable: Vec::new() };
    }
    let filter = NodeFilter::of(pod, state, volumes);
    let mut fitting: Vec<&NodeInfo> = Vec::new();
    let mut rejected: Vec<(&str, Rejection)> = Vec::new();
    for node in state.nodes.values().filter(|node| node.known) {
        match filter.check_node(node) {
            Ok(()) => fitting.push(node),
            Err(why) => rejected.push((&node.name, why)),
        }
    }
    if let Some(node) = best(&filter, &fitting) {
        return ScheduleResult::Scheduled(node.name.clone());
    }
    let resolvable =
        rejected.iter().filter(|(_, why)| why.resolvable).map(|(name, _)| (*name).to_owned()).collect();
    ScheduleResult::Unschedulable { message: message(count, rejected.iter().map(|(_, why)| why)), resolvable }
}

fn unhelpful(count: usize) -> String {
    format!(
        "no new claims to deallocate, preemption: 0/{count} nodes are available: {count} Preemption is not helpful for \
         scheduling."
    )
}

/// Kubernetes' message: how many nodes were rejected for each reason, and that preemption does not help.
fn message<'r>(count: usize, rejected: impl Iterator<Item = &'r Rejection>) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut resolvable, mut unresolvable) = (0, 0);
    for why in rejected {
        why.reasons.iter().for_each(|reason| *reasons.entry(reason).or_insert(0) += 1);
        *(if why.resolvable { &mut resolvable } else { &mut unresolvable }) += 1;
    }
    let mut reasons: Vec<String> =
        reasons.iter().map(|(reason, times)| format!("{times} {reason}")).collect();
    reasons.sort();
    let mut others = Vec::new();
    if resolvable > 0 {
        others.push(format!("{resolvable} No preemption victims found for incoming pod"));
    }
    if unresolvable > 0 {
        others.push(format!("{unresolvable} Preemption is not helpful for scheduling"));
    }
    others.sort();
    format!(
        "0/{count} nodes are available: {}. no new claims to deallocate, preemption: 0/{count} nodes are available: {}.",
        reasons.join(", "),
        others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use windlass::Key;
    use windlass::cache::{Cache, Namespaces};

    fn volumes() -> Volumes {
        Volumes::of(&Cache::new("".into(), Namespaces::All))
    }

    fn info(name: &str, labels: Value, spec: Value) -> Arc<PodInfo> {
        let key = Key::new("".into(), Some("default"), name);
        let pod = json!({"metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels}, "spec": spec});
        Arc::new(PodInfo::of(&key, &serde_json::from_value::<Pod>(pod).unwrap()).unwrap())
    }

    fn asks(cpu: &str, more: Value) -> Value {
        let mut spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    }

    /// Nodes with four CPUs, in zones a and b in turn.
    fn nodes(count: usize) -> SchedulerCache {
        let mut state = SchedulerCache::default();
        for number in 0..count {
            let name = format!("n{number}");
            let zone = if number.is_multiple_of(2) { "a" } else { "b" };
            let node: Node = serde_json::from_value(json!({
                "metadata": {"name": name, "labels": {"zone": zone, "kubernetes.io/hostname": name}},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
            }))
            .unwrap();
            state.node(&name, Some(&node));
        }
        state
    }

    fn scheduled_node(pod: &PodInfo, state: &SchedulerCache) -> Option<String> {
        match decide(pod, state, &volumes()) {
            ScheduleResult::Scheduled(node) => Some(node),
            ScheduleResult::Unschedulable { .. } => None,
        }
    }

    #[test]
    fn nodes_are_filled_evenly_and_never_beyond_what_they_have() {
        let mut state = nodes(3);
        let mut placed = BTreeMap::new();
        for number in 0..20 {
            let pod = info(&format!("p{number}"), json!({}), asks("1", json!({})));
            if let Some(node) = scheduled_node(&pod, &state) {
                state.assume(&pod, &node);
                *placed.entry(node).or_insert(0) += 1;
            }
        }
        assert_eq!(
            placed,
            [("n0", 4), ("n1", 4), ("n2", 4)].map(|(name, count)| (name.to_owned(), count)).into()
        );
    }

    #[test]
    fn why_it_fits_nowhere_is_said_as_kubernetes_does() {
        let mut state = nodes(2);
        state.nodes.get_mut("n1").unwrap().unschedulable = true;
        let result = decide(&info("p", json!({}), asks("3", json!({}))), &state, &volumes());
        assert!(matches!(result, ScheduleResult::Scheduled(node) if node == "n0"));
        state.assume(&info("first", json!({}), asks("2", json!({}))), "n0");
        let ScheduleResult::Unschedulable { message, resolvable } =
            decide(&info("p", json!({}), asks("3", json!({}))), &state, &volumes())
        else {
            panic!("there is no room")
        };
        assert_eq!(
            message,
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. no new claims to deallocate, preemption: \
             0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
        );
        assert_eq!(resolvable, ["n0"]);
    }

    #[test]
    fn pods_keep_away_from_their_like_and_near_to_others() {
        let mut state = nodes(4);
        let term = |app: &str, key: &str| json!([{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]);
        let anti_affinity_terms = |key: &str| json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term("db", key)}}});
        let db = |name: &str| info(name, json!({"app": "db"}), asks("1", anti_affinity_terms("zone")));
        let first = scheduled_node(&db("db-0"), &state).unwrap();
        state.assume(&db("db-0"), &first);
        let second = scheduled_node(&db("db-1"), &state).unwrap();
        state.assume(&db("db-1"), &second);
        let zone = |node: &str| state.nodes[node].labels["zone"].clone();
        assert_ne!(zone(&first), zone(&second));
        assert_eq!(scheduled_node(&db("db-2"), &state), None, "both zones have one");
        let affinity_terms = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term("db", "kubernetes.io/hostname")}}});
        let web = info("web", json!({"app": "web"}), asks("1", affinity_terms.clone()));
        assert!([&first, &second].contains(&&scheduled_node(&web, &state).unwrap()));
        let alone = info(
            "cache",
            json!({"app": "cache"}),
            asks(
                "1",
                json!({"affinity": {"podAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": term("cache", "zone")}}}),
            ),
        );
        assert!(scheduled_node(&alone, &state).is_some(), "the first of its like may go anywhere");
    }

    #[test]
    fn those_who_keep_others_away_are_respected() {
        let mut state = nodes(1);
        let term = json!([{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]);
        let spec = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
        state.assume(&info("hermit", json!({"app": "hermit"}), asks("1", spec)), "n0");
        assert_eq!(scheduled_node(&info("web", json!({"app": "web"}), asks("1", json!({}))), &state), None);
        assert!(scheduled_node(&info("db", json!({"app": "db"}), asks("1", json!({}))), &state).is_some());
    }

    #[test]
    fn pods_are_spread_as_strictly_as_they_ask() {
        let mut state = nodes(4);
        let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]});
        let mut zones: BTreeMap<String, usize> = BTreeMap::new();
        for number in 0..6 {
            let pod = info(&format!("w{number}"), json!({"app": "web"}), asks("1", spread.clone()));
            let node = scheduled_node(&pod, &state).unwrap();
            *zones.entry(state.nodes[&node].labels["zone"].clone()).or_insert(0) += 1;
            let counts: Vec<usize> =
                ["a", "b"].iter().map(|zone| zones.get(*zone).copied().unwrap_or(0)).collect();
            assert!(counts[0].abs_diff(counts[1]) <= 1, "{zones:?}");
            state.assume(&pod, &node);
        }
    }

    #[test]
    fn ports_of_a_node_are_given_once() {
        let mut state = nodes(2);
        let spec =
            || json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]});
        for number in 0..2 {
            let pod = info(&format!("p{number}"), json!({}), spec());
            let node = scheduled_node(&pod, &state).unwrap();
            state.assume(&pod, &node);
        }
        assert_eq!(scheduled_node(&info("p2", json!({}), spec()), &state), None);
    }
}
