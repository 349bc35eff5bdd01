//! What cannot be changed into what is wanted, since a field of it is immutable: whether it may be deleted to be created anew.

use super::{WriteError, Writer, requests};
use crate::key::Key;
use crate::kind::Kind;
use serde_json::Value;

impl WriteError {
    /// Whether the server takes the object for invalid: by itself, or as a change of the one that is there.
    pub(crate) fn is_invalid(&self) -> bool {
        self.status().is_some_and(|status| status.code == 422)
    }
}

impl Writer {
    /// Whether the server would take an object as a new one. It is asked to create it in a dry run: a server validates before
    /// it sees that the name is taken.
    pub(crate) async fn would_create(
        &self,
        kind: &Kind,
        key: &Key,
        object: &Value,
    ) -> Result<bool, WriteError> {
        let request = requests::create_for_show(kind, key.namespace(), &self.manager, object);
        match self.ask(request).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(true),
            Err(error) => match WriteError::from_request("create", kind, key, error) {
                WriteError::Refused(_) => Ok(false),
                unclear => Err(unclear),
            },
        }
    }
}
