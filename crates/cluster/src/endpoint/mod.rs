//! EndpointSlices and Endpoints of Services with a selector, and EndpointSlices that mirror Endpoints written by hand.
//!
//! An endpoint stays in the slice that it is in, so that little is written when little changes. Endpoints without a Service
//! are deleted if they are ours or were mirrored; others may be waiting for a Service that is yet to be created.
//!
//! - [`pods`]: whether a pod is an endpoint of a Service, its address and ports
//! - [`endpointslice`], [`endpoints`], [`endpointslice_mirroring`]: what has to be written

mod endpoints;
mod endpointslice;
mod endpointslice_mirroring;
mod pods;
#[cfg(test)]
mod tests;

use crate::pod_control::namespace_is_terminating;
use crate::throttle::Throttle;
use endpointslice::{MANAGED_BY, SERVICE_LABEL, TRIGGER_TIME};
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use std::sync::Arc;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Key, Manager, Object, Reconcile, ReconcileError, Relation, Requeue};

/// The number of workers of each controller.
const WORKERS: usize = 4;

pub(crate) fn add(manager: Manager) -> Manager {
    let throttle = Arc::new(Throttle::default());
    let of_slices = Controller::reconciling(move |service, ctx| sync_slices(service, ctx, throttle.clone()))
        .named("endpointslice-controller")
        .watches::<Pod>(selected)
        .watches::<EndpointSlice>(|service: &Service| slices_of(service, endpointslice::MANAGER))
        // Read from the cache, where pods say that they are on one; no reconcile for every heartbeat of a node.
        .watches::<Node>(|_: &Service| Relation::nothing())
        .filter(selects)
        .concurrency(WORKERS);
    let throttle = Arc::new(Throttle::default());
    let of_objects =
        Controller::reconciling(move |service, ctx| sync_endpoints(service, ctx, throttle.clone()))
            .named("endpoint-controller")
            .watches::<Pod>(selected)
            .watches::<Endpoints>(|service: &Service| Relation::names(service.metadata.name.clone()))
            .filter(selects)
            .concurrency(WORKERS);
    let of_mirrors = Controller::reconciling(sync_mirrored_slices)
        .named("endpointslicemirroring-controller")
        .watches::<Service>(|endpoints: &Endpoints| Relation::names(endpoints.metadata.name.clone()))
        .watches::<EndpointSlice>(|endpoints: &Endpoints| {
            slices_of(endpoints, endpointslice_mirroring::MANAGER)
        })
        .concurrency(WORKERS);
    manager.controller(of_slices).controller(of_objects).controller(of_mirrors)
}

/// Whether the endpoints of a Service are managed here: it has a selector, and is no ExternalName.
fn selects(service: &Service) -> bool {
    service
        .spec
        .as_ref()
        .is_some_and(|spec| spec.selector.is_some() && spec.type_.as_deref() != Some("ExternalName"))
}

fn selected(service: &Service) -> Relation {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
    selector.map_or_else(Relation::nothing, |labels| match labels.is_empty() {
        true => Relation::all(),
        false => Relation::labelled(labels),
    })
}

fn slices_of<K: Object>(object: &K, manager: &str) -> Relation {
    let name = object.meta().name.clone().unwrap_or_default();
    Relation::labelled([(SERVICE_LABEL, name.as_str()), (MANAGED_BY, manager)])
}

