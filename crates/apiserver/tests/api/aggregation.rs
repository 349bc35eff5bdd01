//! An extension API server as one built on Kubernetes' libraries: it believes whom the ConfigMap `extension-apiserver-authentication` names,
//! by the certificate that it is shown.

use super::tls::{HTTP2, Server, Shows};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::{Credentials, subject_of};
use windlass_clock::Clock;

const HTTP1: &[u8] = b"http/1.1";
const GROUP: &str = "gadgets.example.com";
const THINGS: &str = "/apis/gadgets.example.com/v1/things";
const SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.gadgets.example.com";

/// An address of this machine that is not on loopback. Nothing is sent to find it.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).unwrap();
    socket.local_addr().unwrap().ip()
}

async fn ask(server: &Server, protocol: &[u8], method: &str, path: &str, body: &str) -> (u16, Value) {
    let admin = Shows::Certificate(&server.credentials);
    let response = server.send(protocol, &admin, method, path, body).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Asks until it is answered as wanted.
async fn until(server: &Server, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let (_, answer) = ask(server, HTTP1, "GET", path, "").await;
            if wanted(&answer) {
                return answer;
            }
            Clock::real().sleep(Duration::from_millis(20)).await;
        }
    };
    Clock::real().timeout(Duration::from_secs(60), asking).await.expect(path)
}

/// Serves whoever shows a certificate that `authority` signed, and tells them who they are and what they asked.
async fn extension(authority: &str) -> (String, u16) {
    let own = Credentials::generate().unwrap();
    let (certificate, key) = own.issue_server("extension", &["extension.default.svc"]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect(),
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let shown = stream.get_ref().1.peer_certificates().and_then(|all| subject_of(&all[0]));
                let shown = shown.unwrap().common_name;
                let service = service_fn(move |request| answer(request, shown.clone()));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades();
                let _ = connection.await;
            });
        }
    });
    (own.ca_certificate().to_owned(), port)
}

async fn answer(mut request: Request<Incoming>, shown: String) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = |name: &str| -> Vec<String> {
        let values = request.headers().get_all(name).iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let told = json!({"proxy": shown, "user": header("x-remote-user"), "groups": header("x-remote-group"),
        "authorization": header("authorization")});
    let upgrades = request.headers().contains_key("upgrade");
    if upgrades {
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgraded.await.unwrap());
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.unwrap();
            word.reverse();
            stream.write_all(&word).await.unwrap();
        });
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", "Upgrade".parse().unwrap());
        response.headers_mut().insert("upgrade", "backwards".parse().unwrap());
        return Ok(response);
    }
    let length = request.into_body().collect().await.unwrap().to_bytes().len();
    let body = json!({"told": told, "length": length, "kind": "APIResourceList", "resources": []});
    let mut response = Response::new(Full::new(body.to_string().into()));
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    Ok(response)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_server_believes_the_front_proxy_that_the_config_map_names() {
    let server = Server::start().await;
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let map = until(&server, map, |map| map["data"]["requestheader-client-ca-file"].is_string()).await;
    assert_eq!(map["data"]["requestheader-allowed-names"], r#"["front-proxy-client"]"#);
    assert_eq!(map["data"]["requestheader-uid-headers"], r#"["X-Remote-Uid"]"#);
    let (ca, port) = extension(map["data"]["requestheader-client-ca-file"].as_str().unwrap()).await;

    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, ca);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "extension"},
        "spec": {"ports": [{"port": 443, "name": "https"}]}});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "extension", "labels": {"kubernetes.io/service-name": "extension"}},
        "endpoints": [{"addresses": [own_address().to_string()]}], "ports": [{"name": "https", "port": port}]});
    let api_service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{GROUP}")}, "spec": {"group": GROUP, "version": "v1", "caBundle": encoded,
            "groupPriorityMinimum": 1000, "versionPriority": 10, "service": {"namespace": "default", "name": "extension"}}});
    for (path, body) in [
        ("/api/v1/namespaces/default/services", service),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice),
        ("/apis/apiregistration.k8s.io/v1/apiservices", api_service),
    ] {
        let (code, answer) = ask(&server, HTTP1, "POST", path, &body.to_string()).await;
        assert_eq!(code, 201, "{answer}");
    }
    until(&server, SERVICE, |service| service["status"]["conditions"][0]["reason"] == "Passed").await;

    for protocol in [HTTP1, HTTP2] {
        let (code, answer) = ask(&server, protocol, "POST", THINGS, &" ".repeat(5 << 20)).await;
        assert_eq!((code, &answer["length"]), (200, &json!(5 << 20)), "{answer}");
        assert_eq!(answer["told"]["proxy"], "front-proxy-client");
        assert_eq!(answer["told"]["user"], json!(["kubernetes-admin"]));
        assert_eq!(answer["told"]["groups"], json!(["system:masters", "system:authenticated"]));
    }
    let token = Shows::Token(server.credentials.admin_token());
    let response = server.send(HTTP1, &token, "GET", THINGS, "").await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["told"]["authorization"], json!([]), "tokens are for the API server alone");

    let mut stream = server.connect(HTTP1, &Shows::Certificate(&server.credentials)).await;
    let request = format!(
        "GET {THINGS}/one/stream HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: backwards\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"abcd").await.unwrap();
    let mut word = [0; 4];
    stream.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"dcba");

    let (code, _) = ask(&server, HTTP1, "DELETE", SERVICE, "").await;
    assert_eq!(code, 200);
    let (code, _) = ask(&server, HTTP1, "GET", THINGS, "").await;
    assert_eq!(code, 404, "it leads nowhere any more, at once");
}
