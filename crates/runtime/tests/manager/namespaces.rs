//! A manager that keeps to its namespaces.

use crate::support::{Running, cluster, mirror, until};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use windlass::Manager;
use windlass::clock::Clock;

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..Default::default() }
}

async fn make_in(client: &Client, namespace: &str) {
    let map = ConfigMap { metadata: named("a"), ..Default::default() };
    Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &map).await.unwrap();
}

#[tokio::test]
async fn a_manager_works_in_the_namespaces_it_was_given_and_in_no_other() {
    let (_api, client) = cluster();
    for name in ["one", "two", "three"] {
        let namespace = Namespace { metadata: named(name), ..Default::default() };
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        make_in(&client, name).await;
    }
    let manager = Manager::new(client.clone(), Clock::real()).namespace("one").namespace("two");
    let running = Running::start(manager.controller(mirror()));
    let mirrored = async |namespace: &str| {
        Api::<Secret>::namespaced(client.clone(), namespace).get_opt("a").await.unwrap().is_some()
    };
    until("both are mirrored", async || mirrored("one").await && mirrored("two").await).await;
    running.stop().await.unwrap();
    assert!(!mirrored("three").await);
}
