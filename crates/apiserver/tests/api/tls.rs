//! The API over TLS: both versions of HTTP, and who is believed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use windlass_apiserver::{Api, Config, Credentials, Serving};

const HTTP1: &[u8] = b"http/1.1";
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";

pub(crate) struct Server {
    pub(crate) credentials: Credentials,
    serving: Serving,
}

/// How a client shows who it is.
pub(crate) enum Shows<'a> {
    Nothing,
    Token(&'a str),
    Certificate(&'a Credentials),
}

impl Server {
    pub(crate) async fn start() -> Self {
        let credentials = Credentials::generate().unwrap();
        let api = Api::new(Config { credentials: Some(credentials.clone()), ..Config::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { serving: api.serve_tls(listener).unwrap(), credentials }
    }

    fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    pub(crate) async fn connect(&self, protocol: &[u8], shows: &Shows<'_>) -> TlsStream<TcpStream> {
        let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate(self.credentials.ca_certificate())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shows {
            Shows::Certificate(credentials) => {
                let key = PrivateKeyDer::from_pem_slice(credentials.admin_key().as_bytes()).unwrap();
                config.with_client_auth_cert(vec![certificate(credentials.admin_certificate())], key).unwrap()
            }
            _ => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.address()).await.unwrap();
        let name = ServerName::try_from("kubernetes.default.svc").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        protocol: &[u8],
        shows: &Shows<'_>,
        method: &str,
        path: &str,
        body: &str,
    ) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(protocol, shows).await);
        let host = self.address();
        let uri = if protocol == HTTP2 { format!("https://{host}{path}") } else { path.to_owned() };
        let mut request = Request::builder().method(method).uri(uri).header("host", host.to_string());
        if let Shows::Token(token) = shows {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        if protocol == HTTP2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        }
    }

    async fn ask(&self, shows: Shows<'_>, method: &str, path: &str, body: &str) -> (u16, Value) {
        let response = self.send(HTTP1, &shows, method, path, body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn get(&self, shows: Shows<'_>, path: &str) -> (u16, Value) {
        self.ask(shows, "GET", path, "").await
    }
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let server = Server::start().await;
    for (protocol, version) in [(HTTP1, Version::HTTP_11), (HTTP2, Version::HTTP_2)] {
        let admin = Shows::Certificate(&server.credentials);
        let response = server.send(protocol, &admin, "GET", NAMESPACES, "").await;
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
    }
}

#[tokio::test]
async fn a_certificate_or_a_token_says_who_asks_and_a_wrong_one_nobody() {
    let server = Server::start().await;
    let stranger = Credentials::generate().unwrap();
    let token = server.credentials.admin_token();
    assert_eq!(server.get(Shows::Certificate(&server.credentials), NAMESPACES).await.0, 200);
    assert_eq!(server.get(Shows::Token(token), NAMESPACES).await.0, 200);
    assert_eq!(server.get(Shows::Token(stranger.admin_token()), "/version").await.0, 401);
    let (code, status) = server.get(Shows::Certificate(&stranger), NAMESPACES).await;
    assert_eq!((code, &status["reason"]), (401, &json!("Unauthorized")));
    assert_eq!(server.get(Shows::Nothing, "/version").await.0, 200);
    let (code, status) = server.get(Shows::Nothing, NAMESPACES).await;
    assert_eq!((code, &status["details"]), (403, &json!({"kind": "namespaces"})));
}

#[tokio::test]
async fn one_is_told_who_one_is() {
    let server = Server::start().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (code, review) = server.ask(Shows::Certificate(&server.credentials), "POST", path, "{}").await;
    assert_eq!(code, 201, "{review}");
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "kubernetes-admin");
    assert_eq!(user["groups"], json!(["system:masters", "system:authenticated"]));
}

#[tokio::test]
async fn who_speaks_http_where_tls_is_spoken_is_told_so() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    // The rest of the request was not read, so the connection may also be reset once the answer is there.
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.contains("Client sent an HTTP request to an HTTPS server."), "{answer:?}");
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let server = Server::start().await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let shows = Shows::Nothing;
    let shaken = server.connect(HTTP2, &shows).await;
    assert_eq!(server.get(Shows::Token(server.credentials.admin_token()), NAMESPACES).await.0, 200);
    drop((silent, shaken));
}

#[tokio::test]
async fn a_stop_ends_watches_of_both_versions() {
    let server = Server::start().await;
    let mut watches = Vec::new();
    for protocol in [HTTP1, HTTP2] {
        let admin = Shows::Certificate(&server.credentials);
        let path = "/api/v1/namespaces/default/configmaps?watch=1";
        watches.push(server.send(protocol, &admin, "GET", path, "").await.into_body());
    }
    server.serving.stop().await;
    for watch in watches {
        assert_eq!(watch.collect().await.unwrap().to_bytes(), Bytes::new());
    }
}

#[tokio::test]
async fn a_service_account_comes_in_with_its_token_as_long_as_it_is_there() {
    let server = Server::start().await;
    let admin = || Shows::Certificate(&server.credentials);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "bob"}}).to_string();
    assert_eq!(server.ask(admin(), "POST", accounts, &account).await.0, 201);
    let (code, granted) = server.ask(admin(), "POST", &format!("{accounts}/bob/token"), "{}").await;
    assert_eq!(code, 201, "{granted}");
    let token = granted["status"]["token"].as_str().unwrap();
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, review) = server.ask(Shows::Token(token), "POST", review, "{}").await;
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:bob");
    assert_eq!(user["uid"], granted["metadata"]["uid"]);
    server.ask(admin(), "DELETE", &format!("{accounts}/bob"), "").await;
    assert_eq!(server.get(Shows::Token(token), NAMESPACES).await.0, 401);
}

#[tokio::test]
async fn a_watch_is_told_in_messages_to_who_wants_them() {
    let server = Server::start().await;
    // As a page in a browser does it, which cannot set headers.
    let stream = server.connect(HTTP1, &Shows::Nothing).await;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let token = URL_SAFE_NO_PAD.encode(server.credentials.admin_token());
    let request = Request::get("/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Ddefault")
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header(
            "sec-websocket-protocol",
            format!("base64url.bearer.authorization.k8s.io.{token}, base64.binary.k8s.io"),
        )
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["sec-websocket-protocol"], "base64.binary.k8s.io");
    // As the protocol's own example has it.
    assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let upgraded = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
    let mut next = async || -> Value {
        let message = socket.next().await.unwrap().unwrap();
        assert!(message.is_text());
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    };
    let told = next().await;
    assert_eq!((&told["type"], &told["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("default")));
    let patch = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    let mut patched = Request::patch(format!("{NAMESPACES}/default")).header("host", "localhost");
    patched = patched.header("content-type", "application/merge-patch+json");
    let io = TokioIo::new(server.connect(HTTP1, &Shows::Certificate(&server.credentials)).await);
    let (mut other, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let answer = other.send_request(patched.body(Full::new(Bytes::from(patch))).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let told = next().await;
    assert_eq!(
        (&told["type"], &told["object"]["metadata"]["labels"]["a"]),
        (&json!("MODIFIED"), &json!("b"))
    );
}
