//! The imperative writes: create, replace, patch, delete. For reconcilers that are not declarative, such as
//! those of Kubernetes itself. The cache knows of them at once, as of every other write.

use super::answers::Answer;
use super::{Done, WriteError, Writer, is_not_found, requests, version_of_json};
use crate::cache::ObjectVersion;
use crate::key::Key;
use crate::kind::Kind;
use crate::plan::Propagation;
use serde_json::{Value, json};

/// The characters of generated names: no vowels, so that no words come about, and none that look like another.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest generated name, with its suffix of five.
const GENERATED: usize = 63;

/// What the removal of an object or of a finalizer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// On what was observed: too many of them, a state of its own, a record of what was done. Another reconcile makes good
    /// what was observed too late.
    Observed,
    /// On something that was not observed: nobody uses it, its owner is gone. Since a cache may lag behind the others, whatever
    /// the controller declared to look at is listed live first.
    Absent,
}

/// How an object is to be deleted, and why it may be. By default as its kind is: in the background, with its own grace.
///
/// ```
/// # use windlass::Propagation;
/// # use windlass::write::{Basis, Deletion};
/// let at_once = Deletion::new(Basis::Observed).grace(0);
/// let keep_its_children = Deletion::new(Basis::Absent).propagation(Propagation::Orphan);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Deletion {
    pub(crate) basis: Basis,
    grace: Option<i64>,
    propagation: Propagation,
    version: bool,
}

impl Deletion {
    /// A deletion that rests on this.
    pub fn new(basis: Basis) -> Self {
        Self { basis, grace: None, propagation: Propagation::default(), version: false }
    }

    /// With this grace period, in seconds.
    pub fn grace(mut self, seconds: i64) -> Self {
        self.grace = Some(seconds);
        self
    }

    /// What becomes of its dependents.
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = propagation;
        self
    }

    /// Only if it is at the version at which it was seen.
    pub fn if_unchanged(mut self) -> Self {
        self.version = true;
        self
    }

    fn options(&self, last: &ObjectVersion) -> Value {
        let mut options =
            json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": &*last.uid } });
        if self.version {
            options["preconditions"]["resourceVersion"] = Value::from(last.version.to_string());
        }
        if let Some(grace) = self.grace {
            options["gracePeriodSeconds"] = Value::from(grace);
        }
        options["propagationPolicy"] = Value::from(self.propagation.as_str());
        options
    }
}

impl Writer {
    /// Creates an object, in the reconcile of `reconciled`, and answers it as it was stored. A name that is to be generated is
    /// generated here: so it can be asked for, if no answer comes.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when there is one of that name, and the others.
    pub async fn create_new(
        &self,
        kind: &Kind,
        object: Value,
        reconciled: &Key,
    ) -> Result<Value, WriteError> {
        Ok(self.make(kind, object, reconciled).await?.into_object())
    }

    /// The same; what is answered is there as text.
    pub(crate) async fn make(
        &self,
        kind: &Kind,
        mut object: Value,
        reconciled: &Key,
    ) -> Result<Answer, WriteError> {
        let meta = |field: &str| object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str);
        let name = match (meta("name"), meta("generateName")) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(base)) => generated(base),
            _ => return Err(WriteError::NoName(kind.kind.to_string())),
        };
        let namespace = meta("namespace").map(str::to_owned).filter(|_| kind.namespaced);
        object["metadata"]["name"] = Value::from(name.as_str());
        let key = Key::new(self.cache.cluster().clone(), namespace.as_deref(), &name);
        let request = requests::create(kind, key.namespace(), &self.manager, &object);
        let answer = self.send("create", kind, &key, reconciled, request).await?;
        self.take_in(kind, &key, &answer, reconciled);
        Ok(answer)
    }

    /// Replaces an object, or with a subresource such as `status` that part of it, if it is still at the version in `object`.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when it is not, and the others.
    pub async fn replace(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: &str,
        mut object: Value,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        let before = version_of_json(&object);
        // The cache keeps only some of it, and what is sent replaces what is stored.
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("managedFields");
        }
        let request = requests::put(kind, key, subresource, &self.manager, &object);
        let answer = self.send("replace", kind, key, reconciled, request).await?;
        let after = self.take_in(kind, key, &answer, reconciled);
        Ok(if after.is_some() && after == before { Done::Unchanged } else { Done::Changed })
    }

    /// Merges a patch into an object, or into a subresource of it. A `uid` or `resourceVersion` in the patch's metadata must
    /// be the object's.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when they are not, and the others.
    pub async fn merge(
        &self,
        kind: &Kind,
        key: &Key,
        subresource: &str,
        patch: &Value,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        let before = self.cache.version_of(kind, key);
        let request = requests::merge(kind, key, subresource, &self.manager, patch);
        let answer = self.send("patch", kind, key, reconciled, request).await?;
        let after = self.take_in(kind, key, &answer, reconciled);
        Ok(if after.is_some() && after == before { Done::Unchanged } else { Done::Changed })
    }

    /// Deletes exactly the object with this UID, in this way; one that is gone already is deleted.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when an object of another UID, or version if that matters, has the name now, and the others.
    pub async fn remove(
        &self,
        kind: &Kind,
        key: &Key,
        last: &ObjectVersion,
        how: &Deletion,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        let request = requests::delete_with(kind, key, &how.options(last));
        match self.send("delete", kind, key, reconciled, request).await {
            // Of some kinds, such as ServiceAccounts, the server answers with what it deleted, as it was.
            Ok(answer) if answer.gone || !answer.is_terminating() => {}
            Ok(answer) => {
                self.take_in(kind, key, &answer, reconciled);
                return Ok(Done::Changed);
            }
            Err(WriteError::Refused(failed)) if is_not_found(&failed.answer) => {}
            Err(error) => return Err(error),
        }
        self.gone(kind, key, last, reconciled);
        Ok(Done::Changed)
    }
}

/// A name that begins so, as the server would make it.
fn generated(base: &str) -> String {
    let mut random = [0; 5];
    // Without randomness the name clashes, and the reconcile is tried again.
    let _ = getrandom::fill(&mut random);
    let base: String = base.chars().take(GENERATED - random.len()).collect();
    let suffix = random.map(|byte| char::from(SUFFIX[usize::from(byte) % SUFFIX.len()]));
    base + &String::from_iter(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_has_five_characters_more_and_never_too_many() {
        let name = generated("web-");
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generated(&"x".repeat(80)).len(), 63);
    }
}
