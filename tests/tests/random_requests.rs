//! Random sequences of creates, updates, deletes with finalizers, lists with versions and watches by several clients, sent
//! to two servers: equal answers and event orders. And random roles and bindings with random questions about them.
//!
//! `WINDLASS_STEPS` says how many requests (default 800, the acceptance run has 5,000 and more), and `WINDLASS_QUESTIONS` how many
//! questions about rights (default 1,500, the acceptance run has 20,000 and more); `WINDLASS_SEED` runs one seed.

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::compare::exchange::media;
use windlass_tests::compare::looked_at_again;
use windlass_tests::compare::normalise::may_be_newer;
use windlass_tests::compare::policies::{self, Policies};
use windlass_tests::compare::requests::Requests;
use windlass_tests::compare::{Pair, Request, Server, Side, first_difference, kinds};

/// Requests before the watches of a round are compared.
const STEPS_PER_ROUND: usize = 60;
/// Rounds on one pair of namespaces.
const ROUNDS_PER_SEED: usize = 3;
/// How long a watch may take to show what was written.
const EVENTS_WITHIN: Duration = Duration::from_secs(10);

/// Seeds that once showed a difference, kept for good.
const KEPT: &[u64] = &[
    15, // the key that a refused rehearsal names
    23, // a namespace is checked whole when it is updated
    27, // a rehearsed creation by update keeps the version it was sent with
    31, // what a namespace's update checks twice
];

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(1500))
        .test("random requests get equal responses and event orders", equal_answers)
        .test("random policies allow the same", equal_rights)
        .run()
}

/// Questions about one random policy.
const QUESTIONS_PER_POLICY: usize = 500;

/// How many questions are under way at once.
const QUESTIONS_AT_ONCE: usize = 16;

async fn equal_rights(target: Target) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let questions = number("WINDLASS_QUESTIONS").unwrap_or(1500);
    let policies = questions.div_ceil(QUESTIONS_PER_POLICY as u64);
    let seeds = number("WINDLASS_SEED").map_or(1..=policies, |seed| seed..=seed);
    let (mut allowed, mut asked) = (0, 0);
    for seed in seeds {
        let found = looked_at_again(&format!("policy {seed}"), || compare_policy(&target, seed)).await;
        allowed += found.with_context(|| format!("policy {seed}"))?;
        asked += QUESTIONS_PER_POLICY;
    }
    println!("{asked} questions about rights got equal answers, {allowed} of them yes");
    ensure!(allowed * 20 > asked, "too few questions were answered with yes to say much");
    Ok(())
}

/// Makes a random policy on both servers and asks both the same. Says how often the answer was yes.
async fn compare_policy(target: &Target, seed: u64) -> anyhow::Result<usize> {
    let servers = [
        Server::new("embedded", windlass_tests::targets::Embedded::in_process().client()),
        Server::new("reference", target.client()),
    ];
    let prefix = format!("p{seed}-{}", Clock::real().now().as_millisecond());
    let mut policies = Policies::new(seed, &prefix);
    let objects = policies.objects();
    for server in &servers {
        for namespace in policies.namespaces() {
            let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}});
            made(server, "/api/v1/namespaces", object).await?;
        }
        for (path, object) in &objects {
            made(server, path, object.clone()).await?;
        }
    }
    known(&servers[1], &prefix).await?;
    let questions: Vec<Value> = (0..QUESTIONS_PER_POLICY).map(|_| policies.question()).collect();
    let answers = futures::stream::iter(questions).map(|question| {
        let servers = servers.clone();
        async move {
            let (ours, theirs) =
                futures::join!(review(&servers[0], &question), review(&servers[1], &question));
            let (ours, theirs) = (ours?, theirs?);
            ensure!(ours == theirs, "{question}: {ours} on ours and {theirs} on the reference");
            anyhow::Ok(ours["allowed"] == true)
        }
    });
    let answers: anyhow::Result<Vec<bool>> = answers.buffered(QUESTIONS_AT_ONCE).try_collect().await;
    for path in ["clusterroles", "clusterrolebindings"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
        let mine = format!("{}={prefix}", policies::LABEL);
        servers[1].send(&Request::new("DELETE", path).with("labelSelector", mine)).await?;
    }
    for namespace in policies.namespaces() {
        servers[1].send(&Request::new("DELETE", format!("/api/v1/namespaces/{namespace}"))).await?;
    }
    Ok(answers?.into_iter().filter(|allowed| *allowed).count())
}

async fn made(server: &Server, path: &str, object: Value) -> anyhow::Result<()> {
    let answer = server.send(&Request::new("POST", path).body(media::JSON, object)).await?;
    ensure!(answer.is_success(), "{} refused: {answer}", server.name);
    Ok(())
}

