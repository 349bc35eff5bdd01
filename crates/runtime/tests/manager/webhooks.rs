//! Webhooks of a manager, asked by the embedded API: over HTTPS, as any API server asks.

use crate::support::{Running, cluster, until};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass::clock::Clock;
use windlass::election::Election;
use windlass::inspect::Inspector;
use windlass::webhook::{
    Admission, ConversionError, Operation, Request, Spoke, Versions, Webhook, WebhookServer,
};
use windlass::{Controller, Manager, Plan};

mod v1alpha1 {
    #[derive(
        kube::CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    #[kube(group = "example.dev", version = "v1alpha1", kind = "Site", namespaced)]
    pub struct SiteSpec {
        pub size: i32,
    }
}

mod v1 {
    #[derive(
        kube::CustomResource, Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    #[kube(group = "example.dev", version = "v1", kind = "Site", namespaced)]
    pub struct SiteSpec {
        pub replicas: i32,
        #[serde(default)]
        pub image: Option<String>,
    }
}

impl Spoke for v1alpha1::Site {
    type Hub = v1::Site;

    fn to_hub(&self) -> Result<v1::Site, ConversionError> {
        assert_ne!(self.spec.size, 13, "that brings bad luck");
        let spec = v1::SiteSpec { replicas: self.spec.size, image: None };
        Ok(v1::Site { metadata: self.metadata.clone(), spec })
    }

    fn from_hub(hub: &v1::Site) -> Result<Self, ConversionError> {
        Ok(Self { metadata: hub.metadata.clone(), spec: v1alpha1::SiteSpec { size: hub.spec.replicas } })
    }
}

fn versions() -> Versions<v1::Site> {
    Versions::hub::<v1::Site>().spoke::<v1alpha1::Site>()
}

fn validate(site: &v1::Site, request: &Request<v1::Site>) -> Admission {
    let before = request.old().map_or(0, |old| old.spec.replicas);
    match site.spec.replicas {
        66 => panic!("as it was asked to"),
        77 => loop {
            std::thread::park();
        },
        replicas => Admission::allow()
            .require(replicas * 2 >= before, "spec.replicas", "at most half of them may go at once")
            .warn("sites are watched"),
    }
}

fn keep_precious(site: &v1::Site, _: &Request<v1::Site>) -> Admission {
    match site.labels().contains_key("precious") {
        true => Admission::deny("it is precious"),
        false => Admission::allow(),
    }
}

fn default(site: &mut v1::Site, _: &Request<v1::Site>) {
    site.spec.image.get_or_insert_with(|| "nginx".to_owned());
}

fn operator(manager: Manager) -> Manager {
    manager
        .versions(versions())
        .webhook(Webhook::validating(validate).timeout(Duration::from_secs(1)))
        .webhook(Webhook::validating(keep_precious).named("precious").on([Operation::Delete]))
        .webhook(Webhook::defaulting(default))
        .controller(Controller::deciding(|_: &v1::Site, _| Ok(Plan::new())))
}

async fn install(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &versions().crd().unwrap()).await.unwrap();
    let all: Api<v1::Site> = Api::all(client.clone());
    until("the kind is served", async || all.list(&Default::default()).await.is_ok()).await;
}

async fn is_ready(inspector: &Inspector) {
    until("the manager is ready", async || inspector.ready().is_fine()).await;
}

fn site(name: &str, replicas: i32) -> v1::Site {
    v1::Site::new(name, v1::SiteSpec { replicas, image: None })
}

