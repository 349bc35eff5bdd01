//! The scale subresource: the owners of an object's replicas, as owners of a Scale's and back.

use super::fieldset::FieldSet;
use super::managed::{Entry, Managed, Owned};
use super::path::Path;
use std::collections::BTreeMap;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Per apiVersion of a kind, where it keeps its replicas; `None` for a version without a scale subresource.
pub type ReplicasPaths = BTreeMap<String, Option<Path>>;

fn only(path: &Path) -> FieldSet {
    let mut set = FieldSet::new();
    set.insert(path);
    set
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of_fields(&[&["spec", "replicas"]])
}

/// The entries of a Scale: of all owners of the object those who own its replicas.
pub fn scale_entries(parent: Vec<Entry>, paths: &ReplicasPaths) -> Result<Vec<Entry>, String> {
    let Managed { owners, times } = Managed::decode(parent)?;
    let mut scale = Managed { times, ..Managed::default() };
    for (id, owned) in owners {
        let Some(Some(path)) = paths.get(&owned.api_version) else { continue };
        if owned.set.has(path) {
            let owned = Owned { set: replicas_of_scale(), api_version: SCALE_VERSION.into(), ..owned };
            scale.owners.insert(id, owned);
        }
    }
    Ok(scale.to_entries())
}

/// The entries of the object after its Scale was written: who owns the Scale's replicas owns the object's.
pub fn parent_entries(
    parent: Vec<Entry>,
    scale: Vec<Entry>,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Vec<Entry>, String> {
    let Managed { owners, times } = Managed::decode(parent)?;
    let mut scale = Managed::decode(scale)?.owners;
    // Times are those of the object's entries: an owner that came through the scale has none yet.
    let mut merged = Managed { times, ..Managed::default() };
    for (id, mut owned) in owners {
        let Some(path) = paths.get(&owned.api_version) else { continue };
        if let Some(path) = path.as_ref().filter(|path| owned.set.has(path))
            && scale.remove(&id).is_none()
        {
            owned.set = owned.set.difference(&only(path));
            if owned.set.is_empty() {
                continue;
            }
        }
        merged.owners.insert(id, owned);
    }
    let Some(Some(path)) = paths.get(api_version) else { return Ok(merged.to_entries()) };
    for (id, owned) in scale {
        if !owned.set.intersection(&replicas_of_scale()).is_empty() {
            merged.owners.insert(id, Owned { set: only(path), api_version: api_version.into(), ..owned });
        }
    }
    Ok(merged.to_entries())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::PathElement;
    use serde_json::{Value, json};

    /// Appliers keep their identity in every version, so that they are found again on the way back.
    fn entry(manager: &str, api_version: &str, fields: Value) -> Entry {
        Entry {
            manager: manager.into(),
            operation: "Apply".into(),
            api_version: api_version.into(),
            fields_type: "FieldsV1".into(),
            fields_v1: Some(fields),
            ..Entry::default()
        }
    }

    #[test]
    fn replicas_pass_from_the_object_to_its_scale_and_back() {
        let path = vec![PathElement::field("spec"), PathElement::field("size")];
        let paths = ReplicasPaths::from([("g/v1".to_owned(), Some(path))]);
        let parent = vec![
            entry("a", "g/v1", json!({"f:spec": {"f:a": {}, "f:size": {}}})),
            entry("b", "g/v1", json!({"f:spec": {"f:b": {}}})),
            entry("gone", "g/v0", json!({"f:spec": {"f:size": {}}})),
        ];
        let scale = scale_entries(parent.clone(), &paths).unwrap();
        assert_eq!(scale, [entry("a", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}))]);

        let kept = parent_entries(parent.clone(), scale, "g/v1", &paths).unwrap();
        assert_eq!(kept, parent[..2]);

        let hpa = entry("hpa", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
        let stolen = parent_entries(
            parent.clone(),
            vec![Entry { subresource: "scale".into(), ..hpa }],
            "g/v1",
            &paths,
        );
        let hpa =
            Entry { subresource: "scale".into(), ..entry("hpa", "g/v1", json!({"f:spec": {"f:size": {}}})) };
        assert_eq!(
            stolen.unwrap(),
            [entry("a", "g/v1", json!({"f:spec": {"f:a": {}}})), parent[1].clone(), hpa]
        );
    }
}
