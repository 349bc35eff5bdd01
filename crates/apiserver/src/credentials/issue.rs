//! Makes certificates, keys and tokens.

use super::{CredentialsError, FRONT_PROXY, FrontProxy, Parts};
use crate::x509::{AlternativeNames, Certificate, CertificateRequest, KeyUsages, Subject, pem};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData,
};
use windlass_clock::{Clock, Timestamp};

/// The names under which clients inside and outside of a cluster reach the server.
const HOSTS: [&str; 8] = [
    "127.0.0.1",
    "::1",
    // The Service `kubernetes`.
    "10.96.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// How long certificates hold: longer than a development cluster lives, since nothing renews them.
const YEARS: i16 = 10;

/// The name of the CA of the server and its clients.
const CA: &str = "windlass-ca";

pub(super) fn all() -> Result<Parts, CredentialsError> {
    let params = ca_params(CA)?;
    let ca_key = KeyPair::generate()?;
    let ca_certificate = params.self_signed(&ca_key)?;
    let issuer = Issuer::from_params(&params, &ca_key);
    let server = pair(&issuer, &HOSTS, "kube-apiserver", None, ExtendedKeyUsagePurpose::ServerAuth)?;
    let admin =
        pair(&issuer, &[], "kubernetes-admin", Some("system:masters"), ExtendedKeyUsagePurpose::ClientAuth)?;
    let mut token = [0; 32];
    getrandom::fill(&mut token)?;
    Ok(Parts {
        ca_certificate: ca_certificate.pem(),
        server_certificate: server.0,
        server_key: server.1,
        admin_certificate: admin.0,
        admin_key: admin.1,
        admin_token: URL_SAFE_NO_PAD.encode(token),
        accounts_key: KeyPair::generate()?.serialize_pem(),
        ca_key: ca_key.serialize_pem(),
    })
}

/// A further certificate for a client, of the CA with that key.
pub(super) fn client(
    ca_certificate: &str,
    ca_key: &str,
    user: &str,
    groups: &[&str],
) -> Result<(String, String), CredentialsError> {
    let key = KeyPair::generate()?;
    let (not_before, not_after) = validity();
    let usages = KeyUsages::parse(["digital signature", "key encipherment", "client auth"])?;
    let certificate = Certificate {
        subject: &Subject::user(user, groups),
        names: &AlternativeNames::default(),
        usages: &usages,
        public_key: &key.subject_public_key_info(),
        not_before,
        not_after,
    };
    let signed = certificate.sign(ca_certificate, ca_key).map_err(CredentialsError::Unusable)?;
    Ok((pem("CERTIFICATE", &signed), key.serialize_pem()))
}

/// The certificate that was asked for.
pub(super) fn requested<'a>(
    parts: &Parts,
    request: &CertificateRequest,
    usages: impl IntoIterator<Item = &'a str>,
    not_before: Timestamp,
    not_after: Timestamp,
) -> Result<String, CredentialsError> {
    let certificate = Certificate {
        subject: &request.subject,
        names: &request.names,
        usages: &KeyUsages::parse(usages)?,
        public_key: &request.public_key,
        not_before,
        not_after,
    };
    let signed = certificate.sign(&parts.ca_certificate, &parts.ca_key);
    Ok(pem("CERTIFICATE", &signed.map_err(CredentialsError::Unusable)?))
}

/// A further certificate for a server, of the CA with that key.
pub(super) fn server(ca_key: &str, name: &str, hosts: &[&str]) -> Result<(String, String), CredentialsError> {
    let (params, key) = (ca_params(CA)?, KeyPair::from_pem(ca_key)?);
    let issuer = Issuer::from_params(&params, &key);
    // What counts of the CA's own certificate is its name and its key.
    Ok(pair(&issuer, hosts, name, None, ExtendedKeyUsagePurpose::ServerAuth)?)
}

/// A CA that nobody else shares, and the certificate of the front proxy. The CA's key is forgotten: it signs nothing else.
pub(super) fn front_proxy() -> Result<FrontProxy, CredentialsError> {
    let params = ca_params("windlass-front-proxy-ca")?;
    let ca_key = KeyPair::generate()?;
    let ca_certificate = params.self_signed(&ca_key)?.pem();
    let issuer = Issuer::from_params(&params, &ca_key);
    let (certificate, key) = pair(&issuer, &[], FRONT_PROXY, None, ExtendedKeyUsagePurpose::ClientAuth)?;
    Ok(FrontProxy { ca_certificate, certificate, key })
}

fn ca_params(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(&[], name, None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A certificate and its key, as PEM.
fn pair(
    issuer: &Issuer<'_, &KeyPair>,
    hosts: &[&str],
    common_name: &str,
    organization: Option<&str>,
    usage: ExtendedKeyUsagePurpose,
) -> Result<(String, String), rcgen::Error> {
    let mut params = params(hosts, common_name, organization)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, issuer)?.pem(), key.serialize_pem()))
}

fn params(
    hosts: &[&str],
    common_name: &str,
    organization: Option<&str>,
) -> Result<CertificateParams, rcgen::Error> {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name = DistinguishedName::new();
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    let year = i32::from(this_year());
    params.not_before = rcgen::date_time_ymd(year - 1, 1, 1);
    params.not_after = rcgen::date_time_ymd(year + i32::from(YEARS), 1, 1);
    Ok(params)
}

/// From when on, and until when, certificates hold: from well before now, for clients whose clocks are behind.
fn validity() -> (Timestamp, Timestamp) {
    let first_day = |year: i16| {
        let day = jiff::civil::date(year, 1, 1).at(0, 0, 0, 0);
        jiff::tz::TimeZone::UTC.to_timestamp(day).unwrap_or(Timestamp::MAX)
    };
    (first_day(this_year() - 1), first_day(this_year() + YEARS))
}

/// Clients judge certificates by their own clocks, whatever time the API itself lives by.
fn this_year() -> i16 {
    Clock::real().now().to_zoned(jiff::tz::TimeZone::UTC).year()
}
