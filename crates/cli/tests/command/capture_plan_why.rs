//! `windlass capture`, `plan` and `why`, of an operator on a cluster and of what was saved in a file.

use crate::process::{Cluster, windlass};
use crate::project::client_of;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use windlass_clock::Clock;

/// A cluster with the kinds of the operator that the demo has: under its name, the command is the operator.
struct World {
    folder: tempfile::TempDir,
    cluster: Cluster,
    operator: PathBuf,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let operator = folder.path().join("memcached-operator");
        symlink(env!("CARGO_BIN_EXE_windlass"), &operator).unwrap();
        let cluster = Cluster::start(folder.path(), &[]);
        Self { folder, cluster, operator }
    }

    fn command(&self, what: &str, more: &[&str]) -> Command {
        let mut command = windlass(&[what, "--operator"]);
        command.arg(&self.operator).args(more).env("KUBECONFIG", self.cluster.kubeconfig());
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    #[track_caller]
    fn says(&self, what: &str, more: &[&str]) -> String {
        let said = self.command(what, more).output().unwrap();
        assert!(said.status.success(), "{what} {more:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }

    /// What it says when it fails.
    #[track_caller]
    fn complains(&self, what: &str, more: &[&str]) -> String {
        let said = self.command(what, more).output().unwrap();
        assert!(!said.status.success(), "{what} {more:?}: {}", String::from_utf8_lossy(&said.stdout));
        String::from_utf8(said.stderr).unwrap()
    }

    async fn memcacheds(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cache.example.com", "v1beta1", "Memcached"));
        Api::default_namespaced_with(client_of(&self.cluster).await, &kind)
    }
}

#[tokio::test]
async fn an_object_on_a_cluster_is_captured_planned_and_explained() {
    let world = World::new();
    world.says("install", &[]);
    let memcacheds = world.memcacheds().await;
    let sample = json!({
        "apiVersion": "cache.example.com/v1beta1", "kind": "Memcached",
        "metadata": { "name": "sample" }, "spec": { "size": 2 },
    });
    memcacheds.create(&PostParams::default(), &serde_json::from_value(sample).unwrap()).await.unwrap();

    // From the cluster, and from what was saved of it.
    let plan = world.says("plan", &["Memcached", "default/sample"]);
    assert!(plan.contains("Memcached default/sample by memcached: waiting, 2 steps"), "{plan}");
    assert!(plan.contains("Deployment sample: is created") && plan.contains("+ spec.replicas: 2"), "{plan}");
    let saved = world.folder.path().join("capture.json");
    std::fs::write(&saved, world.says("capture", &["memcacheds", "sample"])).unwrap();
    let replayed = || {
        let mut command = world.command("plan", &[]);
        let said = command.stdin(File::open(&saved).unwrap()).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    assert_eq!(replayed(), plan);
    let size = json!({ "spec": { "size": 5 } });
    memcacheds.patch("sample", &PatchParams::default(), &Patch::Merge(size)).await.unwrap();
    assert_eq!(replayed(), plan, "a file is what it was");
    assert!(world.says("plan", &["memcacheds", "sample"]).contains("+ spec.replicas: 5"));
    let told: Value =
        serde_json::from_str(&world.says("plan", &["Memcached", "sample", "-o", "json"])).unwrap();
    assert_eq!((&told[0]["controller"], &told[0]["complete"]), (&json!("memcached"), &json!(false)));

    // What is awaited, while the operator runs and when it does not.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let at = format!("--metrics-bind-address={address}");
    let mut operator = Command::new(&world.operator)
        .args([&at, "--health-probe-bind-address=0"])
        .env("KUBECONFIG", world.cluster.kubeconfig())
        .env("XDG_RUNTIME_DIR", world.folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    for _ in 0..400 {
        // Nobody says where it serves: it is found by itself.
        said = world.says("why", &["Memcached", "sample"]);
        if said.contains("memcached: waiting since") && said.contains("Progressing is True") {
            break;
        }
        Clock::real().sleep(Duration::from_millis(50)).await;
    }
    operator.kill().unwrap();
    operator.wait().unwrap();
    assert!(said.contains("0 of 5 servers are ready") && said.contains("looks again"), "{said}");
    let left = || std::fs::read_dir(world.folder.path().join("windlass/operators")).unwrap().count();
    assert_eq!(left(), 1, "who is killed cannot take back what it said");
    let said = world.says("why", &["Memcached", "sample", &at]);
    assert!(said.contains("Progressing is True") && said.contains("no operator is reached"), "{said}");
    assert_eq!(left(), 0, "who finds nobody there does");
    let plan = world.says("plan", &["Memcached", "sample"]);
    assert!(plan.contains("Deployment sample: stays as it is"), "{plan}");

    for what in ["plan", "capture"] {
        assert!(world.complains(what, &["Memcached", "none"]).contains("there is no Memcached"), "{what}");
        assert!(world.complains(what, &["Pod", "a"]).contains("it is for Memcached"), "{what}");
    }
}

#[tokio::test]
async fn a_kind_with_objects_is_not_changed_so_that_they_break() {
    let world = World::new();
    let mut narrow: Value = serde_json::from_str(&world.says("describe", &[])).unwrap();
    world.says("install", &[]);
    narrow["definitions"][0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["size"]["maximum"] = json!(3);
    let other = world.folder.path().join("other");
    std::fs::write(&other, format!("#!/bin/sh\ncat <<'EOF'\n{narrow}\nEOF\n")).unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let install = |more: &[&str]| {
        let mut command = windlass(&["install", "--operator"]);
        command.arg(&other).args(more).env("KUBECONFIG", world.cluster.kubeconfig());
        let said = command.output().unwrap();
        (said.status.success(), String::from_utf8(said.stderr).unwrap())
    };
    let sample = json!({
        "apiVersion": "cache.example.com/v1beta1", "kind": "Memcached",
        "metadata": { "name": "sample" }, "spec": { "size": 9 },
    });
    let memcacheds = world.memcacheds().await;
    memcacheds.create(&PostParams::default(), &serde_json::from_value(sample).unwrap()).await.unwrap();
    let (done, said) = install(&[]);
    assert!(!done && said.contains("memcacheds.cache.example.com: spec.size: maximum is now 3"), "{said}");
    assert!(install(&["--force"]).0);
    memcacheds.delete("sample", &Default::default()).await.unwrap();
    world.says("install", &[]);
    assert!(install(&[]).0, "where nothing is stored, nothing breaks");
}
