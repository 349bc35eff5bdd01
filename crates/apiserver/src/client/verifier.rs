//! Which certificates a server may show: those that a trusted authority signed, and those that are themselves among the trusted
//! ones. Go accepts the latter, and test environments trust the certificate of a webhook server by itself.

use super::unusable;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io;
use std::sync::Arc;
use x509_parser::parse_x509_certificate;

/// Verifies the certificates of servers by a list of trusted ones.
#[derive(Debug)]
pub(crate) struct TrustedCertificates {
    signed: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl TrustedCertificates {
    /// The certificates of a PEM text, of which there must be one.
    pub(crate) fn read(pem: &str) -> io::Result<Self> {
        let trusted: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        Self::new(trusted.map_err(unusable)?)
    }

    fn new(trusted: Vec<CertificateDer<'static>>) -> io::Result<Self> {
        if trusted.is_empty() {
            return Err(unusable("data does not contain any valid RSA or ECDSA certificates"));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(unusable)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self { signed: signed.build().map_err(unusable)?, trusted })
    }
}

/// What else is asked of a certificate that is trusted by itself: that it is for servers, and for now.
fn usable(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let (_, read) = parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let (now, validity) = (i64::try_from(now.as_secs()).unwrap_or(i64::MAX), read.validity());
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet);
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired);
    }
    let usages = read.extended_key_usage().map_err(|_| CertificateError::BadEncoding)?;
    match usages.is_none_or(|usages| usages.value.any || usages.value.server_auth) {
        true => Ok(()),
        false => Err(CertificateError::InvalidPurpose),
    }
}

impl ServerCertVerifier for TrustedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.trusted.contains(end_entity) {
            return self.signed.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        usable(end_entity, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    use std::time::Duration;

    /// A certificate for localhost that an authority signed which nobody trusts.
    fn certificate(change: impl Fn(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
    }

    fn verdict(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'_>,
        name: &'static str,
    ) -> Result<(), CertificateError> {
        let verifier = TrustedCertificates::new(vec![trusted.clone()]).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_700_000_000));
        let name = ServerName::try_from(name).unwrap();
        match verifier.verify_server_cert(shown, &[], &name, &[], now) {
            Ok(_) => Ok(()),
            Err(rustls::Error::InvalidCertificate(why)) => Err(why),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_certificate_that_is_trusted_by_itself_needs_no_authority() {
        let one = certificate(|_| {});
        assert_eq!(verdict(&one, &one, "localhost"), Ok(()));
        assert!(verdict(&one, &certificate(|_| {}), "localhost").is_err());
        assert!(matches!(
            verdict(&one, &one, "example.com"),
            Err(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
        ));
    }

    #[test]
    fn a_certificate_that_is_trusted_by_itself_is_for_servers_and_for_now() {
        let client =
            certificate(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
        assert_eq!(verdict(&client, &client, "localhost"), Err(CertificateError::InvalidPurpose));
        let any = certificate(|params| params.extended_key_usages.clear());
        assert_eq!(verdict(&any, &any, "localhost"), Ok(()));
        let old = certificate(|params| params.not_after = rcgen::date_time_ymd(2021, 1, 1));
        assert_eq!(verdict(&old, &old, "localhost"), Err(CertificateError::Expired));
        let new = certificate(|params| params.not_before = rcgen::date_time_ymd(2029, 1, 1));
        assert_eq!(verdict(&new, &new, "localhost"), Err(CertificateError::NotValidYet));
    }
}
