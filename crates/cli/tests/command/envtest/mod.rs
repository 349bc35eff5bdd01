//! `windlass envtest`: the programs that stand in for kube-apiserver and etcd, started as a test environment starts them,
//! and compared with the real ones by the same flags and the same requests.

mod credentials;
mod environment;
mod requests;
mod service_account_tokens;

use crate::process::windlass;
use environment::{Environment, Programs};
use http::Method;
use serde_json::json;
use std::path::Path;

/// The stand-ins, in a folder of the test's own.
fn stand_ins(home: &Path) -> Programs {
    let said = windlass(&["envtest", "path"]).env("XDG_DATA_HOME", home).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Programs(String::from_utf8(said.stdout).unwrap().trim().into())
}

#[test]
fn a_folder_has_the_programs_and_is_laid_out_as_setup_envtest_wants_it() {
    let home = tempfile::tempdir().unwrap();
    let Programs(folder) = stand_ins(home.path());
    assert!(folder.starts_with(home.path().join("windlass/envtest/k8s")), "{}", folder.display());
    let said = |program: &str, argument: &str| {
        let said = std::process::Command::new(folder.join(program)).arg(argument).output().unwrap();
        assert!(said.status.success());
        String::from_utf8(said.stdout).unwrap()
    };
    assert!(said("kube-apiserver", "--version").starts_with("Kubernetes v1."));
    assert!(said("etcd", "--version").starts_with("etcd Version: "));
    // What controller-runtime looks for in the help, and what it must not find.
    assert!(said("etcd", "--help").contains("\n      --unsafe-no-fsync\n"));
    assert!(!said("kube-apiserver", "--help").contains("--insecure-port"));
    assert!(folder.join("kubectl").symlink_metadata().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_finds_its_objects() {
    let home = tempfile::tempdir().unwrap();
    let mut environment = Environment::start(&stand_ins(home.path()), &[]).await;
    let admin = environment.admin();
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = environment.send(&admin, Method::POST, maps, Some(map)).await;
    assert_eq!(made.code, 201, "{made:?}");
    environment.kill_server();
    environment.start_server().await;
    let found = environment.send(&admin, Method::GET, &format!("{maps}/kept"), None).await;
    assert_eq!(found.body, made.body);
    // Nobody else works on them: a pod stays as it is, without an account, and a namespace that is deleted stays.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = environment.send(&admin, Method::POST, "/api/v1/namespaces/default/pods", Some(pod)).await;
    assert_eq!((pod.code, pod.body["spec"].get("serviceAccountName")), (201, None), "{pod:?}");
    let service =
        environment.send(&admin, Method::GET, "/api/v1/namespaces/default/services/kubernetes", None).await;
    assert_eq!(service.body["spec"]["clusterIP"], "10.0.0.1");
    environment.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_collected_if_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let environment =
        Environment::start_with(&stand_ins(home.path()), &[], &[("WINDLASS_ENVTEST", "gc")]).await;
    let admin = environment.admin();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    let made = environment.send(&admin, Method::POST, "/api/v1/namespaces", Some(namespace)).await;
    assert_eq!(made.code, 201, "{made:?}");
    let path = "/api/v1/namespaces/gone";
    let deleted = environment.send(&admin, Method::DELETE, path, None).await;
    assert_eq!(deleted.code, 200, "{deleted:?}");
    environment.until(&admin, path, |answer| answer.code == 404).await;
    environment.stop();
}

#[test]
fn what_cannot_be_used_is_named() {
    let home = tempfile::tempdir().unwrap();
    let Programs(folder) = stand_ins(home.path());
    let refused = |program: &str, arguments: &[&str]| {
        let ended = std::process::Command::new(folder.join(program)).args(arguments).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(ended.stderr).unwrap()
    };
    let missing = refused("kube-apiserver", &["--client-ca-file=/nowhere/ca.crt", "--secure-port=0"]);
    assert!(missing.contains("error: cannot read /nowhere/ca.crt"), "{missing}");
    let mode = refused("kube-apiserver", &["--authorization-mode=Magic", "--profiling", "false"]);
    assert!(mode.contains("warning: --profiling has no effect here\n"), "{mode}");
    assert!(mode.contains("error: --authorization-mode=Magic: "), "{mode}");
    let plugin = refused("kube-apiserver", &["--disable-admission-plugins=None"]);
    assert!(plugin.contains("there is no admission plug-in \"None\""), "{plugin}");
    let nowhere = refused("kube-apiserver", &["--secure-port=0"]);
    assert!(nowhere.contains("--etcd-servers must name an etcd"), "{nowhere}");
    let other = refused(
        "etcd",
        &["--listen-client-urls=https://127.0.0.1:0", "--data-dir", home.path().to_str().unwrap()],
    );
    assert!(other.contains("speaks http:// only"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_who_they_prove_to_be() {
    let home = tempfile::tempdir().unwrap();
    let ours = requests::answers(&stand_ins(home.path())).await;
    let of =
        |name: &str| ours.iter().find(|(known, _)| known == name).map(|(_, answer)| answer.as_str()).unwrap();
    assert!(of("nothing: who am I").starts_with("403 "), "{}", of("nothing: who am I"));
    assert!(of("nothing: health").starts_with("200 "));
    assert!(of("a static token: who am I").contains("\"username\":\"jane\""));
    assert!(of("a bootstrap token: who am I").contains("system:bootstrap:abcdef"));
    assert!(of("a service account's token: who am I").contains("system:serviceaccount:default:default"));
    for refused in [
        "an expired token",
        "a token without a signature",
        "a token signed with the public key",
        "a certificate of another CA",
        "an expired certificate",
        "a wrong token",
    ] {
        assert_eq!(of(&format!("{refused}: who am I")), requests::UNAUTHORIZED, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_who_they_are_on_the_reference() {
    let Some(reference) = environment::reference() else { return };
    let home = tempfile::tempdir().unwrap();
    let ours = requests::answers(&stand_ins(home.path())).await;
    let theirs = requests::answers(&reference).await;
    let different: Vec<String> = ours
        .iter()
        .zip(&theirs)
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| format!("{}\n  ours:   {}\n  theirs: {}", ours.0, ours.1, theirs.1))
        .collect();
    assert_eq!(ours.len(), theirs.len());
    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), ours.len(), different.join("\n"));
    println!("{} answers are the same", ours.len());
}
