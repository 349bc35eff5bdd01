//! What the API can do to an operator, at every point of its life: dropped watches, forgotten history, late events, the
//! past. Injected on the server's side, so on the embedded API alone.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::Key;
use windlass::cache::Cache;
use windlass_apiserver::faults::{Act, Effect, Past, Pattern, Rule, Which};
use windlass_apiserver::read::Hold;
use windlass_clock::Clock;
use windlass_harness::{Suite, Target};
use windlass_tests::campaign::{OPERATORS, Orphans, live, run_operator, until, world};
use windlass_tests::grounds::{Embedded, embedded_in_process};
use windlass_tests::sabotage::{Break, Sabotage};

fn main() -> ExitCode {
    Suite::on([embedded_in_process()])
        .limit(Duration::from_secs(300))
        .test("watches dropped after each write", |target| {
            at_every_write(target, |number| vec![after_write(number, Effect::DropWatches(watches()))])
        })
        .test("watches dropped and history forgotten after each write", |target| {
            at_every_write(target, |number| {
                vec![
                    after_write(number, Effect::Compact),
                    after_write(number, Effect::DropWatches(watches())),
                ]
            })
        })
        .test("events late from each write on", |target| {
            at_every_write(target, |number| {
                let late = Hold { delay: Duration::from_millis(40), ..Hold::default() };
                vec![after_write(number, Effect::HoldWatches(watches(), late))]
            })
        })
        .test("a stale list after a crash at each write", stale_after_a_crash)
        .test("at rest and after a restart nothing is written", silent_at_rest)
        .test("a cached read after a write is never older than the write", reads_its_own_writes)
        .run()
}

fn watches() -> Pattern {
    Pattern::watches().user(OPERATORS[0])
}

/// Something that happens once the operator's write of this number took effect. Events are told at their own pace and do
/// not count.
fn after_write(number: u64, effect: Effect) -> Rule {
    let writes = Pattern::writes().user(OPERATORS[0]);
    writes.then(Which::Nth(number), Act::After(effect))
}

fn embedded(target: &Target) -> anyhow::Result<&Embedded> {
    target.extra::<Embedded>().context("these tests run on the embedded API")
}

async fn at_every_write(target: Target, rules: impl Fn(u64) -> Vec<Rule>) -> anyhow::Result<()> {
    let (place, namespace) = world(&target).await?;
    let undisturbed =
        live(&place, &namespace, Sabotage::none(), None, Orphans::Count).await.context("undisturbed")?;
    let count = undisturbed.writes.len();
    for number in 1..=count {
        let (place, namespace) = world(&target).await?;
        for rule in rules(number as u64) {
            embedded(&place)?.api.faults().add(rule);
        }
        live(&place, &namespace, Sabotage::none(), Some(&undisturbed.state), Orphans::Count)
            .await
            .with_context(|| format!("at write {number} of {count}"))?;
    }
    println!("{count} points, the same end each time");
    Ok(())
}

/// Killed after each write, and then shown a world of some writes ago for a while.
async fn stale_after_a_crash(target: Target) -> anyhow::Result<()> {
    let (place, namespace) = world(&target).await?;
    let undisturbed =
        live(&place, &namespace, Sabotage::none(), None, Orphans::Count).await.context("undisturbed")?;
    let count = undisturbed.writes.len();
    for number in 1..=count {
        let (place, namespace) = world(&target).await?;
        let faults = embedded(&place)?.api.clone();
        let reads = Pattern::any().verbs(&["get", "list", "watch"]).user(OPERATORS[1]);
        let stale = faults.faults().add(reads.then(Which::Every, Act::ServePast(Past::Behind(4))));
        let sabotage = Sabotage::at(number, Break::KillAfter);
        let killed = sabotage.clone();
        let recovery = tokio::spawn(async move {
            killed.killed().await;
            Clock::real().sleep(Duration::from_millis(120)).await;
            faults.faults().remove(stale);
        });
        live(&place, &namespace, sabotage, Some(&undisturbed.state), Orphans::AreCollected)
            .await
            .with_context(|| format!("the past after a crash at write {number} of {count}"))?;
        recovery.await?;
    }
    println!("{count} points, the same end each time");
    Ok(())
}

