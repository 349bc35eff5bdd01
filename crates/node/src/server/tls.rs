//! TLS: the node's certificate, and whose certificates of clients are believed.

use super::auth::Caller;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct KeyAndCertificate {
    /// The certificate, and those that lead from it to the CA.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl KeyAndCertificate {
    /// One that the node signs itself, as a kubelet does that was given none: an API server that was not told whose to
    /// believe takes it.
    ///
    /// # Errors
    /// When no key can be made, or a host is neither a name nor an address.
    pub fn self_signed(node: &str, hosts: &[String]) -> io::Result<Self> {
        let mut params = CertificateParams::new(hosts.to_vec()).map_err(unusable)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("{node}@windlass"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(unusable)?;
        let certificate = params.self_signed(&key).map_err(unusable)?.pem();
        Ok(Self { certificate, key: key.serialize_pem() })
    }
}

impl std::fmt::Debug for KeyAndCertificate {
    /// Says nothing of the key: what is logged is read by others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyAndCertificate").finish_non_exhaustive()
    }
}

/// What handshakes need. A client need not have a certificate; one that it has must be of a CA in `client_ca`.
pub(super) fn acceptor(own: &KeyAndCertificate, client_ca: &str) -> io::Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(client_ca.as_bytes()) {
        roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
    }
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match roots.is_empty() {
        true => builder.with_no_client_auth(),
        false => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(unusable)?,
        ),
    };
    let certificates = CertificateDer::pem_slice_iter(own.certificate.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).map_err(unusable)?;
    let mut config = builder.with_single_cert(certificates.map_err(unusable)?, key).map_err(unusable)?;
    // One protocol that can be upgraded from.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Whom the certificate stands for that a client showed, and that was verified.
pub(super) fn caller(shown: Option<&[CertificateDer<'_>]>) -> Option<Caller> {
    let subject = windlass_apiserver::subject_of(shown?.first()?)?;
    (!subject.common_name.is_empty())
        .then_some(Caller { user: subject.common_name, groups: subject.organizations })
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
