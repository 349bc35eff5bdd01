//! What was observed for one object: the whole input of a decision besides the object itself, time included.

use crate::cache::AnyObject;
use crate::kind::{Kind, Object};
use crate::reason::{Reason, Refusal};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_clock::Timestamp;

/// What was observed for one object: its children, what it is related to, and when.
#[derive(Debug, Clone)]
pub struct Seen {
    now: Timestamp,
    kinds: BTreeMap<Kind, Vec<Arc<dyn AnyObject>>>,
    /// Whether a kind that is not in `kinds` was looked for and not found, as in tests, or never looked for.
    undeclared_is_empty: bool,
}

/// A decision asked for a kind that its controller does not watch, or read something that does not fit its type. It
/// never means that there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    /// The controller declared neither `owns` nor `sees` for it.
    #[error("{0} is not watched: add .owns or .sees for it to the controller")]
    Undeclared(String),
    /// A captured object does not fit the type it is read as.
    #[error("a captured {kind} does not fit its type: {why}")]
    Misfit {
        /// The kind.
        kind: String,
        /// What did not fit.
        why: String,
    },
}

impl From<Unseen> for Refusal {
    fn from(unseen: Unseen) -> Self {
        Self::new(Reason::new("Unseen", unseen.to_string()))
    }
}

impl Seen {
    /// Nothing is there, of any kind, at the Unix epoch: where a test of a decision starts.
    pub fn nothing() -> Self {
        Self { now: Timestamp::UNIX_EPOCH, kinds: BTreeMap::new(), undeclared_is_empty: true }
    }

    /// Nothing was looked for yet: kinds must be declared before they can be read.
    pub(crate) fn at(now: Timestamp) -> Self {
        Self { now, kinds: BTreeMap::new(), undeclared_is_empty: false }
    }

    /// The same, with an object that is there.
    #[must_use]
    pub fn with<K: Object>(mut self, object: K) -> Self {
        self.kinds.entry(Kind::of::<K>()).or_default().push(Arc::new(object));
        self
    }

    /// The same, at another time.
    #[must_use]
    pub fn now_is(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    pub(crate) fn declare(&mut self, kind: &Kind, objects: Vec<Arc<dyn AnyObject>>) {
        let seen = self.kinds.entry(kind.clone()).or_default();
        for object in objects {
            let uid = &object.meta().uid;
            // A child may be related too; it is seen once.
            if uid.is_none() || seen.iter().all(|other| other.meta().uid != *uid) {
                seen.push(object);
            }
        }
    }

    /// When it was seen: the only time that a decision may use.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The object of that name, if it was seen.
    ///
    /// # Errors
    /// [`Unseen`] when the controller does not watch the kind.
    pub fn get<K: Object>(&self, name: &str) -> Result<Option<Arc<K>>, Unseen> {
        let found = self.of::<K>()?.iter().find(|object| object.meta().name.as_deref() == Some(name));
        found.map(typed).transpose()
    }

    /// Every object of a kind that was seen: children and relations of the object that is decided about.
    ///
    /// # Errors
    /// [`Unseen`] when the controller does not watch the kind.
    pub fn list<K: Object>(&self) -> Result<Vec<Arc<K>>, Unseen> {
        self.of::<K>()?.iter().map(typed).collect()
    }

    /// The names of all objects of a kind that were seen, sorted.
    ///
    /// # Errors
    /// [`Unseen`] when the controller does not watch the kind.
    pub fn names<K: Object>(&self) -> Result<Vec<String>, Unseen> {
        let mut names: Vec<String> =
            self.of::<K>()?.iter().filter_map(|object| object.meta().name.clone()).collect();
        names.sort();
        Ok(names)
    }

    fn of<K: Object>(&self) -> Result<&[Arc<dyn AnyObject>], Unseen> {
        match self.kinds.get(&Kind::of::<K>()) {
            Some(objects) => Ok(objects),
            None if self.undeclared_is_empty => Ok(&[]),
            None => Err(Unseen::Undeclared(K::kind(&()).into_owned())),
        }
    }

    /// All of it as JSON, for a capture. Secrets are in it, as the decision saw them.
    pub fn to_json(&self) -> Value {
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|(kind, objects)| {
                let objects: Vec<Value> = objects.iter().map(|object| object.to_json()).collect();
                json!({ "kind": kind, "objects": objects })
            })
            .collect();
        json!({ "now": self.now.to_string(), "kinds": kinds })
    }

