//! `windlass envtest`: the programs that stand in for kube-apiserver and etcd, started as a test environment starts them,
//! and compared with the real ones by the same flags and the same requests.

mod audits;
mod credentials;
mod environment;
mod flows;
mod https_server;
mod issuers;
mod privileges;
mod proxies;
mod refusals;
mod requests;
mod secret_tokens;
mod service_account_tokens;
mod webhooks;

use crate::process::windlass;
use credentials::Credential;
pub(crate) use environment::reference;
use environment::{Environment, Programs};
use http::Method;
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::Path;

/// The stand-ins, in a folder of the test's own.
fn stand_ins(home: &Path) -> Programs {
    let said = windlass(&["envtest", "path"]).env("XDG_DATA_HOME", home).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Programs(String::from_utf8(said.stdout).unwrap().trim().into())
}

/// What came of the same requests, one by one.
fn assert_same<T: PartialEq + Display>(ours: &[T], theirs: &[T]) {
    let different: Vec<String> = ours
        .iter()
        .zip(theirs)
        .enumerate()
        .filter(|(_, (ours, theirs))| ours != theirs)
        .map(|(place, (ours, theirs))| format!("{place}:\n  ours:   {ours}\n  theirs: {theirs}"))
        .collect();
    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), ours.len(), different.join("\n"));
    assert_eq!(ours.len(), theirs.len());
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
async fn requests_are_audited_as_the_policy_says() {
    let home = tempfile::tempdir().unwrap();
    let events = audits::events(&stand_ins(home.path())).await;
    let of = |user: &str, verb: &str| {
        events.iter().filter(|event| event["user"]["username"] == user && event["verb"] == verb).count()
    };
    // Received and complete; a watch has started, too.
    assert_eq!((of("jane", "list"), of("admin", "watch")), (2, 3), "{events:#?}");
    let created =
        events.iter().find(|event| event["verb"] == "create" && event["stage"] == "ResponseComplete");
    let created = created.unwrap();
    assert_eq!(created["requestObject"]["data"]["a"], "1");
    assert_eq!(created["responseObject"]["metadata"].get("managedFields"), None);
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("/healthz") && !text.contains("-token"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_role_allows_what_was_done_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::start(&stand_ins(home.path()), &audits::FLAGS).await;
    let (admin, jane, bob) =
        (environment.admin(), Credential::token("jane-token"), Credential::token("bob-token"));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let everything = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "jane"}, "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let bound = environment
        .send(&admin, Method::POST, &format!("{rbac}/clusterrolebindings"), Some(everything))
        .await;
    assert_eq!(bound.code, 201, "{bound:?}");
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    let work = [
        (Method::POST, maps.to_owned(), Some(map.clone())),
        (Method::GET, format!("{maps}/one"), None),
        (Method::PUT, format!("{maps}/one"), Some(map)),
        (Method::GET, "/api/v1/secrets".to_owned(), None),
        (Method::DELETE, format!("{maps}/one"), None),
        (Method::GET, "/metrics".to_owned(), None),
    ];
    let mut codes = Vec::new();
    for (method, path, body) in work.clone() {
        codes.push(environment.send(&jane, method, &path, body).await.code);
    }
    let log = environment.folder().path().join("audit.log");
    let said = windlass(&["rbac", "from-audit", log.to_str().unwrap(), "--user", "jane", "--name", "least"])
        .output()
        .unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(objects.len(), 4, "{text}");
    for mut object in objects {
        if object.get("subjects").is_some() {
            object["subjects"][0]["name"] = json!("bob");
        }
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let path = match object["metadata"].get("namespace").and_then(Value::as_str) {
            Some(namespace) => format!("{rbac}/namespaces/{namespace}/{plural}"),
            None => format!("{rbac}/{plural}"),
        };
        let made = environment.send(&admin, Method::POST, &path, Some(object)).await;
        assert_eq!(made.code, 201, "{made:?}");
    }
    for ((method, path, body), code) in work.into_iter().zip(codes) {
        let answer = environment.send(&bob, method, &path, body).await;
        assert_eq!(answer.code, code, "{path}: {answer:?}");
    }
    for (method, path) in [
        (Method::GET, maps.to_owned()),
        (Method::DELETE, maps.to_owned()),
        (Method::GET, "/api/v1/namespaces/default/secrets/one".to_owned()),
        (Method::GET, "/api/v1/namespaces/kube-system/configmaps/one".to_owned()),
        (Method::GET, "/logs".to_owned()),
    ] {
        let answer = environment.send(&bob, method, &path, None).await;
        assert_eq!(answer.code, 403, "{path}: {answer:?}");
    }
    let nobody =
        windlass(&["rbac", "from-audit", log.to_str().unwrap(), "--user", "nobody"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(1));
    let users = windlass(&["rbac", "from-audit", log.to_str().unwrap(), "--list"]).output().unwrap();
    assert!(String::from_utf8(users.stdout).unwrap().contains("  jane\n"));
    environment.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_audited_as_on_the_reference() {
    let Some(reference) = environment::reference() else { return };
    let home = tempfile::tempdir().unwrap();
    let ours = audits::events(&stand_ins(home.path())).await;
    let theirs = audits::events(&reference).await;
    assert_same(&ours, &theirs);
    println!("{} events are the same", ours.len());
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
    let line = |(name, answer): &(String, String)| format!("{name}\n{answer}");
    let lines = |all: &[(String, String)]| all.iter().map(line).collect::<Vec<_>>();
    assert_same(&lines(&ours), &lines(&theirs));
    println!("{} answers are the same", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_belong_to_flow_schemas_as_on_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let ours = flows::classified(&stand_ins(home.path())).await;
    let of = |start: &str| ours.iter().rfind(|line| line.starts_with(start)).unwrap().as_str();
    assert!(of("jane GET /version:").ends_with("developers one-by-one"), "{}", of("jane GET /version:"));
    assert!(of("root GET /version:").ends_with("exempt exempt"));
    let Some(reference) = environment::reference() else { return };
    let theirs = flows::classified(&reference).await;
    assert_same(&ours, &theirs);
    println!("{} requests belong to the same", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxies_are_believed_as_on_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let ours = proxies::answers(&stand_ins(home.path())).await;
    let of = |start: &str| ours.iter().find(|line| line.starts_with(start)).unwrap().as_str();
    let jane = of("a proxy's, a user:");
    assert!(jane.contains("201 {") && jane.contains("\"username\":\"jane\""), "{jane}");
    for refused in ["no certificate, a master:", "of an unknown name, a master:", "a server's, a master:"] {
        assert!(!of(refused).contains("root"), "{}", of(refused));
    }
    let Some(reference) = environment::reference() else { return };
    let theirs = proxies::answers(&reference).await;
    assert_same(&ours, &theirs);
    println!("{} answers are the same", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_other_issuers_are_accepted_as_on_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let ours = issuers::answers(&stand_ins(home.path())).await;
    let of = |start: &str| ours.iter().find(|line| line.starts_with(start)).unwrap().as_str();
    let jane = of("/claims, a token good:");
    assert!(jane.contains("\"username\":\"claims:jane@example.com\"") && jane.contains("role:dev"), "{jane}");
    for refused in
        ["expired", "for others", "without a signature", "signed with the public key", "of another key"]
    {
        for issuer in ["/claims", "/expressions"] {
            let told = of(&format!("{issuer}, a token {refused}:"));
            assert!(told.contains(": 401 "), "{told}");
        }
    }
    let Some(reference) = environment::reference() else { return };
    let theirs = issuers::answers(&reference).await;
    assert_same(&ours, &theirs);
    println!("{} answers are the same", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_use_of_tokens_of_secrets_is_noted_as_on_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let ours = secret_tokens::told(&stand_ins(home.path())).await;
    let of = |start: &str| ours.iter().find(|line| line.starts_with(start)).unwrap().as_str();
    assert!(of("manual: ").starts_with("manual: 201 []"), "{}", of("manual: "));
    assert!(of("named: ").contains("Use tokens from the TokenRequest API"), "{}", of("named: "));
    assert!(of("invalid: ").starts_with("invalid: 401 []"), "{}", of("invalid: "));
    assert!(of("used-before, its Secret: ").contains("<today>"), "{}", of("used-before, its Secret: "));
    let Some(reference) = environment::reference() else { return };
    let theirs = secret_tokens::told(&reference).await;
    assert_same(&ours, &theirs);
    println!("{} answers, Secrets and events are the same", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_are_granted_as_on_the_reference() {
    let home = tempfile::tempdir().unwrap();
    for (flag, code) in [("--allow-privileged=false", "422"), ("--allow-privileged", "201")] {
        let ours = privileges::answers(&stand_ins(home.path()), flag).await;
        let created =
            ours.iter().filter(|line| line.contains("containers: ") || line.contains("Containers: "));
        for line in created {
            assert!(line.contains(&format!(": {code} ")), "{line}");
        }
        let Some(reference) = environment::reference() else { continue };
        let theirs = privileges::answers(&reference, flag).await;
        assert_same(&ours, &theirs);
        println!("{} answers with {flag} are the same", ours.len());
    }
}

#[test]
fn configuration_files_are_refused_as_by_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let line = |(file, said): &(String, String)| format!("{file}\n    {said}");
    let ours: Vec<String> = refusals::told(&stand_ins(home.path())).iter().map(line).collect();
    assert!(ours.iter().any(|line| line.ends_with("URL scheme must be https")));
    let Some(reference) = environment::reference() else { return };
    let theirs: Vec<String> = refusals::told(&reference).iter().map(line).collect();
    assert_same(&ours, &theirs);
    println!("{} files are refused alike", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_asked_as_on_the_reference() {
    let home = tempfile::tempdir().unwrap();
    let ours = webhooks::answers(&stand_ins(home.path())).await;
    let of = |start: &str| ours.iter().find(|line| line.starts_with(start)).unwrap().as_str();
    assert!(of("allowed-1 GET /metrics:").ends_with(": 200 "), "{}", of("allowed-1 GET /metrics/slis:"));
    assert!(of("denied-1 GET /version:").contains("403 "), "{}", of("denied-1 GET /version:"));
    assert!(of("other-1 GET /version:").contains("200 "), "{}", of("other-1 GET /version:"));
    let Some(reference) = environment::reference() else { return };
    let theirs = webhooks::answers(&reference).await;
    assert_same(&ours, &theirs);
    println!("{} answers and questions are the same", ours.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_does_not_starve_the_others() {
    let home = tempfile::tempdir().unwrap();
    let judge = |(codes, other): (Vec<u16>, u16)| {
        assert!(codes.contains(&429) && codes.contains(&403), "{codes:?}");
        assert_eq!(other, 200);
    };
    judge(flows::crowded(&stand_ins(home.path())).await);
    if let Some(reference) = environment::reference() {
        judge(flows::crowded(&reference).await);
    }
}
