//! The tutorial, done as its reader does it: `docs/tutorial/memcached.md` is read, and every command of it run, every file written,
//! every change made, and what is printed compared with what the page shows. `make test-tutorial` runs it.
//!
//! Projects are built with the repository's own folder for intermediate files (cargo's `build-dir`), and their programs go
//! elsewhere: the tutorial's operator has the same name as `operators/memcached`.

mod page;
mod terminal;
mod world;

use anyhow::{Context, ensure};
use page::Step;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use terminal::{Desk, Terminal, desk};
use windlass_clock::Clock;
use windlass_harness::Environment;
use windlass_harness::suite::REQUIRE_VARIABLE;
use world::World;

const PAGE: &str = include_str!("../../../../docs/tutorial/memcached.md");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the tests run in the repository")
}

#[test]
fn the_page_is_understood_and_declares_what_the_flagship_does() -> anyhow::Result<()> {
    let steps = page::steps(PAGE)?;
    let types = steps.iter().find_map(|step| match step {
        Step::File { path, text } if path == "src/api/v1alpha1/memcached.rs" => Some(text),
        _ => None,
    });
    // Word for word, but for what the scaffold's formatting makes of it.
    let flagship = std::fs::read_to_string(repository().join("operators/memcached/src/api/v1alpha1.rs"))?;
    let words = |text: &str| {
        text.lines().filter(|line| line.starts_with("    pub ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(types.context("the page has no types")?), words(&flagship));
    Ok(())
}

#[tokio::test]
#[ignore = "it builds a project: make test-tutorial runs it"]
async fn every_command_of_the_page_works_on_embedded() -> anyhow::Result<()> {
    if let Some(why) = lacking()? {
        println!("skipped: {why}");
        return Ok(());
    }
    let place = place()?;
    let desk = desk(place.path(), &repository())?;
    let _down = Down(&desk);
    let world = walk(&desk, true).await?;
    ensure!(world.sizes == [3, 5, 2], "the page went through {:?}", world.sizes);
    let left = std::fs::read_dir(place.path().join("run"))?.count();
    ensure!(left == 0, "{left} folders of clusters are left");
    nothing_runs(&place.path().display().to_string(), &world.pods).await
}

#[tokio::test]
#[ignore = "it builds a project: make test-tutorial runs it"]
async fn every_command_of_the_page_works_on_reference() -> anyhow::Result<()> {
    let environment = Environment::reference_cluster();
    let required = std::env::var_os(REQUIRE_VARIABLE).is_some();
    let why = environment.available().err().map(str::to_owned).filter(|_| !required);
    if let Some(why) = why.or(lacking()?) {
        println!("skipped: {why}");
        return Ok(());
    }
    let target = environment.open().await?;
    let place = place()?;
    let mut desk = desk(place.path(), &repository())?;
    let kubeconfig = target.kubeconfig().context("the reference has a kubeconfig")?.display().to_string();
    desk.variables.push(("KUBECONFIG".to_owned(), kubeconfig.clone()));
    let node = Node::join(&desk, &kubeconfig).await?;
    let world = walk(&desk, false).await;
    node.leave()?;
    environment.close();
    let world = world?;
    ensure!(world.sizes == [3, 5, 2], "the page went through {:?}", world.sizes);
    nothing_runs(&place.path().display().to_string(), &world.pods).await
}

/// Does what the page says. Where it does not bring up its own cluster, one is there.
async fn walk(desk: &Desk, own_cluster: bool) -> anyhow::Result<World> {
    let steps = page::steps(PAGE)?;
    let mut terminals: BTreeMap<usize, Terminal> = BTreeMap::new();
    let mut world = World::default();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::File { path, text } => {
                let path = desk.folder.join("memcached-operator").join(path);
                std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            }
            Step::Change { patch } => apply(&desk.folder.join("memcached-operator"), desk, patch)?,
            Step::Interrupt { terminal } => {
                terminals.get_mut(terminal).context("nobody used that terminal")?.interrupt().await?;
            }
            Step::Run(command) if command.cluster && !own_cluster => {}
            Step::Run(command) => {
                let place = format!("docs/tutorial/memcached.md:{}", command.line);
                println!("{place}: {}", command.text);
                let next = steps[at + 1..].iter().find(|step| match step {
                    Step::Run(other) => other.terminal == command.terminal,
                    Step::Interrupt { terminal } => *terminal == command.terminal,
                    _ => false,
                });
                let terminal =
                    terminals.entry(command.terminal).or_insert_with(|| Terminal::new(command.terminal));
                if matches!(next, Some(Step::Interrupt { .. })) {
                    terminal.leave_running(desk, &command.text)?;
                    continue;
                }
                let mut ran = terminal.run(desk, &command.text).await.with_context(|| place.clone())?;
                for _ in 0..attempts(&command.text) {
                    if !ran.0 || page::missing(&command.shown, &ran.1).is_none() {
                        break;
                    }
                    ran = terminal.run(desk, &command.text).await.with_context(|| place.clone())?;
                }
                let (well, printed) = ran;
                let beside: String = terminals.values().map(Terminal::printed).collect();
                ensure!(
                    well != command.fails,
                    "{place} {}:\n{printed}\n{beside}",
                    if well { "is not refused" } else { "failed" }
                );
                if let Some(line) = page::missing(&command.shown, &printed) {
                    anyhow::bail!("{place}: the page shows {line:?}, and there is\n{printed}\n{beside}");
                }
                if command.text.contains("condition=Ready") {
                    let terminal = terminals.get_mut(&command.terminal).context("it was used")?;
                    world.look(desk, terminal).await.with_context(|| place)?;
                }
                if command.text.contains("windlass generate") {
                    is_the_flagships_kind(desk)?;
                }
            }
        }
    }
    Ok(world)
}

/// How often a command may be repeated that prints less than the page shows. `kubectl run` attaches to a container that runs by then, and shows
/// what it writes from then on; one that ends at once may have written everything before.
fn attempts(command: &str) -> usize {
    if command.starts_with("kubectl run ") { 5 } else { 0 }
}

fn apply(folder: &Path, desk: &Desk, patch: &str) -> anyhow::Result<()> {
    let path = desk.aside.join("change.patch");
    std::fs::write(&path, patch)?;
    // Not as a part of a repository that the folder may be in.
    let mut git = Command::new("git");
    let said =
        git.arg("apply").arg(&path).current_dir(folder).env("GIT_CEILING_DIRECTORIES", folder).output()?;
    ensure!(said.status.success(), "{}\n{patch}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}

/// The version that the page leads to is the one that `operators/memcached` has served first, field by field. That one has another
/// version by now, which is the stored one.
fn is_the_flagships_kind(desk: &Desk) -> anyhow::Result<()> {
    let file = "config/crd/cache.example.com_memcacheds.yaml";
    let first = |folder: PathBuf| -> anyhow::Result<serde_json::Value> {
        let crd: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(folder.join(file))?)?;
        let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let version = versions.into_iter().find(|version| version["name"] == "v1alpha1");
        let mut version = version.with_context(|| format!("no version v1alpha1 in {}", folder.display()))?;
        version["storage"] = true.into();
        Ok(serde_json::json!({"names": crd["spec"]["names"], "version": version}))
    };
    let made = first(desk.folder.join("memcached-operator"))?;
    let flagship = first(repository().join("operators/memcached"))?;
    ensure!(made == flagship, "{file} is not that of operators/memcached:\n{made:#}\n{flagship:#}");
    Ok(())
}

/// What the machine lacks to do what the page does.
fn lacking() -> anyhow::Result<Option<String>> {
    let said = Command::new(env!("CARGO_BIN_EXE_windlass")).args(["doctor", "-o", "json"]).output()?;
    let told: serde_json::Value = serde_json::from_slice(&said.stdout).context("windlass doctor -o json")?;
    if told["canRunPods"] != true {
        return Ok(Some("this machine cannot run pods as processes; windlass doctor says why".to_owned()));
    }
    let has = |program: &str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    let kubectl = has("kubectl")
        || windlass_harness::reference::programs().is_ok_and(|at| at.join("kubectl").is_file());
    let missing = ["git", "make", "memcached", "busybox"].into_iter().filter(|program| !has(program));
    let missing: Vec<&str> = missing.chain((!kubectl).then_some("kubectl")).collect();
    Ok((!missing.is_empty()).then(|| format!("there is no {}", missing.join(", no "))))
}

/// A folder that the users of pods may pass through.
fn place() -> anyhow::Result<tempfile::TempDir> {
    let place = tempfile::Builder::new().prefix("windlass-tutorial-").tempdir()?;
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(place)
}

/// No process is left that belongs to these pods or to this folder, at most after a moment.
async fn nothing_runs(folder: &str, pods: &[String]) -> anyhow::Result<()> {
    let clock = Clock::real();
    let left = || -> Vec<String> {
        let lines = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
        lines.filter(|line| line.contains(folder) || pods.iter().any(|pod| line.contains(pod))).collect()
    };
    let gone = async {
        while !left().is_empty() {
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = clock.timeout(Duration::from_secs(30), gone).await;
    ensure!(left().is_empty(), "these still run: {:#?}", left());
    Ok(())
}

/// Ends the cluster that a walk which failed left up.
struct Down<'a>(&'a Desk);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        let mut down = Command::new(env!("CARGO_BIN_EXE_windlass"));
        down.args(["cluster", "down"]).envs(self.0.variables.iter().cloned());
        let _ = down.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Our node, joined to another's cluster.
struct Node(Child);

impl Node {
    async fn join(desk: &Desk, kubeconfig: &str) -> anyhow::Result<Self> {
        let log = desk.aside.join("node.log");
        let out = std::fs::File::create(&log)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["node", "process", "--kubeconfig", kubeconfig, "--root"]).arg(desk.aside.join("node"));
        command.envs(desk.variables.iter().cloned()).stdin(Stdio::null());
        let mut node = Self(command.stdout(out.try_clone()?).stderr(out).spawn()?);
        let clock = Clock::real();
        let joined = async {
            loop {
                let said = std::fs::read_to_string(&log)?;
                if said.contains("joined: ") {
                    return Ok(());
                }
                ensure!(node.0.try_wait()?.is_none(), "the node ended: {said}");
                clock.sleep(Duration::from_millis(20)).await;
            }
        };
        clock.timeout(Duration::from_secs(60), joined).await.context("the node does not join")??;
        Ok(node)
    }

    fn leave(mut self) -> anyhow::Result<()> {
        let id = nix::unistd::Pid::from_raw(self.0.id().try_into()?);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM)?;
        let status = self.0.wait()?;
        ensure!(status.success(), "the node did not leave well: {status}");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
