//! Conversion webhooks: how often they are asked, in how much at once, and how long they are waited for.

use crate::support::{Client, DEFINITIONS, WIDGETS, widget, widgets};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::join_all;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::Credentials;
use windlass_clock::Clock;

const SECOND: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// What a webhook makes of the objects of a review.
type Convert = fn(Vec<Value>, &str) -> Value;

/// A webhook that remembers how many objects each review had.
struct Webhook {
    asked: Arc<Mutex<Vec<usize>>>,
    _serving: JoinSet<()>,
    client: Value,
}

impl Webhook {
    async fn start(convert: Convert) -> Self {
        let credentials = Credentials::generate().unwrap();
        let (certificate, key) = credentials.issue_server("webhook", &["127.0.0.1"]).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/convert", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<usize>>> = Arc::default();
        let mut serving = JoinSet::new();
        let told = asked.clone();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, tls.clone(), told.clone(), convert));
            }
        });
        let client = json!({"url": url, "caBundle": STANDARD.encode(credentials.ca_certificate())});
        Self { asked, _serving: serving, client }
    }

    /// How many objects it was sent in each review since the last time.
    fn asked(&self) -> Vec<usize> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// An API with a kind of two versions that it converts, and objects in the first.
    async fn serving(&self, objects: usize) -> Client {
        let client = Client::new();
        let mut definition = widgets();
        let mut second = definition["spec"]["versions"][0].clone();
        (second["name"], second["storage"]) = (json!("v2"), json!(false));
        definition["spec"]["versions"].as_array_mut().unwrap().push(second);
        definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "clientConfig": self.client, "conversionReviewVersions": ["v1"]}});
        client.post(DEFINITIONS, definition).await.expect(201);
        for number in 0..objects {
            client.post(WIDGETS, widget(&format!("w{number:04}"), json!({"size": 1}))).await.expect(201);
        }
        client
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, asked: Arc<Mutex<Vec<usize>>>, convert: Convert) {
    let Ok(stream) = tls.accept(stream).await else { return };
    let answer = |request: http::Request<Incoming>| {
        let asked = asked.clone();
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            let objects = review["request"]["objects"].as_array().unwrap().clone();
            asked.lock().push(objects.len());
            let converted = convert(objects, review["request"]["desiredAPIVersion"].as_str().unwrap());
            if converted.is_null() {
                // It hangs.
                std::future::pending::<()>().await;
            }
            let answer = json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": {
                "uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": converted}});
            Ok::<_, io::Error>(Response::new(Full::new(Bytes::from(answer.to_string()))))
        }
    };
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

fn rename(mut objects: Vec<Value>, api_version: &str) -> Value {
    objects.iter_mut().for_each(|object| object["apiVersion"] = json!(api_version));
    Value::Array(objects)
}

#[tokio::test]
async fn an_object_is_converted_once_for_all_who_read_it() {
    let webhook = Webhook::start(rename).await;
    let client = webhook.serving(3).await;
    assert_eq!(webhook.asked(), [] as [usize; 0]);
    for _ in 0..3 {
        let read = client.get(&format!("{SECOND}/w0000")).await.expect(200);
        assert_eq!(read["apiVersion"], "example.com/v2");
    }
    assert_eq!(webhook.asked(), [1]);
    // Only what is not kept yet is sent, at once.
    assert_eq!(client.get(SECOND).await.expect(200)["items"].as_array().unwrap().len(), 3);
    assert_eq!(client.get(&format!("{SECOND}?labelSelector=!a")).await.code, 200);
    assert_eq!(webhook.asked(), [2]);
    client.merge(&format!("{WIDGETS}/w0000"), json!({"spec": {"size": 2}})).await.expect(200);
    let one = format!("{SECOND}/w0000");
    join_all((0..20).map(|_| client.get(&one))).await;
    assert_eq!(webhook.asked(), [1]);
}

#[tokio::test]
async fn a_changed_definition_asks_anew() {
    let webhook = Webhook::start(rename).await;
    let client = webhook.serving(1).await;
    client.get(&format!("{SECOND}/w0000")).await.expect(200);
    let short = json!({"spec": {"names": {"shortNames": ["w"]}}});
    client.merge(&format!("{DEFINITIONS}/widgets.example.com"), short).await.expect(200);
    client.get(&format!("{SECOND}/w0000")).await.expect(200);
    assert_eq!(webhook.asked(), [1, 1]);
}

