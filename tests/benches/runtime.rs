//! One operator, written with windlass, with controller-runtime (`bench/peers/controller-runtime`, needs Go) and with plain
//! kube (`bench/peers/kube`), each a process of its own doing the same work on one kind of server in one run.
//!
//! The work: resources that own one ConfigMap each and have a status; then one update to each; then rest; then a restart.
//! On the reference, which audits every request, and on `windlass cluster up --api-only`, where the operator is what
//! bounds it. From an update to the reconcile that it begins it takes a few milliseconds, which varies more with the machine's load than between the operators:
//! that is measured with fewer resources, several times in rounds.
//!
//! `-- --objects 1000` makes it smaller, `-- --delays` measures those reconciles alone, and subjects named after `--` are
//! measured alone.

use anyhow::{Context, ensure};
use futures::TryStreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt, wait, watcher};
use kube::{CustomResourceExt, ResourceExt};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::bench::{Bench, Better};
use windlass_peers::Greeting;
use windlass_tests::load::{Ask, Connection, Server, run, windlass_program};
use windlass_tests::peers::{Operator, Program};

const WINDLASS: &str = "windlass";
const CONTROLLER_RUNTIME: &str = "controller-runtime";
const KUBE: &str = "kube";
/// The same, on one thread and with the allocator that windlass' guides have.
const KUBE_ONE_THREAD: &str = "kube-one-thread";
const SUBJECTS: [&str; 4] = [WINDLASS, CONTROLLER_RUNTIME, KUBE, KUBE_ONE_THREAD];

const OBJECTS: usize = 10_000;
/// Where memory is read besides, on our own server.
const MANY: usize = 100_000;
/// The resources with which the delay of updates is measured, and how often.
const DELAYED: usize = 2_000;
const ROUNDS: usize = 3;
/// Updates per second. At 200 the reference on two cores falls behind with what the operators make of them, and the delay
/// that is measured is its own queue.
const RATE: f64 = 100.0;
const CONNECTIONS: usize = 8;
const REST: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(900);
const PLACE: &str = "/apis/bench.windlass.dev/v1/namespaces/default/greetings";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("runtime", &SUBJECTS);
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number =
        arguments.iter().position(|argument| argument == "--objects").map(|at| arguments.get(at + 1));
    let objects = match number {
        Some(number) => number.context("--objects needs a number")?.parse().context("--objects")?,
        None => OBJECTS,
    };
    bench.progress("building the operators and the windlass command");
    let server = windlass_program()?;
    let mut programs = vec![
        (WINDLASS, Program::rust("greeting_windlass")?),
        (KUBE, Program::rust("greeting_kube")?),
        (KUBE_ONE_THREAD, Program::rust("greeting_kube_one_thread")?),
    ];
    match Program::go(CONTROLLER_RUNTIME) {
        Ok(program) => programs.insert(1, (CONTROLLER_RUNTIME, program)),
        Err(error) => bench.note(&format!("controller-runtime was not measured: {error:#}")),
    }
    let named = |subject: &str| arguments.iter().any(|argument| argument == subject);
    if SUBJECTS.into_iter().any(named) {
        programs.retain(|(subject, _)| named(subject));
    }
    bench.note("windlass: on one thread and with mimalloc, as its guides have it, and so is kube-one-thread; the others as their own examples are");
    bench.note("the reference's etcd does not wait for the disk: operators are measured, not it");
    bench.note("the texts of the resources are alike, and windlass holds what is alike once, but for the row with random texts");
    let reference = windlass_harness::reference::programs();
    if let Err(error) = &reference {
        bench.note(&format!("{error}"));
    }
    let only_delays = arguments.iter().any(|argument| argument == "--delays");
    for (subject, program) in programs.iter().filter(|_| !only_delays) {
        if reference.is_ok() {
            let server = Server::audited_reference().await?;
            let fixture = Fixture { bench: &mut bench, subject, name: "reference", program, server: &server };
            fixture
                .measure(objects)
                .await
                .with_context(|| format!("measuring {subject} on the reference"))?;
        }
        let server = Server::windlass(&server, false).await?;
        let fixture = Fixture { bench: &mut bench, subject, name: "windlass", program, server: &server };
        fixture.measure(objects).await.with_context(|| format!("measuring {subject} on windlass"))?;
    }
    for (subject, program) in programs.iter().filter(|_| !only_delays) {
        let server = Server::windlass(&server, false).await?;
        let fixture = Fixture { bench: &mut bench, subject, name: "windlass", program, server: &server };
        let unlike = fixture.memory_of(objects, Texts::Random, "with random texts");
        unlike.await.with_context(|| format!("measuring {subject} with random texts"))?;
    }
    for round in 1..=ROUNDS {
        for (subject, program) in &programs {
            bench.progress(&format!("round {round} of {ROUNDS}: updates to {subject}"));
            if reference.is_ok() {
                let server = Server::audited_reference().await?;
                let fixture =
                    Fixture { bench: &mut bench, subject, name: "reference", program, server: &server };
                fixture.delays().await.with_context(|| format!("updates to {subject} on the reference"))?;
            }
            let server = Server::windlass(&server, false).await?;
            let fixture = Fixture { bench: &mut bench, subject, name: "windlass", program, server: &server };
            fixture.delays().await.with_context(|| format!("updates to {subject} on windlass"))?;
        }
    }
    for (subject, program) in programs.iter().filter(|_| objects == OBJECTS && !only_delays) {
        let server = Server::windlass(&server, false).await?;
        let fixture = Fixture { bench: &mut bench, subject, name: "windlass", program, server: &server };
        let many = fixture.memory_of(MANY, Texts::Alike, "");
        many.await.with_context(|| format!("measuring {subject} with {MANY}"))?;
    }
    Ok(bench.finish()?)
}

