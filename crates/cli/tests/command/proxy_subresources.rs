//! Pods and Services asked through the API, although they are in a network of their own.

use crate::process::{Cluster, windlass};
use crate::project::client_of;
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::Client;
use kube::api::{Api, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_clock::Clock;

async fn make<K>(client: &Client, object: Value)
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + serde::Serialize,
    K::DynamicType: Default,
{
    let all: Api<K> = Api::default_namespaced(client.clone());
    all.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

async fn asked(client: &Client, path: &str) -> Result<String, String> {
    let request = http::Request::get(format!("/api/v1/namespaces/default/{path}")).body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn pods_and_services_answer_through_the_api() {
    let able = windlass(&["doctor"]).output().unwrap().stdout;
    let busybox = std::process::Command::new("busybox").arg("true").status().is_ok();
    if !String::from_utf8_lossy(&able).contains("can run pods as processes") || !busybox {
        println!("skipped: pods of busybox cannot be processes here (`windlass doctor` says why)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = windlass(&["cluster", "up", "--nodes", "process=1"]);
    command.env("XDG_RUNTIME_DIR", folder.path());
    let cluster = Cluster::of(command);
    let client = client_of(&cluster).await;
    let serve =
        "mkdir /tmp/in; echo hello > /tmp/index.html; echo '<a href=\"/in/\">in</a>' > /tmp/in/index.html
        exec httpd -f -p 8080 -h /tmp";
    make::<Pod>(
        &client,
        json!({
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"containers": [{
                "name": "web", "image": "busybox", "command": ["sh", "-c", serve],
                "ports": [{"containerPort": 8080}],
                "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
            }]},
        }),
    )
    .await;
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    make::<Service>(
        &client,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}),
    )
    .await;
    // Not by asking until it answers: a client that is told 503 waits ever longer by itself.
    let endpoints: Api<Endpoints> = Api::default_namespaced(client.clone());
    let clock = Clock::real();
    let ready = async {
        let is_there = |found: Endpoints| found.subsets.iter().flatten().any(|one| one.addresses.is_some());
        while !endpoints.get_opt("web").await.unwrap().is_some_and(is_there) {
            clock.sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(clock.timeout(Duration::from_secs(30), ready).await.is_ok(), "the pod does not get ready");
    for path in [
        "pods/web/proxy/",
        "pods/http:web:8080/proxy/index.html",
        "services/web:80/proxy/",
        "services/web:http/proxy/index.html",
    ] {
        assert_eq!(asked(&client, path).await.as_deref(), Ok("hello\n"), "{path}");
    }
    // Links lead back through the API: in pages, and where one is sent on to.
    for through in ["pods/web", "services/web:80"] {
        let path = format!("/api/v1/namespaces/default/{through}/proxy/in/");
        let page = asked(&client, &format!("{through}/proxy/in/")).await;
        assert_eq!(page, Ok(format!("<a href=\"{path}\">in</a>\n")));
        let request =
            http::Request::get(path.trim_end_matches('/')).body(kube::client::Body::empty()).unwrap();
        let sent_on = client.send(request).await.unwrap();
        assert_eq!(
            (sent_on.status().as_u16(), &sent_on.headers()["location"]),
            (302, &path.parse().unwrap())
        );
    }
    assert!(cluster.end(nix::sys::signal::Signal::SIGTERM).success());
}
