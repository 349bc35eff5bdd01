//! PersistentVolumeClaims and PersistentVolumes: binding, local provisioning, reclaiming, and protection of what is in use.
//!
//! A binding is made by one write per pass, the volume first. The StorageClass `standard`, the default, provisions folders
//! under `/var/lib/windlass/volumes` on the node that the scheduler selected, unless that node provisions its volumes itself
//! (the annotation `windlass.dev/makes-volumes`), as process nodes do: only they can remove a folder, and a real controller
//! manager leaves these claims to them as well.

mod decide;
mod ephemeral;
mod matching;
mod provision;
mod pv_protection;
#[cfg(test)]
mod tests;
mod vac_protection;

pub(crate) use ephemeral::not_made_for;

use decide::{ClaimContext, Step, VolumeStep, claim_ref, claim_steps, volume_step};
use k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use matching::{class_of, class_of_volume};
use std::sync::Arc;
use windlass::cache::Index;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Key, Kind, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue};
use windlass_component_helpers::local_volumes::{SELECTED_NODE, annotation};

/// Volumes by their names and by their classes.
const VOLUMES: Index<PersistentVolume> = Index::new("name or class", |volume| {
    vec![name_term(volume.metadata.name.as_deref().unwrap_or_default()), class_term(class_of_volume(volume))]
});

fn name_term(name: &str) -> String {
    format!("name {name}")
}

fn class_term(class: &str) -> String {
    format!("class {class}")
}

pub(crate) fn add(manager: Manager) -> Manager {
    let claims = Controller::reconciling(claim)
        .named("persistentvolume-controller")
        .watches::<PersistentVolume>(|claim| Relation::indexed(VOLUMES, term(claim)))
        .watches::<StorageClass>(|claim| class_of(claim).map_or_else(Relation::all, Relation::named))
        .watches::<Node>(|claim: &PersistentVolumeClaim| {
            let node = annotation(&claim.metadata, SELECTED_NODE).filter(|_| volume_name(claim).is_empty());
            node.map_or_else(Relation::nothing, Relation::named)
        })
        .concurrency(2);
    let volumes = Controller::reconciling(volume)
        .named("persistentvolume-binder")
        .watches::<PersistentVolumeClaim>(|volume: &PersistentVolume| {
            let reference =
                claim_ref(volume).and_then(|claim| Some((claim.namespace.clone()?, claim.name.clone()?)));
            reference.map_or_else(Relation::nothing, |(namespace, name)| {
                Relation::named(name).in_namespace(namespace)
            })
        })
        .concurrency(2);
    let manager = manager.controller(claims).controller(volumes);
    provision::add(vac_protection::add(pv_protection::add(ephemeral::add(manager))))
}

fn volume_name(claim: &PersistentVolumeClaim) -> &str {
    claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default()
}

/// The index term of a claim: the volume that it names, or those of its class.
fn term(claim: &PersistentVolumeClaim) -> String {
    match volume_name(claim) {
        "" => class_term(class_of(claim).unwrap_or_default()),
        name => name_term(name),
    }
}

async fn claim(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Reconcile<PersistentVolumeClaim>,
) -> Result<Requeue, ReconcileError> {
    if claim.metadata.deletion_timestamp.is_some() && volume_name(&claim).is_empty() {
        return Ok(Requeue::on_change());
    }
    let cache = ctx.cache();
    let volumes = cache.store::<PersistentVolume>().find(VOLUMES, &term(&claim));
    let observed = ctx.observed();
    let classes = observed.list::<StorageClass>().map_err(ReconcileError::terminal)?;
    let named = class_of(&claim);
    let class = classes.iter().find(|class| named.is_some() && class.metadata.name.as_deref() == named);
    let mut defaults: Vec<_> = classes
        .iter()
        .filter(|class| annotation(&class.metadata, provision::DEFAULT) == Some("true"))
        .collect();
    defaults.sort_by_key(|class| class.metadata.creation_timestamp.as_ref().map(|time| time.0));
    let nodes = observed.list::<Node>().map_err(ReconcileError::terminal)?;
    let waiting = waiting_pods(&claim, &ctx);
    let context = ClaimContext {
        volumes: &volumes,
        class: class.map(|class| &**class),
        default_class: defaults.last().and_then(|class| class.metadata.name.as_deref()),
        node: nodes.first().map(|node| &**node),
        waiting_pods: &waiting,
    };
    for step in claim_steps(&claim, &context) {
        match step {
            Step::Volume(volume, patch) => drop(ctx.merge(&*volume, "", patch).await?),
            Step::Claim(patch) => drop(ctx.merge(&*claim, "", patch).await?),
            Step::Status(status) => {
                let updated = PersistentVolumeClaim { status: Some(*status), ..(*claim).clone() };
                ctx.replace_status(&updated).await?;
            }
            Step::Provision => provision(&ctx, &claim, context.class).await?,
            Step::Event(true, reason, message) => ctx.warning(Reason::new(reason, message)),
            Step::Event(false, reason, message) => ctx.event(Reason::new(reason, message)),
        }
    }
    Ok(Requeue::on_change())
}

