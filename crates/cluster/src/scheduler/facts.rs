//! What scheduling needs to know of pods and nodes, worked out once.

use crate::pods::Claimed;
use k8s_openapi::api::core::v1::{
    Affinity, Container, Node, NodeAffinity, Pod, PodAffinityTerm, PodSpec, Taint, Toleration,
    TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass::Key;
use windlass::quantity::{milli_value, value};

/// What this scheduler is called in `spec.schedulerName`.
pub(super) const NAME: &str = "default-scheduler";

/// What a pod that asks for nothing is taken to need when nodes are compared, in thousandths of a CPU and bytes.
const USUAL: (i128, i128) = (100, 200 << 20);

/// Amounts by resource: CPU in thousandths, the others in units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Amounts(pub(super) BTreeMap<String, i128>);

impl Amounts {
    pub(super) fn of(written: Option<&BTreeMap<String, Quantity>>) -> Self {
        let amount = |name: &String, quantity: &Quantity| match name.as_str() {
            "cpu" => milli_value(quantity),
            _ => value(quantity),
        };
        let all = written.into_iter().flatten();
        Self(
            all.filter_map(|(name, quantity)| Some((name.clone(), amount(name, quantity)?.into()))).collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_insert(0) += amount;
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_insert(0) -= amount;
        }
    }

    /// The greater of both, by resource.
    fn at_least(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = (*own).max(*amount);
        }
    }
}

/// A port of the node that a pod wants: protocol, address and number.
pub(super) type Port = (String, String, i32);

/// What matters of a pod.
#[derive(Debug, Clone)]
pub(super) struct PodFacts {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) priority: i32,
    pub(super) requests: Amounts,
    /// CPU and memory, with what is usual where nothing is asked for.
    pub(super) weight: (i128, i128),
    pub(super) ports: Vec<Port>,
    pub(super) node: String,
    pub(super) selector: BTreeMap<String, String>,
    pub(super) affinity: Option<Affinity>,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) spread: Vec<TopologySpreadConstraint>,
    pub(super) claims: Vec<Claimed>,
    pub(super) never_preempts: bool,
    pub(super) going: bool,
    pub(super) generation: Option<i64>,
}

impl PodFacts {
    pub(super) fn of(key: &Key, pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let requests = requests(spec);
        let weight = (
            requests.0.get("cpu").copied().unwrap_or(USUAL.0),
            requests.0.get("memory").copied().unwrap_or(USUAL.1),
        );
        Some(Self {
            key: key.clone(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            priority: spec.priority.unwrap_or(0),
            requests,
            weight,
            ports: ports(spec),
            node: spec.node_name.clone().unwrap_or_default(),
            selector: spec.node_selector.clone().unwrap_or_default(),
            affinity: spec.affinity.clone(),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
            spread: spec.topology_spread_constraints.clone().unwrap_or_default(),
            claims: crate::pods::claims(pod).collect(),
            never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
            going: pod.metadata.deletion_timestamp.is_some(),
            generation: pod.metadata.generation,
        })
    }

    pub(super) fn node_affinity(&self) -> Option<&NodeAffinity> {
        self.affinity.as_ref()?.node_affinity.as_ref()
    }

    /// What it must be near to.
    pub(super) fn near(&self) -> &[PodAffinityTerm] {
        let terms = self.affinity.as_ref().and_then(|all| all.pod_affinity.as_ref());
        terms
            .and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default()
    }

    /// What it must be away from.
    pub(super) fn apart(&self) -> &[PodAffinityTerm] {
        let terms = self.affinity.as_ref().and_then(|all| all.pod_anti_affinity.as_ref());
        terms
            .and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default()
    }

    /// Constraints on how it is spread that must hold.
    pub(super) fn strict_spread(&self) -> impl Iterator<Item = &TopologySpreadConstraint> {
        self.spread.iter().filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
    }
}

/// Whether a pod waits for this scheduler.
pub(super) fn waits(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let free = spec.node_name.as_deref().unwrap_or_default().is_empty();
    let ours = spec.scheduler_name.as_deref().unwrap_or(NAME) == NAME;
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    free && ours && !gated && crate::pods::is_active(pod)
}

/// Whether a pod takes room on its node.
pub(super) fn takes_room(pod: &Pod) -> bool {
    let placed =
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|name| !name.is_empty());
    placed && !crate::pods::has_ended(pod)
}

