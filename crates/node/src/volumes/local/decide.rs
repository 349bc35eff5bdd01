//! What a node does for the volumes of its pods' claims. Pure.
//!
//! A real controller manager leaves all of it to whoever a class names; the embedded one binds and grows volumes itself, and what it
//! did is not done again here.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass::quantity::value;
use windlass_cluster::local_volumes::{PROVISIONED_BY, PROVISIONER, selected_node, volume};

/// Keeps a volume until its folder is removed.
pub(super) const HOLD: &str = "windlass.dev/folder";

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Make this volume, which is for this claim.
    Make(Arc<PersistentVolumeClaim>, Box<PersistentVolume>),
    /// Keep a volume until its folder is removed.
    Hold(Arc<PersistentVolume>),
    /// Let a volume have so much.
    Grow(Arc<PersistentVolume>, Quantity),
    /// Say in a claim that it has so much.
    Grown(Arc<PersistentVolumeClaim>, Quantity),
    /// Nobody needs this volume any more.
    Delete(Arc<PersistentVolume>),
    /// Remove the folder, then let the volume go.
    Remove(Arc<PersistentVolume>, PathBuf),
}

/// What there is.
pub(super) struct Seen<'a> {
    pub(super) node: &'a str,
    /// Where this node makes volumes.
    pub(super) folder: &'a Path,
    pub(super) claims: &'a [Arc<PersistentVolumeClaim>],
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
}

/// Everything that can be done now.
pub(super) fn steps(seen: &Seen) -> Vec<Step> {
    let made = seen.claims.iter().filter_map(|claim| make(seen, claim));
    made.chain(seen.volumes.iter().filter_map(|volume| tend(seen, volume))).collect()
}

fn make(seen: &Seen, claim: &Arc<PersistentVolumeClaim>) -> Option<Step> {
    let spec = claim.spec.as_ref()?;
    let unbound = spec.volume_name.as_deref().unwrap_or_default().is_empty();
    if !unbound || claim.metadata.deletion_timestamp.is_some() || selected_node(claim) != Some(seen.node) {
        return None;
    }
    let class = seen.classes.iter().find(|class| class.metadata.name == spec.storage_class_name)?;
    if class.provisioner != PROVISIONER {
        return None;
    }
    let mut made = volume(claim, class, seen.folder)?;
    if seen.volumes.iter().any(|there| there.metadata.name == made.metadata.name) {
        return None;
    }
    made.metadata.finalizers = Some(vec![HOLD.to_owned()]);
    Some(Step::Make(claim.clone(), Box::new(made)))
}

/// Where a volume is, if this node made it: exactly where it would make it again.
pub(super) fn folder_of(volume: &PersistentVolume, folder: &Path) -> Option<PathBuf> {
    let by = volume.metadata.annotations.as_ref()?.get(PROVISIONED_BY)?;
    let path = Path::new(&volume.spec.as_ref()?.host_path.as_ref()?.path);
    let name = volume.metadata.name.as_deref()?;
    (by == PROVISIONER && path == folder.join(name) && path.parent() == Some(folder)).then(|| path.to_owned())
}

fn tend(seen: &Seen, volume: &Arc<PersistentVolume>) -> Option<Step> {
    let path = folder_of(volume, seen.folder)?;
    let held = volume.metadata.finalizers.iter().flatten().any(|held| held == HOLD);
    if volume.metadata.deletion_timestamp.is_some() {
        // Whoever else keeps it may still need what is in it.
        let last = volume.metadata.finalizers.iter().flatten().all(|held| held == HOLD);
        return (held && last).then(|| Step::Remove(volume.clone(), path));
    }
    if !held {
        return Some(Step::Hold(volume.clone()));
    }
    let spec = volume.spec.as_ref()?;
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Released") && spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete") {
        return Some(Step::Delete(volume.clone()));
    }
    let uid = spec.claim_ref.as_ref()?.uid.as_ref()?;
    let claim = seen.claims.iter().find(|claim| claim.metadata.uid.as_ref() == Some(uid))?;
    let asked = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")?;
    let has = spec.capacity.as_ref()?.get("storage")?;
    if value(asked) > value(has) {
        return Some(Step::Grow(volume.clone(), asked.clone()));
    }
    let status = claim.status.as_ref().filter(|status| status.phase.as_deref() == Some("Bound"))?;
    let said = status.capacity.as_ref()?.get("storage")?;
    (value(said) < value(has)).then(|| Step::Grown(claim.clone(), has.clone()))
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
        steps(&Seen { node: "here", folder: Path::new("/v"), claims, volumes, classes: &classes })
    }

    /// As it was made for the claim, and changed since.
    fn made(change: impl Fn(&mut PersistentVolume)) -> Arc<PersistentVolume> {
        let [Step::Make(_, volume)] = &decided(&[claim("here", "1Gi", false)], &[])[..] else { panic!() };
        let mut volume = (**volume).clone();
        change(&mut volume);
        Arc::new(volume)
    }

    #[test]
    fn a_volume_is_made_once_and_for_a_claim_of_this_node() {
        let volume = made(|_| ());
        assert_eq!(volume.metadata.name.as_deref(), Some("pvc-1"));
        assert_eq!(folder_of(&volume, Path::new("/v")), Some("/v/pvc-1".into()));
        assert_eq!(decided(&[claim("there", "1Gi", false)], &[]), []);
        assert_eq!(decided(&[claim("here", "1Gi", false)], &[volume]), []);
    }

    #[test]
    fn a_volume_grows_and_its_claim_says_so() {
        let small = made(|_| ());
        let Step::Grow(_, to) = &decided(&[claim("here", "2Gi", true)], &[small])[0] else { panic!() };
        assert_eq!(to.0, "2Gi");
        let grown = made(|volume| {
            let spec = volume.spec.as_mut().unwrap();
            spec.capacity = Some([("storage".to_owned(), Quantity("2Gi".to_owned()))].into());
        });
        let told = decided(&[claim("here", "2Gi", true)], &[grown]);
        assert!(matches!(&told[..], [Step::Grown(_, to)] if to.0 == "2Gi"), "{told:?}");
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
        let going = |held: &[&str], path: &str| {
            made(|volume| {
                volume.metadata.deletion_timestamp =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
                volume.metadata.finalizers = Some(held.iter().map(|held| (*held).to_owned()).collect());
                volume.spec.as_mut().unwrap().host_path.as_mut().unwrap().path = path.to_owned();
            })
        };
        let removed = decided(&[], &[going(&[HOLD], "/v/pvc-1")]);
        assert!(matches!(&removed[..], [Step::Remove(_, path)] if path == Path::new("/v/pvc-1")));
        assert_eq!(decided(&[], &[going(&[HOLD, "kubernetes.io/pv-protection"], "/v/pvc-1")]), []);
        for elsewhere in ["/etc", "/v/../etc", "/v/pvc-2", "/v"] {
            assert_eq!(decided(&[], &[going(&[HOLD], elsewhere)]), [], "{elsewhere}");
        }
    }
}
