//! Generic ephemeral volumes: creates a PersistentVolumeClaim for each, from the template in the pod and owned by it.

use crate::controller_ref::controller_of;
use crate::pods::{claims, ephemeral_claim};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::sync::Arc;
use windlass::{Controller, Key, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue};

pub(super) fn add(manager: Manager) -> Manager {
    let pods = Controller::reconciling(pod)
        .named("ephemeral-volume")
        .filter(|pod: &Pod| claims(pod).any(|claimed| claimed.ephemeral))
        .watches::<PersistentVolumeClaim>(|pod| {
            Relation::names(claims(pod).filter(|claimed| claimed.ephemeral).map(|claimed| claimed.name))
        })
        .concurrency(2);
    manager.controller(pods)
}

async fn pod(pod: Arc<Pod>, ctx: Reconcile<Pod>) -> Result<Requeue, ReconcileError> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Ok(Requeue::on_change());
    }
    for wanted in wanted(&pod) {
        let made = match there(&ctx, &wanted) {
            Some(claim) => is_for(&pod, &claim),
            None => ctx.create(&wanted).await.map(drop).map_err(|error| {
                let claim = wanted.metadata.name.as_deref().unwrap_or_default();
                (format!("create PVC {claim}: {}", crate::pod_control::message(&error)), error)
            }),
        };
        if let Err((why, error)) = made {
            let name = wanted.metadata.name.as_deref().unwrap_or_default();
            let volume = name.strip_prefix(&ephemeral_claim(ctx.key().name(), "")).unwrap_or(name);
            ctx.warning(Reason::new("FailedBinding", format!("ephemeral volume {volume}: {why}")));
            return Err(error);
        }
    }
    Ok(Requeue::on_change())
}

fn there(ctx: &Reconcile<Pod>, wanted: &PersistentVolumeClaim) -> Option<Arc<PersistentVolumeClaim>> {
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let key = Key::new(ctx.cache().cluster().clone(), ctx.key().namespace(), name);
    ctx.cache().store::<PersistentVolumeClaim>().get(&key)
}

/// A claim of that name with another owner is not the pod's: somebody has to delete it first.
fn is_for(pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), (String, ReconcileError)> {
    if controller_of(&claim.metadata).is_some_and(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref()) {
        return Ok(());
    }
    let text = |name: &Option<String>| name.clone().unwrap_or_default();
    let why =
        not_made_for(&text(&claim.metadata.name), &text(&pod.metadata.namespace), &text(&pod.metadata.name));
    Err((why.clone(), ReconcileError::custom(std::io::Error::other(why))))
}

/// Kubernetes' message about a claim that is not owned by the pod.
pub(crate) fn not_made_for(claim: &str, namespace: &str, pod: &str) -> String {
    format!("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)")
}

/// The claims of a pod's generic ephemeral volumes. Pure.
fn wanted(pod: &Pod) -> Vec<PersistentVolumeClaim> {
    let meta = &pod.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: name.clone(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let templates = volumes.filter_map(|volume| {
        Some((&volume.name, volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?))
    });
    templates
        .map(|(volume, template)| {
            let written = template.metadata.clone().unwrap_or_default();
            PersistentVolumeClaim {
                metadata: ObjectMeta {
                    name: Some(ephemeral_claim(&name, volume)),
                    namespace: meta.namespace.clone(),
                    labels: written.labels,
                    annotations: written.annotations,
                    owner_references: Some(vec![owner.clone()]),
                    ..ObjectMeta::default()
                },
                spec: Some(template.spec.clone()),
                status: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_named_after_its_pod_and_volume_and_owned_by_the_pod() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1"},
            "spec": {"containers": [], "volumes": [
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {
                    "metadata": {"labels": {"of": "web"}},
                    "spec": {"accessModes": ["ReadWriteOnce"]},
                }}},
                {"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}},
                {"name": "empty", "emptyDir": {}},
            ]},
        }))
        .unwrap();
        let made = wanted(&pod);
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].metadata.name.as_deref(), Some("web-0-scratch"));
        assert_eq!(made[0].metadata.labels.as_ref().unwrap()["of"], "web");
        assert!(is_for(&pod, &made[0]).is_ok());
        let mut another = made[0].clone();
        another.metadata.owner_references = None;
        let (why, _) = is_for(&pod, &another).unwrap_err();
        assert_eq!(why, "PVC shop/web-0-scratch was not created for pod shop/web-0 (pod is not owner)");
    }
}
