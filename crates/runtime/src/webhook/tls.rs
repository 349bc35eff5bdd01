//! The certificate that webhooks show: another one from one connection to the next, when it was renewed.

use super::authority::Certificates;
use crate::error_chain::chain;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What is shown now; nothing before the first certificate.
#[derive(Debug, Default)]
pub(super) struct Shown(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

impl Shown {
    /// Shows these from now on.
    ///
    /// # Errors
    /// When they are none, or the key is another's.
    pub(super) fn show(&self, certificates: &Certificates) -> Result<(), String> {
        let unusable = |error: String| format!("the certificate of the webhooks cannot be used: {error}");
        let chain_of: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates.certificate.as_bytes()).collect();
        let certificate = chain_of.map_err(|error| unusable(chain(&error)))?;
        let key = PrivateKeyDer::from_pem_slice(certificates.key.as_bytes())
            .map_err(|error| unusable(chain(&error)))?;
        let key = CertifiedKey::from_der(certificate, key, &ring::default_provider())
            .map_err(|error| unusable(chain(&error)))?;
        *self.0.write() = Some(Arc::new(key));
        Ok(())
    }
}

/// Accepts connections with what is shown.
pub(super) fn acceptor(shown: Arc<Shown>) -> Result<TlsAcceptor, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
