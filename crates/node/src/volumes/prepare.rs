//! Makes a pod's volumes on the machine: what is missing is made, what is made of objects is brought up to date.

use super::atomic::{self, Owner};
use super::contents::{Files, Sources, files};
use super::host;
use super::mounts::Ready;
use crate::pods::fields::Place;
use crate::pods::objects::Objects;
use crate::pods::tokens::Tokens;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use windlass::quantity::value;

/// What volumes are made of.
pub(crate) struct Making<'a> {
    pub(crate) client: &'a Client,
    pub(crate) pod: &'a Pod,
    /// The pod's folder.
    pub(crate) folder: &'a Path,
    pub(crate) objects: &'a Objects,
    pub(crate) tokens: &'a Tokens,
    pub(crate) place: &'a Place,
    /// Whether the node may give files to groups.
    pub(crate) root: bool,
    /// Names a new state of a volume.
    pub(crate) stamp: String,
}

/// The volumes of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) ready: BTreeMap<String, Ready>,
    /// Folders that are memory, and how much it may be.
    pub(crate) memory: Vec<(PathBuf, Option<u64>)>,
}

/// Something that is to be done on the disk.
enum Work {
    Files(PathBuf, Files),
    Folder(PathBuf),
    Host(PathBuf, Option<String>),
    /// A folder that outlives the pod, and whose group is changed even where it seems right.
    Claimed(PathBuf, Option<String>, bool),
}

/// Makes all volumes. An error is told as a kubelet tells it.
pub(crate) async fn prepare(making: &Making<'_>) -> Result<Made, String> {
    let mut made = Made::default();
    let mut works = Vec::new();
    for volume in making.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let failed = |why: String| format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name);
        let (work, ready) = one(making, volume, &mut made.memory).await.map_err(failed)?;
        works.push((volume.name.clone(), work));
        made.ready.insert(volume.name.clone(), ready);
    }
    let of_pod = making.pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let group =
        of_pod.and_then(|of| of.fs_group).and_then(|group| u32::try_from(group).ok()).filter(|_| making.root);
    let stamp = making.stamp.clone();
    let done = tokio::task::spawn_blocking(move || {
        works.into_iter().try_for_each(|(name, work)| {
            work.carry_out(group, &stamp)
                .map_err(|why| format!("MountVolume.SetUp failed for volume {name:?} : {why}"))
        })
    });
    done.await.map_err(|error| error.to_string())??;
    Ok(made)
}

async fn one(
    making: &Making<'_>,
    volume: &Volume,
    memory: &mut Vec<(PathBuf, Option<u64>)>,
) -> Result<(Work, Ready), String> {
    let folder = making.folder.join("volumes").join(&volume.name);
    let made = {
        let token = |projection: &_| making.tokens.get(projection);
        let (pod, objects, place) = (making.pod, making.objects, making.place);
        files(volume, &Sources { pod, objects, place, token: &token })?
    };
    if let Some(files) = made {
        return Ok((Work::Files(folder.clone(), files), Ready { path: folder, read_only: true }));
    }
    if let Some(source) = &volume.empty_dir {
        if source.medium.as_deref() == Some("Memory") {
            let limit =
                source.size_limit.as_ref().and_then(value).and_then(|limit| u64::try_from(limit).ok());
            memory.push((folder.clone(), limit.filter(|limit| *limit > 0)));
        }
        return Ok((Work::Folder(folder.clone()), Ready { path: folder, read_only: false }));
    }
    if let Some(source) = &volume.host_path {
        let path = PathBuf::from(&source.path);
        return Ok((Work::Host(path.clone(), source.type_.clone()), Ready { path, read_only: false }));
    }
    let pod = making.pod.metadata.name.as_deref().unwrap_or_default();
    let claim = match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(source), _) => Some((source.claim_name.clone(), source.read_only == Some(true))),
        (None, Some(_)) => Some((format!("{pod}-{}", volume.name), false)),
        (None, None) => None,
    };
    let (claim, read_only) = claim.ok_or("this node has no volumes of that type")?;
    let (path, kind) = claimed(making, &claim).await?;
    let policy = making.pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let always = policy.and_then(|of| of.fs_group_change_policy.as_deref()) != Some("OnRootMismatch");
    Ok((Work::Claimed(path.clone(), kind, always), Ready { path, read_only }))
}

/// Where the volume of a claim is, and of which type the path is.
async fn claimed(making: &Making<'_>, name: &str) -> Result<(PathBuf, Option<String>), String> {
    let namespace = making.pod.metadata.namespace.as_deref().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(making.client.clone(), namespace);
    let claim = claims.get_opt(name).await.map_err(|error| error.to_string())?;
    let claim = claim.ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).filter(|_| bound);
    let volume = volume.ok_or_else(|| format!("persistentvolumeclaim {name:?} is not bound yet"))?;
    let volumes: Api<PersistentVolume> = Api::all(making.client.clone());
    let found = volumes.get_opt(&volume).await.map_err(|error| error.to_string())?;
    let spec =
        found.and_then(|found| found.spec).ok_or_else(|| format!("persistentvolume {volume:?} not found"))?;
    match (spec.host_path, spec.local) {
        (Some(source), _) => Ok((source.path.into(), source.type_)),
        (None, Some(source)) => Ok((source.path.into(), Some("Directory".to_owned()))),
        (None, None) => Err(format!(
            "persistentvolume {volume:?} is of a type that this node has not; it has hostPath and local"
        )),
    }
}

impl Work {
    fn carry_out(self, group: Option<u32>, stamp: &str) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        match self {
            Self::Files(folder, files) => {
                atomic::write(&folder, &files, Owner { group }, stamp).map(drop).map_err(text)
            }
            Self::Folder(folder) => {
                let fresh = !folder.exists();
                host::make_folder(&folder).map_err(text)?;
                if fresh {
                    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).map_err(text)?;
                    if let Some(group) = group {
                        host::give_to_group(&folder, group).map_err(text)?;
                    }
                }
                Ok(())
            }
            Self::Host(path, kind) => host::check(&path, kind.as_deref()),
            Self::Claimed(path, kind, always) => {
                let fresh = !path.exists();
                host::check(&path, kind.as_deref())?;
                if fresh {
                    // A claim is for whoever runs in the pod.
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(text)?;
                }
                let Some(group) = group else { return Ok(()) };
                let found = fs::metadata(&path).map_err(text)?;
                let right = found.gid() == group && found.mode() & 0o2770 == 0o2770;
                if always || !right { host::give_to_group(&path, group).map_err(text) } else { Ok(()) }
            }
        }
    }
}