async fn sync_slices(
    service: Arc<Service>,
    ctx: Reconcile<Service>,
    throttle: Arc<Throttle>,
) -> Result<Requeue, ReconcileError> {
    let moment = ctx.clock().moment();
    if let Some(pause) = throttle.remaining(ctx.key(), moment) {
        return Ok(Requeue::after(pause));
    }
    let observed = ctx.observed();
    let pods = observed.list::<Pod>().map_err(ReconcileError::terminal)?;
    throttle.begin(ctx.key(), pods.len(), moment);
    let there = observed.list::<EndpointSlice>().map_err(ReconcileError::terminal)?;
    let nodes = ctx.cache().store::<Node>();
    let cluster = ctx.cache().cluster().clone();
    let node = |name: &str| nodes.get(&Key::new(cluster.clone(), None, name));
    let changes = endpointslice::changes(&service, &ctx.owner_reference(), &pods, there, node);
    let changed = pods::last_change(&service, pods.iter().map(|pod| &**pod));
    let with_trigger_time = |mut slice: EndpointSlice| {
        let annotations = slice.metadata.annotations.get_or_insert_default();
        annotations.extend(changed.clone().map(|at| (TRIGGER_TIME.to_owned(), at)));
        slice
    };
    // New slices would only delay the deletion of a terminating Service.
    if service.metadata.deletion_timestamp.is_none() {
        for slice in changes.create {
            match ctx.create(&with_trigger_time(slice)).await {
                Err(error) if namespace_is_terminating(&error) => return Ok(Requeue::on_change()),
                done => drop(done?),
            }
        }
    }
    for slice in changes.update {
        ctx.replace(&with_trigger_time(slice)).await?;
    }
    for slice in changes.delete {
        ctx.delete(&*slice, &Deletion::new(Basis::Absent)).await?;
    }
    match changes.missing_node {
        // The node may be registered yet, or the pod be deleted.
        Some(node) => {
            Err(ReconcileError::custom(format!("a pod is bound to node {node:?}, which does not exist")))
        }
        None => Ok(Requeue::on_change()),
    }
}

async fn sync_endpoints(
    service: Arc<Service>,
    ctx: Reconcile<Service>,
    throttle: Arc<Throttle>,
) -> Result<Requeue, ReconcileError> {
    let moment = ctx.clock().moment();
    if let Some(pause) = throttle.remaining(ctx.key(), moment) {
        return Ok(Requeue::after(pause));
    }
    let observed = ctx.observed();
    let pods = observed.list::<Pod>().map_err(ReconcileError::terminal)?;
    throttle.begin(ctx.key(), pods.len(), moment);
    let there = observed.get::<Endpoints>(ctx.key().name()).map_err(ReconcileError::terminal)?;
    match endpoints::wanted(&service, &pods, there.as_deref()) {
        None => {}
        Some(wanted) if there.is_some() => drop(ctx.replace(&wanted).await?),
        Some(_) if service.metadata.deletion_timestamp.is_some() => {}
        Some(wanted) => match ctx.create(&wanted).await {
            Err(error) if namespace_is_terminating(&error) => {}
            done => drop(done?),
        },
    }
    Ok(Requeue::on_change())
}

async fn sync_mirrored_slices(
    endpoints: Arc<Endpoints>,
    ctx: Reconcile<Endpoints>,
) -> Result<Requeue, ReconcileError> {
    let observed = ctx.observed();
    let service = observed.get::<Service>(ctx.key().name()).map_err(ReconcileError::terminal)?;
    let there = observed.list::<EndpointSlice>().map_err(ReconcileError::terminal)?;
    if !endpointslice_mirroring::is_wanted(&endpoints, service.as_deref()) {
        // Endpoints that were managed here or mirrored had a Service: it is gone, and they are deleted too. Others may be
        // waiting for a Service that is yet to be created.
        let labels = endpoints.metadata.labels.as_ref();
        let ours = labels.and_then(|labels| labels.get(endpoints::MANAGED_BY.0));
        let had_service = !there.is_empty() || ours.is_some_and(|by| by == endpoints::MANAGED_BY.1);
        if service.is_none() && had_service && endpoints.metadata.deletion_timestamp.is_none() {
            ctx.delete(&*endpoints, &Deletion::new(Basis::Absent)).await?;
        }
        for slice in there {
            ctx.delete(&*slice, &Deletion::new(Basis::Absent)).await?;
        }
        return Ok(Requeue::on_change());
    }
    let (create, update, delete) =
        endpointslice_mirroring::changes(&endpoints, &ctx.owner_reference(), there);
    if endpoints.metadata.deletion_timestamp.is_none() {
        for slice in create {
            match ctx.create(&slice).await {
                Err(error) if namespace_is_terminating(&error) => return Ok(Requeue::on_change()),
                done => drop(done?),
            }
        }
    }
    for slice in update {
        ctx.replace(&slice).await?;
    }
    for slice in delete {
        ctx.delete(&*slice, &Deletion::new(Basis::Absent)).await?;
    }
    Ok(Requeue::on_change())
}
