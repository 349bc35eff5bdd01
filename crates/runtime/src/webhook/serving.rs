//! Where webhooks are served, and how the API server reaches them.

use super::hook::Webhook;
use http::Uri;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The longest name that every object can have.
const LONGEST_NAME: usize = 63;
/// The port that webhooks are served at, as with controller-runtime.
const PORT: u16 = 9443;

/// Where the webhooks of a manager are served, and how the API server reaches them.
///
/// ```
/// use windlass::webhook::WebhookServer;
///
/// // In a pod, behind a Service; what `windlass generate` writes.
/// let server = WebhookServer::behind_service("shop-operator-webhooks");
/// // On this machine, for an API server on it; port 0 is the one that is served.
/// let server = WebhookServer::at_url("https://127.0.0.1:0")?;
/// # Ok::<_, windlass::webhook::InvalidUrl>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookServer {
    pub(super) bind: SocketAddr,
    pub(super) reached: Reached,
    pub(super) name: Option<String>,
}

/// How the API server reaches webhooks, and whose certificates they show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    /// By a Service of this name; with certificates in Secrets beside it, which all replicas share.
    Service { name: String, namespace: Option<String> },
    /// By a URL; with certificates of this process, which nobody else needs.
    Url(BaseUrl),
    /// Others say: they put the certificates into a folder, and tell the API server whom to trust.
    Certificates(PathBuf),
}

/// A URL without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseUrl {
    pub(super) host: String,
    /// 0 for the port that is served.
    pub(super) port: u16,
}

/// This is no URL of webhooks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no URL of webhooks: write https://HOST or https://HOST:PORT, without a path")]
pub struct InvalidUrl(String);

impl WebhookServer {
    /// Behind a Service of this name, in the namespace of the pod. The operator makes certificates in Secrets, renews them, and fills
    /// them into the webhook configurations, which have the name of the Service, and into CRDs.
    pub fn behind_service(name: impl Into<String>) -> Self {
        Self::on_all_interfaces(Reached::Service { name: name.into(), namespace: None })
    }

    /// At a URL. The operator makes the webhook configurations itself, and removes them when it ends.
    ///
    /// # Errors
    /// When it is none, or has a path.
    pub fn at_url(url: &str) -> Result<Self, InvalidUrl> {
        let invalid = || InvalidUrl(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let host = uri.host().ok_or_else(invalid)?.to_owned();
        if uri.scheme_str() != Some("https") || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(invalid());
        }
        let port = uri.port_u16().unwrap_or(443);
        let base = BaseUrl { host, port };
        let bind = match base.loopback() {
            Some(address) => SocketAddr::new(address, port),
            None => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT),
        };
        Ok(Self { bind, reached: Reached::Url(base), name: None })
    }

    /// With the certificate in `tls.crt` and `tls.key` of this folder, as cert-manager mounts it. It is read again when it changes. Whom
    /// to trust is for others to tell the API server.
    pub fn with_certificates(folder: impl Into<PathBuf>) -> Self {
        Self::on_all_interfaces(Reached::Certificates(folder.into()))
    }

    /// Served here, instead of at port 9443 of all interfaces (or, for the URL of a loopback address, there).
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = address;
        self
    }

    /// The webhook configurations have this name, instead of that of the Service, or of the program and the kinds.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The namespace of the Service, instead of that of the pod.
    #[must_use]
    pub fn in_namespace(mut self, of_service: impl Into<String>) -> Self {
        if let Reached::Service { namespace, .. } = &mut self.reached {
            *namespace = Some(of_service.into());
        }
        self
    }

    fn on_all_interfaces(reached: Reached) -> Self {
        Self { bind: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT), reached, name: None }
    }

    /// Where it is served.
    pub(crate) fn address(&self) -> SocketAddr {
        self.bind
    }

    /// The name of the webhook configurations. Operators on one machine are told apart by their programs, and those of one test by their
    /// kinds.
    pub(super) fn configuration_name(&self, program: &str, webhooks: &[Webhook]) -> String {
        match (&self.name, &self.reached) {
            (Some(name), _) | (None, Reached::Service { name, .. }) => name.clone(),
            _ => {
                let lower = program.to_lowercase();
                let kept = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
                let kinds: BTreeSet<&str> = webhooks.iter().map(|one| &*one.kind.plural).collect();
                let kinds = kinds.into_iter().collect::<Vec<_>>().join("-");
                let name = format!("{}-{kinds}", kept.collect::<String>().trim_matches('-'));
                name.chars().take(LONGEST_NAME).collect::<String>().trim_matches('-').to_owned()
            }
        }
    }
}

impl BaseUrl {
    /// Its address, if it is one of this machine alone.
    fn loopback(&self) -> Option<IpAddr> {
        let host = self.host.trim_matches(['[', ']']);
        let address = if host == "localhost" { Some(Ipv4Addr::LOCALHOST.into()) } else { host.parse().ok() };
        address.filter(IpAddr::is_loopback)
    }

    /// What a certificate must prove.
    pub(super) fn name(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }
}

impl std::fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "https://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::Request;
    use k8s_openapi::api::core::v1::Pod;

    #[test]
    fn a_url_says_where_it_is_served_if_it_is_on_this_machine() {
        let at = |url: &str| WebhookServer::at_url(url).unwrap().bind.to_string();
        assert_eq!(at("https://127.0.0.1:0"), "127.0.0.1:0");
        assert_eq!(at("https://localhost:7443/"), "127.0.0.1:7443");
        assert_eq!(at("https://[::1]:7443"), "[::1]:7443");
        assert_eq!(at("https://host.docker.internal:8443"), "0.0.0.0:9443");
        for wrong in ["", "http://a", "https://a/b", "a:1", "https://a?b", "https://"] {
            assert!(WebhookServer::at_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn configurations_are_named_like_the_service_or_the_program() {
        let webhook = Webhook::validating(|_: &Pod, _: &Request<Pod>| ());
        assert_eq!(WebhookServer::behind_service("a").configuration_name("p", &[]), "a");
        let by_url = WebhookServer::at_url("https://a").unwrap();
        assert_eq!(by_url.configuration_name("Shop_op", &[webhook.clone(), webhook]), "shop-op-pods");
        assert_eq!(by_url.named("b").configuration_name("p", &[]), "b");
    }
}
