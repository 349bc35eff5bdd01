//! The ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` of every namespace, as the serviceaccount and
//! root-ca-cert-publisher controllers create them; and `tokens`, Secrets with tokens of ServiceAccounts.
//!
//! A new pod whose namespace has no `default` ServiceAccount yet waits for it in admission, as in Kubernetes. Admission waits
//! on the store's changes and on the machine's clock: under a driven clock this controller needs no time to act.

mod decide;
mod tokens;

use crate::Settings;
use decide::{Missing, missing};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use std::sync::Arc;
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue};

/// The ServiceAccount of pods that name none.
const ACCOUNT: &str = "default";
/// The ConfigMap with the authority's certificate, and the entry in it.
const ROOT_CA: (&str, &str) = ("kube-root-ca.crt", "ca.crt");

pub(crate) fn add(manager: Manager, settings: &Settings) -> Manager {
    let root_ca: Option<Arc<str>> = settings.root_ca.as_deref().map(Into::into);
    let controller =
        Controller::reconciling(move |namespace, ctx| reconcile(namespace, ctx, root_ca.clone()))
            .named("serviceaccount-controller")
            .watches::<ServiceAccount>(|namespace: &Namespace| within(namespace, ACCOUNT))
            .watches::<ConfigMap>(|namespace: &Namespace| within(namespace, ROOT_CA.0))
            .concurrency(4);
    tokens::add(manager.controller(controller), settings)
}

fn within(namespace: &Namespace, name: &str) -> Relation {
    Relation::named(name).in_namespace(namespace.metadata.name.clone().unwrap_or_default())
}

async fn reconcile(
    namespace: Arc<Namespace>,
    ctx: Reconcile<Namespace>,
    root_ca: Option<Arc<str>>,
) -> Result<Requeue, ReconcileError> {
    let observed = ctx.observed();
    let account =
        observed.get_in::<ServiceAccount>(ctx.key().name(), ACCOUNT).map_err(ReconcileError::terminal)?;
    let map = observed.get_in::<ConfigMap>(ctx.key().name(), ROOT_CA.0).map_err(ReconcileError::terminal)?;
    for object in missing(&namespace, account.as_deref(), map.as_deref(), root_ca.as_deref()) {
        match object {
            Missing::Account(account) => drop(ctx.create(&account).await?),
            Missing::RootCa(map) => drop(ctx.create(&map).await?),
            Missing::StaleRootCa(map) => drop(ctx.replace(&map).await?),
        }
    }
    Ok(Requeue::on_change())
}
