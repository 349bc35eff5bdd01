//! The mounts of a container, from its `volumeMounts` and the paths of the pod's volumes.

use crate::references::expand::expand;
use crate::shim::Bind;
use k8s_openapi::api::core::v1::Container;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The path of a volume on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountSource {
    pub(crate) path: PathBuf,
    /// Whether it is read-only, as volumes that are made of API objects.
    pub(crate) read_only: bool,
}

/// The mounts of a container, parents first. An error is in a kubelet's words.
pub(crate) fn binds(
    container: &Container,
    volumes: &BTreeMap<String, MountSource>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<Bind>, String> {
    let mut binds = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let volume = volumes.get(&mount.name).ok_or_else(|| format!("volume {:?} not found", mount.name))?;
        let part = match (mount.sub_path_expr.as_deref(), mount.sub_path.as_deref()) {
            (Some(written), _) if !written.is_empty() => {
                let missing = std::cell::Cell::new(false);
                let expanded = expand(written, |name| {
                    let found = environment.get(name).map(String::as_str);
                    missing.set(missing.get() || found.is_none());
                    found
                });
                if missing.get() {
                    return Err(format!(
                        "missing value for subPathExpr {written:?} of volume {:?}",
                        mount.name
                    ));
                }
                expanded
            }
            (_, Some(written)) => written.to_owned(),
            _ => String::new(),
        };
        let from = match part.as_str() {
            "" => volume.path.clone(),
            part => sub_path(&volume.path, part, volume.read_only).map_err(|why| {
                format!(
                    "failed to prepare subPath for volumeMount {:?} of container {:?}: {why}",
                    mount.name, container.name
                )
            })?,
        };
        let to = Path::new("/").join(&mount.mount_path);
        if to.components().any(|part| part == Component::ParentDir) {
            return Err(format!("mountPath {:?} must not leave its container", mount.mount_path));
        }
        let read_only = mount.read_only == Some(true) || volume.read_only;
        binds.push(Bind { from, to, read_only });
    }
    binds.sort_by_key(|bind| bind.to.components().count());
    Ok(binds)
}

/// The path of a `subPath`, created as a directory if it does not exist. Symbolic links that lead out of the volume are rejected.
fn sub_path(volume: &Path, part: &str, read_only: bool) -> Result<PathBuf, String> {
    let inside = Path::new(part);
    if inside.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("{part:?} must be a path inside the volume"));
    }
    let volume = fs::canonicalize(volume).map_err(|error| error.to_string())?;
    let whole = volume.join(inside);
    // The deepest part that exists must be inside the volume: what is created below it is, too.
    let mut known = whole.as_path();
    let real = loop {
        match fs::canonicalize(known) {
            Ok(real) => break real,
            Err(_) if fs::symlink_metadata(known).is_ok() => return Err(format!("{part:?} leads nowhere")),
            Err(_) => known = known.parent().ok_or("there is no such path")?,
        }
    };
    if !real.starts_with(&volume) {
        return Err(format!("{part:?} leads out of the volume"));
    }
    if known == whole {
        return Ok(real);
    }
    if read_only {
        return Err(format!("{part:?} is not in the volume"));
    }
    let rest = whole.strip_prefix(known).map_err(|error| error.to_string())?;
    let made = real.join(rest);
    super::host_path::create_directory(&made).map_err(|error| error.to_string())?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(folder: &Path, mounts: Value) -> Result<Vec<Bind>, String> {
        let container: Container =
            serde_json::from_value(json!({"name": "c", "volumeMounts": mounts})).unwrap();
        let ready = MountSource { path: folder.to_owned(), read_only: false };
        let volumes = [("v".to_owned(), ready)].into();
        binds(&container, &volumes, &[("POD".to_owned(), "web-0".to_owned())].into())
    }

    #[test]
    fn mounts_that_hold_others_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let binds = shown(
            folder.path(),
            json!([
                {"name": "v", "mountPath": "/data/in/it"},
                {"name": "v", "mountPath": "/data", "readOnly": true},
            ]),
        )
        .unwrap();
        let to: Vec<_> = binds.iter().map(|bind| (bind.to.to_str().unwrap(), bind.read_only)).collect();
        assert_eq!(to, [("/data", true), ("/data/in/it", false)]);
        let absent = shown(folder.path(), json!([{"name": "w", "mountPath": "/x"}])).unwrap_err();
        assert_eq!(absent, "volume \"w\" not found");
    }

    #[test]
    fn a_part_of_a_volume_stays_inside_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::os::unix::fs::symlink("/etc", at.join("out")).unwrap();
        std::os::unix::fs::symlink("nowhere", at.join("dangling")).unwrap();
        let part = |part: Value| {
            let mut mount = json!({"name": "v", "mountPath": "/data"});
            mount.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            shown(at, json!([mount])).map(|binds| binds[0].from.clone())
        };
        let real = fs::canonicalize(at).unwrap();
        assert_eq!(part(json!({"subPath": "a/b"})).unwrap(), real.join("a/b"));
        assert!(at.join("a/b").is_dir());
        assert_eq!(part(json!({"subPathExpr": "logs/$(POD)"})).unwrap(), real.join("logs/web-0"));
        for (bad, why) in [
            (json!({"subPath": "../x"}), "inside the volume"),
            (json!({"subPath": "out/passwd"}), "leads out"),
            (json!({"subPath": "out/new"}), "leads out"),
            (json!({"subPath": "dangling"}), "leads nowhere"),
            (json!({"subPathExpr": "$(ABSENT)"}), "missing value"),
        ] {
            let refused = part(bad.clone()).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