#[tokio::test]
async fn an_operator_validates_defaults_and_converts() {
    let (_api, client) = cluster();
    install(&client).await;
    let server = WebhookServer::at_url("https://127.0.0.1:0").unwrap().named("shop-webhooks");
    let manager = operator(Manager::new(client.clone(), Clock::real())).serve_webhooks(server);
    let inspector = manager.inspector();
    let running = Running::start(manager);
    is_ready(&inspector).await;

    let sites: Api<v1::Site> = Api::namespaced(client.clone(), "default");
    let old: Api<v1alpha1::Site> = Api::namespaced(client.clone(), "default");
    let params = PostParams::default();
    let made = sites.create(&params, &site("a", 10)).await.unwrap();
    assert_eq!(made.spec.image.as_deref(), Some("nginx"), "the default");
    assert_eq!(old.get("a").await.unwrap().spec.size, 10, "the conversion");
    // Webhooks for v1 are asked about v1alpha1 too.
    let smaller = Patch::Merge(json!({"spec": {"size": 4}}));
    let refused = old.patch("a", &PatchParams::default(), &smaller).await.unwrap_err().to_string();
    assert!(refused.contains("spec.replicas: at most half of them may go at once"), "{refused}");
    assert!(refused.contains("\"validate.v1.sites.example.dev\" denied the request"), "{refused}");
    old.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 5}}))).await.unwrap();
    assert_eq!(sites.get("a").await.unwrap().spec.replicas, 5);

    let mut precious = site("b", 1);
    precious.labels_mut().insert("precious".into(), String::new());
    sites.create(&params, &precious).await.unwrap();
    let refused = sites.delete("b", &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(refused.contains("it is precious"), "{refused}");

    let panicked = sites.create(&params, &site("c", 66)).await.unwrap_err().to_string();
    assert!(
        panicked.contains("failed calling webhook") && panicked.contains("as it was asked to"),
        "{panicked}"
    );
    let late = sites.create(&params, &site("d", 77)).await.unwrap_err().to_string();
    assert!(late.contains("failed calling webhook"), "{late}");
    let bad_luck = v1alpha1::Site::new("e", v1alpha1::SiteSpec { size: 13 });
    let unconverted = old.create(&params, &bad_luck).await.unwrap_err().to_string();
    assert!(unconverted.contains("that brings bad luck"), "{unconverted}");
    sites.create(&params, &site("f", 1)).await.unwrap();

    let page = inspector.metrics();
    let has = |line: &str| assert!(page.lines().any(|one| one.starts_with(line)), "{line} is not on\n{page}");
    let path = "webhook=\"/validate-example-dev-v1-site\"";
    has(&format!("controller_runtime_webhook_requests_total{{{path},code=\"500\"}} 1"));
    has(&format!("controller_runtime_webhook_requests_in_flight{{{path}}} "));
    has(&format!("controller_runtime_webhook_latency_seconds_count{{{path}}} "));
    has("controller_runtime_webhook_requests_total{webhook=\"/convert\",code=\"200\"} ");
    has("controller_runtime_webhook_panics_total 2");

    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    assert!(configurations.get_opt("shop-webhooks").await.unwrap().is_some());
    running.stop().await.unwrap();
    assert!(configurations.get_opt("shop-webhooks").await.unwrap().is_none(), "it led to nobody");
    sites.create(&params, &site("g", 77)).await.unwrap();
}

