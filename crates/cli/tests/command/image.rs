//! `windlass image`: an archive that a node runs as it is.

use crate::process::{Cluster, windlass};
use crate::project::{client_of, project};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams, PostParams};
use serde_json::json;
use std::fs;
use std::time::Duration;
use windlass_clock::Clock;

#[tokio::test]
async fn an_operator_becomes_an_image_that_a_node_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (here, settings) = (folder.path().join("project"), folder.path().join("settings"));
    project(&here);
    let images = settings.join("windlass/images");
    fs::create_dir_all(&images).unwrap();
    let archive = images.join("thing-operator.tar");
    let make = || {
        let mut command = windlass(&["image", "--output"]);
        let said = command.arg(&archive).current_dir(&here).env_remove("RUSTFLAGS").output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        fs::read(&archive).unwrap()
    };
    assert_eq!(make(), make(), "the same program is the same image");

    // A program that needs the machine's libraries is none.
    let said = windlass(&["image", "--operator", "/bin/sh"]).current_dir(&here).output().unwrap();
    let why = String::from_utf8(said.stderr).unwrap();
    assert!(!said.status.success() && why.contains("would lack") && why.contains("crt-static"), "{why}");

    let able = windlass(&["doctor"]).output().unwrap().stdout;
    if !String::from_utf8_lossy(&able).contains("can run pods as processes") {
        println!("skipped: pods cannot be processes here (`windlass doctor` says why)");
        return;
    }
    let mut command = windlass(&["cluster", "up", "--nodes", "process=1"]);
    command.env("XDG_RUNTIME_DIR", folder.path()).env("XDG_CONFIG_HOME", &settings);
    let cluster = Cluster::of(command);
    let pods: Api<Pod> = Api::default_namespaced(client_of(&cluster).await);
    let pod = json!({
        "metadata": { "name": "thing" },
        "spec": { "containers": [{ "name": "operator", "image": "thing-operator:latest", "args": ["hello"] }] },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let clock = Clock::real();
    let said = async {
        loop {
            let log = pods.logs("thing", &LogParams::default()).await.unwrap_or_default();
            if !log.is_empty() {
                return log;
            }
            clock.sleep(Duration::from_millis(50)).await;
        }
    };
    let said = clock.timeout(Duration::from_secs(30), said).await;
    let status = pods.get("thing").await.unwrap().status;
    assert_eq!(said.unwrap_or_else(|_| format!("{status:?}")), "running one Some(\"hello\")\n");
    assert!(cluster.end(nix::sys::signal::Signal::SIGTERM).success());
}
