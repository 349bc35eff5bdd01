//! Certificates in Secrets that a plan creates: made with the Secret, and renewed when they are due.

use super::owning::Parent;
use super::running::Running;
use crate::cache::AnyObject;
use crate::certificates::{Contents, Issue, is_due, renew_at};
use crate::key::Key;
use crate::kind::Kind;
use crate::plan::{Effect, Generate, GenerateError, Plan};
use crate::write::{Done, WriteError};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

impl Running {
    /// Creates an object with generated values.
    pub(super) async fn create_once(
        &self,
        parent: &Parent,
        kind: &Kind,
        key: &Key,
        object: &Value,
        generate: &Generate,
    ) -> Result<Done, WriteError> {
        let mut object = parent.mark(kind, key, object);
        if let Some(issue) = generate.issue() {
            self.issue(issue, kind, key, None).await?.merge_into(&mut object);
        }
        self.writer.create(kind, key, &object, generate, &parent.key).await
    }

    /// Renews the certificate in an object that is there, if it is due. Everything else in it stays.
    pub(super) async fn renew(
        &self,
        parent: &Parent,
        kind: &Kind,
        key: &Key,
        generate: &Generate,
        live: &Arc<dyn AnyObject>,
    ) -> Result<Done, WriteError> {
        let Some(issue) = generate.issue() else { return Ok(Done::Unchanged) };
        let authority =
            issue.signed_by().and_then(|name| self.owned.get(kind)?.get(&key.beside(key.namespace(), name)));
        let authority = authority.as_ref().map(|authority| authority.meta());
        if !is_due(issue, live.meta(), authority, self.clock.now()) {
            return Ok(Done::Unchanged);
        }
        // One that is gone by now is created when the cache hears of it.
        let Some(secret) = self.secret(kind, key).await? else { return Ok(Done::Unchanged) };
        // As it was seen to be due: whoever was faster may have renewed it.
        let seen = live.meta();
        let mut patch = json!({ "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version } });
        self.issue(issue, kind, key, Some(&secret)).await?.merge_into(&mut patch);
        self.writer.merge(kind, key, "", &patch, &parent.key).await
    }

    async fn issue(
        &self,
        issue: &Issue,
        kind: &Kind,
        key: &Key,
        live: Option<&Secret>,
    ) -> Result<Contents, WriteError> {
        let authority = match issue.signed_by() {
            // A key is in no cache: it is read when it signs.
            Some(name) => self.secret(kind, &key.beside(key.namespace(), name)).await?,
            None => None,
        };
        let made = issue.make(key.name(), live, authority.as_ref(), self.clock.now());
        made.map_err(|error| WriteError::Generate(GenerateError::from(error)))
    }

    async fn secret(&self, kind: &Kind, key: &Key) -> Result<Option<Secret>, WriteError> {
        let read = self.writer.read(kind, key).await?;
        Ok(read.and_then(|json| serde_json::from_value(json).ok()))
    }

    /// How long until a certificate of a plan is due.
    pub(super) fn next_renewal(&self, parent: &Parent, plan: &Plan) -> Option<Duration> {
        let now = self.clock.now();
        let due = plan.steps().iter().filter_map(|step| {
            let Effect::CreateOnce { kind, generate, .. } = &step.effect else { return None };
            generate.issue()?;
            let live = self.owned.get(kind)?.get(&parent.key_of(&step.effect))?;
            let at = renew_at(live.meta())?;
            Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
        });
        due.min()
    }
}
