//! The cache on a whole API: what it watches, what it holds, and what it makes of connections that break.

use super::world::{World, eventually, key};
use super::{Namespaces, Opened, Scope};
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::DeleteParams;
use kube::core::PartialObjectMeta;
use std::sync::Arc;
use windlass_apiserver::faults::{Act, Pattern, Which};
use windlass_apiserver::status::Status;

#[tokio::test]
async fn one_watch_serves_all_who_ask_for_a_kind_and_scope() -> anyhow::Result<()> {
    let mut world = World::new(Namespaces::All);
    let watches =
        world.api.faults().add(Pattern::watches().user("cache").then(Which::UpTo(0), Act::LoseRequest));
    let (one, two) = (world.cache.store::<ConfigMap>(), world.cache.store::<ConfigMap>());
    world.start();
    let three: Opened<ConfigMap> = world.cache.open(Scope::default());
    world.cache.synced().await;
    world.map("default", "a", "x").await?;
    eventually("all have it", || one.len() == two.len() && one.get(&key("default", "a")).is_some()).await?;
    let held = [&*one, &*two, &*three].map(|store| store.get(&key("default", "a")).expect("they are one"));
    ensure!(held.iter().all(|object| Arc::ptr_eq(object, &held[0])));
    ensure!(world.api.faults().matched(watches) == Some(1));
    Ok(())
}

#[tokio::test]
async fn of_several_namespaces_each_is_watched_and_no_other() -> anyhow::Result<()> {
    let mut world = World::new(vec!["a".to_owned(), "b".to_owned()]);
    for namespace in ["a", "b", "other"] {
        world.namespace(namespace).await?;
        world.map(namespace, "before", "x").await?;
    }
    let (maps, namespaces) = (world.cache.store::<ConfigMap>(), world.cache.store::<Namespace>());
    world.start();
    world.cache.synced().await;
    ensure!(maps.get(&key("a", "before")).is_some() && maps.get(&key("b", "before")).is_some());
    for namespace in ["other", "a", "b"] {
        world.map(namespace, "after", "x").await?;
    }
    eventually("two more", || {
        maps.get(&key("a", "after")).is_some() && maps.get(&key("b", "after")).is_some()
    })
    .await?;
    ensure!(maps.get(&key("other", "after")).is_none());
    ensure!(namespaces.len() > 2, "what is outside namespaces is watched whole");
    // Versions of different watches do not hide each other's events: b is further by now than a.
    world.maps("a").delete("before", &DeleteParams::default()).await?;
    eventually("gone", || maps.get(&key("a", "before")).is_none()).await
}

#[tokio::test]
async fn a_selector_lets_objects_in_and_out() -> anyhow::Result<()> {
    let mut world = World::new(Namespaces::All);
    world.map("default", "a", "x").await?;
    world.map("default", "b", "y").await?;
    world.start();
    let labelled: Opened<ConfigMap> = world.cache.open(Scope::default().labelled("app in (x)")?);
    let named: Opened<ConfigMap> = world.cache.open(Scope::default().with_fields("metadata.name=b")?);
    labelled.synced().await;
    named.synced().await;
    let names = |store: &Opened<ConfigMap>| -> Vec<String> {
        let mut names: Vec<_> = store.list().iter().filter_map(|map| map.metadata.name.clone()).collect();
        names.sort();
        names
    };
    ensure!(names(&labelled) == ["a"] && names(&named) == ["b"]);
    world.label("default", "b", "x").await?;
    world.label("default", "a", "y").await?;
    eventually("they changed places", || names(&labelled) == ["b"]).await?;
    ensure!(names(&named) == ["b"]);
    Ok(())
}

