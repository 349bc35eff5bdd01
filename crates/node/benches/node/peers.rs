//! The same program, started by runc alone and by containerd with runc: no API, no network but an empty namespace.

use super::{START, TIMES, median};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::bench::{Bench, Better};

pub(crate) const RUNC: &str = "runc";
pub(crate) const CONTAINERD: &str = "containerd";
/// How long containerd may take to answer at first.
const BEGINNING: Duration = Duration::from_secs(20);

/// Measures those that are installed.
pub(crate) async fn measure(bench: &mut Bench, folder: &Path) -> anyhow::Result<()> {
    let bundle = folder.join("bundle");
    std::fs::create_dir_all(bundle.join("rootfs/bin"))?;
    if std::fs::copy("/bin/busybox", bundle.join("rootfs/bin/busybox")).is_err() {
        bench.note("a static busybox is not installed (Debian: apt-get install busybox-static)");
        return Ok(());
    }
    runc(bench, &bundle)?;
    containerd(bench, folder, &bundle.join("rootfs")).await
}

fn does(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn name(number: usize) -> String {
    format!("windlass-bench-{}-{number}", std::process::id())
}

/// How long each start took, or none where one failed.
fn starts(start: impl Fn(&str) -> bool, end: impl Fn(&str)) -> Option<Vec<Duration>> {
    let clock = Clock::real();
    let mut all = Vec::new();
    for number in 0..TIMES {
        let name = name(number);
        let began = clock.moment();
        let started = start(&name);
        all.push(clock.moment() - began);
        end(&name);
        if !started {
            return None;
        }
    }
    Some(all)
}

/// `runc run --detach`, which returns when the program runs.
fn runc(bench: &mut Bench, bundle: &Path) -> anyhow::Result<()> {
    let runc = |arguments: &[&str]| does(Command::new("runc").args(arguments).current_dir(bundle));
    if !runc(&["spec"]) {
        bench.note("runc is not installed (Debian: apt-get install runc)");
        return Ok(());
    }
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    config["process"]["terminal"] = false.into();
    config["process"]["args"] = json!(["/bin/busybox", "sleep", "1000"]);
    std::fs::write(&path, config.to_string())?;
    bench.progress(RUNC);
    let all = starts(|name| runc(&["run", "--detach", name]), |name| _ = runc(&["delete", "--force", name]));
    match all {
        Some(all) => bench.record(RUNC, START, median(all) * 1e3, "ms", Better::Lower),
        None => bench.note("runc does not start containers here"),
    }
    Ok(())
}

/// A containerd of the bench's own, which ends with it.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// `ctr run --detach` with containerd and its shim for runc, of a root file system that is unpacked already.
async fn containerd(bench: &mut Bench, folder: &Path, root: &Path) -> anyhow::Result<()> {
    let at = |name: &str| -> PathBuf { folder.join("containerd").join(name) };
    std::fs::create_dir_all(at(""))?;
    let config = format!(
        "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
         [grpc]\naddress = {:?}\n[ttrpc]\naddress = {:?}\n",
        at("root"),
        at("state"),
        at("socket"),
        at("ttrpc")
    );
    std::fs::write(at("config.toml"), config)?;
    let mut command = Command::new("containerd");
    command.arg("--config").arg(at("config.toml")).stdin(Stdio::null()).stdout(Stdio::null());
    let Ok(child) = command.stderr(Stdio::null()).spawn() else {
        bench.note("containerd is not installed (Debian: apt-get install containerd)");
        return Ok(());
    };
    let _daemon = Daemon(child);
    let ctr =
        |arguments: &[&str]| does(Command::new("ctr").arg("--address").arg(at("socket")).args(arguments));
    let clock = Clock::real();
    let due = clock.moment() + BEGINNING;
    while !ctr(&["version"]) {
        if clock.moment() > due {
            bench.note("containerd does not answer here");
            return Ok(());
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
    bench.progress(CONTAINERD);
    let root = root.to_string_lossy().into_owned();
    let all = starts(
        |name| ctr(&["run", "--detach", "--rootfs", &root, name, "/bin/busybox", "sleep", "1000"]),
        |name| {
            ctr(&["task", "delete", "--force", name]);
            ctr(&["container", "delete", name]);
        },
    );
    match all {
        Some(all) => bench.record(CONTAINERD, START, median(all) * 1e3, "ms", Better::Lower),
        None => bench.note("containerd does not start containers here"),
    }
    Ok(())
}
