//! Which of several running clusters the subcommands of `windlass cluster` are about.

use crate::process::{Cluster, windlass};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Several clusters of one user, the API alone.
struct Clusters {
    runtime: tempfile::TempDir,
}

impl Clusters {
    fn new() -> Self {
        Self { runtime: tempfile::tempdir().unwrap() }
    }

    fn start(&self, arguments: &[&str]) -> Cluster {
        Cluster::start(self.runtime.path(), arguments)
    }

    /// The exit code, standard output and standard error of `windlass cluster` with a `KUBECONFIG`.
    fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = windlass(&["cluster"]);
        command.args(arguments).env("XDG_RUNTIME_DIR", self.runtime.path()).env("KUBECONFIG", kubeconfig);
        let ended = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.code(), text(ended.stdout), text(ended.stderr))
    }
}

#[test]
fn kubeconfig_selects_its_cluster_among_several() {
    let clusters = Clusters::new();
    let (one, other) = (clusters.start(&[]), clusters.start(&[]));
    let kubeconfig = other.kubeconfig();
    let (code, path, _) = clusters.run(&kubeconfig, &["kubeconfig", "--path"]);
    assert_eq!((code, PathBuf::from(path.trim_end())), (Some(0), kubeconfig.clone()));
    let (_, status, _) = clusters.run(&kubeconfig, &["status", "-o", "json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
    assert_eq!(status[0]["server"], other.server());
    let (_, all, _) = clusters.run(&kubeconfig, &["status", "--all", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&all).unwrap().len(), 2);

    let stopped = format!("stopped {}\n", other.server());
    assert_eq!(clusters.run(&kubeconfig, &["down"]).1, stopped);
    assert!(other.ended().success());
    // Given again, it does not stop the cluster that is left, and names it.
    let (code, _, refused) = clusters.run(&kubeconfig, &["down"]);
    assert_eq!(code, Some(1), "{refused}");
    assert!(refused.contains("does not run any more") && refused.contains(one.server()), "{refused}");
    assert!(refused.contains("--data-dir "), "{refused}");
}

#[test]
fn data_dir_comes_before_kubeconfig() {
    let clusters = Clusters::new();
    let data = clusters.runtime.path().join("data");
    let data = data.to_str().unwrap();
    let (kept, other) = (clusters.start(&["--data-dir", data]), clusters.start(&[]));
    let (_, path, _) = clusters.run(&other.kubeconfig(), &["kubeconfig", "--path", "--data-dir", data]);
    assert_eq!(PathBuf::from(path.trim_end()), kept.kubeconfig());
    // A cluster with a folder is found by its kubeconfig too, in a list of files as kubectl takes it.
    let list =
        std::env::join_paths([Path::new("/nowhere"), &kept.kubeconfig(), &other.kubeconfig()]).unwrap();
    let stopped = format!("stopped {}\n", kept.server());
    assert_eq!(clusters.run(Path::new(&list), &["down"]).1, stopped);
    assert!(kept.ended().success());
}

#[test]
fn a_kubeconfig_of_another_kubernetes_selects_nothing() {
    let clusters = Clusters::new();
    let work = clusters.runtime.path().join("work");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: work\n\
        clusters: [{name: work, cluster: {server: \"https://work:6443\"}}]\nusers: [{name: me, user: {}}]\n\
        contexts: [{name: work, context: {cluster: work, user: me}}]\n";
    std::fs::write(&work, text).unwrap();
    // The cluster adds its context to the file, and the current one stays the user's.
    let one = clusters.start(&["--kubeconfig", work.to_str().unwrap()]);
    let (_, path, _) = clusters.run(&work, &["kubeconfig", "--path"]);
    assert_eq!(PathBuf::from(path.trim_end()), work, "the only one that runs");
    let _other = clusters.start(&[]);
    let (code, _, refused) = clusters.run(&work, &["down"]);
    assert_eq!(code, Some(1));
    assert!(refused.contains("say which") && refused.contains(one.server()), "{refused}");
}

#[test]
fn help_documents_the_order_of_precedence() {
    for subcommand in ["down", "status", "kubeconfig", "expose", "advance"] {
        let said = windlass(&["cluster", subcommand, "--help"]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let places =
            ["1. the one in the folder that --data-dir", "2. the one that the current context", "3. "];
        assert!(places.iter().all(|place| said.contains(place)), "{subcommand}: {said}");
    }
}