#[tokio::test]
async fn a_long_list_is_converted_in_parts() {
    let webhook = Webhook::start(rename).await;
    let client = webhook.serving(1100).await;
    assert_eq!(client.get(SECOND).await.expect(200)["items"].as_array().unwrap().len(), 1100);
    assert_eq!(webhook.asked(), [500, 500, 100]);
}

#[tokio::test]
async fn a_request_ends_in_its_own_time_however_long_a_conversion_takes() {
    let webhook = Webhook::start(|_, _| Value::Null).await;
    let client = webhook.serving(1).await;
    let one = format!("{SECOND}/w0000?timeout=200ms");
    client.get(&one).await.expect(504);
    client.get(&format!("{SECOND}?timeout=200ms")).await.expect(504);
    client.merge(&one, json!({"spec": {"size": 2}})).await.expect(504);
    client.delete(&one).await.expect(504);
    let mut new = widget("new", json!({}));
    new["apiVersion"] = json!("example.com/v2");
    client.post(&format!("{SECOND}?timeout=200ms"), new.clone()).await.expect(504);
    client.apply(&format!("{SECOND}/new?timeout=200ms&fieldManager=m"), new).await.expect(504);
    // Nothing of it was stored, and the storage version is served.
    assert_eq!(client.get(WIDGETS).await.expect(200)["items"].as_array().unwrap().len(), 1);
    client.merge(&format!("{WIDGETS}/w0000"), json!({"spec": {"size": 5}})).await.expect(200);
    // Objects of a definition go without their webhook.
    client.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.expect(200);
    client.get(&format!("{DEFINITIONS}/widgets.example.com")).await.expect(404);
}

#[tokio::test]
async fn a_bad_answer_fails_a_list_and_nothing_else() {
    let answers: [Convert; 4] = [
        |mut objects, version| {
            objects.pop();
            rename(objects, version)
        },
        |mut objects, version| {
            objects.reverse();
            rename(objects, version)
        },
        |objects, _| json!(vec![Value::Null; objects.len()]),
        |objects, _| json!(vec!["x".repeat(4 << 20); objects.len()]),
    ];
    for answer in answers {
        let webhook = Webhook::start(answer).await;
        let client = webhook.serving(2).await;
        let status = client.get(SECOND).await.expect(500);
        assert!(status["message"].is_string(), "{status}");
        client.get(WIDGETS).await.expect(200);
    }
}

#[tokio::test]
async fn writes_through_both_versions_at_once_all_count() {
    let webhook = Webhook::start(rename).await;
    let client = webhook.serving(1).await;
    let writes = (0..20).map(|number| {
        let path = if number % 2 == 0 { WIDGETS } else { SECOND };
        let labels = json!({"metadata": {"labels": {format!("l{number}"): "x"}}});
        let client = &client;
        async move { client.merge(&format!("{path}/w0000"), labels).await.expect(200) }
    });
    join_all(writes).await;
    let live = client.get(&format!("{SECOND}/w0000")).await.expect(200);
    assert_eq!(live["metadata"]["labels"].as_object().unwrap().len(), 20);
}

#[tokio::test]
async fn a_watch_goes_on_when_its_webhook_is_back() {
    static DOWN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let webhook = Webhook::start(|objects, version| match DOWN.load(std::sync::atomic::Ordering::SeqCst) {
        true => json!([]),
        false => rename(objects, version),
    })
    .await;
    let client = webhook.serving(1).await;
    let list = client.get(SECOND).await.expect(200);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = client.raw("GET", &format!("{SECOND}?watch=1&resourceVersion={version}"), "", "").await;
    let mut events = watch.into_body();
    DOWN.store(true, std::sync::atomic::Ordering::SeqCst);
    client.merge(&format!("{WIDGETS}/w0000"), json!({"spec": {"size": 7}})).await.expect(200);
    let clock = Clock::real();
    assert!(clock.timeout(std::time::Duration::from_millis(300), events.frame()).await.is_err());
    DOWN.store(false, std::sync::atomic::Ordering::SeqCst);
    let frame = clock.timeout(std::time::Duration::from_secs(10), events.frame()).await.unwrap();
    let event: Value = serde_json::from_slice(frame.unwrap().unwrap().data_ref().unwrap()).unwrap();
    assert_eq!((&event["type"], &event["object"]["spec"]["size"]), (&json!("MODIFIED"), &json!(7)));
    assert_eq!(event["object"]["apiVersion"], "example.com/v2");
}
