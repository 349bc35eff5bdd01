//! What every namespace has from the start: the ServiceAccount `default`, and the certificate of the API's authority.

mod decide;

use crate::Settings;
use decide::{Lacks, lacks};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use std::sync::Arc;
use windlass::{Controller, Manager, Next, Relation, Turn, TurnError};

/// The ServiceAccount of pods that name none.
const ACCOUNT: &str = "default";
/// The ConfigMap with the authority's certificate, and the entry in it.
const ROOT_CA: (&str, &str) = ("kube-root-ca.crt", "ca.crt");

pub(crate) fn add(manager: Manager, settings: &Settings) -> Manager {
    let root_ca: Option<Arc<str>> = settings.root_ca.as_deref().map(Into::into);
    let controller =
        Controller::reconciling(move |namespace, turn| reconcile(namespace, turn, root_ca.clone()))
            .named("serviceaccount-controller")
            .sees::<ServiceAccount>(|namespace: &Namespace| within(namespace, ACCOUNT))
            .sees::<ConfigMap>(|namespace: &Namespace| within(namespace, ROOT_CA.0))
            .concurrency(4);
    manager.controller(controller)
}

fn within(namespace: &Namespace, name: &str) -> Relation {
    Relation::named(name).in_namespace(namespace.metadata.name.clone().unwrap_or_default())
}

async fn reconcile(
    namespace: Arc<Namespace>,
    turn: Turn<Namespace>,
    root_ca: Option<Arc<str>>,
) -> Result<Next, TurnError> {
    let seen = turn.seen();
    let account = seen.get_in::<ServiceAccount>(turn.key().name(), ACCOUNT).map_err(TurnError::terminal)?;
    let map = seen.get_in::<ConfigMap>(turn.key().name(), ROOT_CA.0).map_err(TurnError::terminal)?;
    for lack in lacks(&namespace, account.as_deref(), map.as_deref(), root_ca.as_deref()) {
        match lack {
            Lacks::Account(account) => drop(turn.create(&account).await?),
            Lacks::RootCa(map) => drop(turn.create(&map).await?),
            Lacks::OtherRootCa(map) => drop(turn.replace(&map).await?),
        }
    }
    Ok(Next::on_change())
}
