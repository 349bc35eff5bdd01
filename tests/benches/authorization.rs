//! What RBAC costs with many roles: a decision, and requests of a user whose rights are looked up beside those of one who may do
//! everything, on the same server.

use anyhow::ensure;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use windlass_apiserver::{Api, Config, Identity, ResourceAccess};
use windlass_clock::Clock;
use windlass_harness::bench::{Bench, Better};
use windlass_tests::load::{Ask, Connection, Server, run, windlass_program};

const ROLES: usize = 1_000;
const BINDINGS: usize = 5_000;
const DECISIONS: usize = 200_000;
const DECIDED: usize = 5;
const OBJECTS: usize = 5_000;
const TURNS: usize = 15;

const MASTER: &str = "system:masters";
const BOUND: &str = "a user with roles";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("authorization", &[BOUND, MASTER]);
    let program = windlass_program()?;
    let server = Server::windlass(&program, false).await?;
    let mut admin = Connection::open(server.config()).await?;
    for (path, body) in policies() {
        admin.ask(&Ask::post(path, body)).await?;
    }
    let said = Command::new(&program)
        .args(["cluster", "kubeconfig", "--as", "jane"])
        .env("KUBECONFIG", server.kubeconfig())
        .output()?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let jane = Kubeconfig::from_yaml(&String::from_utf8(said.stdout)?)?;
    let jane = kube::Config::from_custom_kubeconfig(jane, &KubeConfigOptions::default()).await?;
    // Less disturbed than a rate by what else runs on the machine; added up, since the kernel counts it in steps.
    let mut used: BTreeMap<(&str, &str), Duration> = BTreeMap::new();
    for turn in 1..=TURNS {
        let mut subjects = [(MASTER, server.config()), (BOUND, &jane)];
        // Whoever comes first finds fewer objects: they take turns.
        if turn.is_multiple_of(2) {
            subjects.reverse();
        }
        for (subject, config) in subjects {
            bench.progress(&format!("turn {turn} of {TURNS}: {subject}"));
            let mut connections = Connection::open_many(config, 4).await?;
            let before = server.usage()?;
            let stem = format!("{}-{turn}", subject.len());
            let rate = |took: Duration| OBJECTS as f64 / took.as_secs_f64();
            let names = stem.clone();
            let took = run(&mut connections, 0..OBJECTS, move |number| create(&names, number)).await?;
            bench.record(subject, "create", rate(took), "/s", Better::Higher);
            let between = server.usage()?;
            let took = run(&mut connections, 0..OBJECTS, move |number| {
                Ask::get(format!("{MAPS}/m-{stem}-{number}"))
            })
            .await?;
            bench.record(subject, "get", rate(took), "/s", Better::Higher);
            let after = server.usage()?;
            for (verb, from, to) in [("create", before, between), ("get", between, after)] {
                *used.entry((subject, verb)).or_default() += to.cpu.saturating_sub(from.cpu);
            }
        }
    }
    for ((subject, verb), used) in used {
        let each = used.as_secs_f64() * 1e6 / (OBJECTS * TURNS) as f64;
        bench.record(subject, &format!("processor time of a {verb}"), each, "us", Better::Lower);
    }
    for _ in 0..DECIDED {
        bench.record(BOUND, "a decision", decision().await?, "us", Better::Lower);
    }
    bench.note(&format!("{ROLES} roles, {BINDINGS} bindings, five of them of the user"));
    Ok(bench.finish()?)
}

/// Roles, and bindings of many users, with where they are posted; those of jane are among them.
fn policies() -> Vec<(String, String)> {
    let group = "rbac.authorization.k8s.io";
    let role = |number: usize| {
        let verbs = ["get", "list", "create", "update"];
        let resource = if number.is_multiple_of(200) { "configmaps" } else { "secrets" };
        let rules = json!([{"apiGroups": [""], "resources": [resource], "verbs": verbs}]);
        let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role",
            "metadata": {"name": format!("role-{number}")}, "rules": rules});
        (format!("{RBAC}/roles"), role.to_string())
    };
    let binding = |number: usize| {
        let user = if number.is_multiple_of(1_000) { "jane".to_owned() } else { format!("user-{number}") };
        let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": format!("binding-{number}")},
            "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
            "roleRef": {"apiGroup": group, "kind": "Role", "name": format!("role-{}", number % ROLES)}});
        (format!("{RBAC}/rolebindings"), binding.to_string())
    };
    (0..ROLES).map(role).chain((0..BINDINGS).map(binding)).collect()
}

fn create(stem: &str, number: usize) -> Ask {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m-{stem}-{number}")},
        "data": {"payload": "x".repeat(400)}});
    Ask::post(MAPS, map.to_string())
}

/// How long a decision takes in process, in microseconds: half of them are yes.
async fn decision() -> anyhow::Result<f64> {
    let api = Api::new(Config::default());
    let admin = kube::Client::new(api.service(Identity::privileged("bench")), "default");
    for (path, body) in policies() {
        let request = http::Request::post(path).header("content-type", "application/json");
        admin.request::<Value>(request.body(body.into_bytes())?).await?;
    }
    let jane = Identity::user("jane");
    let access = |resource| ResourceAccess {
        verb: "update",
        resource,
        namespace: "default",
        name: "one",
        ..ResourceAccess::default()
    };
    let (yes, no) = (access("configmaps"), access("pods"));
    let as_expected = api.allows(&jane, &yes).await && !api.allows(&jane, &no).await;
    ensure!(as_expected, "jane has other rights than expected");
    let clock = Clock::real();
    let begun = clock.moment();
    let mut allowed = 0;
    for number in 0..DECISIONS {
        let access = if number.is_multiple_of(2) { &yes } else { &no };
        allowed += usize::from(api.allows(&jane, access).await);
    }
    let took = clock.moment() - begun;
    ensure!(allowed == DECISIONS / 2, "{allowed} decisions were yes");
    Ok(took.as_secs_f64() * 1e6 / DECISIONS as f64)
}
