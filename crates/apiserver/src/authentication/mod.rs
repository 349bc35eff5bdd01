//! Who may prove to be whom, beside client certificates and service accounts: tokens from a file, bootstrap tokens, tokens
//! of other issuers, and whom a front proxy names.

mod bootstrap_tokens;
mod config;
mod front_proxy;
mod jwt_authenticator;
mod token_file;

pub use config::{AnonymousCondition, AnonymousConfiguration, AuthenticationConfiguration, OidcFlags};
pub use front_proxy::RequestHeader;
pub use jwt_authenticator::JwtAuthenticator;
pub use token_file::InvalidTokenFile;

pub(crate) use bootstrap_tokens::bearer as bootstrap_token_bearer;

use crate::request::Identity;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::Arc;

impl Authentication {
    /// Whether who shows nothing may be anonymous at a path.
    pub(crate) fn is_anonymous_at(&self, path: &str) -> bool {
        let paths = &self.anonymous_paths;
        self.anonymous && (paths.is_empty() || paths.iter().any(|known| known == path))
    }
}

/// How a server authenticates, beside client certificates and the administrator's token.
#[derive(Debug, Clone)]
pub struct Authentication {
    /// Whether who shows nothing is `system:anonymous`, and not refused.
    pub anonymous: bool,
    /// The paths at which it is; all, without.
    pub anonymous_paths: Vec<String>,
    /// Whether Secrets of the type `bootstrap.kubernetes.io/token` are tokens.
    pub bootstrap_tokens: bool,
    /// Tokens that never change.
    pub tokens: StaticTokens,
    /// The trusted issuers of tokens.
    pub jwt: Vec<JwtAuthenticator>,
    /// The keys and names of service accounts' tokens; those of the credentials, and the usual names, without.
    pub service_accounts: ServiceAccountIssuer,
}

impl Default for Authentication {
    /// Anonymous requests and bootstrap tokens are authenticated, as in clusters that kubeadm makes.
    fn default() -> Self {
        Self {
            anonymous: true,
            anonymous_paths: Vec::new(),
            bootstrap_tokens: true,
            tokens: StaticTokens::default(),
            jwt: Vec::new(),
            service_accounts: ServiceAccountIssuer::default(),
        }
    }
}

/// Who issues service accounts' tokens, and with which keys, as the flags `--service-account-…` say.
#[derive(Debug, Clone, Default)]
pub struct ServiceAccountIssuer {
    /// The first names whoever signs; tokens of all of them are accepted. `https://kubernetes.default.svc` if there is none.
    pub issuers: Vec<String>,
    /// For whom tokens are that do not say otherwise; the issuers if there is none.
    pub audiences: Vec<String>,
    /// The private key that signs, as PEM; that of the credentials if there is none.
    pub signing_key: Option<String>,
    /// The keys that tokens are verified with, as PEM: public keys, private keys or certificates. That of the signing key if
    /// there is none.
    pub keys: Vec<String>,
}

/// Who issues service accounts' tokens, unless a server is told otherwise.
pub(crate) const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

impl ServiceAccountIssuer {
    /// The issuers of service accounts' tokens.
    pub fn names(&self) -> Vec<String> {
        match self.issuers.as_slice() {
            [] => vec![DEFAULT_ISSUER.to_owned()],
            issuers => issuers.to_vec(),
        }
    }
}

/// Tokens that never change, each with who bears it, as `--token-auth-file` has them.
#[derive(Debug, Clone, Default)]
pub struct StaticTokens(HashMap<[u8; 32], Arc<Identity>>);

impl StaticTokens {
    /// Makes `identity` the bearer of `token`.
    pub fn insert(&mut self, token: &str, identity: Identity) {
        self.0.insert(hash(token), Arc::new(identity));
    }

    /// Who bears a token. Digests are compared, so that the time it takes says nothing about the tokens.
    pub(crate) fn bearer(&self, token: &str) -> Option<&Arc<Identity>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&hash(token))
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
