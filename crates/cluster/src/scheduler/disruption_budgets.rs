//! Which pods cannot be preempted without violating a PodDisruptionBudget. Pure.

use super::info::PodInfo;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::sync::Arc;
use windlass::Selector;

/// The budgets of the cluster.
#[derive(Debug, Default)]
pub(super) struct Budgets(Vec<Budget>);

#[derive(Debug)]
struct Budget {
    namespace: String,
    selector: Selector,
    /// The number of disruptions that are still allowed.
    allowed: i32,
    /// Pods whose eviction was granted already, which counted then.
    counted: Vec<String>,
}

impl Budgets {
    pub(super) fn of(budgets: &[Arc<PodDisruptionBudget>]) -> Self {
        Self(budgets.iter().filter_map(|budget| Budget::of(budget)).collect())
    }

    /// For each pod whether its eviction violates a budget, if those before it in the list are evicted too.
    pub(super) fn violating(&self, pods: &[Arc<PodInfo>]) -> Vec<bool> {
        let mut left: Vec<i32> = self.0.iter().map(|budget| budget.allowed).collect();
        let one = |pod: &Arc<PodInfo>| {
            let mut violates = false;
            for (budget, left) in self.0.iter().zip(&mut left).filter(|(budget, _)| budget.matches(pod)) {
                *left -= 1;
                violates |= *left < 0;
                tracing::trace!(pod = %pod.key, namespace = budget.namespace, left, "selected by a PodDisruptionBudget");
            }
            violates
        };
        pods.iter().map(one).collect()
    }
}

impl Budget {
    /// None for an empty selector: to the scheduler it selects no pod.
    fn of(budget: &PodDisruptionBudget) -> Option<Self> {
        let selector = budget.spec.as_ref()?.selector.as_ref()?;
        let says_nothing = selector.match_labels.as_ref().is_none_or(|labels| labels.is_empty())
            && selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
        if says_nothing {
            return None;
        }
        let status = budget.status.clone().unwrap_or_default();
        Some(Self {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            selector: Selector::of(selector).ok()?,
            allowed: status.disruptions_allowed.unwrap_or(0),
            counted: status.disrupted_pods.unwrap_or_default().into_keys().collect(),
        })
    }

    fn matches(&self, pod: &PodInfo) -> bool {
        self.namespace == pod.namespace
            && !pod.labels.is_empty()
            && self.selector.matches(Some(&pod.labels))
            && !self.counted.iter().any(|name| name == pod.key.name())
    }
}
