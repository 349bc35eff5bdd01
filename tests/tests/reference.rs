//! The reference itself: it starts, does what our comparisons rely on, and leaves nothing behind however it ends.

use anyhow::{Context, bail, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Environment, Reference, Suite, Target};

/// Given to this program itself, it starts a reference, says where, and waits to be killed.
const HOLD: &str = "--hold-a-reference";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(HOLD) {
        return hold();
    }
    Suite::on([Environment::reference()])
        .test("an object is created, applied, watched with initial events and deleted", objects_come_and_go)
        .test("its version is the stamped one", version_is_stamped)
        .test("the audit log counts requests", audit_log_counts)
        .test("nothing is left behind after a panic", panic_leaves_nothing)
        .test("nothing is left behind after a kill", kill_leaves_nothing)
        .test("a port that is taken is named", taken_port_is_named)
        .run()
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn objects_come_and_go(target: Target) -> anyhow::Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(target.client(), &target.namespace().await?);
    api.create(&PostParams::default(), &config_map("a", "created")).await?;

    let watch = WatchParams { send_initial_events: true, bookmarks: true, ..WatchParams::default() };
    let mut events = api.watch(&watch, "").await?.boxed();
    let first = events.try_next().await?.context("the watch ended")?;
    ensure!(
        matches!(&first, WatchEvent::Added(found) if found.metadata.name.as_deref() == Some("a")),
        "{first:?}"
    );
    let second = events.try_next().await?.context("the watch ended")?;
    let WatchEvent::Bookmark(bookmark) = second else {
        bail!("no bookmark ends the initial events: {second:?}")
    };
    let end = bookmark.metadata.annotations.get("k8s.io/initial-events-end").map(String::as_str);
    ensure!(end == Some("true"), "the bookmark says {end:?}");

    let applied = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"other": "applied"},
    });
    let merged = api.patch("a", &PatchParams::apply("tester"), &Patch::Apply(applied)).await?;
    let data = merged.data.context("data")?;
    ensure!(data.len() == 2, "server-side apply replaced instead of merging: {data:?}");
    let owners: Vec<_> = merged
        .metadata
        .managed_fields
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| entry.manager)
        .collect();
    ensure!(owners.iter().any(|owner| owner == "tester"), "{owners:?}");

    api.delete("a", &DeleteParams::default()).await?;
    let mut last = None;
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Deleted(_) = event {
            last = Some(event);
            break;
        }
    }
    ensure!(last.is_some(), "the deletion was not seen");
    Ok(())
}

async fn version_is_stamped(target: Target) -> anyhow::Result<()> {
    let seen = target.client().apiserver_version().await?.git_version;
    let named = std::env::var_os(windlass_harness::suite::KUBECONFIG_VARIABLE).is_some()
        || std::env::var_os(windlass_harness::reference::location::ASSETS_VARIABLE).is_some();
    let expected = format!("v{}", windlass_harness::reference::location::version());
    ensure!(named || seen == expected, "{seen} is not {expected}");
    Ok(())
}

async fn audit_log_counts(_: Target) -> anyhow::Result<()> {
    let reference = Reference::start().await?;
    let api: Api<ConfigMap> = Api::namespaced(reference.client().await?, "default");
    for number in 0..3 {
        api.create(&PostParams::default(), &config_map(&format!("counted-{number}"), "x")).await?;
    }
    let log = std::fs::read_to_string(reference.audit_log())?;
    let creates =
        log.lines().filter(|line| line.contains("\"verb\":\"create\"") && line.contains("counted-")).count();
    ensure!(creates == 3, "{creates} creates in the audit log");
    let usage = reference.usage().context("no accounting")?;
    ensure!(usage.peak_memory > 50 << 20 && usage.cpu > Duration::ZERO, "{usage:?}");
    Ok(())
}

/// What a reference must not leave behind.
struct Traces {
    processes: Vec<u32>,
    folder: PathBuf,
}

impl Traces {
    fn of(reference: &Reference) -> Self {
        Self {
            processes: reference.processes().iter().map(|process| process.id()).collect(),
            folder: reference.folder().to_owned(),
        }
    }

    fn processes_left(&self) -> Vec<u32> {
        self.processes.iter().copied().filter(|id| is_alive(*id)).collect()
    }
}

fn is_alive(id: u32) -> bool {
    // A zombie is dead; its parent has not looked yet.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

async fn panic_leaves_nothing(_: Target) -> anyhow::Result<()> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let outcome = tokio::spawn(async move {
        let reference = Reference::start().await.expect("a reference");
        sender.send(Traces::of(&reference)).expect("the test waits for it");
        panic!("on purpose, with a reference running");
    })
    .await;
    ensure!(outcome.is_err_and(|error| error.is_panic()), "it did not panic");
    let traces = receiver.recv()?;
    ensure!(traces.processes.len() == 2, "etcd and kube-apiserver");
    ensure!(traces.processes_left().is_empty(), "still running: {:?}", traces.processes_left());
    ensure!(!traces.folder.exists(), "{} is still there", traces.folder.display());
    Ok(())
}

async fn kill_leaves_nothing(_: Target) -> anyhow::Result<()> {
    let mut holder = Command::new(std::env::current_exe()?).arg(HOLD).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(holder.stdout.take().context("stdout")?).read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let folder = PathBuf::from(words.next().context("the holder said nothing")?);
    let traces = Traces { folder, processes: words.map(str::parse).collect::<Result<_, _>>()? };
    ensure!(traces.processes.len() == 2 && traces.processes_left().len() == 2, "{line}");
    holder.kill()?;
    holder.wait()?;
    let clock = Clock::real();
    for _ in 0..100 {
        if traces.processes_left().is_empty() {
            break;
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
    ensure!(traces.processes_left().is_empty(), "still running: {:?}", traces.processes_left());
    // Files of a killed process go when the next one starts.
    ensure!(traces.folder.exists() || !Path::new("/proc").exists(), "who removed it?");
    drop(Reference::start().await?);
    ensure!(!traces.folder.exists(), "{} is still there", traces.folder.display());
    Ok(())
}

async fn taken_port_is_named(_: Target) -> anyhow::Result<()> {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port();
    let error = Reference::builder().port(port).start().await.err().context("it started on a taken port")?;
    ensure!(error.to_string().contains(&format!("port {port} on 127.0.0.1 is taken")), "{error}");
    Ok(())
}

fn hold() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let reference = Reference::start().await.expect("a reference");
        let ids: Vec<String> = reference.processes().iter().map(|process| process.id().to_string()).collect();
        println!("{} {}", reference.folder().display(), ids.join(" "));
        Clock::real().sleep(Duration::from_secs(60)).await;
    });
    ExitCode::FAILURE
}
