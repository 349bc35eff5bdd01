//! What the tests ask of the cluster besides what the page does: whether the status is right, and whether every server answers.

use crate::terminal::{Desk, Terminal};
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use memcached_operator::api::v1beta1::Memcached;
use memcached_operator::controller::memcached::decide;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use windlass::Observed;
use windlass_clock::Clock;

const NAME: &str = "memcached-sample";
const LABEL: &str = "app.kubernetes.io/instance=memcached-sample";
/// The longest that a server may take to answer, or kubectl to reach it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was seen of the servers, at each step that says that they are ready.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// How many there were.
    pub(crate) sizes: Vec<i64>,
    /// The ids of all pods that ever served.
    pub(crate) pods: Vec<String>,
}

impl World {
    /// All is as the status says, and every server that it names answers.
    pub(crate) async fn look(&mut self, desk: &Desk, reader: &mut Terminal) -> anyhow::Result<()> {
        let told = ask(desk, reader, &format!("kubectl get memcached {NAME} -o json")).await?;
        let memcached: Memcached = serde_json::from_value(told.clone())?;
        let status = memcached.status.clone().context("it has a status")?;
        let size = memcached.spec.size;
        let ready =
            status.conditions.iter().find(|one| one.type_ == "Ready").context("it is ready or not")?;
        ensure!(ready.status == "True", "{told:#}");
        ensure!(ready.observed_generation == memcached.metadata.generation, "{told:#}");
        ensure!(status.ready == size && status.nodes.len() == usize::try_from(size)?, "{told:#}");
        let list = ask(desk, reader, &format!("kubectl get pods -l {LABEL} -o json")).await?;
        let pods = list["items"].as_array().context("a list")?;
        let stay = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let mut names: Vec<&str> = stay.filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        names.sort_unstable();
        ensure!(status.nodes == names, "the status names {:?}, there are {names:?}", status.nodes);
        for node in &status.nodes {
            let version = version_of(desk, reader, node).await.with_context(|| format!("{node} answers"))?;
            ensure!(version.starts_with("VERSION 1."), "{node} says {version:?}");
        }
        self.pods.extend(pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).map(str::to_owned));
        if self.sizes.is_empty() {
            is_as_the_flagship_would(desk, reader, &memcached).await?;
        }
        self.sizes.push(size.into());
        Ok(())
    }
}

/// What kubectl says, as JSON.
async fn ask(desk: &Desk, reader: &mut Terminal, typed: &str) -> anyhow::Result<Value> {
    let (well, printed) = reader.run(desk, typed).await?;
    ensure!(well, "{typed}: {printed}");
    serde_json::from_str(&printed).with_context(|| format!("{typed}: {printed}"))
}

/// Asks a server, over TCP, for its version.
async fn version_of(desk: &Desk, reader: &Terminal, pod: &str) -> anyhow::Result<String> {
    let mut forward = reader.beside("forward");
    forward.leave_running(desk, &format!("kubectl port-forward pod/{pod} :11211"))?;
    let clock = Clock::real();
    let port = async {
        loop {
            let printed = forward.printed();
            let from = printed.lines().find_map(|line| line.strip_prefix("Forwarding from 127.0.0.1:"));
            if let Some(port) = from.and_then(|rest| rest.split(' ').next()?.parse::<u16>().ok()) {
                return port;
            }
            clock.sleep(Duration::from_millis(10)).await;
        }
    };
    let asked = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port.await)).await?;
        stream.write_all(b"version\r\n").await?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await?;
        anyhow::Ok(line.trim_end().to_owned())
    };
    let answer = clock.timeout(PATIENCE, asked).await;
    answer.with_context(|| format!("kubectl says {:?}", forward.printed()))?
}

/// What the tutorial makes is what `operators/memcached` makes of the same object.
async fn is_as_the_flagship_would(
    desk: &Desk,
    reader: &mut Terminal,
    memcached: &Memcached,
) -> anyhow::Result<()> {
    let plan = decide(memcached, &Observed::empty()).map_err(|refused| anyhow::anyhow!("{refused:?}"))?;
    let deployment = plan.applied::<Deployment>(NAME).context("it plans a Deployment")?;
    let service = plan.applied::<Service>(NAME).context("it plans a Service")?;
    for (kind, wanted) in
        [("deployment", serde_json::to_value(deployment)?), ("service", serde_json::to_value(service)?)]
    {
        let made = ask(desk, reader, &format!("kubectl get {kind} {NAME} -o json")).await?;
        if let Some(where_) = differs(&wanted, &made) {
            anyhow::bail!("{kind}{where_} is not as operators/memcached has it: {made:#}");
        }
    }
    Ok(())
}

/// Where the first value is that is wanted and not there.
fn differs(wanted: &Value, there: &Value) -> Option<String> {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => wanted.iter().find_map(|(name, wanted)| {
            let found = there.get(name).map_or(Some(String::new()), |there| differs(wanted, there));
            found.map(|below| format!(".{name}{below}"))
        }),
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            let mut each = wanted.iter().zip(there).enumerate();
            each.find_map(|(at, (wanted, there))| {
                differs(wanted, there).map(|below| format!("[{at}]{below}"))
            })
        }
        (wanted, there) => (wanted != there).then(String::new),
    }
}

#[test]
fn a_difference_is_named_by_its_place() {
    let of = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let there = of(r#"{"a": [{"b": 1, "c": 2}], "d": 3}"#);
    assert_eq!(differs(&of(r#"{"a": [{"b": 1}]}"#), &there), None);
    assert_eq!(differs(&of(r#"{"a": [{"b": 2}]}"#), &there).unwrap(), ".a[0].b");
    assert_eq!(differs(&of(r#"{"e": 2}"#), &there).unwrap(), ".e");
    assert_eq!(differs(&of(r#"{"a": []}"#), &there).unwrap(), ".a");
}
