//! The files of configMap, secret, downwardAPI and projected volumes. Pure.

use crate::references::downward_api::{NodeFields, field, resource};
use crate::references::objects::Objects;
use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, Pod, ServiceAccountTokenProjection, Volume,
};
use std::collections::BTreeMap;

/// The default mode of files.
const DEFAULT_MODE: i32 = 0o644;

/// One file of a volume.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// Contents may be secret.
impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({} bytes, {:o})", self.bytes.len(), self.mode)
    }
}

/// Files by their paths in the volume.
pub(crate) type Files = BTreeMap<String, File>;

/// What files are made from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) objects: &'a Objects,
    pub(crate) node: &'a NodeFields,
    /// The token of a projection, if it was issued already.
    pub(crate) token: &'a dyn Fn(&ServiceAccountTokenProjection) -> Option<String>,
}

/// The files of a volume; `None` if it is of another type. An error says what is missing.
pub(crate) fn files(volume: &Volume, sources: &Sources<'_>) -> Result<Option<Files>, String> {
    let mut files = Files::new();
    if let Some(source) = &volume.config_map {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        config_map(&source.name, source.items.as_deref(), source.optional, mode, sources, &mut files)?;
    } else if let Some(source) = &volume.secret {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        let name = source.secret_name.as_deref().unwrap_or_default();
        secret(name, source.items.as_deref(), source.optional, mode, sources, &mut files)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        downward(source.items.as_deref().unwrap_or_default(), mode, sources, &mut files)?;
    } else if let Some(source) = &volume.projected {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        for part in source.sources.iter().flatten() {
            if let Some(part) = &part.config_map {
                config_map(&part.name, part.items.as_deref(), part.optional, mode, sources, &mut files)?;
            }
            if let Some(part) = &part.secret {
                secret(&part.name, part.items.as_deref(), part.optional, mode, sources, &mut files)?;
            }
            if let Some(part) = &part.downward_api {
                downward(part.items.as_deref().unwrap_or_default(), mode, sources, &mut files)?;
            }
            if let Some(part) = &part.service_account_token {
                let token = (sources.token)(part).ok_or("the service account token was not issued yet")?;
                put(&mut files, &part.path, token.into_bytes(), mode)?;
            }
            if part.cluster_trust_bundle.is_some() || part.pod_certificate.is_some() {
                return Err(
                    "clusterTrustBundle and podCertificate projections are not supported by this node"
                        .to_owned(),
                );
            }
        }
    } else {
        return Ok(None);
    }
    Ok(Some(files))
}

/// Adds a file. Paths that lead out of the volume are rejected here too, though the API validates them.
fn put(files: &mut Files, path: &str, bytes: Vec<u8>, mode: i32) -> Result<(), String> {
    let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
    if path.split('/').any(bad) || path.starts_with("..") {
        return Err(format!("{path:?} is no path for a file in a volume"));
    }
    let mode = u32::try_from(mode).unwrap_or(0o644) & 0o777;
    files.insert(path.to_owned(), File { bytes, mode });
    Ok(())
}

fn config_map(
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
    sources: &Sources<'_>,
    files: &mut Files,
) -> Result<(), String> {
    let Some(map) = sources.objects.config_map(name, optional)? else { return Ok(()) };
    let text = map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_bytes()));
    let binary = map.binary_data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice()));
    let all: BTreeMap<&str, &[u8]> = text.chain(binary).collect();
    chosen(&all, items, optional, mode, files)
        .map_err(|key| format!("configmap references non-existent config key: {key}"))
}

fn secret(
    name: &str,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
    sources: &Sources<'_>,
    files: &mut Files,
) -> Result<(), String> {
    let Some(secret) = sources.objects.secret(name, optional)? else { return Ok(()) };
    let all = secret.data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice())).collect();
    chosen(&all, items, optional, mode, files)
        .map_err(|key| format!("references non-existent secret key: {key}"))
}

