//! The connected server's own schemas, read when first needed: only they say how it writes what is applied.

use crate::kind::Kind;
use kube::Client;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use windlass_clock::{Clock, Moment};
use windlass_schema::{Definitions, Schema};

/// How long a schema is used before the server is asked whether it is still the same: CRDs change.
const FRESH_FOR: Duration = Duration::from_secs(300);
/// How long a server is left alone that could not answer, or knows no such version.
const FAILED_FOR: Duration = Duration::from_secs(10);

/// Schemas by group and version, as far as they were needed.
pub(crate) struct Schemas {
    client: Client,
    clock: Clock,
    versions: Mutex<HashMap<String, Held>>,
}

struct Held {
    version: Option<Arc<GroupVersion>>,
    until: Moment,
}

/// The schemas of one group and version. Holds all definitions, since references between them are weak.
pub(super) struct GroupVersion {
    /// Where the document was: with a hash of what is in it.
    url: String,
    definitions: Definitions,
    /// From a kind to its definition.
    kinds: BTreeMap<String, String>,
}

impl GroupVersion {
    /// The schema of a kind.
    pub(super) fn schema(&self, kind: &Kind) -> Option<Arc<Schema>> {
        self.definitions.get(self.kinds.get(&*kind.kind)?).cloned()
    }

    fn read(url: String, document: &Value, group: &str, version: &str) -> Option<Self> {
        let raw = document.pointer("/components/schemas")?.as_object()?;
        let kinds = raw
            .iter()
            .filter_map(|(name, definition)| Some((kind_in(definition, group, version)?, name.clone())));
        let kinds = kinds.collect();
        Some(Self { url, kinds, definitions: windlass_schema::schema::link(raw).ok()? })
    }
}

/// The kind that a definition is of, if it is one of this group and version.
fn kind_in(definition: &Value, group: &str, version: &str) -> Option<String> {
    let kinds = definition.get("x-kubernetes-group-version-kind")?.as_array()?;
    let text = |kind: &'_ Value, field| kind.get(field).and_then(Value::as_str).map(str::to_owned);
    kinds
        .iter()
        .find(|kind| {
            text(kind, "group").as_deref() == Some(group) && text(kind, "version").as_deref() == Some(version)
        })
        .and_then(|kind| text(kind, "kind"))
}

impl Schemas {
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock, versions: Mutex::new(HashMap::new()) }
    }

    /// The schemas of a kind's group and version, if the server tells.
    pub(super) async fn of(&self, kind: &Kind) -> Option<Arc<GroupVersion>> {
        let name = kind.api_version();
        // Held while asking: of many reconciles that need it at once, one asks.
        let mut versions = self.versions.lock().await;
        let held = versions.get(&name);
        if let Some(held) = held.filter(|held| self.clock.moment() < held.until) {
            return held.version.clone();
        }
        let before = held.and_then(|held| held.version.clone());
        let answer = self.ask(kind, before.as_ref()).await;
        let (version, fresh_for) = match answer {
            Ok(version) => (Some(version), FRESH_FOR),
            Err(why) => {
                tracing::debug!(version = name, "no schemas from the server: {why}");
                (before, FAILED_FOR)
            }
        };
        let held = Held { version: version.clone(), until: self.clock.moment() + fresh_for };
        versions.insert(name, held);
        version
    }

    async fn ask(
        &self,
        kind: &Kind,
        before: Option<&Arc<GroupVersion>>,
    ) -> Result<Arc<GroupVersion>, String> {
        let index: Value = self.get("/openapi/v3").await?;
        let nothing = Map::new();
        let paths = index.get("paths").and_then(Value::as_object).unwrap_or(&nothing);
        let root = if kind.group.is_empty() { "api" } else { "apis" };
        let url = paths
            .get(&format!("{root}/{}", kind.api_version()))
            .and_then(|path| path.get("serverRelativeURL"))
            .and_then(Value::as_str)
            .ok_or("it lists no such version")?;
        if let Some(before) = before.filter(|before| before.url == url) {
            return Ok(before.clone());
        }
        let document: Value = self.get(url).await?;
        GroupVersion::read(url.to_owned(), &document, &kind.group, &kind.version)
            .map(Arc::new)
            .ok_or_else(|| "its document is not readable".to_owned())
    }

    async fn get(&self, url: &str) -> Result<Value, String> {
        let request =
            http::Request::get(url).header(http::header::ACCEPT, "application/json").body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        self.client.request(request).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_read_by_kind() {
        let widget = json!({
            "type": "object",
            "properties": {"metadata": {"$ref": "#/components/schemas/Meta"}},
            "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Widget"}],
        });
        let document = json!({"components": {"schemas": {"W": widget, "Meta": {"type": "object"}}}});
        let version = GroupVersion::read("url".into(), &document, "g", "v1").unwrap();
        let kind = |kind: &str| Kind {
            group: "g".into(),
            version: "v1".into(),
            kind: kind.to_owned().into(),
            plural: "".into(),
            namespaced: true,
        };
        let schema = version.schema(&kind("Widget")).unwrap();
        assert!(schema.properties["metadata"].resolved().kind.is_some(), "references are linked");
        assert!(version.schema(&kind("Gadget")).is_none());
        for nonsense in [json!(null), json!({}), json!({"components": {"schemas": 1}})] {
            assert!(GroupVersion::read("url".into(), &nonsense, "g", "v1").is_none());
        }
    }
}
