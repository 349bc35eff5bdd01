//! Leader election: whichever replica fails, and whenever, there are never two leaders, and soon a new one.

use anyhow::{Context, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use windlass::election::{Candidate, Election, Leadership, Lost};
use windlass::{Controller, Manager, Observed, Plan, Reasoned, Refusal};
use windlass_clock::{Clock, Driver};
use windlass_harness::{Suite, Target};
use windlass_tests::targets;
use windlass_tests::waiting::until;

fn main() -> ExitCode {
    Suite::on(targets::all())
        .limit(Duration::from_secs(120))
        .test("one replica leads, and another takes over when the lease is released", handed_over)
        .test("a disconnected leader stops before another starts", cut_off)
        .test("a leader that was suspended past its lease sends no write when it resumes", slept)
        .test("a leader whose lease was taken stops leading", taken)
        .test("a renewal whose response is lost is detected, and leadership continues", lost_answer)
        .test("of two replicas one reconciles, and the other takes over at once", operators)
        .run()
}

/// A clock that the test drives, and how candidates are made on it.
struct Scene {
    target: Target,
    namespace: String,
    clock: Clock,
    driver: Driver,
}

impl Scene {
    async fn of(target: Target) -> anyhow::Result<Self> {
        let namespace = target.namespace().await?;
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse()?);
        Ok(Self { target, namespace, clock, driver })
    }

    fn candidate(&self, identity: &str, client: kube::Client) -> Candidate {
        Election::new(&self.namespace, "windlass").identity(identity).candidate(client, self.clock.clone())
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.target.client(), &self.namespace)
    }

    /// Lets time pass in small steps until `done`, and looks at every step that no two lead.
    async fn pass_until(&self, leaders: &[&Leadership], done: impl Fn() -> bool) -> anyhow::Result<()> {
        let real = Clock::real();
        for _ in 0..1_000 {
            ensure!(leaders.iter().filter(|one| one.leads()).count() <= 1, "two lead at once");
            if done() {
                return Ok(());
            }
            self.driver.advance(Duration::from_millis(100));
            // The candidates' requests take real time: a fifth of what they think it is.
            real.sleep(Duration::from_millis(20)).await;
        }
        anyhow::bail!("not after 100 s of driven time")
    }
}

async fn handed_over(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let mut first = scene.candidate("first", scene.target.client());
    let mut second = scene.candidate("second", scene.target.client());
    let (one, two) = (first.leadership(), second.leadership());
    first.acquire().await;
    ensure!(one.leads() && !two.leads());
    let waiting = tokio::spawn(async move {
        second.acquire().await;
        second
    });
    // For longer than a lease lasts: it is renewed.
    let holding = tokio::spawn(async move { first.renew().await });
    let start = scene.clock.moment();
    scene.pass_until(&[&one, &two], || scene.clock.moment() - start > Duration::from_secs(20)).await?;
    ensure!(one.leads(), "the leader lost a lease that it could renew");
    holding.abort();
    let _ = holding.await;
    // One of the same name renews what is its own, and gives it back.
    let mut again = scene.candidate("first", scene.target.client());
    again.acquire().await;
    again.release().await;
    let before = scene.clock.moment();
    scene.pass_until(&[&two], || two.leads()).await?;
    ensure!(
        scene.clock.moment() - before <= Duration::from_secs(3),
        "the next one waited for a lease given back"
    );
    drop(waiting.await?);
    let lease = scene.leases().get("windlass").await?;
    let spec = lease.spec.context("a lease without a spec")?;
    ensure!(spec.holder_identity.as_deref() == Some("second"), "{spec:?}");
    ensure!(spec.lease_transitions == Some(1) && spec.lease_duration_seconds == Some(15), "{spec:?}");
    Ok(())
}

async fn cut_off(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let cut = Arc::new(AtomicBool::new(false));
    let mut first = scene.candidate("first", cuttable(scene.target.client(), cut.clone()));
    let mut second = scene.candidate("second", scene.target.client());
    let (one, two) = (first.leadership(), second.leadership());
    first.acquire().await;
    let holding = tokio::spawn(async move { first.renew().await });
    let waiting = tokio::spawn(async move { second.acquire().await });
    let start = scene.clock.moment();
    scene.pass_until(&[&one, &two], || scene.clock.moment() - start > Duration::from_secs(20)).await?;
    ensure!(one.leads());
    cut.store(true, Ordering::SeqCst);
    scene.pass_until(&[&one, &two], || two.leads()).await?;
    ensure!(!one.leads());
    let lost = holding.await?;
    ensure!(matches!(lost, Lost::NotRenewed { .. }), "{lost}");
    waiting.await?;
    Ok(())
}

