//! How the object stands, written to its status when that would change.

use super::owning::Parent;
use super::running::Running;
use crate::cache::AnyObject;
use crate::conditions::{
    READY, REFERENCES_RESOLVED, Standing, concern_alone, conditions, paused, references,
};
use crate::kind::{Cached, Kind};
use crate::plan::Plan;
use crate::write::{Done, Subresource, WriteError, own_fields};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Running {
    /// Reports the plan's status and the conditions. Without a plan, what was reported before stays, with new conditions.
    pub(super) async fn report(
        &self,
        parent: &Parent,
        plan: Option<&Plan>,
        standing: Standing<'_>,
    ) -> Result<Done, WriteError> {
        let Some(live) = self.primary.get(&parent.key) else { return Ok(Done::Unchanged) };
        let said = plan.and_then(Plan::reported).cloned();
        if said.is_some() && self.room_for_conditions.get() == Some(&false) {
            return self.apply_status(parent, &live, said).await;
        }
        let live_json = live.to_json();
        let before =
            || own_fields(&live_json, &self.name, Subresource::Status)?.get_mut("status").map(Value::take);
        let mut status = said.or_else(before);
        let mut stated = plan.map(Plan::stated).unwrap_or_default().to_vec();
        if let Some(missing) = self.missing_references(&*live)
            && stated.iter().all(|one| one.of != REFERENCES_RESOLVED)
        {
            stated.push(references(&missing));
        }
        let had = had_conditions(&live_json);
        let (generation, now) = (live.meta().generation, self.clock.now());
        let kept = match &self.concern {
            Some(concern) => concern_alone(concern, standing, &stated, &had, generation, now),
            None => conditions(standing, &stated, &had, generation, now),
        };
        self.write_status(parent, &live, &live_json, &mut status, kept).await
    }

    async fn write_status(
        &self,
        parent: &Parent,
        live: &Arc<dyn AnyObject>,
        live_json: &Value,
        status: &mut Option<Value>,
        conditions: Vec<Condition>,
    ) -> Result<Done, WriteError> {
        if let Ok(kept) = serde_json::to_value(conditions) {
            let room = self.has_conditions(live_json, status.as_ref(), &kept).await;
            self.no_conditions.store(!room, Ordering::Relaxed);
            if room {
                status.get_or_insert_with(|| json!({}))["conditions"] = kept;
            }
        }
        self.apply_status(parent, live, status.take()).await
    }

    async fn apply_status(
        &self,
        parent: &Parent,
        live: &Arc<dyn AnyObject>,
        status: Option<Value>,
    ) -> Result<Done, WriteError> {
        let Some(status) = status else { return Ok(Done::Unchanged) };
        let make = || {
            let mut intent = parent.intent(None, &Default::default());
            intent["status"] = status.clone();
            Cow::Owned(intent)
        };
        let (kind, key) = (&self.kind, &parent.key);
        self.writer.apply_made(kind, key, Subresource::Status, (&status, make), Some(live), key).await
    }

    /// Whether the status has room for conditions: as its type tells, or, where the type is one for any kind, the server.
    async fn has_conditions(&self, live: &Value, status: Option<&Value>, conditions: &Value) -> bool {
        if let Some(known) = self.room_for_conditions.get() {
            return *known;
        }
        match self.has_room {
            // It is the type that has room or not, whatever the object; so it is found out once.
            Some(has_room) => match has_room(live, status, conditions) {
                Some(room) => *self.room_for_conditions.get_or_init(|| room),
                None => false,
            },
            None => self.writer.knows_field(&self.kind, &["status", "conditions"]).await,
        }
    }

    /// Says that the object is paused, and leaves all else as it was reported.
    pub(super) async fn report_pause(&self, parent: &Parent) -> Result<Done, WriteError> {
        let Some(live) = self.primary.get(&parent.key) else { return Ok(Done::Unchanged) };
        let live_json = live.to_json();
        let mut status = own_fields(&live_json, &self.name, Subresource::Status)
            .and_then(|mut own| Some(own.get_mut("status")?.take()));
        let had = had_conditions(&live_json);
        // Only our own stay ours: those of others are not to be taken over.
        let ours = status.as_ref().map(own_types).unwrap_or_default();
        let ours: Vec<Condition> = had.into_iter().filter(|one| ours.contains(&one.type_)).collect();
        let why = match live.meta().deletion_timestamp.is_some() {
            true => format!("annotation {} pauses it, and its deletion", self.pause),
            false => format!("annotation {} pauses it", self.pause),
        };
        let main = self.concern.as_deref().unwrap_or(READY);
        let kept = paused(main, &ours, &why, live.meta().generation, self.clock.now());
        self.write_status(parent, &live, &live_json, &mut status, kept).await
    }

    /// What an object refers to that is not there; `None` where nothing is said about references.
    fn missing_references(&self, object: &dyn AnyObject) -> Option<Vec<(Kind, String)>> {
        let mut missing = None;
        for related in self.related.iter().filter(|related| related.by_name) {
            let relation = related.of(object);
            let found = related.store.select(&relation);
            let is_there = |name: &str| found.iter().any(|one| one.meta().name.as_deref() == Some(name));
            let not_there = relation.names().filter(|name| !is_there(name));
            let not_there = not_there.map(|name| (related.kind.clone(), name.to_owned()));
            missing.get_or_insert_with(Vec::new).extend(not_there);
        }
        missing
    }
}

fn had_conditions(live: &Value) -> Vec<Condition> {
    let had = live.pointer("/status/conditions").cloned().unwrap_or_default();
    serde_json::from_value(had).unwrap_or_default()
}

/// The types of the conditions in a status.
fn own_types(status: &Value) -> Vec<String> {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.filter_map(|one| Some(one.get("type")?.as_str()?.to_owned())).collect()
}

/// Whether a type's status has room for conditions, once there is an object to try it with.
pub(super) type HasRoom = fn(&Value, Option<&Value>, &Value) -> Option<bool>;

/// Whether the type's status has room for conditions: whether they survive being read as that type.
pub(super) fn has_conditions<K: Cached>(
    live: &Value,
    status: Option<&Value>,
    conditions: &Value,
) -> Option<bool> {
    let mut trial = live.clone();
    let mut status = status.cloned().unwrap_or_else(|| json!({}));
    if !status.is_object() || !trial.is_object() {
        return None;
    }
    status["conditions"] = conditions.clone();
    trial["status"] = status;
    let back = serde_json::from_value::<K>(trial).ok()?.to_json();
    Some(back.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|kept| !kept.is_empty()))
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
        assert_eq!(has_conditions::<Namespace>(&live, None, &conditions), Some(true));
        let scaled = json!({"replicas": 1});
        assert_eq!(has_conditions::<Deployment>(&live, Some(&scaled), &conditions), Some(true));
        assert_eq!(has_conditions::<ConfigMap>(&live, None, &conditions), Some(false));
        let cannot_tell = has_conditions::<Namespace>(&live, Some(&json!("text")), &conditions);
        assert_eq!(cannot_tell, None);
    }
}
