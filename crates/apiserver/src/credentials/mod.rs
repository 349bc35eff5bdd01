//! Credentials of the server and its administrator: certificates, keys and a token, generated or kept in a folder.
//!
//! A CA signs the certificates of the server and of the administrator, and client certificates for others on demand, such
//! as the API server's own for kubelets. Kept in a folder, they outlive a restart, so that kubeconfigs stay valid.

mod files;
mod issue;

use crate::x509::{CertificateRequest, UnknownUsage};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use windlass_clock::Timestamp;

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A certificate or a key could not be made.
    #[error("a certificate cannot be made")]
    Make(#[from] rcgen::Error),
    /// The CA's own certificate or key cannot be used.
    #[error("the certificate of the CA, or its key, cannot be used: {0}")]
    Unusable(String),
    /// A certificate is asked for that may be used for something unknown.
    #[error(transparent)]
    Usage(#[from] UnknownUsage),
    /// The machine gave no random bytes.
    #[error("this machine gives no random numbers")]
    Random(#[from] getrandom::Error),
    /// The folder, or a file in it, could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Certificates of a CA, the server and the administrator, the administrator's token, and the key that signs service
/// account tokens. Clones share them.
#[derive(Clone)]
pub struct Credentials(Arc<Kept>);

/// What there is, and where it is kept.
struct Kept {
    parts: Parts,
    folder: Option<PathBuf>,
    /// Made when it is first asked for.
    front_proxy: OnceLock<FrontProxy>,
}

/// Who the API server is to the extension API servers that it leads requests to, as PEM texts. Its CA signs nothing else, so whoever shows
/// such a certificate may say for whom it asks.
#[derive(Clone)]
pub(crate) struct FrontProxy {
    pub(crate) ca_certificate: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The common name of the front proxy.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// All of it, as PEM texts; the token as it is sent.
struct Parts {
    ca_certificate: String,
    /// Kept so that further certificates can be issued.
    ca_key: String,
    server_certificate: String,
    server_key: String,
    admin_certificate: String,
    admin_key: String,
    admin_token: String,
    accounts_key: String,
}

impl Credentials {
    /// New ones, kept nowhere.
    ///
    /// # Errors
    /// When this machine gives no random numbers.
    pub fn generate() -> Result<Self, CredentialsError> {
        Ok(Self::of(issue::all()?, None))
    }

    /// Those in `folder`, which is made with new ones if it is not there. Nobody but this user may read it.
    ///
    /// # Errors
    /// When the folder cannot be read or made, or lacks a file: what others were given would no longer be trusted, so
    /// nothing is made anew in its place.
    pub fn kept_in(folder: &Path) -> Result<Self, CredentialsError> {
        let parts = match files::read(folder)? {
            Some(parts) => parts,
            None => {
                let parts = issue::all()?;
                files::write(folder, &parts)?;
                parts
            }
        };
        Ok(Self::of(parts, Some(folder.to_owned())))
    }

    fn of(parts: Parts, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Kept { parts, folder, front_proxy: OnceLock::new() }))
    }

    /// Who the API server is to extension API servers. It is kept with the rest, but was not always: what lacks is made.
    ///
    /// # Errors
    /// When it can neither be read nor made.
    pub(crate) fn front_proxy(&self) -> Result<&FrontProxy, CredentialsError> {
        if let Some(known) = self.0.front_proxy.get() {
            return Ok(known);
        }
        let made = match &self.0.folder {
            Some(folder) => files::front_proxy(folder)?,
            None => issue::front_proxy()?,
        };
        Ok(self.0.front_proxy.get_or_init(|| made))
    }

    /// The certificate that clients trust, as PEM.
    pub fn ca_certificate(&self) -> &str {
        &self.0.parts.ca_certificate
    }

    /// A certificate for a client and its key, as PEM: of a user, and of the groups that the user is in. It is kept nowhere.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn issue_client(&self, user: &str, groups: &[&str]) -> Result<(String, String), CredentialsError> {
        issue::client(&self.0.parts.ca_certificate, &self.0.parts.ca_key, user, groups)
    }

    /// A certificate for a server and its key, as PEM: of that name, which is reached under those addresses and names. It
    /// is kept nowhere.
    ///
    /// # Errors
    /// When it cannot be made, such as for a host that is neither a name nor an address.
    pub fn issue_server(&self, name: &str, hosts: &[&str]) -> Result<(String, String), CredentialsError> {
        issue::server(&self.0.parts.ca_key, name, hosts)
    }

    /// The certificate that was asked for, as PEM: of the request's subject, names and key, for these uses, which are named
    /// as in the certificates API. It ends with the CA's own at the latest, and is kept nowhere.
    ///
    /// # Errors
    /// For an unknown use, or when the CA cannot sign.
    pub fn sign<'a>(
        &self,
        request: &CertificateRequest,
        usages: impl IntoIterator<Item = &'a str>,
        not_before: Timestamp,
        not_after: Timestamp,
    ) -> Result<String, CredentialsError> {
        issue::requested(&self.0.parts, request, usages, not_before, not_after)
    }

    /// The administrator's certificate, as PEM.
    pub fn admin_certificate(&self) -> &str {
        &self.0.parts.admin_certificate
    }

    /// The key of the administrator's certificate, as PEM.
    pub fn admin_key(&self) -> &str {
        &self.0.parts.admin_key
    }

    /// The administrator's bearer token.
    pub fn admin_token(&self) -> &str {
        &self.0.parts.admin_token
    }

    pub(crate) fn server_certificate(&self) -> &str {
        &self.0.parts.server_certificate
    }

    pub(crate) fn server_key(&self) -> &str {
        &self.0.parts.server_key
    }

    /// The key that signs service account tokens, as PEM.
    pub(crate) fn accounts_key(&self) -> &str {
        &self.0.parts.accounts_key
    }
}

impl fmt::Debug for Credentials {
    /// Says nothing: what is logged is read by others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