/// All keys, or the listed items. An error is a key that does not exist.
fn chosen(
    all: &BTreeMap<&str, &[u8]>,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
    files: &mut Files,
) -> Result<(), String> {
    match items {
        None | Some([]) => {
            for (key, bytes) in all {
                put(files, key, bytes.to_vec(), mode)?;
            }
        }
        Some(items) => {
            for item in items {
                match all.get(item.key.as_str()) {
                    Some(bytes) => put(files, &item.path, bytes.to_vec(), item.mode.unwrap_or(mode))?,
                    None if optional == Some(true) => {}
                    None => return Err(item.key.clone()),
                }
            }
        }
    }
    Ok(())
}

fn downward(
    items: &[DownwardAPIVolumeFile],
    mode: i32,
    sources: &Sources<'_>,
    files: &mut Files,
) -> Result<(), String> {
    for item in items {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(reference), _) => field(sources.pod, sources.node, &reference.field_path)?,
            (None, Some(reference)) => resource(sources.pod, None, reference, sources.node)?,
            (None, None) => String::new(),
        };
        put(files, &item.path, text.into_bytes(), item.mode.unwrap_or(mode))?;
    }
    Ok(())
}

/// The token projections of a pod's volumes.
pub(crate) fn tokens(pod: &Pod) -> Vec<ServiceAccountTokenProjection> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let parts = volumes
        .filter_map(|volume| volume.projected.as_ref())
        .flat_map(|projected| projected.sources.iter().flatten());
    parts.filter_map(|part| part.service_account_token.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn made(volume: Value) -> Result<Option<Files>, String> {
        let volume: Volume = serde_json::from_value(volume).unwrap();
        let mut objects = Objects::default();
        let map = json!({"data": {"a.conf": "text"}, "binaryData": {"b": "AP8="}});
        objects.config_maps.insert("m".into(), Arc::new(serde_json::from_value(map).unwrap()));
        let secret = json!({"data": {"password": "cHc="}});
        objects.secrets.insert("s".into(), Arc::new(serde_json::from_value(secret).unwrap()));
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"containers": []},
        }))
        .unwrap();
        let token = |_: &ServiceAccountTokenProjection| Some("ey".to_owned());
        let node = NodeFields::default();
        files(&volume, &Sources { pod: &pod, objects: &objects, node: &node, token: &token })
    }

    fn file(bytes: &[u8], mode: u32) -> File {
        File { bytes: bytes.to_vec(), mode }
    }

    #[test]
    fn keys_are_files() {
        let all = made(json!({"name": "v", "configMap": {"name": "m"}})).unwrap().unwrap();
        assert_eq!(
            all,
            [("a.conf".to_owned(), file(b"text", 0o644)), ("b".to_owned(), file(&[0, 255], 0o644))].into()
        );
        let chosen = json!({"name": "v", "secret": {"secretName": "s", "defaultMode": 0o400,
            "items": [{"key": "password", "path": "in/a/folder"}, {"key": "password", "path": "other", "mode": 0o440}]}});
        let chosen = made(chosen).unwrap().unwrap();
        assert_eq!((chosen["in/a/folder"].mode, chosen["other"].mode), (0o400, 0o440));
        assert_eq!(made(json!({"name": "v", "emptyDir": {}})).unwrap(), None);
    }

    #[test]
    fn what_is_missing_is_named_unless_it_may_be() {
        let lacks = |volume| made(volume).unwrap_err();
        assert_eq!(lacks(json!({"name": "v", "configMap": {"name": "x"}})), "configmap \"x\" not found");
        let key = json!({"name": "v", "configMap": {"name": "m", "items": [{"key": "z", "path": "z"}]}});
        assert_eq!(lacks(key), "configmap references non-existent config key: z");
        let may = json!({"name": "v", "secret": {"secretName": "x", "optional": true}});
        assert_eq!(made(may).unwrap().unwrap().len(), 0);
        let out =
            json!({"name": "v", "configMap": {"name": "m", "items": [{"key": "b", "path": "a/../../etc"}]}});
        assert!(lacks(out).contains("no path"));
    }

    #[test]
    fn all_of_them_go_into_one() {
        let projected = json!({"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "m", "items": [{"key": "a.conf", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]}});
        let files = made(projected).unwrap().unwrap();
        assert_eq!(files["token"].bytes, b"ey");
        assert_eq!(files["ca.crt"].bytes, b"text");
        assert_eq!(files["labels"].bytes, b"app=\"x\"");
    }
}
