//! The use of a token that is kept in a Secret: the Secret says on which day it was.

use super::guaranteed_update::{Preconditions, guaranteed_update};
use super::managed;
use crate::accounts::{LAST_USED, SecretUse};
use crate::object::child;
use crate::operation::Operation;
use crate::state::ApiState;
use crate::status::Status;
use serde_json::{Value, json};

/// Notes the day on the Secret, if it is not there. A Secret that cannot be written does not keep anybody out.
pub(crate) async fn note(api: &ApiState, used: &SecretUse) {
    let Some(day) = used.due(api.clock.now()) else { return };
    if let Err(error) = label(api, used, &day).await {
        let (namespace, secret) = (&used.namespace, &used.secret);
        tracing::warn!(%error, namespace, secret, "the use of a token is not noted on its Secret");
    }
}

async fn label(api: &ApiState, used: &SecretUse, day: &str) -> Result<(), Status> {
    let Some(resource) = api.registry.get("", "v1", "secrets") else { return Ok(()) };
    let operation = Operation::of_server(api, resource, &used.namespace, &used.secret);
    let make = |live: Option<&Value>| {
        let mut secret = live.cloned().unwrap_or_default();
        child(&mut secret, "metadata");
        child(&mut secret["metadata"], "labels").insert(LAST_USED.to_owned(), json!(day));
        managed::update(&operation, live, &mut secret);
        Ok(secret)
    };
    let preconditions = Preconditions { uid: used.uid.clone(), ..Preconditions::default() };
    guaranteed_update(&operation, &preconditions, make).await.map(drop)
}
