//! What was observed for one object: the whole input of a decision besides the object itself, time included.

use crate::action::Outcome;
use crate::cache::AnyObject;
use crate::fact::Fact;
use crate::health::Health;
use crate::kind::{Cached, Kind, Object};
use crate::reason::{Reason, Refusal};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Timestamp;

/// What was observed for one object: its children, what it is related to, and when.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use windlass::Observed;
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web-0".into());
/// let observed = Observed::empty().with(pod).now_is("2026-01-01T00:00:00Z".parse().unwrap());
/// assert_eq!(observed.names::<Pod>().unwrap(), ["web-0"]);
/// assert!(observed.get::<Pod>("web-1").unwrap().is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Observed {
    now: Timestamp,
    kinds: BTreeMap<Kind, Vec<Arc<dyn AnyObject>>>,
    /// By kind, the names that the object refers to.
    references: BTreeMap<Kind, BTreeSet<String>>,
    missing: Vec<(Kind, String)>,
    /// By name and key.
    actions: BTreeMap<(String, String), Outcome>,
    action_names: BTreeSet<String>,
    facts: BTreeMap<String, Fact<Value>>,
    /// Those that were read.
    facts_read: Arc<Mutex<BTreeSet<String>>>,
    /// By kind, namespace and name, for how long objects have not changed; of kinds whose last changes are tracked.
    unchanged: BTreeMap<Kind, BTreeMap<(String, String), Duration>>,
    /// Whether a kind that is not in `kinds` was looked for and not found, as in tests, or never looked for.
    undeclared_is_empty: bool,
}

