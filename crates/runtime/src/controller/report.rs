//! How the object stands, written to its status when that would change.

use super::owning::Parent;
use super::running::Running;
use crate::act::{ActError, Done, Door, own_fields};
use crate::cache::AnyObject;
use crate::conditions::{Standing, conditions};
use crate::kind::Object;
use crate::plan::Plan;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use std::sync::Arc;

impl<K: Object> Running<K> {
    /// Reports the plan's status and the conditions. Without a plan, what was reported before stays, with new conditions.
    pub(super) async fn report(
        &self,
        parent: &Parent,
        plan: Option<&Plan>,
        standing: Standing<'_>,
    ) -> Result<Done, ActError> {
        let Some(object) = self.primary.get(&parent.key) else { return Ok(Done::Unchanged) };
        let live: Arc<dyn AnyObject> = object.clone();
        let live_json = live.to_json();
        let said = plan.and_then(Plan::reported).cloned();
        let before = || own_fields(&live_json, &self.name, Door::Status)?.get_mut("status").map(Value::take);
        let mut status = said.clone().or_else(before);
        let stated = plan.map(Plan::stated).unwrap_or_default();
        let had = live_json.pointer("/status/conditions").cloned().unwrap_or_default();
        let had: Vec<Condition> = serde_json::from_value(had).unwrap_or_default();
        let kept = conditions(standing, stated, &had, object.meta().generation, self.clock.now());
        if let Ok(kept) = serde_json::to_value(kept)
            && has_conditions::<K>(&live_json, status.as_ref(), &kept)
        {
            status.get_or_insert_with(|| json!({}))["conditions"] = kept;
        }
        let Some(status) = status else { return Ok(Done::Unchanged) };
        let mut intent = parent.intent(None, &Default::default());
        intent["status"] = status;
        self.hand.apply(&self.kind, &parent.key, Door::Status, &intent, Some(&live), &parent.key).await
    }
}

/// Whether the type's status has room for conditions: whether they survive being read as that type.
fn has_conditions<K: Object>(live: &Value, status: Option<&Value>, conditions: &Value) -> bool {
    let mut trial = live.clone();
    let mut status = status.cloned().unwrap_or_else(|| json!({}));
    if !status.is_object() || !trial.is_object() {
        return false;
    }
    status["conditions"] = conditions.clone();
    trial["status"] = status;
    let Ok(typed) = serde_json::from_value::<K>(trial) else { return false };
    let back = typed.to_json();
    back.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|kept| !kept.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    #[test]
    fn conditions_are_kept_only_where_the_type_has_room_for_them() {
        let conditions = json!([{"type": "Ready", "status": "True", "reason": "R", "message": "m",
                                 "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let live = json!({"metadata": {"name": "x"}});
        assert!(has_conditions::<Namespace>(&live, None, &conditions));
        assert!(has_conditions::<Deployment>(&live, Some(&json!({"replicas": 1})), &conditions));
        assert!(!has_conditions::<ConfigMap>(&live, None, &conditions));
        assert!(!has_conditions::<Namespace>(&live, Some(&json!("text")), &conditions));
    }
}
