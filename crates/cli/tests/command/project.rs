//! What is done with an operator's project, against a cluster: `install`, `uninstall`, `deploy`, `undeploy` and `run`.

use crate::cleanup::processes_of;
use crate::process::{Cluster, windlass};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A project of cargo that needs no crate: its binary describes itself, and otherwise says that it runs.
pub(crate) fn project(folder: &Path) {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(
        folder.join("Cargo.toml"),
        "[package]\nname = \"thing-operator\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    )
    .unwrap();
    fs::write(folder.join("src/main.rs"), source("one")).unwrap();
}

fn source(says: &str) -> String {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    });
    let answer = json!({
        "name": "thing-operator", "definitions": [definition],
        "rules": [{ "apiGroups": ["example.com"], "resources": ["things"], "verbs": ["list", "watch"] }],
        "electionRules": [{ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"] }],
    });
    format!(
        "fn main() {{\n    if std::env::args().nth(1).as_deref() == Some(\"describe\") {{\n        \
         println!(\"{{}}\", r####\"{answer}\"####);\n        return;\n    }}\n    \
         println!(\"running {says} {{:?}}\", std::env::args().nth(1));\n    \
         std::thread::sleep(std::time::Duration::from_secs(600));\n}}\n"
    )
}

/// A cluster and a project beside it.
struct World {
    folder: tempfile::TempDir,
    cluster: Cluster,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        project(&folder.path().join("project"));
        let cluster = Cluster::start(folder.path(), &[]);
        Self { folder, cluster }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = windlass(arguments);
        command.env("KUBECONFIG", self.cluster.kubeconfig()).env_remove("WINDLASS_OPERATOR");
        command.current_dir(self.folder.path().join("project"));
        command
    }

    fn says(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    #[track_caller]
    fn does(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }

    #[track_caller]
    fn refuses(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert!(!said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
        String::from_utf8(said.stderr).unwrap()
    }

    async fn client(&self) -> kube::Client {
        client_of(&self.cluster).await
    }

    async fn things(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Thing"));
        Api::default_namespaced_with(self.client().await, &kind)
    }
}

pub(crate) async fn client_of(cluster: &Cluster) -> kube::Client {
    let file = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

fn thing(name: &str, finalizers: &[&str]) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": name, "finalizers": finalizers },
    }))
    .unwrap()
}

#[tokio::test]
async fn kinds_are_installed_once_and_not_taken_from_under_objects() {
    let world = World::new();
    assert!(world.does(&["install"]).contains("created   CustomResourceDefinition things.example.com"));
    assert!(world.does(&["install"]).contains("unchanged"), "a second time nothing is written");
    let things = world.things().await;
    things.create(&PostParams::default(), &thing("mine", &[])).await.unwrap();
    let why = world.refuses(&["uninstall"]);
    assert!(why.contains("Thing default/mine") && why.contains("--force"), "{why}");
    assert!(world.does(&["uninstall", "--force"]).contains("deleted   CustomResourceDefinition"));
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client().await);
    assert!(definitions.get_opt("things.example.com").await.unwrap().is_none());
    assert!(world.does(&["uninstall"]).contains("absent"), "what is not there need not go");
}

#[tokio::test]
async fn an_operator_is_deployed_and_not_taken_from_under_finalizers() {
    let world = World::new();
    let said = world.does(&["deploy", "--image", "registry.example.com/thing:2"]);
    assert!(said.contains("created   Deployment thing-operator-system/thing-operator"), "{said}");
    let said = world.does(&["deploy", "--image", "registry.example.com/thing:3"]);
    assert!(said.contains("changed   Deployment") && said.contains("unchanged ServiceAccount"), "{said}");
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(world.client().await, "thing-operator-system");
    let deployed = deployments.get("thing-operator").await.unwrap();
    let image = deployed.spec.unwrap().template.spec.unwrap().containers[0].image.clone();
    assert_eq!(image.as_deref(), Some("registry.example.com/thing:3"));

    let things = world.things().await;
    things.create(&PostParams::default(), &thing("free", &[])).await.unwrap();
    things.create(&PostParams::default(), &thing("held", &["example.com/undo"])).await.unwrap();
    let why = world.refuses(&["undeploy"]);
    assert!(why.contains("Thing default/held: example.com/undo") && !why.contains("free"), "{why}");
    assert!(deployments.get_opt("thing-operator").await.unwrap().is_some(), "nothing was deleted");
    let freed = json!({ "metadata": { "finalizers": null } });
    things.patch("held", &PatchParams::default(), &Patch::Merge(freed)).await.unwrap();
    // The API alone has nobody to end namespaces: they are only asked to.
    let said = world.says(&["undeploy"]);
    let shown = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(shown.contains("deleted   Deployment") && shown.contains("deleted   ClusterRole "), "{shown}");
    assert!(deployments.get_opt("thing-operator").await.unwrap().is_none());
    assert!(things.get_opt("held").await.unwrap().is_some(), "what people declared stays");
}

