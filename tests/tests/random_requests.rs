//! Random sequences of creates, updates, deletes with finalizers, lists with versions and watches by several clients, sent
//! to two servers: equal answers and event orders.
//!
//! `WINDLASS_STEPS` says how many requests (default 800, the acceptance run has 5,000 and more); `WINDLASS_SEED` runs one
//! seed.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Ground, Suite, Target};
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::normalise::may_be_newer;
use windlass_tests::compare::{Pair, Random, Request, Server, Side, first_difference};

/// Requests before the watches of a round are compared.
const STEPS_PER_ROUND: usize = 60;
/// Rounds on one pair of namespaces.
const ROUNDS_PER_SEED: usize = 3;
/// How long a watch may take to show what was written.
const EVENTS_WITHIN: Duration = Duration::from_secs(10);

/// Seeds that once showed a difference, kept for good.
const KEPT: &[u64] = &[];

fn main() -> ExitCode {
    Suite::on([Ground::reference()])
        .limit(Duration::from_secs(1500))
        .test("random requests get equal answers and event orders", equal_answers)
        .run()
}

async fn equal_answers(target: Target) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = usize::try_from(number("WINDLASS_STEPS").unwrap_or(800))?;
    let seeds: Vec<u64> = match number("WINDLASS_SEED") {
        Some(seed) => vec![seed],
        None => {
            let count = steps.div_ceil(STEPS_PER_ROUND * ROUNDS_PER_SEED) as u64;
            KEPT.iter().copied().chain(1..=count).collect()
        }
    };
    let (mut requests, mut failures) = (0, Vec::new());
    for seed in &seeds {
        match run_seed(&target, *seed).await {
            Ok(count) => requests += count,
            Err(error) => failures.push(format!("seed {seed}: {error:#}")),
        }
        if failures.len() >= 6 {
            break;
        }
    }
    println!("{requests} requests got equal answers");
    ensure!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

/// One kind that is served on both sides.
struct Kind {
    api_version: &'static str,
    kind: &'static str,
    collection: String,
}

struct Sequence {
    pair: Pair,
    random: Random,
    kinds: Vec<Kind>,
    namespace: String,
    sent: usize,
    tokens: Vec<String>,
}

async fn run_seed(target: &Target, seed: u64) -> anyhow::Result<usize> {
    let pair = Pair {
        left: Side::new(Server::new("embedded", windlass_tests::grounds::Embedded::in_process().client())),
        right: Side::new(Server::new("reference", target.client())),
    };
    let clock = Clock::real();
    let namespace = format!("random-{seed}-{}", clock.now().as_second());
    let core = format!("/api/v1/namespaces/{namespace}");
    let coordination = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}");
    let kinds = vec![
        Kind { api_version: "v1", kind: "ConfigMap", collection: format!("{core}/configmaps") },
        Kind { api_version: "v1", kind: "Secret", collection: format!("{core}/secrets") },
        Kind {
            api_version: "coordination.k8s.io/v1",
            kind: "Lease",
            collection: format!("{coordination}/leases"),
        },
    ];
    let mut sequence =
        Sequence { pair, random: Random::seeded(seed), kinds, namespace, sent: 0, tokens: Vec::new() };
    let outcome = sequence.run().await;
    let remove = Request::new("DELETE", format!("/api/v1/namespaces/{}", sequence.namespace));
    sequence.pair.right.server.send(&remove).await?;
    outcome.map(|()| sequence.sent)
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const CLIENTS: [&str; 3] = ["alice", "bob", "carol"];

