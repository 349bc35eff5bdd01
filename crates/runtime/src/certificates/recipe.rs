//! What certificate is wanted.

use serde::Serialize;
use std::time::Duration;

/// A day.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// What a certificate authority is valid for unless told otherwise.
const AUTHORITY_VALID_FOR: Duration = DAY.saturating_mul(365);
/// What a certificate is valid for unless told otherwise.
const CERTIFICATE_VALID_FOR: Duration = DAY.saturating_mul(90);
/// Nothing is valid for less: certificates count in seconds, and clocks differ.
const SHORTEST: Duration = Duration::from_secs(60);
/// Nor for more: times in certificates end with the year 9999.
const LONGEST: Duration = DAY.saturating_mul(100 * 365);

/// A certificate authority in a Secret of type `kubernetes.io/tls`: it signs with `tls.crt` and `tls.key`; `ca.crt` is what to trust.
///
/// When two thirds of its time have passed, a successor is made and trusted beside it (`next.crt`, `next.key`); a while later the
/// successor signs, and its predecessor is still trusted. So nobody meets a certificate whose authority they have not heard of.
///
/// ```
/// use std::time::Duration;
/// use windlass::{CertificateAuthority, Generate};
/// let generate = Generate::new().certificate_authority(CertificateAuthority::new());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateAuthority {
    pub(crate) valid_for: Duration,
}

impl CertificateAuthority {
    /// One that is valid for a year.
    pub fn new() -> Self {
        Self { valid_for: AUTHORITY_VALID_FOR }
    }

    /// Valid for this long instead.
    #[must_use]
    pub fn valid_for(mut self, duration: Duration) -> Self {
        self.valid_for = duration.clamp(SHORTEST, LONGEST);
        self
    }
}

impl Default for CertificateAuthority {
    fn default() -> Self {
        Self::new()
    }
}

/// A certificate with its key in a Secret of type `kubernetes.io/tls`: `tls.crt`, `tls.key`, and in `ca.crt` what to trust.
///
/// It is made anew when two thirds of its time have passed, when what is asked for is another, and when its authority changes.
///
/// ```
/// use windlass::{Certificate, Generate};
/// let generate = Generate::new().certificate(Certificate::server(["db-rw", "db-rw.shop.svc"], "db-ca"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    pub(crate) purpose: Purpose,
    /// The name of the Secret with the certificate authority.
    pub(crate) signed_by: String,
    pub(crate) valid_for: Duration,
}

/// Whom a certificate proves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Purpose {
    /// A server with these names and addresses.
    Server(Vec<String>),
    /// A client of this name.
    Client(String),
}

impl Certificate {
    /// Of a server that is reached under these names and addresses, signed by the certificate authority in a Secret of this name in
    /// the same namespace, which the same plan makes.
    pub fn server<N: Into<String>>(names: impl IntoIterator<Item = N>, authority: impl Into<String>) -> Self {
        Self::of(Purpose::Server(names.into_iter().map(Into::into).collect()), authority)
    }

    /// Of a client of this name, likewise.
    pub fn client(name: impl Into<String>, authority: impl Into<String>) -> Self {
        Self::of(Purpose::Client(name.into()), authority)
    }

    fn of(purpose: Purpose, authority: impl Into<String>) -> Self {
        Self { purpose, signed_by: authority.into(), valid_for: CERTIFICATE_VALID_FOR }
    }

    /// Valid for this long instead of 90 days.
    #[must_use]
    pub fn valid_for(mut self, duration: Duration) -> Self {
        self.valid_for = duration.clamp(SHORTEST, LONGEST);
        self
    }
}

/// What a Secret is to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Issue {
    Authority(CertificateAuthority),
    Certificate(Certificate),
}

impl Issue {
    /// The Secret with the authority that signs.
    pub(crate) fn signed_by(&self) -> Option<&str> {
        match self {
            Self::Authority(_) => None,
            Self::Certificate(certificate) => Some(&certificate.signed_by),
        }
    }
}
