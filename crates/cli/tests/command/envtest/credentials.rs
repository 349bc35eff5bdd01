//! What a client shows: headers, and perhaps a certificate.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// What a client shows with a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Credential {
    pub(super) headers: Vec<(&'static str, String)>,
    /// A certificate and its key, as PEM.
    pub(super) certificate: Option<(String, String)>,
}

impl Credential {
    pub(super) fn token(token: &str) -> Self {
        Self::header("authorization", format!("Bearer {token}"))
    }

    pub(super) fn header(name: &'static str, value: impl Into<String>) -> Self {
        Self { headers: vec![(name, value.into())], certificate: None }
    }

    pub(super) fn certificate(certificate: (String, String)) -> Self {
        Self { headers: Vec::new(), certificate: Some(certificate) }
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.headers.extend(other.headers);
        self.certificate = other.certificate.or(self.certificate);
        self
    }
}

/// Who signs clients' certificates.
pub(super) struct Authority {
    pub(super) certificate: String,
    params: CertificateParams,
    key: KeyPair,
}

/// Whether a certificate still holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    Now,
    Past,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "test-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { certificate, params, key }
    }

    /// A client's certificate and its key.
    pub(super) fn client(&self, user: &str, group: Option<&str>, validity: Validity) -> (String, String) {
        self.issue(user, group, validity, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A certificate that is a server's, and no client's.
    pub(super) fn server(&self, user: &str) -> (String, String) {
        self.issue(user, None, Validity::Now, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The certificate of a server that is reached at an address.
    pub(super) fn server_at(&self, address: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![address.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    }

    fn issue(
        &self,
        user: &str,
        group: Option<&str>,
        validity: Validity,
        usage: ExtendedKeyUsagePurpose,
    ) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.distinguished_name.push(DnType::CommonName, user);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        if validity == Validity::Past {
            params.not_before = rcgen::date_time_ymd(2019, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        self.sign(&params)
    }
}
