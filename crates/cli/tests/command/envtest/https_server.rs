//! A server that API servers ask: over TLS on loopback, with answers that a test chooses.

use super::credentials::Authority;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What a server answers: a status, and a text.
pub(super) type Answering = Arc<dyn Fn(&str, Value) -> (u16, String) + Send + Sync>;

/// Ends when it is dropped.
pub(super) struct HttpsServer {
    pub(super) url: String,
    /// Who signs its certificate, as PEM.
    pub(super) authority: String,
    serving: JoinHandle<()>,
}

impl HttpsServer {
    /// Answers requests, by their path and by the JSON that they carry.
    pub(super) async fn start(answering: impl FnOnce(&str) -> Answering) -> Self {
        let authority = Authority::new();
        let (certificate, key) = authority.server_at("127.0.0.1");
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let answering = answering(&url);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answering) = (acceptor.clone(), answering.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(|request| answer(request, answering.clone()));
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { url, authority: authority.certificate, serving }
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    request: Request<Incoming>,
    answering: Answering,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, 1 << 20).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (code, text) = answering(parts.uri.path(), serde_json::from_slice(&body).unwrap_or_default());
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    Ok(response)
}