/// One operator on one server.
struct Fixture<'a> {
    bench: &'a mut Bench,
    subject: &'a str,
    name: &'a str,
    program: &'a Program,
    server: &'a Server,
}

impl Fixture<'_> {
    async fn measure(mut self, objects: usize) -> anyhow::Result<()> {
        let clock = Clock::real();
        self.say("creating the resources");
        let mut connections = self.prepare(objects, Texts::Alike).await?;
        let said = Said::follow(self.server).await?;

        let mut audit = Audit::of(self.server);
        self.say("converging");
        let operator = Operator::start(self.program, &self.server.kubeconfig())?;
        let (converged, took) = self.bench.timed(said.all(objects, "first", &operator)).await;
        converged?;
        let usage = operator.usage()?;
        self.record(&format!("{objects} converged"), took.as_secs_f64(), "s");
        self.record("  operator's processor time", usage.cpu.as_secs_f64(), "s");
        self.record_writes(&mut audit, "  writes per resource", objects as f64)?;

        self.say("one update to each");
        update(&mut connections, objects).await?;
        said.all(objects, "second", &operator).await?;
        self.record_writes(&mut audit, "  writes per update", objects as f64)?;
        let updated = operator.usage()?;
        let cpu = (updated.cpu.saturating_sub(usage.cpu)).as_secs_f64() * 1e6 / objects as f64;
        self.record("  processor time per update", cpu, "us");

        self.say("at rest");
        clock.sleep(REST).await;
        self.record_writes(&mut audit, "  writes at rest", 1.0)?;
        self.record("  peak memory", operator.usage()?.peak_memory as f64 / 1e6, "MB");
        operator.stop().await?;

        self.say("a restart with nothing to do");
        let operator = Operator::start(self.program, &self.server.kubeconfig())?;
        let cpu = at_rest(&operator).await?;
        self.record("  processor time of a restart", cpu.as_secs_f64(), "s");
        self.record_writes(&mut audit, "  writes after a restart", 1.0)?;
        operator.stop().await?;
        Ok(())
    }

    /// How long it takes from an update until a reconcile begins.
    async fn delays(mut self) -> anyhow::Result<()> {
        let mut connections = self.prepare(DELAYED, Texts::Alike).await?;
        let said = Said::follow(self.server).await?;
        let operator = Operator::start(self.program, &self.server.kubeconfig())?;
        said.all(DELAYED, "first", &operator).await?;
        update(&mut connections, DELAYED).await?;
        said.all(DELAYED, "second", &operator).await?;
        let delays = operator.stop().await?;
        for rank in ["p50", "p99"] {
            let delay = delays[format!("{rank}_ms")].as_f64().context("no delays")?;
            self.record(&format!("  update to reconcile, {rank}"), delay, "ms");
        }
        Ok(())
    }

    /// What the operator holds with these objects: made before it starts, and with nothing updated.
    async fn memory_of(mut self, objects: usize, texts: Texts, which: &str) -> anyhow::Result<()> {
        let which = format!("{objects} {which}");
        let which = which.trim();
        self.say(&format!("{which}: memory"));
        self.prepare(objects, texts).await?;
        let said = Said::follow(self.server).await?;
        let operator = Operator::start(self.program, &self.server.kubeconfig())?;
        let (converged, took) = self.bench.timed(said.all(objects, "first", &operator)).await;
        converged?;
        self.record(&format!("{which} converged"), took.as_secs_f64(), "s");
        let usage = operator.usage()?;
        self.record(&format!("  peak memory with {which}"), usage.peak_memory as f64 / 1e6, "MB");
        self.record(
            &format!("  of that per resource, {which}"),
            usage.peak_memory as f64 / objects as f64,
            "bytes",
        );
        Ok(())
    }

    async fn prepare(&self, objects: usize, texts: Texts) -> anyhow::Result<Vec<Connection>> {
        let client = kube::Client::try_from(self.server.config().clone())?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client);
        definitions.create(&PostParams::default(), &Greeting::crd()).await?;
        let established = wait::conditions::is_crd_established();
        let waiting = wait::await_condition(definitions, Greeting::crd_name(), established);
        Clock::real().timeout(Duration::from_secs(30), waiting).await??;
        let mut connections = Connection::open_many(self.server.config(), CONNECTIONS).await?;
        run(&mut connections, 0..objects, move |number| {
            let body = format!(
                r#"{{"apiVersion":"bench.windlass.dev/v1","kind":"Greeting","metadata":{{"name":"{}"}},"spec":{{"text":"first {}"}}}}"#,
                name(number),
                texts.of(number)
            );
            Ask::post(PLACE, body)
        })
        .await?;
        Ok(connections)
    }

    fn say(&self, what: &str) {
        self.bench.progress(&format!("{} on {}: {what}", self.subject, self.name));
    }

    fn record(&mut self, metric: &str, value: f64, unit: &str) {
        let metric = format!("{}: {}", self.name, metric.trim());
        self.bench.record(self.subject, &metric, value, unit, Better::Lower);
    }

    fn record_writes(&mut self, audit: &mut Option<Audit>, metric: &str, per: f64) -> anyhow::Result<()> {
        if let Some(audit) = audit {
            let writes = audit.writes(&format!("bench-{}", self.subject))?;
            self.record(metric, writes as f64 / per, "");
        }
        Ok(())
    }
}

