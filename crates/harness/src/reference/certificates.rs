//! Certificates for one control plane: a CA, a server certificate for loopback, and the administrator's.

use super::StartError;
use super::home::write_private;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use std::path::Path;

/// PEM texts.
pub(crate) struct Certificates {
    ca: String,
    /// Signs what CertificateSigningRequests ask for.
    ca_key: String,
    server: Pair,
    admin: Pair,
    /// What the API server shows to kubelets.
    kubelet_client: Pair,
    /// Who signs the certificates of front proxies, and the one that the API server shows to others as such.
    proxy_ca: String,
    proxy_client: Pair,
    /// Signs service account tokens.
    accounts: KeyPair,
}

struct Pair {
    certificate: String,
    key: String,
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// A CA of a test's own.
struct Authority {
    params: CertificateParams,
    certificate: String,
    key: KeyPair,
}

impl Authority {
    fn make(common_name: &str) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(common_name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { params, certificate, key })
    }

    fn issue(&self, common: &str, organization: Option<&str>, hosts: &[&str]) -> Result<Pair, rcgen::Error> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name = name(common, organization);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        // etcd shows its server certificate when it calls itself, so each may serve as both.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key))?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The hosts by which clients reach the API server: those of this machine, and pods.
const SERVER: [&str; 7] = [
    "127.0.0.1",
    "localhost",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

impl Certificates {
    pub(crate) fn make() -> Result<Self, rcgen::Error> {
        let (ca, proxies) =
            (Authority::make("windlass-reference")?, Authority::make("windlass-front-proxy")?);
        Ok(Self {
            server: ca.issue("kube-apiserver", None, &SERVER)?,
            admin: ca.issue("windlass-admin", Some("system:masters"), &[])?,
            kubelet_client: ca.issue("kube-apiserver-kubelet-client", Some("system:masters"), &[])?,
            accounts: KeyPair::generate()?,
            proxy_client: proxies.issue("front-proxy-client", None, &[])?,
            proxy_ca: proxies.certificate,
            ca: ca.certificate,
            ca_key: ca.key.serialize_pem(),
        })
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), StartError> {
        std::fs::create_dir(folder).map_err(StartError::io(format!("make {}", folder.display())))?;
        for (name, text) in [
            ("ca.crt", &self.ca),
            ("ca.key", &self.ca_key),
            ("server.crt", &self.server.certificate),
            ("server.key", &self.server.key),
            ("kubelet-client.crt", &self.kubelet_client.certificate),
            ("kubelet-client.key", &self.kubelet_client.key),
            ("proxy-ca.crt", &self.proxy_ca),
            ("proxy-client.crt", &self.proxy_client.certificate),
            ("proxy-client.key", &self.proxy_client.key),
            ("accounts.key", &self.accounts.serialize_pem()),
            ("accounts.pub", &self.accounts.public_key_pem()),
        ] {
            write_private(&folder.join(name), text)?;
        }
        Ok(())
    }

    /// The administrator's kubeconfig, certificates included.
    pub(crate) fn kubeconfig(&self, url: &str) -> String {
        let data = |pem: &str| base64(pem.as_bytes());
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "reference",
            "clusters": [{"name": "reference",
                "cluster": {"server": url, "certificate-authority-data": data(&self.ca)}}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": data(&self.admin.certificate),
                "client-key-data": data(&self.admin.key)}}],
            "contexts": [{"name": "reference", "context": {"cluster": "reference", "user": "admin"}}],
        });
        // JSON is YAML.
        config.to_string()
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