/// Waits until the reference's authorizer knows what was made last.
async fn known(reference: &Server, prefix: &str) -> anyhow::Result<()> {
    let group = "rbac.authorization.k8s.io";
    for (kind, name) in [("ClusterRole", "probe"), ("ClusterRoleBinding", "probe-bound")] {
        let mut object = json!({"kind": kind, "apiVersion": format!("{group}/v1"),
            "metadata": {"name": format!("{prefix}-{name}"), "labels": {policies::LABEL: prefix}}});
        match kind {
            "ClusterRole" => {
                object["rules"] = json!([{"verbs": ["probe"], "apiGroups": ["p"], "resources": ["p"]}])
            }
            _ => {
                object["roleRef"] =
                    json!({"kind": "ClusterRole", "name": format!("{prefix}-probe"), "apiGroup": group});
                object["subjects"] = json!([{"kind": "User", "name": prefix, "apiGroup": group}]);
            }
        }
        made(reference, &format!("/apis/{group}/v1/{}s", kind.to_lowercase()), object).await?;
    }
    let probe =
        json!({"user": prefix, "resourceAttributes": {"verb": "probe", "group": "p", "resource": "p"}});
    for _ in 0..500 {
        if review(reference, &probe).await?["allowed"] == true {
            return Ok(());
        }
        Clock::real().sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the reference does not take in the policy")
}

/// What a review says, without the reason: several bindings may allow the same.
async fn review(server: &Server, spec: &Value) -> anyhow::Result<Value> {
    let review =
        json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    let request = Request::new("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    let answer = server.send(&request.body(media::JSON, review)).await?;
    ensure!(answer.is_success(), "{} refused to say: {answer}", server.name);
    let mut status = answer.body["status"].clone();
    status.as_object_mut().context("a review has a status")?.remove("reason");
    Ok(status)
}

async fn equal_answers(target: Target) -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = usize::try_from(number("WINDLASS_STEPS").unwrap_or(800))?;
    let seeds: Vec<u64> = match number("WINDLASS_SEED") {
        Some(seed) => vec![seed],
        None => {
            let count = steps.div_ceil(STEPS_PER_ROUND * ROUNDS_PER_SEED) as u64;
            KEPT.iter().copied().chain((1..=count).filter(|seed| !KEPT.contains(seed))).collect()
        }
    };
    define(&target).await?;
    let (mut requests, mut failures) = (0, Vec::new());
    for seed in &seeds {
        match looked_at_again(&format!("seed {seed}"), || run_seed(&target, *seed)).await {
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

/// Makes the custom kind known to the reference, and waits until it is served.
async fn define(target: &Target) -> anyhow::Result<()> {
    let server = Server::new("reference", target.client());
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer =
        server.send(&Request::new("POST", definitions).body(media::JSON, kinds::definition())).await?;
    ensure!(answer.is_success() || answer.status == 409, "no custom kind: {answer}");
    for _ in 0..100 {
        if server.send(&Request::new("GET", kinds::things("default"))).await?.is_success() {
            return Ok(());
        }
        Clock::real().sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the custom kind is not served")
}

struct Sequence {
    pair: Pair,
    requests: Requests,
    namespace: String,
    sent: usize,
}

async fn run_seed(target: &Target, seed: u64) -> anyhow::Result<usize> {
    let pair = Pair {
        left: Side::new(Server::new("embedded", windlass_tests::targets::Embedded::in_process().client())),
        right: Side::new(Server::new("reference", target.client())),
    };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let define = Request::new("POST", definitions).body(media::JSON, kinds::definition());
    let answer = pair.left.server.send(&define).await?;
    ensure!(answer.is_success(), "no custom kind: {answer}");
    let namespace = format!("random-{seed}-{}", Clock::real().now().as_second());
    let requests = Requests::new(seed, kinds::Kind::all(&namespace));
    let mut sequence = Sequence { pair, requests, namespace, sent: 0 };
    let outcome = sequence.run().await;
    let remove = Request::new("DELETE", format!("/api/v1/namespaces/{}", sequence.namespace));
    sequence.pair.right.server.send(&remove).await?;
    outcome.map(|()| sequence.sent)
}

impl Sequence {
    async fn run(&mut self) -> anyhow::Result<()> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace.as_str()}});
        self.ask(0, Request::new("POST", "/api/v1/namespaces").body(media::JSON, namespace)).await?;
        for round in 0..ROUNDS_PER_SEED {
            for step in 0..STEPS_PER_ROUND {
                let (kind, request) = self.requests.any();
                self.ask(kind, request).await.with_context(|| format!("round {round}, step {step}"))?;
            }
            for kind in 0..self.requests.kinds.len() {
                self.page_through(kind).await.with_context(|| format!("pages of round {round}"))?;
                self.generate_name(kind).await.with_context(|| format!("names of round {round}"))?;
                self.compare_watches(kind, round)
                    .await
                    .with_context(|| format!("watches of round {round}"))?;
            }
        }
        Ok(())
    }

    async fn ask(&mut self, kind: usize, request: Request) -> anyhow::Result<Value> {
        // What may be of an older version comes from the reference's cache, which may lag behind; a consistent list
        // first brings it up to date.
        if may_be_newer(&request) {
            self.pair.ask(&self.everything(kind)).await?;
        }
        let answer = self.pair.ask(&request).await?;
        self.sent += 1;
        let text = |path: &str| answer.body.pointer(path).and_then(Value::as_str).map(str::to_owned);
        self.requests.tokens.extend(text("/metadata/continue").filter(|token| !token.is_empty()));
        self.requests.uids.extend(text("/metadata/uid"));
        self.requests.versions = self.pair.right.normaliser.writes();
        Ok(answer.body)
    }

    /// A list of all objects of a kind.
    fn everything(&self, kind: usize) -> Request {
        let kind = &self.requests.kinds[kind];
        let request = Request::new("GET", kind.collection.clone());
        match kind.selector("") {
            empty if empty.is_empty() => request,
            selector => request.with("labelSelector", selector),
        }
    }

    /// Lists page by page to the end, while others write.
    async fn page_through(&mut self, kind: usize) -> anyhow::Result<()> {
        if self.requests.kinds[kind].is_shared() {
            return Ok(());
        }
        let limit = (1 + self.requests.random.below(3)).to_string();
        let first = self.everything(kind).with("limit", limit);
        let mut page = self.ask(kind, first.clone()).await?;
        loop {
            // Lists of custom objects say that there is no next page, others say nothing.
            let token = match page.pointer("/metadata/continue").and_then(Value::as_str) {
                None | Some("") => return Ok(()),
                Some(token) => token.to_owned(),
            };
            if self.requests.random.chance(30) {
                let (kind, request) = self.requests.any();
                self.ask(kind, request).await?;
            }
            page = self.ask(kind, first.clone().with("continue", token)).await?;
        }
    }

    /// An object whose name the server chooses, which goes at once: two servers would list it in different places.
    async fn generate_name(&mut self, kind: usize) -> anyhow::Result<()> {
        let about = &self.requests.kinds[kind];
        if about.is_shared() {
            // It would not go at once.
            return Ok(());
        }
        let (collection, prefix) = (about.collection.clone(), about.name("g-"));
        let mut object = about.object("", &mut self.requests.random);
        object["metadata"]["generateName"] = json!(prefix);
        object["metadata"].as_object_mut().context("it is one")?.remove("name");
        let made = self.ask(kind, Request::new("POST", collection.clone()).body(media::JSON, object)).await?;
        let name = made.pointer("/metadata/name").and_then(Value::as_str).context("no name was chosen")?;
        let item = format!("{collection}/{name}");
        self.ask(kind, Request::new("GET", item.clone())).await?;
        self.ask(kind, Request::new("DELETE", item)).await?;
        Ok(())
    }

    /// Opens watches of several forms on both sides and compares what they tell up to a last object.
    async fn compare_watches(&mut self, kind: usize, round: usize) -> anyhow::Result<()> {
        let about = &self.requests.kinds[kind];
        let last = about.name(&format!("last-{round}"));
        let collection = about.collection.clone();
        let mut object = about.object(&last, &mut self.requests.random);
        object["metadata"]["labels"]["l"] = json!("1");
        object["metadata"]["labels"]["m"] = json!("x");
        self.ask(kind, Request::new("POST", collection).body(media::JSON, object)).await?;
        for form in 0..6 {
            let (request, until) = self.requests.watch(kind, form, &last);
            self.compare_watch(&request, &until).await?;
        }
        if self.requests.random.chance(20) {
            let (request, _) = self.requests.watch(kind, self.requests.versions % 4, &last);
            self.compare_watch(&request.with("timeoutSeconds", "1"), "the end").await?;
        }
        Ok(())
    }

    async fn compare_watch(&mut self, request: &Request, until: &str) -> anyhow::Result<()> {
        let Pair { left, right } = &mut self.pair;
        let (left, right) =
            futures::join!(events_until(left, request, until), events_until(right, request, until));
        let (left, right) = (left?, right?);
        ensure!(
            left == right,
            "events differ\n  request: {request}\n  {} against {} events\n  first difference: {}",
            left.len(),
            right.len(),
            first_difference(&json!(left), &json!(right), "")
        );
        self.sent += 1;
        Ok(())
    }
}

/// The events of a watch up to the one about `until`, or to its end, in comparable form.
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
