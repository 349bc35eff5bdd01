//! The mounts of a container, from its `volumeMounts` and the paths of the pod's volumes.

use crate::path_below::Below;
use crate::references::expand::expand;
use crate::shim::Bind;
use k8s_openapi::api::core::v1::Container;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The path of a volume on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountSource {
    pub(crate) path: PathBuf,
    /// Whether it is read-only, as volumes that are made of API objects.
    pub(crate) read_only: bool,
    /// Whether it is the machine's own, with its devices.
    pub(crate) devices: bool,
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
        let part = Some(PathBuf::from(part)).filter(|part| !part.as_os_str().is_empty());
        if let Some(part) = &part {
            check_part(&volume.path, part, volume.read_only).map_err(|why| {
                format!(
                    "failed to prepare subPath for volumeMount {:?} of container {:?}: {why}",
                    mount.name, container.name
                )
            })?;
        }
        let to = Path::new("/").join(&mount.mount_path);
        if to.components().any(|part| part == Component::ParentDir) {
            return Err(format!("mountPath {:?} must not leave its container", mount.mount_path));
        }
        let read_only = mount.read_only == Some(true) || volume.read_only;
        binds.push(Bind { from: volume.path.clone(), part, to, read_only, devices: volume.devices });
    }
    binds.sort_by_key(|bind| bind.to.components().count());
    Ok(binds)
}

/// Refuses a `subPath` that leads out of its volume, or that is absent where it cannot be made. The container's first stage resolves
/// it once more, in one step with mounting it, because the pod may have changed it in the meantime.
fn check_part(volume: &Path, part: &Path, read_only: bool) -> Result<(), String> {
    if part.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("{part:?} must be a path inside the volume"));
    }
    let volume = Below::volume(volume).map_err(|error| error.to_string())?;
    // What leads out is the nearest part that is there.
    for near in part.ancestors() {
        match volume.find(near) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && read_only => {
                return Err(format!("{part:?} is not in the volume"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{part:?}: {error}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(folder: &Path, mounts: Value) -> Result<Vec<Bind>, String> {
        let container: Container =
            serde_json::from_value(json!({"name": "c", "volumeMounts": mounts})).unwrap();
        let ready = MountSource { path: folder.to_owned(), read_only: false, devices: false };
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
        let part = |part: Value| {
            let mut mount = json!({"name": "v", "mountPath": "/data"});
            mount.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            shown(at, json!([mount])).map(|binds| (binds[0].from.clone(), binds[0].part.clone()))
        };
        let is = |part: &str| (at.to_owned(), Some(PathBuf::from(part)));
        assert_eq!(part(json!({"subPath": "a/b"})).unwrap(), is("a/b"));
        assert_eq!(part(json!({"subPathExpr": "logs/$(POD)"})).unwrap(), is("logs/web-0"));
        for (bad, why) in [
            (json!({"subPath": "../x"}), "inside the volume"),
            (json!({"subPath": "out/passwd"}), "leads out"),
            (json!({"subPath": "out/new"}), "leads out"),
            (json!({"subPathExpr": "$(ABSENT)"}), "missing value"),
        ] {
            let refused = part(bad.clone()).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
