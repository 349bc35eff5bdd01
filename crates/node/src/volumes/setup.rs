//! Sets up a pod's volumes on the machine: creates those that are missing, and updates those that are made of API objects.

use super::atomic_writer::{self, Owner};
use super::contents::{Files, Sources, files};
use super::host_path;
use super::mounts::MountSource;
use crate::references::downward_api::NodeFields;
use crate::references::objects::Objects;
use crate::references::service_account_token::Tokens;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use windlass::quantity::value;

/// What a pod's volumes are set up from.
pub(crate) struct VolumeSetup<'a> {
    pub(crate) client: &'a Client,
    pub(crate) pod: &'a Pod,
    /// The pod's directory.
    pub(crate) folder: &'a Path,
    pub(crate) objects: &'a Objects,
    pub(crate) tokens: &'a Tokens,
    pub(crate) node: &'a NodeFields,
    /// Whether the kubelet is root, and may change the group of files.
    pub(crate) root: bool,
    /// A timestamp for the name of a new version of a volume.
    pub(crate) stamp: String,
}

/// The volumes of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodVolumes {
    pub(crate) sources: BTreeMap<String, MountSource>,
    /// The directories of `emptyDir`s in memory, and their size limits.
    pub(crate) memory: Vec<(PathBuf, Option<u64>)>,
}

/// What has to be done on the disk for a volume.
enum Work {
    Files(PathBuf, Files),
    Folder(PathBuf),
    Host(PathBuf, Option<String>),
    /// A PersistentVolume, and whether its group is changed even if that of its root is right.
    Claimed(PathBuf, Option<String>, bool),
}

/// Sets up all volumes. An error is in a kubelet's words.
pub(crate) async fn set_up(setup: &VolumeSetup<'_>) -> Result<PodVolumes, String> {
    let mut made = PodVolumes::default();
    let mut works = Vec::new();
    for volume in setup.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let failed = |why: String| format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name);
        let (work, ready) = volume_work(setup, volume, &mut made.memory).await.map_err(failed)?;
        works.push((volume.name.clone(), work));
        made.sources.insert(volume.name.clone(), ready);
    }
    let of_pod = setup.pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let group =
        of_pod.and_then(|of| of.fs_group).and_then(|group| u32::try_from(group).ok()).filter(|_| setup.root);
    let stamp = setup.stamp.clone();
    let done = tokio::task::spawn_blocking(move || {
        works.into_iter().try_for_each(|(name, work)| {
            work.run(group, &stamp)
                .map_err(|why| format!("MountVolume.SetUp failed for volume {name:?} : {why}"))
        })
    });
    done.await.map_err(|error| error.to_string())??;
    Ok(made)
}

async fn volume_work(
    setup: &VolumeSetup<'_>,
    volume: &Volume,
    memory: &mut Vec<(PathBuf, Option<u64>)>,
) -> Result<(Work, MountSource), String> {
    let folder = setup.folder.join("volumes").join(&volume.name);
    let made = {
        let token = |projection: &_| setup.tokens.get(projection);
        let (pod, objects, node) = (setup.pod, setup.objects, setup.node);
        files(volume, &Sources { pod, objects, node, token: &token })?
    };
    if let Some(files) = made {
        return Ok((
            Work::Files(folder.clone(), files),
            MountSource { path: folder, read_only: true, devices: false },
        ));
    }
    if let Some(source) = &volume.empty_dir {
        if source.medium.as_deref() == Some("Memory") {
            let limit =
                source.size_limit.as_ref().and_then(value).and_then(|limit| u64::try_from(limit).ok());
            memory.push((folder.clone(), limit.filter(|limit| *limit > 0)));
        }
        return Ok((
            Work::Folder(folder.clone()),
            MountSource { path: folder, read_only: false, devices: false },
        ));
    }
    if let Some(source) = &volume.host_path {
        let path = PathBuf::from(&source.path);
        return Ok((
            Work::Host(path.clone(), source.type_.clone()),
            MountSource { path, read_only: false, devices: true },
        ));
    }
    let pod = setup.pod.metadata.name.as_deref().unwrap_or_default();
    let claim = match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Some((source.claim_name.clone(), source.read_only == Some(true))),
        (None, Some(_)) => Some((format!("{pod}-{}", volume.name), false)),
        (None, None) => None,
    };
    let (claim, read_only) = claim.ok_or("this volume type is not supported by this node")?;
    let (path, kind) = claimed(setup, &claim).await?;
    let policy = setup.pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let always = policy.and_then(|of| of.fs_group_change_policy.as_deref()) != Some("OnRootMismatch");
    Ok((Work::Claimed(path.clone(), kind, always), MountSource { path, read_only, devices: false }))
}

/// The path of a claim's PersistentVolume, and its hostPath type.
async fn claimed(setup: &VolumeSetup<'_>, name: &str) -> Result<(PathBuf, Option<String>), String> {
    let namespace = setup.pod.metadata.namespace.as_deref().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(setup.client.clone(), namespace);
    let claim = claims.get_opt(name).await.map_err(|error| error.to_string())?;
    let claim = claim.ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).filter(|_| bound);
    let volume = volume.ok_or_else(|| format!("persistentvolumeclaim {name:?} is not bound yet"))?;
    let volumes: Api<PersistentVolume> = Api::all(setup.client.clone());
    let found = volumes.get_opt(&volume).await.map_err(|error| error.to_string())?;
    let spec =
        found.and_then(|found| found.spec).ok_or_else(|| format!("persistentvolume {volume:?} not found"))?;
    match (spec.host_path, spec.local) {
        (Some(source), _) => Ok((source.path.into(), source.type_)),
        (None, Some(source)) => Ok((source.path.into(), Some("Directory".to_owned()))),
        (None, None) => Err(format!(
            "persistentvolume {volume:?} is of a type that this node does not support; it supports hostPath and local"
        )),
    }
}

impl Work {
    fn run(self, group: Option<u32>, stamp: &str) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        match self {
            Self::Files(folder, files) => {
                atomic_writer::write(&folder, &files, Owner { group }, stamp).map(drop).map_err(text)
            }
            Self::Folder(folder) => {
                let fresh = !folder.exists();
                host_path::create_directory(&folder).map_err(text)?;
                if fresh {
                    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).map_err(text)?;
                    if let Some(group) = group {
                        host_path::change_group(&folder, group).map_err(text)?;
                    }
                }
                Ok(())
            }
            Self::Host(path, kind) => host_path::check(&path, kind.as_deref()),
            Self::Claimed(path, kind, always) => {
                let fresh = !path.exists();
                host_path::check(&path, kind.as_deref())?;
                if fresh {
                    // Any user in the pod may write to a claim.
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(text)?;
                }
                let Some(group) = group else { return Ok(()) };
                let found = fs::metadata(&path).map_err(text)?;
                let right = found.gid() == group && found.mode() & 0o2770 == 0o2770;
                if always || !right { host_path::change_group(&path, group).map_err(text) } else { Ok(()) }
            }
        }
    }
}