/// What the resources say.
#[derive(Debug, Clone, Copy)]
enum Texts {
    /// All the same.
    Alike,
    /// Each its own, of random letters: what is held once for all of them is next to nothing.
    Random,
}

impl Texts {
    /// The text of the resource of this number, of 200 characters.
    fn of(self, number: usize) -> String {
        match self {
            Self::Alike => "x".repeat(200),
            Self::Random => {
                let mut state = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let mut letter = || {
                    // Xorshift: the same in every run, for every operator.
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    char::from(b'a' + (state >> 32) as u8 % 26)
                };
                (0..200).map(|_| letter()).collect()
            }
        }
    }
}

fn name(number: usize) -> String {
    format!("greeting-{number:06}")
}

/// Updates each resource once, at an even rate, and says in it when that was.
async fn update(connections: &mut [Connection], objects: usize) -> anyhow::Result<()> {
    let clock = Clock::real();
    let begun = clock.moment();
    let lanes = connections.len();
    let lane = |(index, connection): (usize, &mut Connection)| {
        let clock = clock.clone();
        let mut connection = std::mem::replace(connection, Connection::closed());
        tokio::spawn(async move {
            for number in (index..objects).step_by(lanes) {
                clock.sleep_until(begun + Duration::from_secs_f64(number as f64 / RATE)).await;
                let sent = clock.now().as_nanosecond();
                let body = format!(r#"{{"spec":{{"text":"second {}","sent":{sent}}}}}"#, "y".repeat(200));
                connection.ask(&Ask::merge(format!("{PLACE}/{}", name(number)), body)).await?;
            }
            anyhow::Ok(connection)
        })
    };
    let tasks: Vec<_> = connections.iter_mut().enumerate().map(lane).collect();
    for (task, place) in tasks.into_iter().zip(connections) {
        *place = task.await??;
    }
    Ok(())
}

/// Follows which resources are said, and with which text.
struct Said {
    names: Arc<Mutex<(HashSet<String>, HashSet<String>)>>,
    following: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Said {
    async fn follow(server: &Server) -> anyhow::Result<Self> {
        let client = kube::Client::try_from(server.config().clone())?;
        let greetings: Api<Greeting> = Api::all(client);
        let names: Arc<Mutex<(HashSet<String>, HashSet<String>)>> = Arc::default();
        let told = names.clone();
        let following = tokio::spawn(async move {
            let config = watcher::Config::default().page_size(500);
            let mut changes = std::pin::pin!(watcher(greetings, config).default_backoff().touched_objects());
            while let Some(greeting) = changes.try_next().await? {
                if greeting.is_said() {
                    let mut told = told.lock();
                    match greeting.spec.text.starts_with("first") {
                        true => told.0.insert(greeting.name_any()),
                        false => told.1.insert(greeting.name_any()),
                    };
                }
            }
            Ok(())
        });
        Ok(Self { names, following })
    }

    async fn all(&self, objects: usize, text: &str, operator: &Operator) -> anyhow::Result<()> {
        let clock = Clock::real();
        let deadline = clock.moment() + PATIENCE;
        loop {
            let said = {
                let names = self.names.lock();
                if text == "first" { names.0.len() } else { names.1.len() }
            };
            if said >= objects {
                return Ok(());
            }
            operator.usage()?;
            ensure!(!self.following.is_finished(), "the watch of the bench ended");
            ensure!(clock.moment() < deadline, "only {said} of {objects} after {PATIENCE:?}");
            clock.sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.following.abort();
    }
}

/// Waits until the operator uses no more processor time to speak of; returns what it used until then.
async fn at_rest(operator: &Operator) -> anyhow::Result<Duration> {
    let clock = Clock::real();
    let deadline = clock.moment() + PATIENCE;
    // It may wait for its first answer before it works at all.
    clock.sleep(REST).await;
    loop {
        let before = operator.usage()?.cpu;
        clock.sleep(REST).await;
        let after = operator.usage()?.cpu;
        if after - before < Duration::from_millis(100) {
            return Ok(before);
        }
        ensure!(clock.moment() < deadline, "the operator does not come to rest");
    }
}

/// The server's own record of requests, read on from where it was last read.
struct Audit {
    log: std::path::PathBuf,
    read: u64,
}

impl Audit {
    fn of(server: &Server) -> Option<Self> {
        let log = server.audit_log()?;
        let read = std::fs::metadata(&log).map_or(0, |file| file.len());
        Some(Self { log, read })
    }

    /// How many writes of this client there were since.
    fn writes(&mut self, user_agent: &str) -> anyhow::Result<usize> {
        let mut file = BufReader::new(std::fs::File::open::<&Path>(&self.log)?);
        file.seek(SeekFrom::Start(self.read))?;
        let (mut writes, mut line) = (0, String::new());
        while file.read_line(&mut line)? > 0 && line.ends_with('\n') {
            self.read += line.len() as u64;
            let of_this = line.contains(&format!("\"userAgent\":\"{user_agent}\""));
            let writing = ["create", "update", "patch", "delete"].map(|verb| format!("\"verb\":\"{verb}\""));
            writes += usize::from(of_this && writing.iter().any(|verb| line.contains(verb)));
            line.clear();
        }
        Ok(writes)
    }
}
