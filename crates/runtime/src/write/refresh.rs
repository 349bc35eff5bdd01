//! Live lists that the cache takes in: for a step that cannot be undone and rests on something not being there.
//!
//! Each watch is on its own: the cache of one kind may lag behind the cache of another, and what it lacks may be there. A list
//! without a resourceVersion is consistent, so what it does not show was not there when it was asked for.

use super::{WriteError, Writer, is_not_found, requests, version_of_json};
use crate::key::Key;
use crate::kind::Kind;
use serde_json::Value;

/// Objects per page.
const PAGE: usize = 500;

/// Which objects of a kind to list, as the server selects them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) namespace: Option<String>,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
}

impl Writer {
    /// Lists objects of a kind live, in the reconcile of `reconciled`, and gives the cache those that it did not know, or not as
    /// they are.
    pub(crate) async fn refresh(
        &self,
        kind: &Kind,
        which: &Listed,
        reconciled: &Key,
    ) -> Result<(), WriteError> {
        let mut page = String::new();
        loop {
            let request = requests::list_page(kind, which, PAGE, &page);
            let listed = match request {
                Ok(request) => self.client.request::<Value>(request).await,
                Err(error) => Err(error),
            };
            let mut list = match listed {
                Ok(list) => list,
                // The kind itself is gone, and its objects with it.
                Err(error) if is_not_found(&error) => return Ok(()),
                Err(error) => return Err(WriteError::from_request("list", kind, reconciled, error)),
            };
            for object in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                self.learn(kind, object.take());
            }
            match list.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(next) if !next.is_empty() => page = next.to_owned(),
                _ => return Ok(()),
            }
        }
    }

    /// Gives the cache an object that was listed.
    fn learn(&self, kind: &Kind, mut object: Value) {
        let name = |field: &str| object.pointer(field).and_then(Value::as_str).map(str::to_owned);
        let (Some(name), namespace) = (name("/metadata/name"), name("/metadata/namespace")) else {
            return;
        };
        let Some(version) = version_of_json(&object) else { return };
        let key = Key::new(self.cache.cluster().clone(), namespace.as_deref(), &name);
        // The items of a list do not say of which kind they are.
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.to_string().into();
        self.cache.learn(kind, &key, &version, || requests::body(&object));
    }
}
