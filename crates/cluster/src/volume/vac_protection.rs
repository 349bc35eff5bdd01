//! VolumeAttributesClass protection: a finalizer keeps a class until no claim or volume refers to it.

use super::pv_protection::is_deletion_candidate;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use std::sync::Arc;
use windlass::cache::Index;
use windlass::write::Basis;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue};

const CLASS: &str = "kubernetes.io/vac-protection";

/// Claims by the classes that they request, have, or are being modified to.
const CLAIMS: Index<PersistentVolumeClaim> = Index::new("volume attributes classes", |claim| {
    let (spec, status) = (claim.spec.as_ref(), claim.status.as_ref());
    let wanted = spec.and_then(|spec| spec.volume_attributes_class_name.clone());
    let current = status.and_then(|status| status.current_volume_attributes_class_name.clone());
    let target = status.and_then(|status| status.modify_volume_status.as_ref());
    let target = target.and_then(|modify| modify.target_volume_attributes_class_name.clone());
    [wanted, current, target].into_iter().flatten().collect()
});

/// Volumes by the class that they have.
const VOLUMES: Index<PersistentVolume> = Index::new("volume attributes class", |volume| {
    volume.spec.iter().filter_map(|spec| spec.volume_attributes_class_name.clone()).collect()
});

pub(super) fn add(manager: Manager) -> Manager {
    let name = |class: &VolumeAttributesClass| class.metadata.name.clone().unwrap_or_default();
    let classes = Controller::reconciling(class)
        .named("volumeattributesclass-protection-controller")
        .filter(|class: &VolumeAttributesClass| is_deletion_candidate(&class.metadata, CLASS))
        .watches::<PersistentVolumeClaim>(move |class| Relation::indexed(CLAIMS, name(class)).anywhere())
        .watches::<PersistentVolume>(move |class| Relation::indexed(VOLUMES, name(class)))
        .concurrency(2);
    manager.controller(classes)
}

async fn class(
    class: Arc<VolumeAttributesClass>,
    ctx: Reconcile<VolumeAttributesClass>,
) -> Result<Requeue, ReconcileError> {
    let claims = ctx.observed().list::<PersistentVolumeClaim>().map_err(ReconcileError::terminal)?;
    let volumes = ctx.observed().list::<PersistentVolume>().map_err(ReconcileError::terminal)?;
    if claims.is_empty() && volumes.is_empty() {
        ctx.remove_finalizer(&*class, CLASS, Basis::Absent).await?;
    }
    Ok(Requeue::on_change())
}
