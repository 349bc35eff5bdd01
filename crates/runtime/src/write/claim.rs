//! Intent that cannot be observed, written by compare-and-swap.

use super::{Done, WriteError, Writer, is_not_found, requests, version_of};
use crate::cache::AnyObject;
use crate::key::Key;
use crate::kind::Kind;
use serde_json::Value;
use std::sync::Arc;

impl Writer {
    /// Changes an object by compare-and-swap, in the reconcile of `reconciled`: with the resourceVersion in it, or creating it if there
    /// is none in it. Nothing is sent if `live` is just so.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] when it is not as it was seen, and the others.
    pub async fn claim(
        &self,
        kind: &Kind,
        key: &Key,
        object: &Value,
        live: Option<&Arc<dyn AnyObject>>,
        reconciled: &Key,
    ) -> Result<Done, WriteError> {
        let seen = object.pointer("/metadata/resourceVersion").is_some();
        let before = live.and_then(|live| version_of(live.meta()));
        if live.is_some_and(|live| says_the_same(object, &live.to_json())) {
            return Ok(Done::Unchanged);
        }
        let request = match seen {
            true => requests::put(kind, key, "", &self.manager, object),
            false => requests::create(kind, key.namespace(), &self.manager, object),
        };
        let answer = match self.send("claim", kind, key, reconciled, request).await {
            // What was seen is gone: not as it was seen, either. Read live before it is decided on again.
            Err(WriteError::Refused(failed)) if is_not_found(&failed.answer) => {
                self.doubt(kind, key, reconciled);
                return Err(WriteError::Conflict(failed));
            }
            answer => answer?,
        };
        let after = self.take_in(kind, key, &answer, reconciled);
        Ok(if after.is_some() && after == before { Done::Unchanged } else { Done::Changed })
    }
}

/// Whether a claim wants nothing that the live object does not say already, at the version that it was made for.
fn says_the_same(claimed: &Value, live: &Value) -> bool {
    const OF_THE_SERVER: [&str; 5] = ["creationTimestamp", "generation", "managedFields", "selfLink", "uid"];
    let mut live = live.clone();
    if let Some(fields) = live.as_object_mut() {
        fields.remove("status");
        fields.retain(|_, value| !value.is_null());
    }
    if let Some(meta) = live.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.retain(|field, _| !OF_THE_SERVER.contains(&field.as_str()));
    }
    *claimed == live
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_held_against_the_very_version_that_it_was_made_for() {
        let live = json!({"kind": "ConfigMap", "metadata": {"name": "n", "uid": "u", "resourceVersion": "7",
                          "managedFields": []}, "data": {"a": "1"}, "status": {}});
        let claim = |version: &str, a: &str| json!({"kind": "ConfigMap", "metadata": {"name": "n", "resourceVersion": version}, "data": {"a": a}});
        assert!(says_the_same(&claim("7", "1"), &live));
        assert!(!says_the_same(&claim("6", "1"), &live), "the server must tell");
        assert!(!says_the_same(&claim("7", "2"), &live));
    }
}
