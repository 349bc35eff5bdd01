//! The bench's operator as it is written with plain kube: its `Controller`, and an apply of the child at each reconcile as its
//! own examples do.

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use std::sync::Arc;
use std::time::Duration;
use windlass_peers::{Greeting, WORKERS, config, note_delay, print_delays};

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, kube::Error> {
    note_delay(&greeting);
    let client = Client::clone(&client);
    let namespace = greeting.namespace().unwrap_or_default();
    let name = greeting.name_any();
    let params = PatchParams::apply("bench-kube").force();
    let mut child = greeting.child();
    child.metadata.owner_references = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
    let children: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    children.patch(&name, &params, &Patch::Apply(&child)).await?;
    if !greeting.is_said() {
        let greetings: Api<Greeting> = Api::namespaced(client, &namespace);
        let status = serde_json::json!({ "status": greeting.said() });
        greetings.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(Action::await_change())
}

/// Runs it until it is told to stop.
pub async fn run(user_agent: &'static str) -> anyhow::Result<()> {
    let client = Client::try_from(config(user_agent).await?)?;
    Controller::new(Api::<Greeting>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .with_config(Config::default().concurrency(WORKERS))
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(client))
        .for_each(|_| std::future::ready(()))
        .await;
    print_delays();
    Ok(())
}