async fn slept(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let mut candidate = scene.candidate("sleeper", scene.target.client());
    let leadership = candidate.leadership();
    let maps: Api<ConfigMap> = Api::namespaced(leadership.guard(scene.target.client()), &scene.namespace);
    let refused = maps.create(&PostParams::default(), &map("early")).await;
    ensure!(refused.is_err(), "a write before the lease was held");
    candidate.acquire().await;
    maps.create(&PostParams::default(), &map("leading")).await?;
    let holding = tokio::spawn(async move { candidate.renew().await });
    // As a stopped process: time passes, and nobody renews.
    scene.driver.advance(Duration::from_secs(60));
    let refused = maps.create(&PostParams::default(), &map("late")).await;
    let error = refused.err().context("a write past the deadline was sent")?;
    ensure!(format!("{error:?}").contains("NotLeading"), "{error:?}");
    ensure!(
        maps.list(&kube::api::ListParams::default()).await?.items.iter().all(|map| map.name_any() != "late")
    );
    ensure!(matches!(holding.await?, Lost::NotRenewed { .. }));
    Ok(())
}

async fn taken(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let mut candidate = scene.candidate("mine", scene.target.client());
    let leadership = candidate.leadership();
    candidate.acquire().await;
    let force = serde_json::json!({"spec": {"holderIdentity": "theirs"}});
    scene.leases().patch("windlass", &PatchParams::default(), &Patch::Merge(force)).await?;
    let holding = tokio::spawn(async move { candidate.renew().await });
    scene.pass_until(&[&leadership], || !leadership.leads()).await?;
    let lost = holding.await?;
    ensure!(matches!(&lost, Lost::Taken { by } if by == "theirs"), "{lost}");
    Ok(())
}

async fn lost_answer(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let lose = Arc::new(AtomicBool::new(false));
    let mut candidate = scene.candidate("mine", losing_answers(scene.target.client(), lose.clone()));
    let leadership = candidate.leadership();
    candidate.acquire().await;
    let holding = tokio::spawn(async move { candidate.renew().await });
    lose.store(true, Ordering::SeqCst);
    let start = scene.clock.moment();
    scene.pass_until(&[&leadership], || scene.clock.moment() - start > Duration::from_secs(20)).await?;
    ensure!(!lose.load(Ordering::SeqCst), "no answer was lost");
    ensure!(leadership.leads(), "one lost answer cost the lease");
    holding.abort();
    Ok(())
}

async fn operators(target: Target) -> anyhow::Result<()> {
    let namespace = target.namespace().await?;
    let start = |identity: &'static str| {
        let (client, namespace) = (target.client(), namespace.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let election = Election::new(&namespace, "operator").identity(identity).durations(
            Duration::from_secs(30),
            Duration::from_secs(20),
            Duration::from_millis(200),
        );
        let task = tokio::spawn(async move {
            Manager::new(client, Clock::real())
                .namespace(namespace)
                .leader_election(election)
                .controller(Controller::deciding(decide).named(identity).owns::<Secret>())
                .run_until(async {
                    let _ = stopped.await;
                })
                .await
        });
        (stop, task)
    };
    let leases: Api<Lease> = Api::namespaced(target.client(), &namespace);
    let maps: Api<ConfigMap> = Api::namespaced(target.client(), &namespace);
    let secrets: Api<Secret> = Api::namespaced(target.client(), &namespace);
    let held_by = async |identity: &str| {
        until("the lease is held", async || {
            let lease = leases.get_opt("operator").await?;
            Ok(lease.and_then(|lease| lease.spec?.holder_identity).as_deref() == Some(identity))
        })
        .await
    };
    let made = async |name: &str| {
        until("the secret is made", async || Ok(secrets.get_opt(name).await?.is_some())).await
    };
    let (stop_first, first) = start("first");
    held_by("first").await?;
    let (stop_second, second) = start("second");
    maps.create(&PostParams::default(), &map("a")).await?;
    made("a").await?;
    let before = Clock::real().moment();
    let _ = stop_first.send(());
    first.await??;
    held_by("second").await?;
    ensure!(Clock::real().moment() - before < Duration::from_secs(20), "the lease was waited for");
    maps.create(&PostParams::default(), &map("b")).await?;
    made("b").await?;
    let _ = stop_second.send(());
    second.await??;
    Ok(())
}

#[derive(Debug)]
enum Why {
    Mirrors,
}

impl Reasoned for Why {}

fn decide(map: &ConfigMap, _: &Observed) -> Result<Plan, Refusal> {
    let mut secret = Secret::default();
    secret.metadata.name = Some(map.name_any());
    secret.metadata.namespace = map.namespace();
    Ok(Plan::new().apply(secret, Why::Mirrors))
}

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

/// A client whose requests fail once it is cut.
fn cuttable(client: kube::Client, cut: Arc<AtomicBool>) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, cut) = (client.clone(), cut.clone());
        async move {
            if cut.load(Ordering::SeqCst) {
                return Err(tower::BoxError::from("cut off"));
            }
            Ok(client.send(request).await?)
        }
    });
    kube::Client::new(service, namespace)
}

/// A client that loses the answer to its next write, once.
fn losing_answers(client: kube::Client, lose: Arc<AtomicBool>) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, lose) = (client.clone(), lose.clone());
        async move {
            let writes = request.method() != http::Method::GET;
            let answer = client.send(request).await?;
            if writes && lose.swap(false, Ordering::SeqCst) {
                return Err(tower::BoxError::from("the answer was lost"));
            }
            Ok(answer)
        }
    });
    kube::Client::new(service, namespace)
}
