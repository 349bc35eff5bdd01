//! PodDisruptionBudgets: keeps `status.disruptionsAllowed` right. Evictions themselves are granted by the API server.

mod decide;
mod scale;

use decide::{evaluate, format_selector, needs_scale, sync_failed_status};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use scale::{Kinds, Wanted, wanted};
use std::sync::Arc;
use std::time::Duration;
use windlass::{Controller, Manager, Reason, Reconcile, ReconcileError, Relation, Requeue, Selector};

pub(crate) fn add(manager: Manager) -> Manager {
    let kinds = Kinds::default();
    let controller = Controller::reconciling(move |budget, ctx| reconcile(budget, ctx, kinds.clone()))
        .named("disruption-controller")
        .watches::<Pod>(pods_of)
        .concurrency(4);
    manager.caching(scale::watch).controller(controller)
}

/// Without a selector, none; with an empty one, all.
fn pods_of(budget: &PodDisruptionBudget) -> Relation {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selector = selector.and_then(|selector| Selector::of(selector).ok());
    selector.map_or_else(Relation::nothing, Relation::selected)
}

async fn reconcile(
    budget: Arc<PodDisruptionBudget>,
    ctx: Reconcile<PodDisruptionBudget>,
    kinds: Kinds,
) -> Result<Requeue, ReconcileError> {
    let pods = ctx.observed().list::<Pod>().map_err(ReconcileError::terminal)?;
    let now = ctx.clock().now();
    if pods.is_empty() {
        ctx.event(Reason::new("NoPods", "No matching pods found"));
    }
    let wanted = match needs_scale(&budget) {
        true => wanted(ctx.writer().client(), ctx.cache(), &kinds, &pods).await,
        false => Ok(Wanted::default()),
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(why) => {
            let message = format!("Failed to calculate the number of expected pods: {why}");
            ctx.warning(Reason::new("CalculateExpectedPodCountFailed", message));
            write(&budget, &ctx, sync_failed_status(&budget, &why, now)).await?;
            return Err(ReconcileError::custom(why));
        }
    };
    if wanted.unmanaged {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()).map(format_selector);
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of \
             the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please \
             set \".spec.minAvailable\" field of the PDB to an integer value.",
            selector.unwrap_or_default()
        );
        ctx.warning(Reason::new("UnmanagedPods", message));
    }
    let evaluation = evaluate(&budget, &pods, wanted.pods, now);
    for pod in &evaluation.not_deleted {
        let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
        let message =
            format!("Pod was expected by PDB {namespace}/{} to be deleted but it wasn't", ctx.key().name());
        ctx.event_about(&**pod, true, Reason::new("NotDeleted", message));
    }
    write(&budget, &ctx, evaluation.status).await?;
    Ok(match evaluation.requeue_at {
        None => Requeue::on_change(),
        Some(requeue_at) => {
            let pause = Duration::try_from(requeue_at.duration_since(now)).unwrap_or_default();
            Requeue::after(pause + Duration::from_millis(1))
        }
    })
}

async fn write(
    budget: &PodDisruptionBudget,
    ctx: &Reconcile<PodDisruptionBudget>,
    status: PodDisruptionBudgetStatus,
) -> Result<(), ReconcileError> {
    if budget.status.as_ref() != Some(&status) {
        ctx.replace_status(&PodDisruptionBudget { status: Some(status), ..budget.clone() }).await?;
    }
    Ok(())
}
