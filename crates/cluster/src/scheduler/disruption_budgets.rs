//! Whom PodDisruptionBudgets guard: pods that are better left alone when others are ended to make room. Pure.

use super::info::PodFacts;
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
    /// So many of its pods may still go.
    allowed: i32,
    /// Pods that the API was already asked to end, which counted then.
    counted: Vec<String>,
}

impl Budgets {
    pub(super) fn of(budgets: &[Arc<PodDisruptionBudget>]) -> Self {
        Self(budgets.iter().filter_map(|budget| Budget::of(budget)).collect())
    }

    /// Of each pod whether it could not go without breaking a budget, if those before it in the list go too.
    pub(super) fn guard(&self, pods: &[Arc<PodFacts>]) -> Vec<bool> {
        let mut left: Vec<i32> = self.0.iter().map(|budget| budget.allowed).collect();
        let one = |pod: &Arc<PodFacts>| {
            let mut guarded = false;
            for (budget, left) in self.0.iter().zip(&mut left).filter(|(budget, _)| budget.is_about(pod)) {
                *left -= 1;
                guarded |= *left < 0;
                tracing::trace!(pod = %pod.key, namespace = budget.namespace, left, "a budget guards it");
            }
            guarded
        };
        pods.iter().map(one).collect()
    }
}

impl Budget {
    /// None of one that selects nothing in particular: to a scheduler it is about no pod.
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

    fn is_about(&self, pod: &PodFacts) -> bool {
        self.namespace == pod.namespace
            && !pod.labels.is_empty()
            && self.selector.matches(Some(&pod.labels))
            && !self.counted.iter().any(|name| name == pod.key.name())
    }
}
