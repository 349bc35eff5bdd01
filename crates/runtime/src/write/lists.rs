//! Children that are looked for live, by their labels.

use super::{WriteError, Writer, is_not_found, requests};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels::{CONTROLLER_LABEL, OWNER_UID_LABEL};
use serde_json::Value;

impl Writer {
    /// The controller's children of a kind that is not cached, read live, in the reconcile of `reconciled`.
    ///
    /// # Errors
    /// [`WriteError`] when they could not be read.
    pub async fn list_labelled(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        reconciled: &Key,
    ) -> Result<Vec<Value>, WriteError> {
        self.list_with(kind, namespace, CONTROLLER_LABEL, &self.manager, reconciled).await
    }

    async fn list_with(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        label: &str,
        value: &str,
        reconciled: &Key,
    ) -> Result<Vec<Value>, WriteError> {
        let request = requests::list_labelled(kind, namespace, label, value);
        let answer = match request {
            Ok(request) => self.client.request::<Value>(request).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(mut list) => match list.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => Ok(items),
                _ => Ok(Vec::new()),
            },
            // The kind itself is gone, and its objects with it.
            Err(error) if is_not_found(&error) => Ok(Vec::new()),
            Err(error) => Err(WriteError::from_request("list", kind, reconciled, error)),
        }
    }

    /// The objects of a kind, in any namespace, that are labelled as made for the object of this UID; read live.
    ///
    /// # Errors
    /// [`WriteError`] when they could not be read.
    pub(crate) async fn list_made_for(
        &self,
        kind: &Kind,
        uid: &str,
        reconciled: &Key,
    ) -> Result<Vec<Value>, WriteError> {
        self.list_with(kind, None, OWNER_UID_LABEL, uid, reconciled).await
    }
}
