//! The objects that a cluster has from the start, as the reference's API server makes them: namespaces, roles, priorities,
//! and the Service through which pods find the API.
//!
//! They are templates whose UIDs and timestamps are filled in: nothing is parsed or encoded for a new cluster.

use crate::facts::BOOTSTRAP;
use crate::kinds;
use crate::kinds::field_selectors::Field;
use crate::kinds::service_range::ServiceClusterIpRange;
use crate::object::{text, timestamp, uid};
use crate::resource::Selectable;
use crate::state::ApiState;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use windlass_store::{Change, CommitError, Entry, Key, ObjectTemplate};

type Labels = Vec<(Box<str>, Box<str>)>;

static TEMPLATES: LazyLock<Vec<(Key, ObjectTemplate)>> = LazyLock::new(|| {
    BOOTSTRAP.lines().map(|line| template(line).expect("the facts are part of the crate")).collect()
});

fn template(line: &'static str) -> Option<(Key, ObjectTemplate)> {
    let (key, labels, text) = parse(line)?;
    let fields = fields(&key.resource, text)?;
    Some((key, ObjectTemplate::new(text, labels, fields)?))
}

/// An object's key, labels and text.
fn parse(line: &str) -> Option<(Key, Labels, &str)> {
    let mut parts = line.splitn(5, '\t');
    let (resource, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let labels = parts.next()?.split(',').filter_map(|label| label.split_once('='));
    let labels = labels.map(|(name, value)| (name.into(), value.into())).collect();
    Some((Key::new(resource, namespace, name), labels, parts.next()?))
}

/// The selectable fields. Few kinds have any, so only their texts are read.
fn fields(resource: &str, text: &str) -> Option<Vec<(Box<str>, Box<str>)>> {
    let (group, plural) = resource.rsplit_once('/').unwrap_or(("", resource));
    let Some(selecting) = kinds::field_selectors::selecting(group, plural) else { return Some(Vec::new()) };
    let object: Value = serde_json::from_str(text).ok()?;
    let field = |field: &Field| (field.label.into(), Selectable::built_in(field).of(&object).into());
    Some(selecting.fields.iter().map(field).collect())
}

/// What names the range of cluster IPs, for another range: which template it replaces, and its own key and template.
fn of_range(range: ServiceClusterIpRange) -> Vec<(Key, Key, ObjectTemplate)> {
    let usual = ServiceClusterIpRange::default();
    if range == usual {
        return Vec::new();
    }
    let names = [
        (format!("\"{usual}\""), format!("\"{range}\"")),
        (format!("\"{}\"", usual.api_server()), format!("\"{}\"", range.api_server())),
        (format!("\t{}\t", usual.api_server()), format!("\t{}\t", range.api_server())),
    ];
    let changed = BOOTSTRAP.lines().filter_map(|line| {
        let text = names.iter().fold(line.to_owned(), |text, (old, new)| text.replace(old, new));
        if text == line {
            return None;
        }
        let (key, labels, text) = parse(&text)?;
        let fields = fields(&key.resource, text)?;
        Some((parse(line)?.0, key, ObjectTemplate::new(text.to_owned(), labels, fields)?))
    });
    changed.collect()
}

/// An object that a cluster has from the start, beside those of the API server itself. Once it is prepared, it costs next to
/// nothing to store.
#[derive(Debug)]
pub struct BootstrapObject {
    key: Key,
    template: ObjectTemplate,
}

impl BootstrapObject {
    /// One of the whole cluster, whole but for its uid and its time, of a resource such as `rbac.authorization.k8s.io/clusterroles`.
    /// None if it is not an object.
    pub fn new(resource: &str, mut object: Value) -> Option<Self> {
        let name = text(&object, &["metadata", "name"]).to_owned();
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.insert("creationTimestamp".to_owned(), "0000-00-00T00:00:00Z".into());
        metadata.insert("uid".to_owned(), "00000000-0000-0000-0000-000000000000".into());
        let text = object.to_string();
        let fields = fields(resource, &text)?;
        Some(Self {
            key: Key::new(resource, "", name),
            template: ObjectTemplate::new(text, Vec::new(), fields)?,
        })
    }
}

/// Makes those that are missing. In memory there is nothing to wait for.
pub(crate) async fn make(api: &ApiState) -> Result<(), CommitError> {
    let moved = of_range(api.service_allocations.range());
    let is_moved = |key: &Key| moved.iter().any(|(replaced, ..)| replaced == key);
    let stock = TEMPLATES.iter().filter(|(key, _)| !is_moved(key)).map(|(key, template)| (key, template));
    make_missing(api, stock.chain(moved.iter().map(|(_, key, template)| (key, template)))).await
}

/// The same for others.
pub(crate) async fn make_others(api: &ApiState, objects: &[BootstrapObject]) -> Result<(), CommitError> {
    make_missing(api, objects.iter().map(|object| (&object.key, &object.template))).await
}

async fn make_missing<'a>(
    api: &ApiState,
    all: impl Iterator<Item = (&'a Key, &'a ObjectTemplate)>,
) -> Result<(), CommitError> {
    let time = timestamp(api.clock.now());
    let missing = all.filter(|(key, _)| api.store.get(key).is_none());
    let changes = missing.filter_map(|(key, template)| {
        let body = template.instantiate(&uid(), &time)?;
        Some(api.store.commit(Change::Create { key: key.clone(), body }))
    });
    if api.store.is_durable() {
        // All at once: a disk writes them together.
        return futures::future::join_all(changes).await.into_iter().try_for_each(made);
    }
    for change in changes {
        made(change.await)?;
    }
    Ok(())
}

fn made(outcome: Result<Arc<Entry>, CommitError>) -> Result<(), CommitError> {
    match outcome {
        Ok(_) | Err(CommitError::Exists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_store::Body;

    #[test]
    fn others_are_written_as_the_store_would_write_them() {
        const TIME: &str = "2026-01-02T03:04:05Z";
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "a"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
        let made = BootstrapObject::new("rbac.authorization.k8s.io/clusterroles", role.clone()).unwrap();
        let uid = uid();
        let mut whole = role;
        whole["metadata"] = json!({"name": "a", "uid": uid, "creationTimestamp": TIME});
        assert_eq!(made.template.instantiate(&uid, TIME).unwrap(), Body::encode(&whole, Vec::new()));
        assert_eq!(made.key, Key::new("rbac.authorization.k8s.io/clusterroles", "", "a"));
        assert!(BootstrapObject::new("pods", json!([])).is_none());
    }

    #[test]
    fn every_line_is_written_as_the_store_would_write_it() {
        const TIME: &str = "2026-01-02T03:04:05Z";
        for ((key, template), line) in TEMPLATES.iter().zip(BOOTSTRAP.lines()) {
            let uid = uid();
            let cast = template.instantiate(&uid, TIME).expect("a uid and a time");
            let text = line.rsplit('\t').next().unwrap_or_default();
            let text = text.replace("00000000-0000-0000-0000-000000000000", &uid);
            let text = text.replace("0000-00-00T00:00:00Z", TIME).replace("0000-00-00", &TIME[..10]);
            let value: Value = serde_json::from_str(&text).expect("JSON");
            let fields = fields(&key.resource, &text).expect("JSON");
            assert_eq!(cast, Body::encode(&value, fields), "{key:?}");
        }
    }
}
