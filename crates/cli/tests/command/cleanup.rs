//! Clean-up: no process is left, no file but the kept data folder, and no context in the user's kubeconfig.

use crate::process::{Cluster, windlass};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const OWN: &str = "apiVersion: v1\nkind: Config\ncurrent-context: work\n\
    clusters: [{name: work, cluster: {server: \"https://work:6443\"}}]\n\
    users: [{name: me, user: {token: \"007\"}}]\n\
    contexts: [{name: work, context: {cluster: work, user: me}}]\n";

/// All folders that a program may use without being told to, and the user's own kubeconfig.
struct Machine {
    root: tempfile::TempDir,
    kept: bool,
}

impl Machine {
    fn new(kept: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "tmp", "run", "work"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let machine = Self { root, kept };
        fs::write(machine.kubeconfig(), OWN).unwrap();
        machine
    }

    fn kubeconfig(&self) -> PathBuf {
        self.root.path().join("home/config")
    }

    fn data(&self) -> String {
        self.root.path().join("data").to_str().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = windlass(arguments);
        for (variable, folder) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run")] {
            command.env(variable, self.root.path().join(folder));
        }
        if self.kept {
            command.args(["--data-dir", &self.data()]);
        }
        command.current_dir(self.root.path().join("work"));
        command
    }

    fn up(&self) -> Command {
        let mut command = self.command(&["cluster", "up"]);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    fn up_detached(&self) {
        let said = self.up().arg("--detach").output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    fn down(&self) {
        let said = self.command(&["cluster", "down"]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    #[track_caller]
    fn is_clean(&self, after: &str) {
        let read = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
        let own = fs::read_to_string(self.kubeconfig()).unwrap();
        assert_eq!(read(&own), read(OWN), "the user's kubeconfig after {after}");
        let mut files = BTreeSet::new();
        files_below(self.root.path(), &self.root.path().join("data"), &mut files);
        assert_eq!(files, BTreeSet::from([self.kubeconfig()]), "files after {after}");
        assert_eq!(processes_of(self.root.path()), Vec::<String>::new(), "processes after {after}");
        if !self.kept {
            assert!(!Path::new(&self.data()).exists());
        }
    }
}

/// Nothing that a failed test started goes on.
impl Drop for Machine {
    fn drop(&mut self) {
        if !processes_of(self.root.path()).is_empty() {
            let _ = self.command(&["cluster", "down"]).output();
        }
    }
}

fn files_below(folder: &Path, but: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.path() {
            path if path == but => {}
            path if entry.file_type().unwrap().is_dir() => {
                // What is no folder of the start counts even when it is empty.
                if folder != but.parent().unwrap() {
                    found.insert(path.clone());
                }
                files_below(&path, but, found);
            }
            path => drop(found.insert(path)),
        }
    }
}

/// Processes that were started with these folders, and whatever they started in turn.
pub(crate) fn processes_of(root: &Path) -> Vec<String> {
    let root = root.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(root)
    });
    processes.map(|process| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default()).collect()
}

#[test]
fn after_down() {
    for kept in [true, false] {
        let machine = Machine::new(kept);
        machine.up_detached();
        assert_eq!(processes_of(machine.root.path()).len(), 1, "one process is the whole cluster");
        machine.down();
        machine.is_clean("down");
    }
}

#[test]
fn after_ctrl_c() {
    for kept in [true, false] {
        let machine = Machine::new(kept);
        let cluster = Cluster::of(machine.up());
        assert!(cluster.end(Signal::SIGINT).success());
        machine.is_clean("Ctrl-C");
    }
}

#[test]
fn after_a_kill_and_up_and_down() {
    for kept in [true, false] {
        let machine = Machine::new(kept);
        let killed = Cluster::of(machine.up());
        killed.end(Signal::SIGKILL);
        assert_eq!(processes_of(machine.root.path()), Vec::<String>::new(), "a kill ends all of it");
        machine.up_detached();
        machine.down();
        machine.is_clean("kill, up and down");
    }
}
