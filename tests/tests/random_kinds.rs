//! Random objects of built-in kinds, written by several managers through all versions, subresources and forms of patches,
//! sent to two servers: equal objects, managedFields, warnings and errors.
//!
//! `WINDLASS_STEPS` says how many steps (default 1,200, and 500 quantities; the acceptance run has 10,000); `WINDLASS_SEED` runs one seed;
//! `WINDLASS_KIND` runs the kinds whose name contains it.

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::Duration;
use windlass::Quantity;
use windlass_clock::Clock;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::compare::built_in::{Kind, requests::Requests};
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::{Pair, Random, Request, Server, Side, looked_at_again, quantities};
use windlass_tests::targets::Embedded;

/// Steps on the objects of one kind before the next.
const STEPS_PER_SEED: usize = 30;

/// Quantities in one request.
const QUANTITIES_PER_REQUEST: usize = 100;

/// Seeds beyond those of the default run that once showed a difference, kept for good; what they showed has names among the
/// behaviours of `tests/src/parity/built_in.rs`.
const KEPT: &[u64] = &[
    46,  // an Event written through both groups
    77,  // an autoscaler's status written through its old version
    104, // an apply that changes nothing of what nobody owned
    107, // a Service whose type changes
    125, // what a kind spells out though it is empty has no owner
    257, // an autoscaler's status read back from annotations
    611, // an update of a Service that is gone, where its objects have another place
];

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(2400))
        .test("random objects of built-in kinds get equal responses", equal_answers)
        .test("random quantities are stored and rejected alike", equal_quantities)
        .run()
}

async fn equal_answers(target: Target) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = usize::try_from(number("WINDLASS_STEPS").unwrap_or(1200))?;
    let families = families();
    let seeds: Vec<u64> = match number("WINDLASS_SEED") {
        Some(seed) => vec![seed],
        None => KEPT.iter().copied().chain(1..=steps.div_ceil(STEPS_PER_SEED) as u64).collect(),
    };
    let only = std::env::var("WINDLASS_KIND").unwrap_or_default();
    let (mut done, mut failures) = (0, Vec::new());
    for seed in seeds {
        let family = &families[usize::try_from(seed)? % families.len()];
        if !family[0].kind.contains(&only) {
            continue;
        }
        match looked_at_again(&format!("seed {seed}"), || run_seed(&target, seed, family)).await {
            Ok(count) => done += count,
            Err(error) => failures.push(format!("seed {seed}, {}: {error:#}", family[0].kind)),
        }
        if failures.len() >= 8 {
            break;
        }
    }
    println!("{done} steps got equal answers");
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

/// Many quantities in one object each, which both servers write in canonical form, and one by one those that are none.
async fn equal_quantities(target: Target) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = usize::try_from(number("WINDLASS_STEPS").unwrap_or(500))?;
    let mut random = Random::seeded(number("WINDLASS_SEED").unwrap_or(1));
    let embedded = Embedded::in_process();
    let mut pair = Pair {
        left: Side::new(Server::new("embedded", embedded.client())),
        right: Side::new(Server::new("reference", target.client())),
    };
    let namespace = format!("quantities-{}", Clock::real().now().as_millisecond());
    for side in [&pair.left, &pair.right] {
        prepare(&side.server, &namespace).await?;
    }
    let mut batches: [Vec<String>; 2] = Default::default();
    let mut compared = 0;
    while compared < steps {
        let text = quantities::any(&mut random);
        // What is negative is refused, in an error that shows each.
        let (batch, size) = match text.trim().parse::<Quantity>() {
            Ok(quantity) if quantities::is_lost(&quantity) => continue,
            Ok(quantity) => (&mut batches[usize::from(quantity.is_negative())], QUANTITIES_PER_REQUEST),
            Err(_) => (&mut Vec::new(), 1),
        };
        batch.push(text);
        if batch.len() >= size {
            compared += batch.len();
            for (path, object) in objects_with(batch) {
                let path = format!("/api/v1/namespaces/{namespace}/{path}");
                let request = Request::new("POST", path).with("dryRun", "All").body(media::JSON, object);
                pair.ask(&request).await?;
            }
            batch.clear();
        }
    }
    println!("{compared} quantities got equal answers");
    let namespace = Request::new("DELETE", format!("/api/v1/namespaces/{namespace}"));
    pair.right.server.send(&namespace).await?;
    Ok(())
}

