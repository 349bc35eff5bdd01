//! TLS: the server's certificate, and which client certificates are believed.

use super::subject;
use crate::authentication::RequestHeader;
use crate::flow::authenticate::Certificate;
use crate::request::identity::{CREDENTIAL_ID, Identity};
use ring::digest::{SHA256, digest};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use windlass_clock::Clock;

/// HTTP/2, as the other side says it in the handshake.
pub(super) const H2: &[u8] = b"h2";

/// The certificates of a server, and whose certificates it takes of clients, as PEM.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The server's own certificate, and those that lead to what clients trust.
    pub certificates: String,
    /// The key of the server's own.
    pub key: String,
    /// Who signs the certificates of clients.
    pub client_ca: Option<String>,
    /// Which front proxies are believed. Without them and without who signs for clients, no certificate is asked for.
    pub request_header: Option<RequestHeader>,
    /// The certificate that is shown to extension API servers, and its key; none is shown without.
    pub proxy_client: Option<(String, String)>,
}

impl fmt::Debug for TlsIdentity {
    /// Says nothing: what is logged is read by others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// What handshakes need.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// None if no client certificate is believed.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// The same for the certificates of front proxies.
    proxies: Option<(Arc<dyn ClientCertVerifier>, Arc<RequestHeader>)>,
}

impl Tls {
    pub(super) fn new(identity: &TlsIdentity) -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = |pems: &[&String]| -> io::Result<Arc<dyn ClientCertVerifier>> {
            let mut roots = RootCertStore::empty();
            for pem in pems {
                for certificate in certificates(pem)? {
                    roots.add(certificate).map_err(unusable)?;
                }
            }
            let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            built.build().map_err(unusable)
        };
        let proxy_ca = identity.request_header.as_ref().map(|proxy| &proxy.client_ca);
        // Clients are told of all of them.
        let any: Vec<&String> = identity.client_ca.iter().chain(proxy_ca).collect();
        let asks = if any.is_empty() { None } else { Some(verifier(&any)?) };
        let proxies = match &identity.request_header {
            Some(proxy) => Some((verifier(&[&proxy.client_ca])?, Arc::new(proxy.clone()))),
            None => None,
        };
        let verifier = match &identity.client_ca {
            Some(pem) => Some(verifier(&[pem])?),
            None => None,
        };
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(unusable)?;
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let config = match asks {
            Some(verifier) => config.with_client_cert_verifier(Arc::new(JudgedLater(verifier))),
            None => config.with_no_client_auth(),
        };
        let mut config =
            config.with_single_cert(certificates(&identity.certificates)?, key).map_err(unusable)?;
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        // Connections live long and a handshake is cheap: remembering sessions would cost more than it saves.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), verifier, proxies })
    }

    /// What the headers of a client say, if the certificates that it showed are those of a front proxy.
    pub(super) fn proxy(&self, shown: Option<&[CertificateDer<'_>]>) -> Option<Arc<RequestHeader>> {
        let (verifier, proxy) = self.proxies.as_ref()?;
        let (own, others) = shown?.split_first()?;
        verifier.verify_client_cert(own, others, now()).ok()?;
        let subject = subject::of(own)?;
        proxy.allows(&subject.common_name).then(|| proxy.clone())
    }

    /// Whom the certificates that a client showed stand for.
    pub(super) fn judge(&self, shown: Option<&[CertificateDer<'_>]>) -> Certificate {
        let (Some(verifier), Some((own, others))) =
            (&self.verifier, shown.and_then(|shown| shown.split_first()))
        else {
            return Certificate::None;
        };
        if verifier.verify_client_cert(own, others, now()).is_err() {
            return Certificate::Refused;
        }
        match subject::of(own) {
            Some(subject) if !subject.common_name.is_empty() => {
                let mut identity = Identity::user(subject.common_name).in_groups(subject.organizations);
                let hex: String =
                    digest(&SHA256, own).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")]);
                Certificate::Of(Arc::new(identity))
            }
            _ => Certificate::None,
        }
    }
}

/// Certificates are of the world outside, whatever time the API itself lives by.
fn now() -> UnixTime {
    let seconds = u64::try_from(Clock::real().now().as_second()).unwrap_or_default();
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// All certificates of a PEM text, of which there must be one.
fn certificates(pem: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(unusable)?;
    match all.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "there is no certificate in it")),
        false => Ok(all),
    }
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Lets every certificate through the handshake: one that is not believed is answered 401, in words that a person can
/// read, and a token beside it still counts. That the client has the certificate's key is checked here.
#[derive(Debug)]
struct JudgedLater(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for JudgedLater {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
