//! What is behind Services: EndpointSlices and Endpoints of those that select pods, and slices of Endpoints that were written by
//! hand.
//!
//! [`pods`] says what a Service has to do with one pod, [`slices`], [`object`] and [`mirror`] what is to be written.

mod mirror;
mod object;
mod pods;
mod slices;
#[cfg(test)]
mod tests;

use crate::many::namespace_goes;
use crate::pace::Pace;
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use slices::{MANAGED_BY, SERVICE_LABEL, TRIGGER_TIME};
use std::sync::Arc;
use windlass::act::Deletion;
use windlass::{Controller, Key, Manager, Next, Object, Relation, Turn, TurnError};

/// So many Services are worked on at once.
const WORKERS: usize = 4;

pub(crate) fn add(manager: Manager) -> Manager {
    let pace = Arc::new(Pace::default());
    let of_slices = Controller::reconciling(move |service, turn| show_slices(service, turn, pace.clone()))
        .named("endpointslice-controller")
        .sees::<Pod>(selected)
        .sees::<EndpointSlice>(|service: &Service| slices_of(service, slices::MANAGER))
        // Read from the cache, where pods say that they are on one; no turn for every heartbeat of a node.
        .sees::<Node>(|_: &Service| Relation::nothing())
        .only(selects)
        .concurrency(WORKERS);
    let pace = Arc::new(Pace::default());
    let of_objects =
        Controller::reconciling(move |service, turn| show_endpoints(service, turn, pace.clone()))
            .named("endpoint-controller")
            .sees::<Pod>(selected)
            .sees::<Endpoints>(|service: &Service| Relation::names(service.metadata.name.clone()))
            .only(selects)
            .concurrency(WORKERS);
    let of_mirrors = Controller::reconciling(mirror_endpoints)
        .named("endpointslicemirroring-controller")
        .sees::<Service>(|endpoints: &Endpoints| Relation::names(endpoints.metadata.name.clone()))
        .sees::<EndpointSlice>(|endpoints: &Endpoints| slices_of(endpoints, mirror::MANAGER))
        .concurrency(WORKERS);
    manager.controller(of_slices).controller(of_objects).controller(of_mirrors)
}

/// Whether what is behind a Service is for us to find out.
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

async fn show_slices(service: Arc<Service>, turn: Turn<Service>, pace: Arc<Pace>) -> Result<Next, TurnError> {
    let seen = turn.seen();
    let pods = seen.list::<Pod>().map_err(TurnError::terminal)?;
    if let Some(rest) = pace.rest(turn.key(), pods.len(), turn.clock().moment()) {
        return Ok(Next::after_at_most(rest));
    }
    let there = seen.list::<EndpointSlice>().map_err(TurnError::terminal)?;
    let nodes = turn.cache().store::<Node>();
    let cluster = turn.cache().cluster().clone();
    let node = |name: &str| nodes.get(&Key::new(cluster.clone(), None, name));
    let changes = slices::changes(&service, &turn.owner_reference(), &pods, there, node);
    let changed = pods::last_change(&service, pods.iter().map(|pod| &**pod));
    let dated = |mut slice: EndpointSlice| {
        let notes = slice.metadata.annotations.get_or_insert_default();
        notes.extend(changed.clone().map(|at| (TRIGGER_TIME.to_owned(), at)));
        slice
    };
    // What makes slices go with a Service that is going would be in the way of it.
    if service.metadata.deletion_timestamp.is_none() {
        for slice in changes.create {
            match turn.create(&dated(slice)).await {
                Err(error) if namespace_goes(&error) => return Ok(Next::on_change()),
                done => drop(done?),
            }
        }
    }
    for slice in changes.update {
        turn.replace(&dated(slice)).await?;
    }
    for slice in changes.delete {
        turn.delete(&*slice, &Deletion::default()).await?;
    }
    match changes.missing_node {
        // It may come yet, or the pod may go.
        Some(node) => Err(TurnError::custom(format!("a pod is on node {node:?}, which is not there"))),
        None => Ok(Next::on_change()),
    }
}

async fn show_endpoints(
    service: Arc<Service>,
    turn: Turn<Service>,
    pace: Arc<Pace>,
) -> Result<Next, TurnError> {
    let seen = turn.seen();
    let pods = seen.list::<Pod>().map_err(TurnError::terminal)?;
    if let Some(rest) = pace.rest(turn.key(), pods.len(), turn.clock().moment()) {
        return Ok(Next::after_at_most(rest));
    }
    let there = seen.get::<Endpoints>(turn.key().name()).map_err(TurnError::terminal)?;
    match object::wanted(&service, &pods, there.as_deref()) {
        None => {}
        Some(wanted) if there.is_some() => drop(turn.replace(&wanted).await?),
        Some(_) if service.metadata.deletion_timestamp.is_some() => {}
        Some(wanted) => match turn.create(&wanted).await {
            Err(error) if namespace_goes(&error) => {}
            done => drop(done?),
        },
    }
    Ok(Next::on_change())
}

async fn mirror_endpoints(endpoints: Arc<Endpoints>, turn: Turn<Endpoints>) -> Result<Next, TurnError> {
    let seen = turn.seen();
    let service = seen.get::<Service>(turn.key().name()).map_err(TurnError::terminal)?;
    let there = seen.list::<EndpointSlice>().map_err(TurnError::terminal)?;
    if !mirror::is_wanted(&endpoints, service.as_deref()) {
        // Endpoints that we made, or that we mirrored, had a Service: it is gone, and they go too. Others may be waiting for
        // one that is still to come.
        let labels = endpoints.metadata.labels.as_ref();
        let ours = labels.and_then(|labels| labels.get(object::MANAGED_BY.0));
        let had_service = !there.is_empty() || ours.is_some_and(|by| by == object::MANAGED_BY.1);
        if service.is_none() && had_service && endpoints.metadata.deletion_timestamp.is_none() {
            turn.delete(&*endpoints, &Deletion::default()).await?;
        }
        for slice in there {
            turn.delete(&*slice, &Deletion::default()).await?;
        }
        return Ok(Next::on_change());
    }
    let (create, update, delete) = mirror::changes(&endpoints, &turn.owner_reference(), there);
    if endpoints.metadata.deletion_timestamp.is_none() {
        for slice in create {
            match turn.create(&slice).await {
                Err(error) if namespace_goes(&error) => return Ok(Next::on_change()),
                done => drop(done?),
            }
        }
    }
    for slice in update {
        turn.replace(&slice).await?;
    }
    for slice in delete {
        turn.delete(&*slice, &Deletion::default()).await?;
    }
    Ok(Next::on_change())
}
