//! Random structural schemas, objects and sequences of writes by several managers, sent to two servers: equal objects,
//! managedFields, conflicts and errors.
//!
//! `WINDLASS_STEPS` says how many steps (default 600, the acceptance run has 5,000 and more); `WINDLASS_SEED` runs one seed.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::looked_at_again;
use windlass_tests::compare::writes::{NAMES, RandomCrd, collection};
use windlass_tests::compare::{Pair, Random, Request, Server, Side, schemas};

/// Steps on one schema before the next.
const STEPS_PER_SEED: usize = 60;

/// Seeds that once showed a difference, kept for good.
const KEPT: &[u64] = &[
    1006, // through the status, nobody owned the rest in any version
    1024, // a write of what is shown has an effect where more was stored
    1081, // defaults of embedded resources lose what is empty in their metadata
    1087, // what YAML writes as 1.0 is an integer
];

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(1500))
        .test("random writes get equal responses", equal_answers)
        .run()
}

async fn equal_answers(target: Target) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = usize::try_from(number("WINDLASS_STEPS").unwrap_or(600))?;
    let seeds: Vec<u64> = match number("WINDLASS_SEED") {
        Some(seed) => vec![seed],
        None => KEPT.iter().copied().chain(1000..1000 + (steps / STEPS_PER_SEED) as u64).collect(),
    };
    let mut done = 0;
    let mut failures = Vec::new();
    for seed in &seeds {
        match looked_at_again(&format!("seed {seed}"), || run_seed(&target, *seed)).await {
            Ok(count) => done += count,
            Err(error) => failures.push(format!("seed {seed}: {error:#}")),
        }
        if failures.len() >= 8 {
            break;
        }
    }
    println!("{done} steps over {} schemas got equal answers", seeds.len() - failures.len());
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

async fn run_seed(target: &Target, seed: u64) -> anyhow::Result<usize> {
    let mut random = Random::seeded(seed);
    let left = windlass_tests::targets::Embedded::in_process().client();
    let mut pair = Pair {
        left: Side::new(Server::new("embedded", left)),
        right: Side::new(Server::new("reference", target.client())),
    };
    let crd = schemas::crd(seed, &mut random);
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let name = crd["metadata"]["name"].as_str().context("a name")?.to_owned();
    let create = Request::new("POST", crds).body(media::JSON, crd.clone());
    let delete = Request::new("DELETE", format!("{crds}/{name}"));
    // A run that was interrupted may have left it.
    for side in [&pair.left, &pair.right] {
        remove(&side.server, &delete, seed).await?;
    }
    let (left, right) = (pair.left.server.send(&create).await?, pair.right.server.send(&create).await?);
    ensure!(
        left.status == right.status,
        "the CRD: {crd}\n  {}\n  {}",
        left.body["message"],
        right.body["message"]
    );
    if !right.is_success() {
        ensure!(
            left.body["details"] == right.body["details"],
            "the CRD: {crd}\n  {}\n  {}",
            left.body["details"],
            right.body["details"]
        );
        return Ok(1);
    }
    wait_until_served(&pair.left.server, seed).await?;
    wait_until_served(&pair.right.server, seed).await?;
    let outcome = steps(&mut pair, &mut random, seed, &crd).await;
    for side in [&pair.left, &pair.right] {
        remove(&side.server, &delete, seed).await?;
    }
    outcome.with_context(|| {
        format!("schema {}", crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"])
    })
}

/// Deletes the CRD and waits until it is gone; nothing of it may be held by finalizers.
async fn remove(server: &Server, delete: &Request, seed: u64) -> anyhow::Result<()> {
    let clock = Clock::real();
    for name in NAMES {
        let path = format!("{}/{name}", collection(seed, "v1"));
        let release = json!({"metadata": {"finalizers": null}});
        server.send(&Request::new("PATCH", path).body(media::MERGE_PATCH, release)).await?;
    }
    for _ in 0..600 {
        if server.send(delete).await?.status == 404 {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the CRD was not gone after 12 s")
}

async fn wait_until_served(server: &Server, seed: u64) -> anyhow::Result<()> {
    let clock = Clock::real();
    let list = Request::new("GET", collection(seed, "v1"));
    for _ in 0..600 {
        if server.send(&list).await?.is_success() {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the CRD was not served after 12 s")
}

async fn steps(pair: &mut Pair, random: &mut Random, seed: u64, crd: &Value) -> anyhow::Result<usize> {
    let versions = crd["spec"]["versions"].as_array().context("versions")?;
    let writes = RandomCrd { seed, versions };
    let mut last: [Option<Value>; 2] = [None, None];
    for step in 0..STEPS_PER_SEED {
        let which = random.below(NAMES.len());
        let request = writes.request(random, NAMES[which], last[which].as_ref());
        let answer = pair.ask(&request).await.with_context(|| format!("step {step}"))?;
        if answer.is_success() && !request.query.iter().any(|(name, _)| *name == "dryRun") {
            // A deletion that finalizers hold back answers with the object.
            last[which] = (answer.body["kind"] == "Thing").then_some(answer.body);
        }
    }
    Ok(STEPS_PER_SEED)
}
