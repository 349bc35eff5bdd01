//! From `windlass init` to a first reconciled resource on the embedded cluster, as a person does it: `init`, `create api`, `generate`,
//! `run --embedded`, and a sample applied.
//!
//! Cold, nothing is built and cargo's home holds only the downloads; warm, the dependencies are built, as for whoever begins a second
//! operator. What cargo takes is measured apart, by a cargo that writes down how long it took: the rest is the tool's own.
//! The rows "debug:" are what an author's tests wait for, built as `cargo test` builds (`tests/examples/author_loop.rs`).
//! `-- warm` after the command leaves out the cold turn, which takes minutes; `WINDLASS_PROGRAM` names another `windlass`.

use anyhow::{Context, bail, ensure};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::bench::{Bench, Better};

const COLD: &str = "cold";
const WARM: &str = "warm";
const WARM_TURNS: usize = 3;
/// The longest that the sample may take to be ready.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut bench = Bench::start("sdk", &[WARM, COLD]);
    let only_warm = std::env::args().any(|argument| argument == WARM);
    bench.note(
        "downloads are not measured: cargo's home begins with those of this machine, packed as they come",
    );
    if !only_warm {
        bench.progress("cold");
        record(&mut bench, COLD, &Desk::new(false)?.walk("first").await?);
    }
    let desk = Desk::new(true)?;
    bench.progress("building what is warm");
    desk.walk("first").await?;
    for turn in 1..=WARM_TURNS {
        bench.progress(&format!("warm, turn {turn} of {WARM_TURNS}"));
        let walked = desk.walk(&format!("again-{turn}")).await?;
        record(&mut bench, WARM, &walked);
    }
    bench.progress("in debug: the clock and campaigns");
    record_author_loop(&mut bench, &desk.root)?;
    Ok(bench.finish()?)
}

/// The figures that `tests/examples/author_loop.rs` prints.
fn record_author_loop(bench: &mut Bench, root: &Path) -> anyhow::Result<()> {
    let said = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--package", "windlass-tests", "--example", "author_loop"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(said.status.success(), "author_loop: {}", said.status);
    for line in String::from_utf8(said.stdout)?.lines() {
        let mut fields = line.split('\t');
        let mut field = || fields.next().with_context(|| format!("not a figure: {line}"));
        let (name, value, unit) = (field()?, field()?.parse()?, field()?);
        let better = if unit == "/s" { Better::Higher } else { Better::Lower };
        bench.record(WARM, &format!("debug: {name}"), value, unit, better);
    }
    Ok(())
}

fn record(bench: &mut Bench, subject: &str, walked: &Walked) {
    let cargo: Duration = walked.parts.iter().map(|part| part.cargo).sum();
    let whole: Duration = walked.parts.iter().map(|part| part.whole).sum();
    bench.record(subject, "from init to a reconciled resource", whole.as_secs_f64(), "s", Better::Lower);
    bench.record(subject, "of it cargo's", cargo.as_secs_f64(), "s", Better::Lower);
    let own = |part: &Part| part.whole.saturating_sub(part.cargo).as_secs_f64() * 1000.0;
    bench.record(subject, "of it our own", walked.parts.iter().map(own).sum(), "ms", Better::Lower);
    for part in &walked.parts {
        bench.record(subject, &format!("our own: {}", part.name), own(part), "ms", Better::Lower);
    }
}

/// What one step took, and how much of it was cargo's.
struct Part {
    name: &'static str,
    whole: Duration,
    cargo: Duration,
}

struct Walked {
    parts: Vec<Part>,
}

/// A person's machine: a home of cargo, and a cargo that writes down how long it took.
struct Desk {
    program: PathBuf,
    root: PathBuf,
    /// Whether the dependencies are shared with this repository.
    warm: bool,
    folder: tempfile::TempDir,
    clock: Clock,
}

