//! `windlass cluster up`.

use crate::process::{Cluster, up};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let context = KubeConfigOptions { context: Some("windlass".to_owned()), ..KubeConfigOptions::default() };
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &context).await.unwrap()).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// Runs a start that must fail, and returns what it said: one line.
fn refused(runtime: &Path, arguments: &[&str]) -> String {
    let ended = up(runtime, arguments).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    assert!(is_empty(runtime), "something is left in {}", runtime.display());
    said
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_is_the_administrator() {
    let runtime = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(runtime.path(), &[]);
    let path = cluster.kubeconfig();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let client = client(&path).await;
    let namespaces = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    assert_eq!(namespaces.items.len(), 4);
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("settings".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(maps.get("settings").await.unwrap().metadata.uid.is_some());
}

#[tokio::test]
async fn each_signal_ends_it_cleanly_and_closes_watches() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let runtime = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(runtime.path(), &[]);
        let maps = Api::<ConfigMap>::default_namespaced(client(&cluster.kubeconfig()).await);
        let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
        let ended = tokio::task::spawn_blocking(move || cluster.end(signal));
        let broken = watch.filter(|event| std::future::ready(event.is_err())).count().await;
        assert_eq!((ended.await.unwrap().code(), broken), (Some(0), 0), "{signal}");
        assert!(is_empty(runtime.path()));
    }
}

#[test]
fn what_a_kill_leaves_goes_with_the_next_start() {
    let runtime = tempfile::tempdir().unwrap();
    let killed = Cluster::start(runtime.path(), &[]);
    let left = killed.kubeconfig();
    killed.end(Signal::SIGKILL);
    assert!(left.exists());
    let next = Cluster::start(runtime.path(), &[]);
    assert!(!left.exists());
    assert!(next.end(Signal::SIGTERM).success());
    assert!(is_empty(runtime.path()));
}

#[test]
fn two_clusters_run_side_by_side() {
    let runtime = tempfile::tempdir().unwrap();
    let (one, other) = (Cluster::start(runtime.path(), &[]), Cluster::start(runtime.path(), &[]));
    assert_ne!(one.server(), other.server());
    assert!(one.kubeconfig().exists() && other.kubeconfig().exists());
    assert!(one.end(Signal::SIGINT).success());
    assert!(other.kubeconfig().exists());
}

#[tokio::test]
async fn the_users_kubeconfig_gets_a_context_and_loses_it_again() {
    let runtime = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "clusters: []\nusers: []\ncontexts: []\ncurrent-context: mine\n").unwrap();
    let cluster = Cluster::start(runtime.path(), &["--kubeconfig", path.to_str().unwrap()]);
    assert!(cluster.ready.contains("--context windlass"), "{}", cluster.ready);
    assert_eq!(mode(&path), 0o600);
    client(&path).await.apiserver_version().await.unwrap();
    assert!(cluster.end(Signal::SIGINT).success());
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.contains("current-context: mine") && !after.contains("windlass"), "{after}");
}

#[tokio::test]
async fn a_cluster_with_a_folder_is_there_again_even_after_a_kill() {
    let runtime = tempfile::tempdir().unwrap();
    let data = runtime.path().join("data");
    let arguments = ["--data-dir", data.to_str().unwrap()];
    let first = Cluster::start(runtime.path(), &arguments);
    let path = first.kubeconfig();
    assert_eq!((mode(&data), mode(&path)), (0o700, 0o600));
    let mut map = ConfigMap::default();
    map.metadata.name = Some("kept".to_owned());
    let maps = Api::<ConfigMap>::default_namespaced(client(&path).await);
    let uid = maps.create(&PostParams::default(), &map).await.unwrap().metadata.uid;
    let authority = || Kubeconfig::read_from(&path).unwrap().clusters[0].cluster.clone().unwrap();
    let trusted = authority().certificate_authority_data;
    let mut running = first;
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        running.end(signal);
        running = Cluster::start(runtime.path(), &arguments);
        let maps = Api::<ConfigMap>::default_namespaced(client(&path).await);
        assert_eq!(maps.get("kept").await.unwrap().metadata.uid, uid);
        assert_eq!(authority().certificate_authority_data, trusted);
    }
    assert!(running.end(Signal::SIGTERM).success());
    assert!(path.exists(), "a cluster that can come back keeps its kubeconfig");
}

#[test]
fn a_folder_serves_one_cluster_at_a_time() {
    let runtime = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", data.path().to_str().unwrap()];
    let first = Cluster::start(runtime.path(), &arguments);
    let said = refused(runtime.path(), &arguments);
    assert!(said.contains("a cluster already runs on"), "{said}");
    assert!(first.end(Signal::SIGINT).success());
}

#[test]
fn a_start_that_fails_leaves_no_folder() {
    let runtime = tempfile::tempdir().unwrap();
    let data = runtime.path().join("a/b");
    refused(runtime.path(), &["--data-dir", data.to_str().unwrap(), "--kubeconfig", "/proc/none/kubeconfig"]);
    let said = refused(runtime.path(), &["--data-dir", "/proc/none/data"]);
    assert!(said.starts_with("error: cannot make /proc/none/data: "), "{said}");
}

#[test]
fn a_taken_port_is_told_in_one_sentence() {
    let runtime = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(runtime.path(), &["--port", &port]);
    assert!(said.contains(&format!("port {port} of 127.0.0.1 is in use")), "{said}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told_in_one_sentence() {
    let runtime = tempfile::tempdir().unwrap();
    let said = refused(runtime.path(), &["--kubeconfig", "/proc/none/kubeconfig"]);
    assert!(said.starts_with("error: cannot write /proc/none/kubeconfig: "), "{said}");
}

#[test]
fn a_file_that_is_no_kubeconfig_stays_as_it_is() {
    let runtime = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "- not\n- this\n").unwrap();
    let said = refused(runtime.path(), &["--kubeconfig", file.path().to_str().unwrap()]);
    assert!(said.contains("is no kubeconfig, and stays as it is"), "{said}");
    assert_eq!(fs::read_to_string(file.path()).unwrap(), "- not\n- this\n");
}