#[tokio::test]
async fn metadata_alone_is_asked_for_and_held_alone() -> anyhow::Result<()> {
    for streams in [true, false] {
        let mut world = World::new(Namespaces::All);
        if !streams {
            refuse_streaming(&world);
        }
        world.map("default", "a", "x").await?;
        let store = world.cache.store::<PartialObjectMeta<ConfigMap>>();
        world.start();
        store.synced().await;
        let held = store.get(&key("default", "a")).context("held")?;
        ensure!(
            held.metadata.labels.as_ref().is_some_and(|labels| labels["app"] == "x") && held.types.is_none()
        );
        ensure!(world.stats("ConfigMap").metadata_only);
        world.label("default", "a", "y").await?;
        let app =
            || store.get(&key("default", "a")).and_then(|held| held.metadata.labels.clone()?.remove("app"));
        eventually("relabelled", || app().as_deref() == Some("y")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_transform_comes_before_holding_and_its_panic_costs_one_object() -> anyhow::Result<()> {
    let mut world = World::new("default");
    world.cache.transform(|map: &mut ConfigMap| {
        assert!(map.metadata.name.as_deref() != Some("bad"), "on purpose");
        map.data = None;
    });
    world.map("default", "bad", "x").await?;
    let store = world.cache.store::<ConfigMap>();
    world.start();
    store.synced().await;
    world.map("default", "good", "x").await?;
    eventually("the good one", || store.get(&key("default", "good")).is_some()).await?;
    ensure!(store.list().iter().all(|map| map.data.is_none()));
    ensure!(store.get(&key("default", "bad")).is_none());
    ensure!(world.stats("ConfigMap").unreadable.contains_key("default/bad"));
    Ok(())
}

#[tokio::test]
async fn what_is_opened_while_running_is_closed_by_the_last_who_drops_it() -> anyhow::Result<()> {
    let mut world = World::new(Namespaces::All);
    let kept = world.cache.store::<Pod>();
    world.start();
    kept.synced().await;
    world.map("default", "a", "x").await?;
    let one: Opened<ConfigMap> = world.cache.open(Scope::default());
    let two = world.cache.open::<ConfigMap>(Scope::default());
    one.synced().await;
    ensure!(one.get(&key("default", "a")).is_some() && world.cache.stats().len() == 2);
    let memory = Arc::downgrade(&one.get(&key("default", "a")).context("held")?);
    drop(one);
    world.map("default", "b", "x").await?;
    eventually("still open", || two.get(&key("default", "b")).is_some()).await?;
    drop(two);
    ensure!(world.cache.stats().len() == 1);
    eventually("memory given back", || memory.upgrade().is_none()).await?;
    eventually("one watch is left", || world.drop_watches() == 1).await?;
    ensure!(!world.tasks.is_empty() && world.tasks.try_join_next().is_none(), "the cache goes on");
    let again: Opened<ConfigMap> = world.cache.open(Scope::default());
    again.synced().await;
    ensure!(again.get(&key("default", "b")).is_some(), "and can be opened again");
    Ok(())
}

/// As a server that does not know streamed lists.
fn refuse_streaming(world: &World) {
    let refusal = Act::Refuse(Box::new(Status::bad_request("sendInitialEvents is forbidden")));
    world.api.faults().add(Pattern::watches().user("cache").then(Which::Nth(1), refusal));
}

#[tokio::test]
async fn a_server_that_does_not_stream_lists_is_asked_for_pages() -> anyhow::Result<()> {
    const MAPS: usize = 620;
    let mut world = World::new("default");
    refuse_streaming(&world);
    let lists = Pattern::any().verbs(&["list"]).user("cache").then(Which::UpTo(0), Act::LoseRequest);
    let lists = world.api.faults().add(lists);
    for number in 0..MAPS {
        world.map("default", &format!("map-{number}"), "x").await?;
    }
    let store = world.cache.store::<ConfigMap>();
    world.start();
    store.synced().await;
    ensure!(store.list().iter().filter(|map| map.metadata.labels.is_some()).count() == MAPS);
    ensure!(world.api.faults().matched(lists) == Some(2), "two pages");
    world.map("default", "after", "x").await?;
    eventually("watched from there", || store.get(&key("default", "after")).is_some()).await
}

#[tokio::test]
async fn over_disconnects_and_forgotten_history_nothing_is_missed() -> anyhow::Result<()> {
    let mut world = World::new("default");
    world.map("default", "a", "x").await?;
    let store = world.cache.store::<ConfigMap>();
    world.start();
    store.synced().await;
    ensure!(world.drop_watches() == 1);
    world.map("default", "b", "x").await?;
    eventually("seen after a disconnect", || store.get(&key("default", "b")).is_some()).await?;
    let stats = world.stats("ConfigMap");
    ensure!(stats.disconnects >= 1 && stats.relists == 0, "{stats:?}");

    // While it is away, something goes, and so does the history that would tell.
    let away = world.api.faults().add(Pattern::watches().user("cache").then(Which::Every, Act::LoseRequest));
    world.drop_watches();
    world.maps("default").delete("a", &DeleteParams::default()).await?;
    world.label("default", "b", "z").await?;
    world.api.store().compact(world.api.store().revision());
    eventually("it is in trouble, and says so", || world.stats("ConfigMap").trouble.is_some()).await?;
    world.api.faults().remove(away);
    let app = || store.get(&key("default", "b")).and_then(|map| map.metadata.labels.clone()?.remove("app"));
    eventually("seen after a list", || {
        store.get(&key("default", "a")).is_none() && app().as_deref() == Some("z")
    })
    .await?;
    let stats = world.stats("ConfigMap");
    ensure!(stats.relists >= 1 && stats.trouble.is_none(), "{stats:?}");
    Ok(())
}
