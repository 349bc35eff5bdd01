//! Plans that wait until what they apply is healthy.

use super::{Plan, Until};
use crate::conditions::{DEGRADED, Stated};
use crate::health::{Health, State, roll_up};
use crate::observed::Observed;
use crate::reason::Reason;
use std::time::Duration;

/// The requeue delay for what time alone changes, such as a pod that finds no node.
const REQUEUE_AFTER: Duration = Duration::from_secs(15);

impl Plan {
    /// Waits until every object that the plan applies, creates or claims so far is healthy by the rules in
    /// [`crate::health`]; the worst of them is named. While one failed, the condition `Degraded` holds.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    /// # use windlass::{Observed, Plan, Reason};
    /// let mut data = PersistentVolumeClaim::default();
    /// data.metadata.name = Some("data".into());
    /// let plan = |observed: &Observed| Plan::new().apply(data.clone(), Reason::new("Keeps", "the data")).until_healthy(observed);
    /// let waits = plan(&Observed::empty().with(data.clone()));
    /// assert_eq!(waits.waits()[0].reason.to_string(), "NotBound: PersistentVolumeClaim data: it is new, and not bound");
    /// ```
    pub fn until_healthy(self, observed: &Observed) -> Self {
        let health = self.health(observed);
        let reason = Reason::new(health.reason, health.message);
        let mut plan = match health.state {
            State::Current => return self,
            State::Failed => {
                let mut plan = self;
                plan.conditions.push(Stated {
                    of: DEGRADED.to_owned(),
                    holds: Some(true),
                    reason: reason.clone(),
                });
                plan
            }
            _ => self,
        };
        if reason.name() == "PodNotScheduled" {
            plan = plan.requeue_after(REQUEUE_AFTER);
        }
        plan.wait(reason, Until::Change)
    }

    /// How the objects that it applies, creates or claims fare together, as far as they were seen.
    pub fn health(&self, observed: &Observed) -> Health {
        let wanted = self.steps.iter().filter(|step| step.effect.makes());
        let each: Vec<(String, Health)> = wanted
            .filter_map(|step| {
                let (kind, name) = (step.effect.kind()?, step.effect.name());
                let health = observed.health_of(kind, step.effect.namespace(), name);
                Some((format!("{kind} {name}"), health))
            })
            .collect();
        roll_up(each.iter().map(|(name, health)| (name.as_str(), health.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use serde_json::json;

    fn pod(status: serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    fn plan(observed: &Observed) -> Plan {
        let map = serde_json::from_value::<ConfigMap>(json!({"metadata": {"name": "m"}})).unwrap();
        let why = || Reason::new("Why", "why");
        Plan::new().apply(map, why()).apply(pod(json!({})), why()).until_healthy(observed)
    }

    fn with(status: serde_json::Value) -> Plan {
        let map = serde_json::from_value::<ConfigMap>(json!({"metadata": {"name": "m"}})).unwrap();
        plan(&Observed::empty().with(map).with(pod(status)))
    }

    #[test]
    fn a_plan_waits_for_the_worst_of_what_it_applies() {
        assert_eq!(plan(&Observed::empty()).waits()[0].reason.name(), "NotFound");
        assert_eq!(
            with(json!({"phase": "Running"})).waits()[0].reason.message(),
            "Pod p: it runs, and is not ready"
        );
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert!(with(ready).is_complete());
    }

    #[test]
    fn what_failed_degrades() {
        let crashing = json!({"phase": "Running", "containerStatuses": [
            {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": false, "restartCount": 9,
             "image": "i", "imageID": ""}]});
        let plan = with(crashing);
        assert_eq!(plan.stated()[0].reason.name(), "ContainerCrashLooping");
        assert!(!plan.is_complete());
    }
}
