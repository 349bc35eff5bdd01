//! What the archive and those who ask it know of each other: a certificate, and a token. Both are read for each connection: they are
//! renewed.

use super::TOKEN;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The archive's end.
pub(super) fn acceptor(directory: &Path) -> io::Result<TlsAcceptor> {
    let (certificate, key) = (fs::read(directory.join("tls.crt"))?, fs::read(directory.join("tls.key"))?);
    let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>().map_err(unusable)?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(unusable)?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The end of who asks, which trusts what its directory says and nothing else.
pub(super) fn connector(directory: &Path) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&fs::read(directory.join("ca.crt"))?) {
        roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The value of the header `Authorization`.
pub(super) fn authorization(directory: &Path) -> io::Result<String> {
    let token = fs::read_to_string(directory.join(TOKEN))?;
    let token = token.trim();
    // An empty one would let everybody in.
    match token.len() {
        0..16 => Err(io::Error::other("the token of the archive is too short")),
        _ => Ok(format!("Bearer {token}")),
    }
}

/// Whether two texts are equal, in a time that does not tell how much of them is.
pub(super) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_whole_and_is_never_empty() {
        assert!(is_equal(b"abc", b"abc"));
        assert!(!is_equal(b"abc", b"abd") && !is_equal(b"abc", b"ab") && !is_equal(b"", b"a"));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(TOKEN), "\n").unwrap();
        assert!(authorization(folder.path()).is_err());
        fs::write(folder.path().join(TOKEN), "0123456789abcdef\n").unwrap();
        assert_eq!(authorization(folder.path()).unwrap(), "Bearer 0123456789abcdef");
    }
}