impl Desk {
    fn new(warm: bool) -> anyhow::Result<Self> {
        let program = std::env::var_os("WINDLASS_PROGRAM").map(PathBuf::from);
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_windlass").into());
        let folder = tempfile::Builder::new().prefix("windlass-bench-sdk-").tempdir()?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        for name in ["run", "cargo/registry", ".cargo"] {
            fs::create_dir_all(folder.path().join(name))?;
        }
        match warm {
            true => fs::write(
                folder.path().join(".cargo/config.toml"),
                windlass_harness::projects::cargo_settings(&root),
            )?,
            false => seed(&folder.path().join("cargo"))?,
        }
        let log = folder.path().join("cargo.log");
        let script = format!(
            "#!/bin/bash\nbegun=$(date +%s%N)\ncargo \"$@\"\ncode=$?\necho $(($(date +%s%N) - begun)) >> {log:?}\nexit $code\n"
        );
        let cargo = folder.path().join("timed-cargo");
        fs::write(&cargo, script)?;
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755))?;
        Ok(Self { program, root, warm, folder, clock: Clock::real() })
    }

    fn command(&self, project: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(project).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO")) {
            command.env_remove(name);
        }
        let at = |name: &str| self.folder.path().join(name);
        command
            .env("CARGO", at("timed-cargo"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("XDG_RUNTIME_DIR", at("run"));
        match (self.warm, std::env::var_os("CARGO_HOME")) {
            (false, _) => drop(command.env("CARGO_HOME", at("cargo"))),
            (true, Some(home)) => drop(command.env("CARGO_HOME", home)),
            (true, None) => {}
        }
        command.env("WINDLASS_METRICS_BIND_ADDRESS", "0").env("WINDLASS_HEALTH_PROBE_BIND_ADDRESS", "0");
        command.env_remove("WINDLASS_OPERATOR").env_remove("KUBECONFIG");
        command
    }

    /// All that cargo took so far.
    fn cargo(&self) -> Duration {
        let log = fs::read_to_string(self.folder.path().join("cargo.log")).unwrap_or_default();
        log.lines().filter_map(|line| line.parse().ok()).map(Duration::from_nanos).sum()
    }

    fn step(&self, project: &Path, name: &'static str, arguments: &[&str]) -> anyhow::Result<Part> {
        let (begun, cargo) = (self.clock.moment(), self.cargo());
        let said = self.command(project, arguments).output()?;
        let whole = self.clock.moment() - begun;
        ensure!(said.status.success(), "{name}: {}", String::from_utf8_lossy(&said.stderr));
        Ok(Part { name, whole, cargo: self.cargo() - cargo })
    }

    async fn walk(&self, name: &str) -> anyhow::Result<Walked> {
        let project = self.folder.path().join(name);
        fs::create_dir(&project)?;
        let root = self.root.to_str().context("a path that is not in UTF-8")?;
        let init = ["init", "--domain", "example.com", "--name", "cache-operator", "--windlass", root];
        let api =
            ["create", "api", "--group", "cache", "--version", "v1alpha1", "--kind", "Memcached", "--owns"];
        let mut parts = vec![
            self.step(&project, "init", &init)?,
            self.step(&project, "create api", &[&api[..], &["Deployment,Service"]].concat())?,
            self.step(&project, "generate", &["generate"])?,
        ];
        let (begun, cargo) = (self.clock.moment(), self.cargo());
        let mut running = Running(
            self.command(&project, &["run", "--embedded"])
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()?,
        );
        let kubeconfig = running.ready()?;
        let reconciled = self.clock.timeout(PATIENCE, reconciled(&kubeconfig, &project, &self.clock)).await;
        reconciled.context("the sample does not become ready")??;
        let whole = self.clock.moment() - begun;
        parts.push(Part { name: "run --embedded, and a sample", whole, cargo: self.cargo() - cargo });
        running.end()?;
        Ok(Walked { parts })
    }
}

/// What was downloaded on this machine, and nothing that was made of it.
fn seed(to: &Path) -> anyhow::Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.context("where is cargo's home?")?;
    for name in ["registry/index", "registry/cache", "config.toml"] {
        let from = home.join(name);
        if from.exists() {
            let status = Command::new("cp").arg("-r").arg(&from).arg(to.join(name)).status().context("cp")?;
            ensure!(status.success(), "cannot copy {}", from.display());
        }
    }
    Ok(())
}

/// An operator and its cluster.
struct Running(Child);

impl Running {
    /// Waits until the kinds are installed, and says how the cluster is reached.
    fn ready(&mut self) -> anyhow::Result<PathBuf> {
        let errors = self.0.stderr.take().context("it has no output")?;
        let mut lines = BufReader::new(errors).lines();
        let mut kubeconfig = None;
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, path)) = line.split_once("export KUBECONFIG=") {
                kubeconfig = Some(PathBuf::from(path));
            }
            if line.contains("CustomResourceDefinition") {
                // What it says from here on nobody needs; it must not wait for a reader.
                std::thread::spawn(move || lines.for_each(drop));
                return kubeconfig.context("it named no kubeconfig");
            }
        }
        bail!("it ended before its kinds were there")
    }

    fn end(mut self) -> anyhow::Result<()> {
        let id = nix::unistd::Pid::from_raw(self.0.id().try_into()?);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM)?;
        ensure!(self.0.wait()?.success(), "it did not end well");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Applies the sample that was generated, and waits until it is ready.
async fn reconciled(kubeconfig: &Path, project: &Path, clock: &Clock) -> anyhow::Result<()> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let client =
        kube::Client::try_from(kube::Config::from_custom_kubeconfig(file, &Default::default()).await?)?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cache.example.com", "v1alpha1", "Memcached"));
    let objects: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
    let sample = project.join("config/samples/cache.example.com_v1alpha1_memcached.yaml");
    let sample: DynamicObject = serde_saphyr::from_str(&fs::read_to_string(sample)?)?;
    let made = objects.create(&PostParams::default(), &sample).await?;
    let name = made.metadata.name.context("it has a name")?;
    loop {
        let now = objects.get(&name).await?;
        let conditions = now.data.pointer("/status/conditions").and_then(|all| all.as_array());
        let is_ready = |one: &serde_json::Value| one["type"] == "Ready" && one["status"] == "True";
        if conditions.is_some_and(|all| all.iter().any(is_ready)) {
            return Ok(());
        }
        clock.sleep(Duration::from_millis(2)).await;
    }
}