/// What a pod needs at its worst: its containers and those that go on beside them, or one that initializes with those before
/// it that go on; and what running it costs.
fn requests(spec: &PodSpec) -> Amounts {
    let of = |container: &Container| {
        Amounts::of(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
    };
    let mut total = Amounts::default();
    spec.containers.iter().for_each(|container| total.add(&of(container)));
    let (mut beside, mut worst) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            beside.add(&of(container));
            worst.at_least(&beside);
        } else {
            let mut all = of(container);
            all.add(&beside);
            worst.at_least(&all);
        }
    }
    total.add(&beside);
    total.at_least(&worst);
    // What is asked for the pod as a whole counts instead.
    let whole = Amounts::of(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
    total.0.extend(whole.0);
    total.add(&Amounts::of(spec.overhead.as_ref()));
    total.0.retain(|_, amount| *amount != 0);
    total
}

fn ports(spec: &PodSpec) -> Vec<Port> {
    let sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(sidecar));
    all.flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let address =
                port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned());
            Some((protocol, address, number))
        })
        .collect()
}

/// Whether two ports cannot be had at once: the same number and protocol, on addresses that are the same or all.
pub(super) fn collide(one: &Port, two: &Port) -> bool {
    let all = |address: &str| matches!(address, "0.0.0.0" | "::");
    one.0 == two.0 && one.2 == two.2 && (all(&one.1) || all(&two.1) || one.1 == two.1)
}

/// What matters of a node, and what it holds.
#[derive(Debug, Default)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    /// Whether there is a Node: pods may be on one that is not there any more.
    pub(super) known: bool,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) unschedulable: bool,
    pub(super) allocatable: Amounts,
    pub(super) used: Amounts,
    pub(super) weight: (i128, i128),
    pub(super) pods: BTreeMap<Key, Arc<PodFacts>>,
    pub(super) ports: BTreeSet<(Port, Key)>,
}

impl NodeFacts {
    /// Takes in what a Node says. Answers whether that could matter to a pod that waits.
    pub(super) fn describe(&mut self, node: &Node) -> bool {
        let spec = node.spec.clone().unwrap_or_default();
        let labels = node.metadata.labels.clone().unwrap_or_default();
        let taints = spec.taints.unwrap_or_default();
        let unschedulable = spec.unschedulable.unwrap_or(false);
        let allocatable = Amounts::of(node.status.as_ref().and_then(|status| status.allocatable.as_ref()));
        let news = !self.known
            || (&self.labels, &self.taints, self.unschedulable, &self.allocatable)
                != (&labels, &taints, unschedulable, &allocatable);
        self.known = true;
        (self.labels, self.taints) = (labels, taints);
        (self.unschedulable, self.allocatable) = (unschedulable, allocatable);
        news
    }

    pub(super) fn add(&mut self, pod: Arc<PodFacts>) {
        self.used.add(&pod.requests);
        self.weight = (self.weight.0 + pod.weight.0, self.weight.1 + pod.weight.1);
        self.ports.extend(pod.ports.iter().map(|port| (port.clone(), pod.key.clone())));
        self.pods.insert(pod.key.clone(), pod);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<PodFacts>> {
        let pod = self.pods.remove(key)?;
        self.used.subtract(&pod.requests);
        self.weight = (self.weight.0 - pod.weight.0, self.weight.1 - pod.weight.1);
        for port in &pod.ports {
            self.ports.remove(&(port.clone(), pod.key.clone()));
        }
        Some(pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: serde_json::Value) -> PodSpec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_pod_needs_what_it_needs_at_its_worst() {
        let asks = |cpu: &str| serde_json::json!({"requests": {"cpu": cpu}});
        let spec = spec(serde_json::json!({
            "initContainers": [
                {"name": "side", "restartPolicy": "Always", "resources": asks("100m")},
                {"name": "init", "resources": asks("2")},
            ],
            "containers": [{"name": "a", "resources": asks("500m")}, {"name": "b", "resources": asks("300m")}],
            "overhead": {"cpu": "50m"},
        }));
        assert_eq!(requests(&spec).get("cpu"), 2150, "the one that initializes, with the one before it");
    }

    #[test]
    fn ports_collide_on_the_same_address_or_on_all() {
        let port = |ip: &str, number| ("TCP".to_owned(), ip.to_owned(), number);
        assert!(collide(&port("0.0.0.0", 80), &port("10.0.0.1", 80)));
        assert!(!collide(&port("10.0.0.2", 80), &port("10.0.0.1", 80)));
        assert!(!collide(&port("0.0.0.0", 80), &port("0.0.0.0", 81)));
    }
}