    /// What [`Seen::to_json`] wrote. Objects are read when asked for.
    ///
    /// # Errors
    /// A sentence that says what is not as it should be.
    pub fn from_json(captured: &Value) -> Result<Self, String> {
        let now = captured.get("now").and_then(Value::as_str).ok_or("`now` is missing")?;
        let mut seen = Self::at(now.parse().map_err(|error| format!("`now` is no time: {error}"))?);
        for entry in captured.get("kinds").and_then(Value::as_array).into_iter().flatten() {
            let kind = entry.get("kind").cloned().unwrap_or_default();
            let kind: Kind =
                serde_json::from_value(kind).map_err(|error| format!("a `kind` is not readable: {error}"))?;
            let objects = entry.get("objects").and_then(Value::as_array).into_iter().flatten();
            let objects = objects.map(|object| Arc::new(Captured::new(object)) as Arc<dyn AnyObject>);
            seen.declare(&kind, objects.collect());
        }
        Ok(seen)
    }
}

fn typed<K: Object>(object: &Arc<dyn AnyObject>) -> Result<Arc<K>, Unseen> {
    match object.clone().into_any().downcast::<K>() {
        Ok(object) => Ok(object),
        Err(_) => serde_json::from_value(object.to_json())
            .map(Arc::new)
            .map_err(|error| Unseen::Misfit { kind: K::kind(&()).into_owned(), why: error.to_string() }),
    }
}

/// An object from a capture: typed when somebody asks.
#[derive(Debug)]
struct Captured {
    meta: ObjectMeta,
    json: Value,
}

impl Captured {
    fn new(json: &Value) -> Self {
        let meta = json.get("metadata").cloned().unwrap_or_default();
        Self { meta: serde_json::from_value(meta).unwrap_or_default(), json: json.clone() }
    }
}

impl AnyObject for Captured {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn to_json(&self) -> Value {
        self.json.clone()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    fn config_map(name: &str) -> ConfigMap {
        let metadata = ObjectMeta { name: Some(name.into()), ..Default::default() };
        ConfigMap { metadata, ..Default::default() }
    }

    #[test]
    fn what_is_there_is_seen_by_name_and_in_order() {
        let seen = Seen::nothing().with(config_map("b")).with(config_map("a"));
        assert_eq!(seen.names::<ConfigMap>().unwrap(), ["a", "b"]);
        assert!(seen.get::<ConfigMap>("a").unwrap().is_some());
        assert!(seen.get::<ConfigMap>("c").unwrap().is_none());
        assert!(seen.list::<Secret>().unwrap().is_empty(), "in a test, nothing is nothing");
    }

    #[test]
    fn a_kind_that_nobody_watches_is_an_error_and_not_an_empty_list() {
        let mut seen = Seen::at(Timestamp::UNIX_EPOCH);
        seen.declare(&Kind::of::<ConfigMap>(), vec![]);
        assert!(seen.list::<ConfigMap>().unwrap().is_empty());
        assert_eq!(seen.list::<Secret>().unwrap_err(), Unseen::Undeclared("Secret".into()));
    }

    #[test]
    fn a_capture_is_seen_like_the_world_was() {
        let mut seen = Seen::at("2026-01-01T00:00:00Z".parse().unwrap());
        seen.declare(&Kind::of::<ConfigMap>(), vec![Arc::new(config_map("a"))]);
        let replayed = Seen::from_json(&seen.to_json()).unwrap();
        assert_eq!(replayed.now(), seen.now());
        assert_eq!(replayed.get::<ConfigMap>("a").unwrap(), seen.get::<ConfigMap>("a").unwrap());
        assert!(replayed.list::<Secret>().is_err(), "what was not declared then is not now");
        for nonsense in
            [json!(null), json!({"now": "x"}), json!({"now": "2026-01-01T00:00:00Z", "kinds": [{}]})]
        {
            assert!(Seen::from_json(&nonsense).is_err(), "{nonsense}");
        }
    }
}
