//! What the provisioner does for claims and volumes of this node. Pure.
//!
//! A real controller manager leaves all of it to the provisioner that a StorageClass names; the embedded one binds and expands
//! volumes itself, and what it did is not done again here.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass::quantity::value;
use windlass_component_helpers::local_volumes::{PROVISIONED_BY, PROVISIONER, selected_node, volume};

/// The finalizer that keeps a volume until its directory is removed.
pub(super) const FINALIZER: &str = "windlass.dev/folder";

/// A step to be taken.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Provision this volume for this claim.
    Provision(Arc<PersistentVolumeClaim>, Box<PersistentVolume>),
    /// Add the finalizer to a volume.
    AddFinalizer(Arc<PersistentVolume>),
    /// Expand a volume to this capacity.
    Expand(Arc<PersistentVolume>, Quantity),
    /// Set the capacity in a claim's status.
    SetCapacity(Arc<PersistentVolumeClaim>, Quantity),
    /// Delete a released volume.
    Delete(Arc<PersistentVolume>),
    /// Remove the directory, then the finalizer.
    RemoveDirectory(Arc<PersistentVolume>, PathBuf),
}

/// The observed objects.
pub(super) struct Observed<'a> {
    pub(super) node: &'a str,
    /// The directory of this node's volumes.
    pub(super) folder: &'a Path,
    pub(super) claims: &'a [Arc<PersistentVolumeClaim>],
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
}

/// All steps that can be taken now.
pub(super) fn steps(observed: &Observed) -> Vec<Step> {
    let made = observed.claims.iter().filter_map(|claim| provision(observed, claim));
    made.chain(observed.volumes.iter().filter_map(|volume| maintain(observed, volume))).collect()
}

fn provision(observed: &Observed, claim: &Arc<PersistentVolumeClaim>) -> Option<Step> {
    let spec = claim.spec.as_ref()?;
    let unbound = spec.volume_name.as_deref().unwrap_or_default().is_empty();
    if !unbound || claim.metadata.deletion_timestamp.is_some() || selected_node(claim) != Some(observed.node)
    {
        return None;
    }
    let class = observed.classes.iter().find(|class| class.metadata.name == spec.storage_class_name)?;
    if class.provisioner != PROVISIONER {
        return None;
    }
    let mut made = volume(claim, class, observed.folder)?;
    if observed.volumes.iter().any(|there| there.metadata.name == made.metadata.name) {
        return None;
    }
    made.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    Some(Step::Provision(claim.clone(), Box::new(made)))
}

/// The directory of a volume that this node provisioned: it is exactly where it would be provisioned again.
pub(super) fn directory_of(volume: &PersistentVolume, folder: &Path) -> Option<PathBuf> {
    let by = volume.metadata.annotations.as_ref()?.get(PROVISIONED_BY)?;
    let path = Path::new(&volume.spec.as_ref()?.host_path.as_ref()?.path);
    let name = volume.metadata.name.as_deref()?;
    (by == PROVISIONER && path == folder.join(name) && path.parent() == Some(folder)).then(|| path.to_owned())
}

