//! Connections to kubelets: over TLS, with a certificate that they trust.

use super::place::{Scheme, Somewhere};
use crate::credentials::{Credentials, CredentialsError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use windlass_clock::Clock;

/// How long it may take to reach a kubelet.
const CONNECTING: Duration = Duration::from_secs(30);

/// How many streams are passed on at once.
const STREAMS: usize = 4096;

/// Who the API server is to kubelets.
const USER: &str = "kube-apiserver-kubelet-client";
const GROUP: &str = "system:masters";

/// A connection to somewhere.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// How the API reaches kubelets; what that needs is made when it is first needed.
pub(crate) struct Kubelets {
    trusted: OnceLock<TlsConnector>,
    anonymous: OnceLock<TlsConnector>,
    /// Places for streams that are passed on.
    pub(super) places: Arc<Semaphore>,
}

impl Kubelets {
    pub(crate) fn new() -> Self {
        let places = Arc::new(Semaphore::new(STREAMS));
        Self { trusted: OnceLock::new(), anonymous: OnceLock::new(), places }
    }

    /// Connects to where a request leads.
    pub(super) async fn connect(
        &self,
        to: &Somewhere,
        credentials: impl FnOnce() -> Result<Credentials, CredentialsError>,
    ) -> io::Result<Box<dyn Wire>> {
        let connecting = async {
            let stream = TcpStream::connect((to.host.as_str(), to.port)).await?;
            // What is typed is to be seen at once.
            stream.set_nodelay(true)?;
            let connector = match to.scheme {
                Scheme::Http => return Ok(Box::new(stream) as Box<dyn Wire>),
                Scheme::Https => once(&self.anonymous, || connector(None))?,
                Scheme::Kubelet => once(&self.trusted, || {
                    let (certificate, key) = credentials()
                        .and_then(|known| known.issue_client(USER, Some(GROUP)))
                        .map_err(io::Error::other)?;
                    connector(Some((&certificate, &key)))
                })?,
            };
            let name = ServerName::try_from(to.host.clone()).map_err(io::Error::other)?;
            Ok(Box::new(connector.connect(name, stream).await?) as Box<dyn Wire>)
        };
        let connected = Clock::real().timeout(CONNECTING, connecting).await;
        connected.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout")))
    }
}

fn once(
    cell: &OnceLock<TlsConnector>,
    make: impl FnOnce() -> io::Result<TlsConnector>,
) -> io::Result<&TlsConnector> {
    match cell.get() {
        Some(known) => Ok(known),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

fn connector(own: Option<(&str, &str)>) -> io::Result<TlsConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)));
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate =
                CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(io::Error::other)?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(io::Error::other)?;
            builder.with_client_auth_cert(vec![certificate], key).map_err(io::Error::other)?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Takes any certificate, as an API server does that was not told who signs those of kubelets: they sign their own.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
