//! What a test stands on: a network in a folder of its own, pods in it, and that nothing of it is left.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use windlass_clock::Clock;
use windlass_node::Program;
use windlass_node::net::{Network, Settings};

/// How long anything may take on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A network, ended with the test.
pub struct Fixture {
    pub network: Network,
    pub settings: Settings,
    /// Removed with the test.
    pub folder: TempDir,
}

impl Fixture {
    pub async fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("windlass-net-").tempdir()?;
        let settings = Settings::of_node(0, folder.path().join("network"));
        let network = Network::open(&Program::current()?, &settings).await?;
        Ok(Self { network, settings, folder })
    }

    /// A pod in the network, in namespaces of its own.
    pub async fn pod(&self, uid: &str) -> Result<Pod> {
        let address = self.network.allocate(uid).await?;
        let users = self.network.user_namespace_of().unwrap_or(0).to_string();
        let mut child = Command::new(std::env::current_exe()?)
            .args(["pod", &users, uid])
            .arg(self.network.socket())
            .arg(self.settings.resolv_conf("shop"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let asks = child.stdin.take().context("piped")?;
        let answers = BufReader::new(child.stdout.take().context("piped")?);
        let mut pod = Pod { child, asks, answers, address };
        let first = pod.read()?;
        ensure!(first == json!({"ok": address.to_string()}), "it begins with {first}");
        Ok(pod)
    }

    /// A pod that says its name at this port, by connections and by datagrams.
    pub async fn listening(&self, uid: &str, port: u16) -> Result<Pod> {
        let mut pod = self.pod(uid).await?;
        pod.ask(json!({"do": "listen", "port": port, "name": uid}))?;
        pod.ask(json!({"do": "listen-udp", "port": port, "name": uid}))?;
        Ok(pod)
    }

    /// The links of the node's namespace, by name.
    pub fn links(&self) -> Result<Vec<String>> {
        let table = std::fs::read_to_string(format!("/proc/{}/net/dev", self.network.pid()))?;
        let mut names: Vec<String> = table
            .lines()
            .skip(2)
            .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Ends the network, and sees that nothing is left of it.
    pub async fn end(self) -> Result<()> {
        let pid = self.network.pid();
        self.network.end().await?;
        ensure!(!self.settings.socket().exists(), "its socket is left");
        eventually("its process is gone", async || Ok(!alive(pid))).await
    }
}

/// A process with a network namespace of its own, that does what it is asked.
pub struct Pod {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub address: Ipv4Addr,
}

impl Pod {
    /// Says something at an address or name, and hears what is answered.
    pub fn say(&mut self, to: &str, text: &str) -> Result<String> {
        self.ask(json!({"do": "say", "to": to, "text": text}))
    }

    /// The same in a datagram.
    pub fn say_udp(&mut self, to: &str, text: &str) -> Result<String> {
        self.ask(json!({"do": "say-udp", "to": to, "text": text}))
    }

    /// Asks it for something: what it answers, or why it could not.
    pub fn ask(&mut self, request: Value) -> Result<String> {
        writeln!(self.asks, "{request}")?;
        let answer = self.read()?;
        match (answer["ok"].as_str(), answer["error"].as_str()) {
            (Some(text), _) => Ok(text.into()),
            (_, Some(error)) => bail!("{error}"),
            _ => bail!("it answered {answer}"),
        }
    }

    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the pod ended");
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Whether a process runs and is not merely waited for.
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits for an outcome, not for a time.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let clock = Clock::real();
    let due = clock.moment() + PATIENCE;
    while !holds().await? {
        ensure!(clock.moment() < due, "it never came to be that {what}");
        clock.sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// A trial that runs on a runtime of its own, as a node would.
pub fn trial<F>(name: &'static str, body: fn() -> F) -> libtest_mimic::Trial
where
    F: Future<Output = Result<()>> + 'static,
{
    libtest_mimic::Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let done = runtime.block_on(async { Clock::real().timeout(2 * PATIENCE, body()).await });
        done.map_err(anyhow::Error::from).flatten().map_err(|error| format!("{error:#}").into())
    })
}