/// Asks a webhook server as an API server does that trusts these certificates.
async fn ask(
    at: SocketAddr,
    name: &'static str,
    trusted: &str,
    request: &str,
    body: &[u8],
) -> Result<String, String> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(at).await.unwrap();
    let name = ServerName::try_from(name).unwrap();
    let mut stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    let head = format!(
        "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Who refuses early may not read all of it.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn what_is_no_review_is_refused_and_nothing_breaks() {
    let (_api, client) = cluster();
    install(&client).await;
    let server = WebhookServer::at_url("https://127.0.0.1:0").unwrap().named("shop-webhooks");
    let manager = operator(Manager::new(client.clone(), Clock::real())).serve_webhooks(server);
    let inspector = manager.inspector();
    let running = Running::start(manager);
    is_ready(&inspector).await;
    let at = inspector.served().webhooks.unwrap();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = configurations.get("shop-webhooks").await.unwrap();
    let bundle = configuration.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap().0;
    let bundle = String::from_utf8(bundle).unwrap();
    let path = "/validate-example-dev-v1-site";
    let large = vec![b' '; 8 << 20];
    for (request, body, status, says) in [
        (format!("GET {path}"), &b""[..], 405, "only POST"),
        ("POST /elsewhere".to_owned(), b"", 404, "no webhook is at /elsewhere"),
        (format!("POST {path}"), b"{}", 415, "expected application/json"),
        (path.to_owned(), b"", 400, ""),
    ] {
        let answer = ask(at, "127.0.0.1", &bundle, &request, body).await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(says),
            "{request}: {answer}"
        );
    }
    let with_head = |path: &str| format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nX-Rest:");
    for (path, body, status, says) in [
        (path, &b"no json"[..], 400, "the body is no AdmissionReview"),
        (path, &large, 413, "larger than"),
        ("/convert", b"[1]", 400, "the body is no ConversionReview"),
    ] {
        let answer = ask(at, "127.0.0.1", &bundle, &with_head(path), body).await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(says),
            "{path}: {answer}"
        );
    }
    // Who trusts others is told so, and who speaks no TLS is nobody.
    assert!(ask(at, "127.0.0.1", "", "GET /", b"").await.is_err());
    let mut plain = TcpStream::connect(at).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut nothing = Vec::new();
    let _ = plain.read_to_end(&mut nothing).await;
    assert!(!nothing.starts_with(b"HTTP"));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn replicas_share_a_certificate_and_the_leader_fills_in_whom_to_trust() {
    const NAME: &str = "shop-webhooks";
    let (_api, client) = cluster();
    // What `windlass generate` writes: without anybody to trust.
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let webhook = || Webhook::validating(|_: &ConfigMap, _: &Request<ConfigMap>| ()).ignore_failures();
    let hook: Value = json!({
        "metadata": {"name": NAME}, "webhooks": [{
            "name": "validate.v1.configmaps.core", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": NAME, "namespace": "default", "path": "/validate-v1-configmap"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]}]});
    let start = || {
        let server =
            WebhookServer::behind_service(NAME).in_namespace("default").bind("127.0.0.1:0".parse().unwrap());
        let manager = Manager::new(client.clone(), Clock::real())
            .webhook(webhook())
            .serve_webhooks(server)
            .leader_election(Election::new("default", "shop"));
        let inspector = manager.inspector();
        (Running::start(manager), inspector)
    };
    let replicas = [start(), start()];
    let [(_, one), (_, other)] = &replicas;
    until("a certificate is there", async || {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
        secrets.get_opt(NAME).await.unwrap().is_some()
    })
    .await;
    let missing = "ValidatingWebhookConfiguration shop-webhooks: it is not there";
    until("it is said what is missing", async || one.ready().show("readyz", true).contains(missing)).await;
    configurations.create(&PostParams::default(), &serde_json::from_value(hook).unwrap()).await.unwrap();
    is_ready(one).await;
    is_ready(other).await;
    let bundle = || async {
        let webhooks = configurations.get(NAME).await.unwrap().webhooks.unwrap();
        String::from_utf8(webhooks[0].client_config.ca_bundle.clone().unwrap().0).unwrap()
    };
    let trusted = bundle().await;
    for inspector in [one, other] {
        let at = inspector.served().webhooks.unwrap();
        let answer = ask(at, "shop-webhooks.default.svc", &trusted, "GET /", b"").await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(ask(at, "other.default.svc", &trusted, "GET /", b"").await.is_err(), "it is nobody else");
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let all = secrets.list(&Default::default()).await.unwrap();
    let names: BTreeSet<String> = all.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, [NAME.to_owned(), format!("{NAME}-ca")].into());
    for (running, _) in replicas {
        running.stop().await.unwrap();
    }
    assert!(configurations.get_opt(NAME).await.unwrap().is_some(), "what was installed stays");
}

#[tokio::test]
async fn two_webhooks_of_one_name_are_refused() {
    let (_api, client) = cluster();
    let webhook = || Webhook::validating(|_: &ConfigMap, _: &Request<ConfigMap>| ());
    let manager = Manager::new(client, Clock::real()).webhook(webhook()).webhook(webhook());
    let error = manager.run_until(std::future::pending()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "two webhooks are at /validate-v1-configmap: name one of them otherwise (Webhook::named)"
    );
}

#[tokio::test]
async fn a_certificate_that_is_renewed_in_time_is_trusted_before_it_is_shown() {
    const NAME: &str = "shop-webhooks";
    let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    let (_api, client) = cluster();
    install(&client).await;
    let server =
        WebhookServer::behind_service(NAME).in_namespace("default").bind("127.0.0.1:0".parse().unwrap());
    let manager = Manager::new(client.clone(), clock).versions(versions()).serve_webhooks(server);
    let inspector = manager.inspector();
    let running = Running::start(manager);
    is_ready(&inspector).await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let certificate = async || {
        let data = secrets.get(NAME).await.unwrap().data.unwrap();
        String::from_utf8(data["tls.crt"].0.clone()).unwrap()
    };
    let trusted = async || {
        let conversion = definitions.get("sites.example.dev").await.unwrap().spec.conversion.unwrap();
        assert_eq!(conversion.strategy, "Webhook");
        let config = conversion.webhook.unwrap().client_config.unwrap();
        String::from_utf8(config.ca_bundle.unwrap().0).unwrap()
    };
    let day = Duration::from_secs(24 * 3600);
    let (first, authority) = (certificate().await, trusted().await);
    driver.advance(day * 61);
    let soon = || driver.advance(Duration::from_secs(15));
    until("the certificate is another", async || {
        soon();
        certificate().await != first
    })
    .await;
    assert_eq!(trusted().await, authority, "its authority is the same");
    driver.advance(day * 183);
    until("the next authority is trusted too", async || {
        soon();
        let bundle = trusted().await;
        bundle.starts_with(&authority) && bundle.matches("BEGIN CERTIFICATE").count() == 2
    })
    .await;
    driver.advance(day * 13);
    until("it is the first of the two", async || {
        soon();
        !trusted().await.starts_with(&authority)
    })
    .await;
    assert!(trusted().await.contains(authority.trim()), "who shows the old certificate is trusted still");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn certificates_of_others_are_shown_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let write = || {
        let made = rcgen::generate_simple_self_signed(["shop.default.svc".to_owned()]).unwrap();
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
        made.cert.pem()
    };
    let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
    let (_api, client) = cluster();
    let server = WebhookServer::with_certificates(folder.path()).bind("127.0.0.1:0".parse().unwrap());
    let manager = Manager::new(client, clock)
        .webhook(Webhook::validating(|_: &ConfigMap, _: &Request<ConfigMap>| ()))
        .serve_webhooks(server);
    let inspector = manager.inspector();
    let running = Running::start(manager);
    until("it says what is missing", async || inspector.ready().show("readyz", true).contains("tls.crt"))
        .await;
    let first = write();
    // Again and again: it may not sleep yet.
    let soon = || driver.advance(Duration::from_secs(15));
    until("it is ready", async || {
        soon();
        inspector.ready().is_fine()
    })
    .await;
    let at = inspector.served().webhooks.unwrap();
    let shown = async |trusted: &str| ask(at, "shop.default.svc", trusted, "GET /", b"").await.is_ok();
    assert!(shown(&first).await);
    let second = write();
    until("the new one is shown", async || {
        soon();
        shown(&second).await
    })
    .await;
    assert!(!shown(&first).await);
    running.stop().await.unwrap();
}
