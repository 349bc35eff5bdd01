//! `windlass cluster down`, `status`, `kubeconfig` and `reset`, on clusters that run in the background.

use crate::process::{Cluster, windlass};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Where clusters of a test are, all of which end with it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        windlass(arguments).env("XDG_RUNTIME_DIR", self.path()).output().unwrap()
    }

    /// What a command that must succeed says.
    fn said(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        let why = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{arguments:?}: {why}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// What a command that must fail says: one line.
    fn refused(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        said
    }

    fn data(&self) -> PathBuf {
        self.path().join("data")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.run(&["cluster", "down", "--all"]);
        let data = self.data();
        if data.is_dir() {
            self.run(&["cluster", "down", "--data-dir", data.to_str().unwrap()]);
        }
    }
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_detached_cluster_is_found_asked_and_stopped() {
    let place = Place::new();
    let ready = place.said(&["cluster", "up", "--detach"]);
    assert!(ready.starts_with("ready in ") && ready.lines().count() == 1, "{ready}");
    let status: Value = serde_json::from_str(&place.said(&["cluster", "status", "-o", "json"])).unwrap();
    assert!(ready.contains(status[0]["server"].as_str().unwrap()), "{status}");
    assert_eq!(status[0]["detached"], true);
    assert_eq!(status[0].get("error"), None, "{status}");
    let words = place.said(&["cluster", "status"]);
    assert!(words.contains("nodes ready") && words.contains("kubeconfig"), "{words}");
    let path = place.said(&["cluster", "kubeconfig", "--path"]);
    let text = place.said(&["cluster", "kubeconfig"]);
    assert_eq!(text, fs::read_to_string(path.trim_end()).unwrap());
    let stopped = place.said(&["cluster", "down"]);
    assert!(stopped.starts_with("stopped https://"), "{stopped}");
    assert_eq!(entries(place.path()), 0, "nothing is left");
    assert_eq!(place.run(&["cluster", "status"]).status.code(), Some(3));
    assert!(place.refused(&["cluster", "down"]).contains("no cluster of yours runs"));
}

#[test]
fn of_several_clusters_one_must_be_named() {
    let place = Place::new();
    place.said(&["cluster", "up", "--api-only", "--detach"]);
    place.said(&["cluster", "up", "--api-only", "--detach"]);
    let refused = place.refused(&["cluster", "kubeconfig"]);
    assert!(refused.contains("say which") && refused.matches("--data-dir").count() == 2, "{refused}");
    let stopped = place.said(&["cluster", "down", "--all"]);
    assert_eq!(stopped.lines().count(), 2, "{stopped}");
    assert_eq!(entries(place.path()), 0);
}

#[test]
fn a_detached_start_that_fails_says_why() {
    let place = Place::new();
    let refused = place.refused(&["cluster", "up", "--detach", "--kubeconfig", "/proc/none/config"]);
    assert!(refused.contains("/proc/none"), "{refused}");
    assert_eq!(entries(place.path()), 0);
    let said = place.run(&["cluster", "up", "--detach", "--nodes", "real=1"]);
    assert!(String::from_utf8(said.stderr).unwrap().contains("unknown kind of nodes"));
}

#[tokio::test]
async fn a_kept_cluster_is_emptied_and_comes_back() {
    use k8s_openapi::api::core::v1::Namespace;
    let place = Place::new();
    let data = place.data();
    let data = data.to_str().unwrap();
    place.said(&["cluster", "up", "--api-only", "--detach", "--data-dir", data]);
    let client = async || {
        let kubeconfig = kube::config::Kubeconfig::read_from(place.data().join("kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    };
    let namespaces = kube::Api::<Namespace>::all(client().await);
    let mut shop = Namespace::default();
    shop.metadata.name = Some("shop".into());
    namespaces.create(&Default::default(), &shop).await.unwrap();
    let credentials = |text: String| {
        text.lines().filter(|line| !line.contains("server:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = credentials(place.said(&["cluster", "kubeconfig", "--data-dir", data]));
    let said = place.said(&["cluster", "reset", "--data-dir", data]);
    assert!(said.starts_with("emptied ") && said.contains("ready in "), "{said}");
    let namespaces = kube::Api::<Namespace>::all(client().await);
    assert!(namespaces.get_opt("shop").await.unwrap().is_none());
    assert_eq!(before, credentials(place.said(&["cluster", "kubeconfig", "--data-dir", data])));
    place.said(&["cluster", "down", "--data-dir", data]);
    assert!(place.said(&["cluster", "reset", "--data-dir", data]).starts_with("emptied "));
    assert!(place.refused(&["cluster", "down", "--data-dir", data]).contains("no cluster runs on"));
}

#[test]
fn a_cluster_in_another_terminal_is_stopped_but_not_reset() {
    let place = Place::new();
    let data = place.data();
    let data = data.to_str().unwrap();
    let cluster = Cluster::start(place.path(), &["--data-dir", data]);
    assert!(place.refused(&["cluster", "reset", "--data-dir", data]).contains("stop it first"));
    assert!(place.said(&["cluster", "down", "--data-dir", data]).starts_with("stopped "));
    assert!(cluster.ended().success());
    assert!(place.refused(&["cluster", "reset", "--data-dir", "/nowhere"]).contains("no folder"));
}

#[test]
fn time_is_moved_where_it_is_the_clusters_own() {
    let place = Place::new();
    place.said(&["cluster", "up", "--detach", "--clock", "2030-01-01T00:00:00Z"]);
    let moved = place.said(&["cluster", "advance", "1h30m"]);
    assert!(moved.starts_with("it is 2030-01-01T01:30:"), "{moved}");
    assert!(
        String::from_utf8(place.run(&["cluster", "advance", "soon"]).stderr).unwrap().contains("no duration")
    );
    place.said(&["cluster", "down"]);
    place.said(&["cluster", "up", "--detach", "--api-only"]);
    assert!(place.refused(&["cluster", "advance", "1s"]).contains("--clock"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_is_issued_for_anybody() {
    let place = Place::new();
    place.said(&["cluster", "up", "--api-only", "--detach"]);
    let file = place.path().join("jane.yaml");
    fs::write(&file, place.said(&["cluster", "kubeconfig", "--as", "jane:devs:ops"])).unwrap();
    let config = kube::config::Kubeconfig::read_from(&file).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(br#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#.to_vec())
        .unwrap();
    let answer: Value = client.request(request).await.unwrap();
    let user = &answer["status"]["userInfo"];
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], serde_json::json!(["devs", "ops", "system:authenticated"]));
    let refused = place.refused(&["cluster", "kubeconfig", "--as", "jane:"]);
    assert!(refused.contains("has no name"), "{refused}");
}