async fn silent_at_rest(target: Target) -> anyhow::Result<()> {
    const LONG_ENOUGH: Duration = Duration::from_millis(700);
    let (place, namespace) = world(&target).await?;
    live(&place, &namespace, Sabotage::none(), None, Orphans::Count).await?;
    let audit = embedded(&place)?.api.clone();
    let before = audit.faults().audit().total();
    ensure!(before > 10, "the API counted {before} writes of a whole life");
    for round in ["after a restart", "after another restart"] {
        run_operator(&place, &namespace, OPERATORS[1], &Sabotage::none()).await_for(LONG_ENOUGH).await?;
        let written = audit.faults().audit().since(before);
        ensure!(written.is_empty(), "{round}, in a world that is as declared, it wrote {written:?}");
    }
    Ok(())
}

/// Runs something for a while, which must not end by itself meanwhile.
trait AwaitFor {
    async fn await_for(self, duration: Duration) -> anyhow::Result<()>;
}

impl<F: Future<Output = anyhow::Result<()>>> AwaitFor for F {
    async fn await_for(self, duration: Duration) -> anyhow::Result<()> {
        match Clock::real().timeout(duration, self).await {
            Err(_) => Ok(()),
            Ok(ended) => {
                ended?;
                anyhow::bail!("it ended by itself")
            }
        }
    }
}

/// Writes go through a client whose watches are late by different times; every answer enters the cache.
async fn reads_its_own_writes(target: Target) -> anyhow::Result<()> {
    const WRITES: usize = 300;
    let embedded = embedded(&target)?;
    let clock = Clock::real();
    let late = Hold { delay: Duration::from_millis(25), ..Hold::default() };
    embedded.api.faults().add(Pattern::watches().then(Which::Every, Act::HoldEvents(late)));
    let namespace = target.namespace().await?;
    let maps: Api<ConfigMap> = Api::namespaced(target.client(), &namespace);

    let cache = Cache::new(Arc::from(""), Some(namespace.clone()));
    let store = cache.store::<ConfigMap>();
    let mut tasks = JoinSet::new();
    cache.start(&target.client(), &clock, &mut tasks);
    cache.synced().await;
    let mut behind = 0;
    for number in 0..WRITES {
        let name = format!("map-{}", number % 7);
        let written = if maps.get_opt(&name).await?.is_none() {
            let map = ConfigMap {
                metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
                ..ConfigMap::default()
            };
            maps.create(&PostParams::default(), &map).await?
        } else {
            let change = serde_json::json!({"data": BTreeMap::from([("number", number.to_string())])});
            maps.patch(&name, &PatchParams::default(), &Patch::Merge(change)).await?
        };
        let version: u64 = written.resource_version().context("a version")?.parse()?;
        let (key, _) = store.wrote(&serde_json::to_value(&written)?, None)?;
        let cached = store.get(&key).context("written and not in the cache")?;
        let seen: u64 = cached.resource_version().context("a version")?.parse()?;
        ensure!(seen >= version, "write {number} made version {version}, the cache has {seen}");
        // And what was cached before does not fall back either, whatever event has come meanwhile.
        if number % 7 == 3 {
            clock.sleep(Duration::from_millis(3)).await;
            let later: u64 =
                store.get(&key).and_then(|map| map.resource_version()).context("gone")?.parse()?;
            ensure!(later >= version, "the cache fell back from {version} to {later}");
            behind += 1;
        }
    }
    let newest: Vec<Key> = (0..7).map(|number| key(&namespace, number)).collect();
    until("the watch caught up", || async { Ok(newest.iter().all(|key| store.get(key).is_some())) }).await?;
    println!("{WRITES} writes read back at once, {behind} looked at again among late events");
    tasks.shutdown().await;
    Ok(())
}

fn key(namespace: &str, number: usize) -> Key {
    Key::new(Arc::from(""), Some(namespace), &format!("map-{number}"))
}