/// The quantities in a list of resources, which rounds them to thousandths, and in fields of their own, which do not.
fn objects_with(quantities: &[String]) -> [(&'static str, Value); 2] {
    let hard: Map<String, Value> = (0_usize..)
        .zip(quantities)
        .map(|(at, text)| (format!("x{at}.kubernetes.io/y"), json!(text)))
        .collect();
    let volumes: Vec<Value> = (0_usize..)
        .zip(quantities)
        .map(|(at, text)| json!({"name": format!("v{at}"), "emptyDir": {"sizeLimit": text}}))
        .collect();
    let containers = json!([{"name": "c", "image": "i"}]);
    [
        (
            "resourcequotas",
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}),
        ),
        (
            "podtemplates",
            json!({
                "apiVersion": "v1", "kind": "PodTemplate",
                "metadata": {"name": "q"},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": containers, "volumes": volumes},
                },
            }),
        ),
    ]
}

/// Kinds, each with all of its versions.
fn families() -> Vec<Vec<Kind>> {
    let mut families: Vec<Vec<Kind>> = Vec::new();
    for kind in Kind::all() {
        match families.iter_mut().find(|family| family[0].kind == kind.kind) {
            Some(family) => family.push(kind),
            None => families.push(vec![kind]),
        }
    }
    families
}

async fn run_seed(target: &Target, seed: u64, family: &[Kind]) -> anyhow::Result<usize> {
    let embedded = Embedded::in_process();
    let mut pair = Pair {
        left: Side::new(Server::new("embedded", embedded.client())),
        right: Side::new(Server::new("reference", target.client())),
    };
    let namespace = format!("kinds-{seed}-{}", Clock::real().now().as_millisecond());
    // Names of what is in no namespace are shared with other seeds.
    let names = ["one", "two"].map(|name| match family[0].namespaced {
        true => name.to_owned(),
        false => format!("{name}-{namespace}"),
    });
    let requests = Requests { versions: family.to_vec(), namespace: namespace.clone(), names };
    for side in [&pair.left, &pair.right] {
        prepare(&side.server, &namespace).await?;
    }
    let mut random = Random::seeded(seed);
    let mut last: [Option<Value>; 2] = [None, None];
    let mut outcome = Ok(());
    for step in 0..STEPS_PER_SEED {
        let number = random.below(2);
        let request = requests.request(&mut random, number, last[number].as_ref());
        match pair.ask(&request).await {
            Ok(answer) => {
                let whole = answer.is_success() && !request.path.ends_with("/scale");
                if whole && !request.query.iter().any(|(name, _)| *name == "dryRun") {
                    last[number] = (answer.body["kind"] == family[0].kind).then_some(answer.body);
                }
            }
            Err(error) => {
                outcome = Err(error.context(format!("step {step}")));
                break;
            }
        }
    }
    let clean = clean_up(&pair.right.server, &requests).await;
    outcome.and(clean)?;
    Ok(STEPS_PER_SEED)
}

/// A namespace with the account that a controller would put there.
async fn prepare(server: &Server, namespace: &str) -> anyhow::Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    for (path, object) in [("/api/v1/namespaces".to_owned(), object), (accounts, account)] {
        let answer = server.send(&Request::new("POST", path).body(media::JSON, object)).await?;
        ensure!(answer.is_success(), "{answer}");
    }
    Ok(())
}

/// What is in no namespace would be seen by others.
async fn clean_up(server: &Server, requests: &Requests) -> anyhow::Result<()> {
    let kind = &requests.versions[0];
    for name in &requests.names {
        let item = format!("{}/{name}", kind.collection(&requests.namespace));
        let release = json!({"metadata": {"finalizers": null}});
        server.send(&Request::new("DELETE", item.clone())).await.context("cleaning up")?;
        server.send(&Request::new("PATCH", item).body(media::MERGE_PATCH, release)).await?;
    }
    let namespace = format!("/api/v1/namespaces/{}", requests.namespace);
    server.send(&Request::new("DELETE", namespace)).await?;
    Ok(())
}