impl Sequence {
    async fn run(&mut self) -> anyhow::Result<()> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace.as_str()}});
        self.ask(Request::new("POST", "/api/v1/namespaces").body(media::JSON, namespace)).await?;
        for round in 0..ROUNDS_PER_SEED {
            for step in 0..STEPS_PER_ROUND {
                let request = self.request();
                self.ask(request).await.with_context(|| format!("round {round}, step {step}"))?;
            }
            for kind in 0..self.kinds.len() {
                self.compare_watches(kind, round)
                    .await
                    .with_context(|| format!("watches of round {round}"))?;
            }
        }
        Ok(())
    }

    async fn ask(&mut self, request: Request) -> anyhow::Result<Value> {
        // A list that may be of an older version comes from the reference's cache, which may lag behind; a consistent
        // list first brings it up to date.
        if may_be_newer(&request) {
            self.pair.ask(&Request::new("GET", request.path.clone())).await?;
        }
        let answer = self.pair.ask(&request).await?;
        self.sent += 1;
        if let Some(token) = answer.body.pointer("/metadata/continue").and_then(Value::as_str) {
            self.tokens.push(token.to_owned());
        }
        Ok(answer.body)
    }

    /// A version that exists, as a name that both sides understand.
    fn version(&mut self) -> String {
        let known = self.pair.right.normaliser.writes().max(1);
        format!("<version {}>", 1 + self.random.below(known))
    }

    fn object(&mut self, kind: usize, name: &str) -> Value {
        let random = &mut self.random;
        let Kind { api_version, kind, .. } = &self.kinds[kind];
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if random.chance(70) {
            object["metadata"]["labels"] =
                json!({"l": random.pick(&["1", "2"]), "m": random.pick(&["x", "y"])});
        }
        if random.chance(25) {
            object["metadata"]["finalizers"] =
                json!([random.pick(&["windlass.test/one", "windlass.test/two"])]);
        }
        if random.chance(20) {
            object["metadata"]["annotations"] = json!({"note": random.pick(&["p", "q"])});
        }
        match *kind {
            "ConfigMap" => object["data"] = json!({"k": random.pick(&["1", "2", "3"])}),
            "Secret" => object["stringData"] = json!({"k": random.pick(&["1", "2", "3"])}),
            _ => {
                object["spec"] =
                    json!({"holderIdentity": random.pick(&["me", "you"]), "leaseDurationSeconds": 15})
            }
        }
        object
    }

    fn request(&mut self) -> Request {
        let kind = self.random.below(self.kinds.len());
        let collection = self.kinds[kind].collection.clone();
        let name = *self.random.pick(&NAMES);
        let item = format!("{collection}/{name}");
        let client = *self.random.pick(&CLIENTS);
        let request = match self.random.below(20) {
            0..=4 => Request::new("POST", collection).body(media::JSON, self.object(kind, name)),
            5..=7 => {
                let mut object = self.object(kind, name);
                if self.random.chance(30) {
                    object["metadata"]["resourceVersion"] = json!(self.version());
                }
                Request::new("PUT", item).body(media::JSON, object)
            }
            8 | 9 => {
                let patch = match self.random.below(4) {
                    0 => json!({"metadata": {"finalizers": null}}),
                    1 => json!({"metadata": {"labels": {"l": self.random.pick(&["1", "2", "3"])}}}),
                    2 => json!({"metadata": {"labels": {"l": null}, "resourceVersion": self.version()}}),
                    _ => json!({"metadata": {"finalizers": ["windlass.test/one"]}}),
                };
                Request::new("PATCH", item).body(media::MERGE_PATCH, patch)
            }
            10..=12 => self.delete(item),
            13 => Request::new("GET", item),
            14 if self.random.chance(30) => Request::new("DELETE", collection)
                .with("labelSelector", format!("l={}", self.random.pick(&["1", "2"]))),
            _ => self.list(collection),
        };
        request.by(client)
    }

    fn delete(&mut self, item: String) -> Request {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        match self.random.below(8) {
            0 => options["preconditions"] = json!({"resourceVersion": self.version()}),
            1 => options["preconditions"] = json!({"uid": "<uid 1>"}),
            2 => {
                options["propagationPolicy"] =
                    json!(self.random.pick(&["Foreground", "Background", "Orphan"]))
            }
            3 => options["gracePeriodSeconds"] = json!(self.random.below(3)),
            4 => options["dryRun"] = json!(["All"]),
            5 => options["orphanDependents"] = json!(true),
            _ => return Request::new("DELETE", item),
        }
        Request::new("DELETE", item).body(media::JSON, options)
    }

    fn list(&mut self, collection: String) -> Request {
        let mut request = Request::new("GET", collection);
        if self.random.chance(35) {
            request = request
                .with("labelSelector", *self.random.pick(&["l=1", "l!=1", "m in (x,z)", "!l", "l,m=y"]));
        }
        if self.random.chance(15) {
            let selector = *self.random.pick(&["metadata.name=a", "metadata.name!=b", "spec.none=1"]);
            request = request.with("fieldSelector", selector);
        }
        if self.random.chance(35) {
            request = request.with("limit", (1 + self.random.below(3)).to_string());
        }
        match self.random.below(10) {
            0 => request.with("resourceVersion", "0"),
            1 => {
                let version = self.version();
                request.with("resourceVersion", version)
            }
            2 | 3 => {
                let version = self.version();
                request.with("resourceVersion", version).with("resourceVersionMatch", "Exact")
            }
            4 => {
                let version = self.version();
                request.with("resourceVersion", version).with("resourceVersionMatch", "NotOlderThan")
            }
            5 => request.with("resourceVersionMatch", "Exact"),
            6 => request.with("resourceVersion", "0").with("resourceVersionMatch", "Exact"),
            7 | 8 if !self.tokens.is_empty() => {
                let token = self.tokens[self.tokens.len() - 1].clone();
                request.with("limit", "2").with("continue", token)
            }
            _ => request,
        }
    }

    /// Opens watches of several forms on both sides and compares what they tell up to a last object.
    async fn compare_watches(&mut self, kind: usize, round: usize) -> anyhow::Result<()> {
        let last = format!("last-{round}");
        let mut object = self.object(kind, &last);
        object["metadata"] = json!({"name": last, "labels": {"l": "1", "m": "x"}});
        let collection = self.kinds[kind].collection.clone();
        self.ask(Request::new("POST", collection.clone()).body(media::JSON, object)).await?;
        for form in 0..5 {
            let mut request = Request::new("GET", collection.clone()).with("watch", "true");
            if self.random.chance(50) {
                request =
                    request.with("labelSelector", *self.random.pick(&["l=1", "m=x", "l in (1,2)", "l"]));
            }
            request = match form {
                0 | 1 => {
                    // Before the last object, or its event would not come.
                    let before = 1 + self.random.below(self.pair.right.normaliser.writes() - 1);
                    request.with("resourceVersion", format!("<version {before}>"))
                }
                2 => request,
                3 => request.with("resourceVersion", "0"),
                _ => request
                    .with("sendInitialEvents", "true")
                    .with("resourceVersionMatch", "NotOlderThan")
                    .with("allowWatchBookmarks", "true"),
            };
            let until = if form == 4 { "BOOKMARK" } else { last.as_str() };
            let left = events_until(&mut self.pair.left, &request, until).await?;
            let right = events_until(&mut self.pair.right, &request, until).await?;
            ensure!(
                left == right,
                "events differ\n  request: {request}\n  {} against {} events\n  first difference: {}",
                left.len(),
                right.len(),
                first_difference(&json!(left), &json!(right), "")
            );
            self.sent += 1;
        }
        Ok(())
    }
}

/// The events of a watch up to the one about `until`, in comparable form.
async fn events_until(side: &mut Side, request: &Request, until: &str) -> anyhow::Result<Vec<Value>> {
    let concrete = side.normaliser.concrete(request);
    let mut watch = side.server.watch(&concrete).await?;
    let mut events = Vec::new();
    let read = async {
        while let Some(mut event) = watch.next().await? {
            let name =
                event.pointer("/object/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let about = if event["type"] == "BOOKMARK" { "BOOKMARK".to_owned() } else { name };
            side.normaliser.value(&mut event, "");
            let ends = about == until || event["type"] == "ERROR" || event["kind"] == "Status";
            events.push(event);
            if ends {
                break;
            }
        }
        anyhow::Ok(())
    };
    let outcome = Clock::real().timeout(EVENTS_WITHIN, read).await;
    match outcome {
        Ok(read) => read?,
        Err(_) => anyhow::bail!(
            "{} did not tell about {until} within {EVENTS_WITHIN:?}: {request}\n  events: {}",
            side.server.name,
            json!(events)
        ),
    }
    Ok(events)
}
