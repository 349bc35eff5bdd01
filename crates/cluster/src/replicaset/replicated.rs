//! What ReplicaSet and ReplicationController have in common, as a trait.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::{Object, Selector};

/// What is common to ReplicaSet and ReplicationController.
pub(super) trait Replicated: Object {
    /// The name of the controller, in events and as field manager.
    const CONTROLLER: &'static str;
    /// Whether its status has `terminatingReplicas`.
    const REPORTS_TERMINATING: bool;

    /// The desired number of pods.
    fn wanted(&self) -> usize;
    /// The selector; `None` if it is invalid.
    fn selector(&self) -> Option<Selector>;
    /// The pod template.
    fn template(&self) -> Option<&PodTemplateSpec>;
    /// How long a pod must be ready to be available.
    fn min_ready_seconds(&self) -> i32;
    /// The status.
    fn status(&self) -> Status;
    /// The same object with this status.
    fn with_status(&self, status: Status) -> Self;
}

/// The status of either kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Status {
    pub(super) replicas: i32,
    pub(super) fully_labeled: i32,
    pub(super) ready: i32,
    pub(super) available: i32,
    pub(super) terminating: Option<i32>,
    pub(super) observed_generation: Option<i64>,
    pub(super) conditions: Vec<Condition>,
}

/// A condition of either kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub(super) of: String,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) since: Option<Time>,
}

/// Kubernetes leaves out counts of zero; written so, an object is equal to what is stored.
fn count(number: i32) -> Option<i32> {
    (number != 0).then_some(number)
}

/// Reading and writing the status; the third is what only one of the kinds has.
macro_rules! status_of {
    ($Status:ident, $Condition:ident $(, $terminating:ident)?) => {
        fn status(&self) -> Status {
            let Some(status) = &self.status else { return Status::default() };
            let conditions = status.conditions.iter().flatten().map(|condition| Condition {
                of: condition.type_.clone(),
                status: condition.status.clone(),
                reason: condition.reason.clone(),
                message: condition.message.clone(),
                since: condition.last_transition_time.clone(),
            });
            Status {
                replicas: status.replicas,
                fully_labeled: status.fully_labeled_replicas.unwrap_or_default(),
                ready: status.ready_replicas.unwrap_or_default(),
                available: status.available_replicas.unwrap_or_default(),
                terminating: None $(.or(status.$terminating))?,
                observed_generation: status.observed_generation,
                conditions: conditions.collect(),
            }
        }

        fn with_status(&self, status: Status) -> Self {
            let conditions = status.conditions.into_iter().map(|condition| $Condition {
                type_: condition.of,
                status: condition.status,
                reason: condition.reason,
                message: condition.message,
                last_transition_time: condition.since,
            });
            let conditions: Vec<_> = conditions.collect();
            let status = $Status {
                replicas: status.replicas,
                fully_labeled_replicas: count(status.fully_labeled),
                ready_replicas: count(status.ready),
                available_replicas: count(status.available),
                observed_generation: status.observed_generation,
                conditions: (!conditions.is_empty()).then_some(conditions),
                $($terminating: status.terminating,)?
            };
            Self { status: Some(status), ..self.clone() }
        }
    };
}

impl Replicated for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset-controller";
    const REPORTS_TERMINATING: bool = true;

    fn wanted(&self) -> usize {
        let replicas = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        replicas.max(0).unsigned_abs() as usize
    }

    fn selector(&self) -> Option<Selector> {
        Selector::of(&self.spec.as_ref()?.selector).ok()
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    status_of!(ReplicaSetStatus, ReplicaSetCondition, terminating_replicas);
}

impl Replicated for ReplicationController {
    const CONTROLLER: &'static str = "replication-controller";
    const REPORTS_TERMINATING: bool = false;

    fn wanted(&self) -> usize {
        let replicas = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        replicas.max(0).unsigned_abs() as usize
    }

    fn selector(&self) -> Option<Selector> {
        let labels = self.spec.as_ref()?.selector.as_ref()?;
        Selector::equal(labels).ok().filter(|selector| !selector.is_empty())
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    status_of!(ReplicationControllerStatus, ReplicationControllerCondition);
}