/// A decision asked for a kind that its controller does not watch, or read something that does not fit its type. It
/// never means that there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    /// The controller declared neither `.owns` nor `.watches` for it.
    #[error("{0} is not watched: add .owns or .watches for it to the controller")]
    Undeclared(String),
    /// The controller watches only its metadata.
    #[error("of {0} only metadata is watched: read PartialObjectMeta<{0}>, or watch {0} itself")]
    MetadataOnly(String),
    /// What an object refers to is not there.
    #[error("{kind} {name} is not there")]
    Missing {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// The controller does not say that objects refer to it.
    #[error("{kind} {name} is read as a reference and is none: add .references for it to the controller")]
    NotReferred {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// The controller does not track when it changes.
    #[error("changes of {0} are not tracked: add .tracks_last_change for it to the controller")]
    NotTracked(String),
    /// The controller has no action of that name.
    #[error("there is no action {0}: add .action for it to the controller")]
    NoAction(String),
    /// The controller has no fact of that name.
    #[error("there is no fact {0}: add .fact for it to the controller")]
    NoFact(String),
    /// A captured object or a fact does not fit the type it is read as.
    #[error("a {kind} that was observed does not fit its type: {why}")]
    Misfit {
        /// The kind.
        kind: String,
        /// What did not fit.
        why: String,
    },
}

impl From<ObserveError> for Refusal {
    fn from(error: ObserveError) -> Self {
        let name = match &error {
            ObserveError::Missing { .. } => crate::conditions::reasons::REFERENCE_MISSING,
            _ => "ObserveError",
        };
        Self::new(Reason::new(name, error.to_string()))
    }
}

impl Observed {
    /// Nothing is there, of any kind, at the Unix epoch: where a test of a decision starts.
    pub fn empty() -> Self {
        Self { undeclared_is_empty: true, ..Self::at(Timestamp::UNIX_EPOCH) }
    }

    /// Nothing was looked for yet: kinds must be declared before they can be read.
    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            now,
            kinds: BTreeMap::new(),
            references: BTreeMap::new(),
            missing: Vec::new(),
            actions: BTreeMap::new(),
            action_names: BTreeSet::new(),
            facts: BTreeMap::new(),
            facts_read: Arc::default(),
            unchanged: BTreeMap::new(),
            undeclared_is_empty: false,
        }
    }

    /// The same, with an object that is there.
    #[must_use]
    pub fn with<K: Object>(mut self, object: K) -> Self {
        self.kinds.entry(Kind::of::<K>()).or_default().push(Arc::new(object));
        self
    }

    /// The same, with what became of an action.
    #[must_use]
    pub fn with_action(mut self, name: impl Into<String>, key: impl Into<String>, outcome: Outcome) -> Self {
        let name = name.into();
        self.action_names.insert(name.clone());
        self.actions.insert((name, key.into()), outcome);
        self
    }

    /// The same, with a fact that is known since now; one that cannot be serialized is unknown.
    #[must_use]
    pub fn with_fact(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        let fact = match serde_json::to_value(value) {
            Ok(value) => Fact::Known { value, at: self.now },
            Err(error) => Fact::Unknown { why: format!("it cannot be serialized: {error}") },
        };
        self.facts.insert(name.into(), fact);
        self
    }

    /// The same, with an object of this name that has not changed for so long.
    #[must_use]
    pub fn with_unchanged_for<K: Object>(mut self, name: &str, age: Duration) -> Self {
        let namespace =
            self.find::<K>(name).and_then(|object| object.meta().namespace.clone()).unwrap_or_default();
        self.unchanged.entry(Kind::of::<K>()).or_default().insert((namespace, name.to_owned()), age);
        self
    }

    /// The same, at another time.
    #[must_use]
    pub fn now_is(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    pub(crate) fn actions_were(
        &mut self,
        names: impl Iterator<Item = String>,
        outcomes: BTreeMap<(String, String), Outcome>,
    ) {
        self.action_names.extend(names);
        self.actions = outcomes;
    }

    /// The facts that were read until now.
    pub(crate) fn facts_read(&self) -> BTreeSet<String> {
        self.facts_read.lock().clone()
    }

    pub(crate) fn facts_are(&mut self, facts: BTreeMap<String, Fact<Value>>) {
        self.facts = facts;
    }

    /// The object refers to these, of which some were found.
    pub(crate) fn refer<'a>(
        &mut self,
        kind: &Kind,
        names: impl Iterator<Item = &'a str>,
        found: &[Arc<dyn AnyObject>],
    ) {
        let referred = self.references.entry(kind.clone()).or_default();
        for name in names {
            referred.insert(name.to_owned());
            if found.iter().all(|object| object.meta().name.as_deref() != Some(name)) {
                self.missing.push((kind.clone(), name.to_owned()));
            }
        }
    }

    /// For how long these objects have not changed.
    pub(crate) fn track(&mut self, kind: &Kind, objects: &[Arc<dyn AnyObject>], ages: &[Duration]) {
        let known = self.unchanged.entry(kind.clone()).or_default();
        known.extend(objects.iter().zip(ages).map(|(object, age)| (place_of(object.meta()), *age)));
    }

    pub(crate) fn declare(&mut self, kind: &Kind, objects: Vec<Arc<dyn AnyObject>>) {
        let observed = self.kinds.entry(kind.clone()).or_default();
        if observed.is_empty() {
            *observed = objects;
            return;
        }
        // A child may be related too; it is seen once, and whole if it can be. By a map: there may be thousands of both.
        let mut places: HashMap<String, usize> = observed
            .iter()
            .enumerate()
            .filter_map(|(place, object)| Some((object.meta().uid.clone()?, place)))
            .collect();
        for object in objects {
            let place = object.meta().uid.as_ref().and_then(|uid| places.get(uid)).copied();
            match place {
                None => {
                    places.extend(object.meta().uid.clone().map(|uid| (uid, observed.len())));
                    observed.push(object);
                }
                Some(place) if observed[place].is_partial() => observed[place] = object,
                Some(_) => {}
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
    /// [`ObserveError`] when the controller does not watch the kind.
    pub fn get<K: Object>(&self, name: &str) -> Result<Option<Arc<K>>, ObserveError> {
        let found = self.of::<K>()?.iter().find(|object| object.meta().name.as_deref() == Some(name));
        found.map(typed).transpose()
    }

    /// The object of that name in a namespace, where objects of several namespaces are seen.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller does not watch the kind.
    pub fn get_in<K: Object>(&self, namespace: &str, name: &str) -> Result<Option<Arc<K>>, ObserveError> {
        let found = self.of::<K>()?.iter().find(|object| {
            let meta = object.meta();
            meta.namespace.as_deref() == Some(namespace) && meta.name.as_deref() == Some(name)
        });
        found.map(typed).transpose()
    }

    /// Every object of a kind that was seen: children and relations of the object that is decided about.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller does not watch the kind.
    pub fn list<K: Object>(&self) -> Result<Vec<Arc<K>>, ObserveError> {
        self.of::<K>()?.iter().map(typed).collect()
    }

    /// The names of all objects of a kind that were seen, sorted.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller does not watch the kind.
    pub fn names<K: Object>(&self) -> Result<Vec<String>, ObserveError> {
        let mut names: Vec<String> =
            self.of::<K>()?.iter().filter_map(|object| object.meta().name.clone()).collect();
        names.sort();
        Ok(names)
    }

    /// Every object of a kind that is not a type.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller does not watch the kind.
    pub fn list_of(&self, kind: &Kind) -> Result<Vec<Arc<DynamicObject>>, ObserveError> {
        match self.kinds.get(kind) {
            Some(objects) => objects.iter().map(|object| as_type(object, || kind.kind.to_string())).collect(),
            None if self.undeclared_is_empty => Ok(Vec::new()),
            None => Err(ObserveError::Undeclared(kind.kind.to_string())),
        }
    }

    /// An object that the object refers to.
    ///
    /// # Errors
    /// [`ObserveError::Missing`] when it is not there, which refuses the plan by the question mark and says so in the object's
    /// conditions; another [`ObserveError`] when the controller does not say that objects refer to it.
    pub fn referenced<K: Object>(&self, name: &str) -> Result<Arc<K>, ObserveError> {
        let kind = Kind::of::<K>();
        let declared = self.references.get(&kind).is_some_and(|names| names.contains(name));
        if !declared && !self.undeclared_is_empty {
            return Err(ObserveError::NotReferred { kind: kind.kind.into_owned(), name: name.to_owned() });
        }
        self.get::<K>(name)?
            .ok_or_else(|| ObserveError::Missing { kind: kind.kind.into_owned(), name: name.to_owned() })
    }

    /// What the object refers to that is not there, by kind and name.
    pub fn missing(&self) -> &[(Kind, String)] {
        &self.missing
    }

    /// How the object of that name fares; see [`crate::health`].
    ///
    /// # Errors
    /// [`ObserveError`] when the controller does not watch the kind.
    pub fn health<K: Object>(&self, name: &str) -> Result<Health, ObserveError> {
        let object = self.get::<K>(name)?;
        Ok(object.map_or_else(Health::not_found, |object| crate::health::of(&*object, self.now)))
    }

    /// As [`Observed::health`], of a kind that is not known as a type; in any namespace if none is given.
    pub(crate) fn health_of(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Health {
        let found = self.kinds.get(kind).into_iter().flatten().find(|object| {
            let meta = object.meta();
            let here =
                namespace.is_none() || meta.namespace.is_none() || meta.namespace.as_deref() == namespace;
            here && meta.name.as_deref() == Some(name)
        });
        found.map_or_else(Health::not_found, |object| {
            if object.is_partial() {
                return Health::unknown("only its metadata is watched");
            }
            let mut json = object.to_json();
            // Objects in lists may leave these out.
            json["apiVersion"] = kind.api_version().into();
            json["kind"] = kind.kind.clone().into();
            crate::health::of_json(&json, self.now)
        })
    }

    /// What became of an action under a key.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller has no such action.
    pub fn action(&self, name: &str, key: &str) -> Result<Outcome, ObserveError> {
        if !self.action_names.contains(name) && !self.undeclared_is_empty {
            return Err(ObserveError::NoAction(name.to_owned()));
        }
        let outcome = self.actions.get(&(name.to_owned(), key.to_owned()));
        Ok(outcome.cloned().unwrap_or(Outcome::Unknown))
    }

    /// A fact about the world outside the cluster, as far as it is known.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller has no such fact, or it is of another type.
    pub fn fact<T: DeserializeOwned>(&self, name: &str) -> Result<Fact<T>, ObserveError> {
        self.facts_read.lock().insert(name.to_owned());
        match self.facts.get(name) {
            Some(Fact::Known { value, at }) => {
                let misfit = |error: serde_json::Error| ObserveError::Misfit {
                    kind: name.to_owned(),
                    why: error.to_string(),
                };
                Ok(Fact::Known { value: serde_json::from_value(value.clone()).map_err(misfit)?, at: *at })
            }
            Some(Fact::Unknown { why }) => Ok(Fact::Unknown { why: why.clone() }),
            None if self.undeclared_is_empty => Ok(Fact::not_yet()),
            None => Err(ObserveError::NoFact(name.to_owned())),
        }
    }

    /// For how long an object has not changed, as this process saw it by its own clock, which counts the time that the machine
    /// is suspended; `None` if it is not there. It is never longer than the process has watched it: after a restart it
    /// begins anew.
    ///
    /// # Errors
    /// [`ObserveError`] when the controller does not watch the kind, or does not
    /// [track](crate::Controller::tracks_last_change) its changes.
    pub fn unchanged_for<K: Object>(&self, name: &str) -> Result<Option<Duration>, ObserveError> {
        self.of::<K>()?;
        let tracked = self.unchanged.get(&Kind::of::<K>());
        if tracked.is_none() && !self.undeclared_is_empty {
            return Err(ObserveError::NotTracked(K::kind(&()).into_owned()));
        }
        let age =
            |object: &Arc<dyn AnyObject>| tracked.and_then(|all| all.get(&place_of(object.meta()))).copied();
        Ok(self.find::<K>(name).map(|object| age(object).unwrap_or_default()))
    }

    fn find<K: Object>(&self, name: &str) -> Option<&Arc<dyn AnyObject>> {
        let all = self.kinds.get(&Kind::of::<K>()).into_iter().flatten();
        all.into_iter().find(|object| object.meta().name.as_deref() == Some(name))
    }

    fn of<K: Object>(&self) -> Result<&[Arc<dyn AnyObject>], ObserveError> {
        match self.kinds.get(&Kind::of::<K>()) {
            Some(objects) => Ok(objects),
            None if self.undeclared_is_empty => Ok(&[]),
            None => Err(ObserveError::Undeclared(K::kind(&()).into_owned())),
        }
    }

    /// All of it as JSON, for a capture. Secrets are in it, as the decision saw them.
    pub fn to_json(&self) -> Value {
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|(kind, objects)| {
                let partial = objects.iter().any(|object| object.is_partial());
                let objects: Vec<Value> = objects.iter().map(|object| object.to_json()).collect();
                let mut entry = json!({ "kind": kind, "objects": objects });
                if partial {
                    entry["metadataOnly"] = true.into();
                }
                entry
            })
            .collect();
        let references: Vec<Value> =
            self.references.iter().map(|(kind, names)| json!({ "kind": kind, "names": names })).collect();
        let actions: Vec<Value> = self
            .actions
            .iter()
            .map(|((name, key), outcome)| json!({ "name": name, "key": key, "outcome": outcome }))
            .collect();
        let unchanged: Vec<Value> = self
            .unchanged
            .iter()
            .map(|(kind, objects)| {
                let objects: Vec<Value> = objects
                    .iter()
                    .map(|((namespace, name), age)| {
                        json!({ "namespace": namespace, "name": name, "seconds": age.as_secs_f64() })
                    })
                    .collect();
                json!({ "kind": kind, "objects": objects })
            })
            .collect();
        json!({
            "unchangedFor": unchanged,
            "now": self.now.to_string(),
            "kinds": kinds,
            "actionNames": self.action_names,
            "references": references,
            "actions": actions,
            "facts": self.facts,
        })
    }

    /// Every object of a kind that was observed; none of a kind that was not looked for.
    pub(crate) fn objects_of(&self, kind: &Kind) -> Vec<Arc<dyn AnyObject>> {
        self.kinds.get(kind).cloned().unwrap_or_default()
    }

    /// An object that was seen, as JSON.
    pub(crate) fn json_of(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Option<Value> {
        let found = self.kinds.get(kind)?.iter().find(|object| {
            let meta = object.meta();
            meta.name.as_deref() == Some(name)
                && (namespace.is_none() || meta.namespace.is_none() || meta.namespace.as_deref() == namespace)
        });
        found.map(|object| object.to_json())
    }

    /// What an operator's `capture` printed: the object, and what was seen for it. Kept in a file, it is a unit test.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::Observed;
    /// let capture = r#"{"controller": "c", "object": {"metadata": {"name": "settings"}},
    ///                   "observed": {"now": "2026-01-01T00:00:00Z", "kinds": []}}"#;
    /// let (settings, observed) = Observed::from_capture::<ConfigMap>(capture).unwrap();
    /// assert_eq!(settings.metadata.name.as_deref(), Some("settings"));
    /// assert_eq!(observed.now().to_string(), "2026-01-01T00:00:00Z");
    /// ```
    ///
    /// # Errors
    /// A sentence that says what is not as it should be.
    pub fn from_capture<K: Object>(capture: &str) -> Result<(K, Self), String> {
        let capture: Value =
            serde_json::from_str(capture).map_err(|error| format!("it is no JSON: {error}"))?;
        let part = |name: &str| capture.get(name).cloned().ok_or_else(|| format!("`{name}` is missing"));
        let object = serde_json::from_value(part("object")?)
            .map_err(|error| format!("the object is no {}: {error}", K::kind(&())))?;
        Ok((object, Self::from_json(&part("observed")?)?))
    }

    /// What [`Observed::to_json`] wrote. Objects are read when asked for.
    ///
    /// # Errors
    /// A sentence that says what is not as it should be.
    pub fn from_json(captured: &Value) -> Result<Self, String> {
        let now = captured.get("now").and_then(Value::as_str).ok_or("`now` is missing")?;
        let mut observed = Self::at(now.parse().map_err(|error| format!("`now` is no time: {error}"))?);
        for entry in captured.get("kinds").and_then(Value::as_array).into_iter().flatten() {
            let kind = entry.get("kind").cloned().unwrap_or_default();
            let kind: Kind =
                serde_json::from_value(kind).map_err(|error| format!("a `kind` is not readable: {error}"))?;
            let partial = entry.get("metadataOnly").and_then(Value::as_bool).unwrap_or_default();
            let objects = entry.get("objects").and_then(Value::as_array).into_iter().flatten();
            let objects =
                objects.map(|object| Arc::new(Captured::new(object, partial)) as Arc<dyn AnyObject>);
            observed.declare(&kind, objects.collect());
        }
        for entry in captured.get("references").and_then(Value::as_array).into_iter().flatten() {
            let (kind, names) = (entry.get("kind"), entry.get("names"));
            let unreadable = |error| format!("a reference is not readable: {error}");
            let kind: Kind = serde_json::from_value(kind.cloned().unwrap_or_default()).map_err(unreadable)?;
            let names: Vec<String> =
                serde_json::from_value(names.cloned().unwrap_or_default()).map_err(unreadable)?;
            let found = observed.kinds.get(&kind).cloned().unwrap_or_default();
            observed.refer(&kind, names.iter().map(String::as_str), &found);
        }
        let field = |name: &str| captured.get(name).cloned().filter(|value| !value.is_null());
        let unreadable = |error: serde_json::Error| format!("actions or facts are not readable: {error}");
        for entry in field("unchangedFor").and_then(|all| all.as_array().cloned()).unwrap_or_default() {
            let unreadable =
                |error| format!("for how long objects have not changed is not readable: {error}");
            let Tracked { kind, objects } = serde_json::from_value(entry).map_err(unreadable)?;
            let known = observed.unchanged.entry(kind).or_default();
            known.extend(objects.into_iter().map(|TrackedObject { namespace, name, seconds }| {
                ((namespace, name), Duration::try_from_secs_f64(seconds).unwrap_or_default())
            }));
        }
        if let Some(names) = field("actionNames") {
            observed.action_names = serde_json::from_value(names).map_err(unreadable)?;
        }
        if let Some(facts) = field("facts") {
            observed.facts = serde_json::from_value(facts).map_err(unreadable)?;
        }
        for mut action in field("actions").and_then(|all| all.as_array().cloned()).unwrap_or_default() {
            let text = |name: &str| action.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let run = (text("name"), text("key"));
            let outcome = action.get_mut("outcome").map(Value::take).unwrap_or_default();
            observed.actions.insert(run, serde_json::from_value(outcome).map_err(unreadable)?);
        }
        Ok(observed)
    }
}

/// The namespace and the name of an object.
fn place_of(meta: &ObjectMeta) -> (String, String) {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

fn typed<K: Object>(object: &Arc<dyn AnyObject>) -> Result<Arc<K>, ObserveError> {
    as_type(object, || K::kind(&()).into_owned())
}

fn as_type<K: Cached>(
    object: &Arc<dyn AnyObject>,
    kind: impl FnOnce() -> String,
) -> Result<Arc<K>, ObserveError> {
    match object.clone().into_any().downcast::<K>() {
        Ok(object) => Ok(object),
        // Read as if it were whole, it would be empty.
        Err(_) if object.is_partial() && !K::metadata_api() => Err(ObserveError::MetadataOnly(kind())),
        Err(_) => serde_json::from_value(object.to_json())
            .map(Arc::new)
            .map_err(|error| ObserveError::Misfit { kind: kind(), why: error.to_string() }),
    }
}

/// For how long objects of a kind have not changed, in a capture.
#[derive(Deserialize)]
struct Tracked {
    kind: Kind,
    objects: Vec<TrackedObject>,
}

#[derive(Deserialize)]
struct TrackedObject {
    namespace: String,
    name: String,
    seconds: f64,
}

/// An object from a capture: typed when somebody asks.
#[derive(Debug)]
struct Captured {
    partial: bool,
    meta: ObjectMeta,
    json: Value,
}

impl Captured {
    fn new(json: &Value, partial: bool) -> Self {
        let meta = json.get("metadata").cloned().unwrap_or_default();
        Self { partial, meta: serde_json::from_value(meta).unwrap_or_default(), json: json.clone() }
    }
}

impl AnyObject for Captured {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn to_json(&self) -> Value {
        self.json.clone()
    }

    fn is_partial(&self) -> bool {
        self.partial
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
        let observed = Observed::empty().with(config_map("b")).with(config_map("a"));
        assert_eq!(observed.names::<ConfigMap>().unwrap(), ["a", "b"]);
        assert!(observed.get::<ConfigMap>("a").unwrap().is_some());
        assert!(observed.get::<ConfigMap>("c").unwrap().is_none());
        assert!(observed.list::<Secret>().unwrap().is_empty(), "in a test, nothing is nothing");
    }

    #[test]
    fn what_is_seen_by_its_metadata_is_never_read_as_if_it_were_empty() {
        use kube::core::PartialObjectMeta;
        type Partial = PartialObjectMeta<ConfigMap>;
        let mut partial = Partial { metadata: config_map("a").metadata, ..Partial::default() };
        partial.metadata.uid = Some("u".into());
        let mut whole = config_map("a");
        whole.metadata.uid = Some("u".into());
        let mut observed = Observed::at(Timestamp::UNIX_EPOCH);
        observed.declare(&Kind::of::<ConfigMap>(), vec![Arc::new(partial.clone())]);
        for observed in [observed.clone(), Observed::from_json(&observed.to_json()).unwrap()] {
            assert_eq!(observed.names::<ConfigMap>().unwrap(), ["a"]);
            assert_eq!(observed.get::<Partial>("a").unwrap().unwrap().metadata, partial.metadata);
            assert_eq!(
                observed.get::<ConfigMap>("a").unwrap_err(),
                ObserveError::MetadataOnly("ConfigMap".into())
            );
        }
        observed.declare(&Kind::of::<ConfigMap>(), vec![Arc::new(whole)]);
        assert!(observed.get::<ConfigMap>("a").unwrap().is_some(), "unless it is observed whole as well");
        assert_eq!(observed.list::<Partial>().unwrap().len(), 1);
    }

    #[test]
    fn a_kind_that_nobody_watches_is_an_error_and_not_an_empty_list() {
        let mut observed = Observed::at(Timestamp::UNIX_EPOCH);
        observed.declare(&Kind::of::<ConfigMap>(), vec![]);
        assert!(observed.list::<ConfigMap>().unwrap().is_empty());
        assert_eq!(observed.list::<Secret>().unwrap_err(), ObserveError::Undeclared("Secret".into()));
    }

    #[test]
    fn a_reference_is_there_or_missing_or_was_never_one() {
        let mut observed = Observed::at(Timestamp::UNIX_EPOCH);
        let there: Vec<Arc<dyn AnyObject>> = vec![Arc::new(config_map("a"))];
        observed.refer(&Kind::of::<ConfigMap>(), ["a", "b"].into_iter(), &there);
        observed.declare(&Kind::of::<ConfigMap>(), there);
        let observed = Observed::from_json(&observed.to_json()).unwrap();
        assert!(observed.referenced::<ConfigMap>("a").is_ok());
        let missing = observed.referenced::<ConfigMap>("b").unwrap_err();
        assert_eq!(Refusal::from(missing).to_string(), "ReferenceMissing: ConfigMap b is not there");
        assert!(matches!(observed.referenced::<ConfigMap>("c"), Err(ObserveError::NotReferred { .. })));
        assert_eq!(observed.missing(), [(Kind::of::<ConfigMap>(), "b".to_owned())]);
    }

    #[test]
    fn how_long_an_object_has_not_changed_is_known_of_tracked_kinds() {
        let minute = Duration::from_secs(60);
        let mut observed = Observed::at(Timestamp::UNIX_EPOCH);
        let there: Vec<Arc<dyn AnyObject>> = vec![Arc::new(config_map("a"))];
        observed.declare(&Kind::of::<ConfigMap>(), there.clone());
        let refused = observed.unchanged_for::<ConfigMap>("a").unwrap_err();
        assert_eq!(refused, ObserveError::NotTracked("ConfigMap".into()));
        assert!(matches!(observed.unchanged_for::<Secret>("a"), Err(ObserveError::Undeclared(_))));
        observed.track(&Kind::of::<ConfigMap>(), &there, &[minute]);
        for observed in [observed.clone(), Observed::from_json(&observed.to_json()).unwrap()] {
            assert_eq!(observed.unchanged_for::<ConfigMap>("a"), Ok(Some(minute)));
            assert_eq!(observed.unchanged_for::<ConfigMap>("b"), Ok(None));
        }
        let test = Observed::empty().with(config_map("a"));
        assert_eq!(test.unchanged_for::<ConfigMap>("a"), Ok(Some(Duration::ZERO)));
        assert_eq!(
            test.with_unchanged_for::<ConfigMap>("a", minute).unchanged_for::<ConfigMap>("a"),
            Ok(Some(minute))
        );
    }

    #[test]
    fn a_capture_is_seen_like_the_world_was() {
        let mut observed = Observed::at("2026-01-01T00:00:00Z".parse().unwrap());
        observed.declare(&Kind::of::<ConfigMap>(), vec![Arc::new(config_map("a"))]);
        let replayed = Observed::from_json(&observed.to_json()).unwrap();
        assert_eq!(replayed.now(), observed.now());
        assert_eq!(replayed.get::<ConfigMap>("a").unwrap(), observed.get::<ConfigMap>("a").unwrap());
        assert!(replayed.list::<Secret>().is_err(), "what was not declared then is not now");
        assert!(replayed.fact::<u32>("lag").is_err() && replayed.action("backup", "1").is_err());
        let outcome = Outcome::Failed { at: observed.now(), why: "no disk".into(), times: 3 };
        let observed = observed.with_fact("lag", 7).with_action("backup", "1", outcome.clone());
        let replayed = Observed::from_json(&observed.to_json()).unwrap();
        assert_eq!(replayed.fact::<u32>("lag").unwrap(), Fact::Known { value: 7, at: observed.now() });
        assert_eq!(replayed.action("backup", "1").unwrap(), outcome);
        assert_eq!(replayed.action("backup", "2").unwrap(), Outcome::Unknown);
        assert!(matches!(replayed.fact::<String>("lag"), Err(ObserveError::Misfit { .. })));
        for nonsense in
            [json!(null), json!({"now": "x"}), json!({"now": "2026-01-01T00:00:00Z", "kinds": [{}]})]
        {
            assert!(Observed::from_json(&nonsense).is_err(), "{nonsense}");
        }
    }
}