/// The pods that use a claim and are not scheduled yet.
fn waiting_pods(claim: &PersistentVolumeClaim, ctx: &Reconcile<PersistentVolumeClaim>) -> Vec<String> {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let pods = ctx.cache().store::<Pod>().find(pv_protection::BY_CLAIM, name);
    let waits = |pod: &&Arc<Pod>| {
        pod.metadata.namespace == claim.metadata.namespace
            && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none())
    };
    pods.iter().filter(waits).filter_map(|pod| pod.metadata.name.clone()).collect()
}

async fn provision(
    ctx: &Reconcile<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
) -> Result<(), ReconcileError> {
    let Some(volume) = class.and_then(|class| provision::volume(claim, class)) else { return Ok(()) };
    match ctx.create(&volume).await {
        Ok(made) => {
            let name = made.metadata.name.unwrap_or_default();
            let message = format!("Successfully provisioned volume {name}");
            ctx.event(Reason::new("ProvisioningSucceeded", message));
            Ok(())
        }
        // It exists, and the cache does not show it yet.
        Err(ReconcileError::Act(error)) if error.is_already_exists() => Ok(()),
        Err(error) => {
            let why = crate::pod_control::message(&error);
            ctx.warning(Reason::new("ProvisioningFailed", format!("failed to provision volume: {why}")));
            Err(error)
        }
    }
}

async fn volume(
    volume: Arc<PersistentVolume>,
    ctx: Reconcile<PersistentVolume>,
) -> Result<Requeue, ReconcileError> {
    let claim = claim_of(&volume, &ctx).await?;
    match volume_step(&volume, claim.as_deref()) {
        VolumeStep::Leave => {}
        VolumeStep::Delete => drop(ctx.delete(&*volume, &Deletion::new(Basis::Absent)).await?),
        VolumeStep::Unbind(patch) => drop(ctx.merge(&*volume, "", patch).await?),
        VolumeStep::Phase(phase, message) => {
            let old = volume.status.clone().unwrap_or_default();
            if old.phase.as_deref() != Some(phase) {
                if phase == "Failed" {
                    ctx.warning(Reason::new("VolumeFailedDelete", message.clone()));
                }
                let status = PersistentVolumeStatus {
                    phase: Some(phase.to_owned()),
                    message: Some(message).filter(|message| !message.is_empty()),
                    reason: None,
                    last_phase_transition_time: Some(Time(ctx.clock().now())),
                };
                ctx.replace_status(&PersistentVolume { status: Some(status), ..(*volume).clone() }).await?;
            }
        }
    }
    Ok(Requeue::on_change())
}

/// The claim that a volume refers to. The cache may be stale: a volume is not released for that.
async fn claim_of(
    volume: &PersistentVolume,
    ctx: &Reconcile<PersistentVolume>,
) -> Result<Option<Arc<PersistentVolumeClaim>>, ReconcileError> {
    let Some(reference) =
        claim_ref(volume).filter(|claim| claim.uid.as_ref().is_some_and(|uid| !uid.is_empty()))
    else {
        return Ok(None);
    };
    let cluster = ctx.cache().cluster().clone();
    let key =
        Key::new(cluster, reference.namespace.as_deref(), reference.name.as_deref().unwrap_or_default());
    let cached = ctx.cache().store::<PersistentVolumeClaim>().get(&key);
    if let Some(claim) = cached.filter(|claim| claim.metadata.uid == reference.uid) {
        return Ok(Some(claim));
    }
    let live = ctx.writer().read(&Kind::of::<PersistentVolumeClaim>(), &key).await?;
    Ok(live.and_then(|json| serde_json::from_value(json).ok()).map(Arc::new))
}