#[test]
fn who_may_not_is_told_so_and_nothing_is_changed() {
    let world = World::new();
    let nobody = crate::doctor::of_nobody(&world.cluster, world.folder.path());
    for arguments in [&["install"][..], &["uninstall"], &["deploy", "--image", "i"], &["undeploy"]] {
        let said = world.command(arguments).env("KUBECONFIG", &nobody).output().unwrap();
        let why = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(1), "{arguments:?}: {why}");
        assert!(
            why.contains("you are not allowed to") && why.contains("windlass doctor"),
            "{arguments:?}: {why}"
        );
        assert!(said.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stdout));
    }
}

#[test]
fn what_is_missing_is_told() {
    let empty = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str], operator: &str| {
        let mut command = windlass(arguments);
        command
            .current_dir(empty.path())
            .env("HOME", empty.path())
            .env("KUBECONFIG", empty.path().join("none"));
        match operator {
            "" => command.env_remove("WINDLASS_OPERATOR"),
            operator => command.env("WINDLASS_OPERATOR", operator),
        };
        let said = command.output().unwrap();
        assert_eq!(said.status.code(), Some(1));
        String::from_utf8(said.stderr).unwrap()
    };
    for command in ["install", "uninstall", "run", "undeploy"] {
        let why = said(&[command], "");
        assert!(why.contains("there is no Cargo.toml") && why.contains("--operator"), "{command}: {why}");
    }
    let operator = empty.path().join("operator");
    fs::write(&operator, "#!/bin/sh\necho '{\"name\": \"none\"}'\n").unwrap();
    fs::set_permissions(&operator, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let operator = operator.to_str().unwrap();
    assert!(said(&["install"], operator).contains("has no CRDs"));
    let why = said(&["undeploy"], operator);
    assert!(why.contains("your kubeconfig"), "{why}");
    fs::write(
        empty.path().join("none"),
        "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], \
         users: [{name: c, user: {}}], contexts: [{name: c, context: {cluster: c, user: c}}]}",
    )
    .unwrap();
    let why = said(&["run"], operator);
    assert!(why.contains("no Kubernetes answers at http://127.0.0.1:1"), "{why}");
}

#[test]
fn an_operator_runs_on_a_cluster_of_its_own_and_again_when_its_source_changes() {
    let folder = tempfile::tempdir().unwrap();
    let project_folder = folder.path().join("project");
    project(&project_folder);
    let mut command = windlass(&["run", "--embedded", "--watch", "--", "told"]);
    command
        .current_dir(&project_folder)
        .env("XDG_RUNTIME_DIR", folder.path())
        .env_remove("WINDLASS_OPERATOR");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let errors = child.stderr.take().unwrap();
    let (tell, told) = std::sync::mpsc::sync_channel(1000);
    let errors = std::thread::spawn(move || {
        let lines = BufReader::new(errors).lines().map(Result::unwrap);
        lines.inspect(|line| drop(tell.send(line.clone()))).collect::<Vec<_>>().join("\n")
    });
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "running one Some(\"told\")");
    // What cannot be built does not stop what runs.
    fs::write(project_folder.join("src/main.rs"), "fn main() { this is not Rust").unwrap();
    let minute = std::time::Duration::from_secs(60);
    while !told.recv_timeout(minute).expect("it says that it does not build").contains("error") {}
    drop(told);
    fs::write(project_folder.join("src/main.rs"), source("two")).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "running two Some(\"told\")");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none(), "whoever held the output has ended");
    let told = errors.join().unwrap();
    assert!(told.contains("created CustomResourceDefinition things.example.com"), "{told}");
    assert_eq!(processes_of(folder.path()), Vec::<String>::new(), "nothing runs on");
}