fn maintain(observed: &Observed, volume: &Arc<PersistentVolume>) -> Option<Step> {
    let path = directory_of(volume, observed.folder)?;
    let present = volume.metadata.finalizers.iter().flatten().any(|present| present == FINALIZER);
    if volume.metadata.deletion_timestamp.is_some() {
        // Other finalizers may still need its contents.
        let last = volume.metadata.finalizers.iter().flatten().all(|present| present == FINALIZER);
        return (present && last).then(|| Step::RemoveDirectory(volume.clone(), path));
    }
    if !present {
        return Some(Step::AddFinalizer(volume.clone()));
    }
    let spec = volume.spec.as_ref()?;
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Released") && spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete") {
        return Some(Step::Delete(volume.clone()));
    }
    let uid = spec.claim_ref.as_ref()?.uid.as_ref()?;
    let claim = observed.claims.iter().find(|claim| claim.metadata.uid.as_ref() == Some(uid))?;
    let asked = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")?;
    let has = spec.capacity.as_ref()?.get("storage")?;
    if value(asked) > value(has) {
        return Some(Step::Expand(volume.clone(), asked.clone()));
    }
    let status = claim.status.as_ref().filter(|status| status.phase.as_deref() == Some("Bound"))?;
    let said = status.capacity.as_ref()?.get("storage")?;
    (value(said) < value(has)).then(|| Step::SetCapacity(claim.clone(), has.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object<T: serde::de::DeserializeOwned>(object: Value) -> Arc<T> {
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn claim(node: &str, size: &str, bound: bool) -> Arc<PersistentVolumeClaim> {
        let status =
            if bound { json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}) } else { json!({}) };
        object(json!({
            "metadata": {"name": "data", "namespace": "n", "uid": "1",
                "annotations": {"volume.kubernetes.io/selected-node": node}},
            "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "volumeName": if bound { "pvc-1" } else { "" }, "resources": {"requests": {"storage": size}}},
            "status": status,
        }))
    }

    fn decided(claims: &[Arc<PersistentVolumeClaim>], volumes: &[Arc<PersistentVolume>]) -> Vec<Step> {
        let classes = [object(json!({"metadata": {"name": "local"}, "provisioner": PROVISIONER}))];
        steps(&Observed { node: "here", folder: Path::new("/v"), claims, volumes, classes: &classes })
    }

    /// As it was made for the claim, and changed since.
    fn made(change: impl Fn(&mut PersistentVolume)) -> Arc<PersistentVolume> {
        let [Step::Provision(_, volume)] = &decided(&[claim("here", "1Gi", false)], &[])[..] else {
            panic!()
        };
        let mut volume = (**volume).clone();
        change(&mut volume);
        Arc::new(volume)
    }

    #[test]
    fn a_volume_is_made_once_and_for_a_claim_of_this_node() {
        let volume = made(|_| ());
        assert_eq!(volume.metadata.name.as_deref(), Some("pvc-1"));
        assert_eq!(directory_of(&volume, Path::new("/v")), Some("/v/pvc-1".into()));
        assert_eq!(decided(&[claim("there", "1Gi", false)], &[]), []);
        assert_eq!(decided(&[claim("here", "1Gi", false)], &[volume]), []);
    }

    #[test]
    fn a_volume_grows_and_its_claim_says_so() {
        let small = made(|_| ());
        let Step::Expand(_, to) = &decided(&[claim("here", "2Gi", true)], &[small])[0] else { panic!() };
        assert_eq!(to.0, "2Gi");
        let grown = made(|volume| {
            let spec = volume.spec.as_mut().unwrap();
            spec.capacity = Some([("storage".to_owned(), Quantity("2Gi".to_owned()))].into());
        });
        let told = decided(&[claim("here", "2Gi", true)], &[grown]);
        assert!(matches!(&told[..], [Step::SetCapacity(_, to)] if to.0 == "2Gi"), "{told:?}");
        assert_eq!(decided(&[claim("here", "1Gi", true)], &[made(|_| ())]), []);
    }

    #[test]
    fn a_folder_goes_before_its_volume_and_only_one_of_ours() {
        let status =
            |phase: &str| object::<PersistentVolume>(json!({"status": {"phase": phase}})).status.clone();
        let released = made(|volume| volume.status = status("Released"));
        assert!(matches!(&decided(&[], &[released])[..], [Step::Delete(_)]));
        let kept = made(|volume| {
            volume.status = status("Released");
            volume.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Retain".to_owned());
        });
        assert_eq!(decided(&[], &[kept]), []);
        let going = |present: &[&str], path: &str| {
            made(|volume| {
                volume.metadata.deletion_timestamp =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
                volume.metadata.finalizers =
                    Some(present.iter().map(|present| (*present).to_owned()).collect());
                volume.spec.as_mut().unwrap().host_path.as_mut().unwrap().path = path.to_owned();
            })
        };
        let removed = decided(&[], &[going(&[FINALIZER], "/v/pvc-1")]);
        assert!(matches!(&removed[..], [Step::RemoveDirectory(_, path)] if path == Path::new("/v/pvc-1")));
        assert_eq!(decided(&[], &[going(&[FINALIZER, "kubernetes.io/pv-protection"], "/v/pvc-1")]), []);
        for elsewhere in ["/etc", "/v/../etc", "/v/pvc-2", "/v"] {
            assert_eq!(decided(&[], &[going(&[FINALIZER], elsewhere)]), [], "{elsewhere}");
        }
    }
}
