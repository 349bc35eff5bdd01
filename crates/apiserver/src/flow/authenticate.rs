//! Who asks. In-process clients carry their identity; over TLS a certificate or a token says it; without TLS everyone is
//! the administrator.

use crate::api::Inner;
use crate::credentials::Credentials;
use crate::status::Status;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::digest::{Digest, SHA256, digest};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The group of all who are known.
const AUTHENTICATED: &str = "system:authenticated";

/// The group of those who may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// Where a user's extra says which token or certificate was shown.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user that nobody has to prove to be.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// Who sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// What tells this user from a later one of the same name; often empty.
    pub uid: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// What else is known, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user in no group but that of all who are known.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: name.into(), groups: vec![AUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// The administrator, who may do everything.
    pub fn admin() -> Self {
        Self::user("kubernetes-admin").among([MASTERS.to_owned()])
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::user(format!("system:serviceaccount:{namespace}:{name}"))
            .among(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")])
    }

    /// Someone who has not said who they are.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { user: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// The same user, in these groups too; they come first.
    pub(crate) fn among(mut self, groups: impl IntoIterator<Item = String>) -> Self {
        self.groups.splice(0..0, groups);
        self
    }
}

/// What became of the certificate that a client may have shown with its connection.
#[derive(Debug, Clone)]
pub(crate) enum Certificate {
    /// None was shown, or it names nobody.
    None,
    /// It stands for someone.
    Of(Arc<Identity>),
    /// It is not to be believed.
    Refused,
}

/// Tells who sends a request.
pub(crate) struct Authenticator {
    api: Arc<Inner>,
    admin_token: Digest,
    admin: Arc<Identity>,
    anonymous: Arc<Identity>,
}

impl Authenticator {
    pub(crate) fn new(api: Arc<Inner>, credentials: &Credentials) -> Self {
        Self {
            api,
            admin_token: digest(&SHA256, credentials.admin_token().as_bytes()),
            admin: Arc::new(Identity::admin()),
            anonymous: Arc::new(Identity::anonymous()),
        }
    }

    /// A certificate counts before a token; with neither one is anonymous; with a wrong one, nobody.
    pub(crate) fn identify(
        &self,
        certificate: &Certificate,
        headers: &HeaderMap,
    ) -> Result<Arc<Identity>, Status> {
        if let Certificate::Of(identity) = certificate {
            return Ok(identity.clone());
        }
        match bearer(headers) {
            Some(token) => self.bearer_of(token).ok_or_else(Status::unauthorized),
            None if matches!(certificate, Certificate::Refused) => Err(Status::unauthorized()),
            None => Ok(self.anonymous.clone()),
        }
    }

    fn bearer_of(&self, token: &str) -> Option<Arc<Identity>> {
        // Digests are compared, so that the time it takes says nothing about the token.
        let matches = digest(&SHA256, token.as_bytes()).as_ref() == self.admin_token.as_ref();
        if matches {
            return Some(self.admin.clone());
        }
        let api = &self.api;
        api.accounts().ok()?.bearer(token, &api.store, api.clock.now()).map(Arc::new)
    }
}

/// The bearer token of a request. Other ways to authenticate are passed over, as the reference does.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split(' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Api, Config};

    fn authenticator() -> (Authenticator, Credentials) {
        let api = Api::new(Config::default());
        let credentials = api.credentials().unwrap().clone();
        (Authenticator::new(api.0, &credentials), credentials)
    }

    fn asked_with(header: Option<&str>) -> Result<String, u16> {
        let (authenticator, credentials) = authenticator();
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            let header = header.replace("TOKEN", credentials.admin_token());
            headers.insert(AUTHORIZATION, header.parse().unwrap());
        }
        let asked = authenticator.identify(&Certificate::None, &headers);
        asked.map(|identity| identity.user.clone()).map_err(|status| status.code)
    }

    #[test]
    fn a_token_is_right_wrong_or_missing() {
        assert_eq!(asked_with(Some("Bearer TOKEN")).as_deref(), Ok("kubernetes-admin"));
        assert_eq!(asked_with(Some("bearer TOKEN more")).as_deref(), Ok("kubernetes-admin"));
        assert_eq!(asked_with(Some("Bearer wrong")), Err(401));
        for missing in [None, Some(""), Some("Bearer"), Some("Bearer  TOKEN"), Some("Basic Zm9vOmJhcg==")] {
            assert_eq!(asked_with(missing).as_deref(), Ok(ANONYMOUS), "{missing:?}");
        }
    }

    #[test]
    fn a_certificate_counts_before_a_token_and_a_refused_one_as_a_wrong_token() {
        let (authenticator, _) = authenticator();
        let known = Certificate::Of(Arc::new(Identity::user("jane")));
        let mut headers = HeaderMap::new();
        assert!(authenticator.identify(&Certificate::Refused, &headers).is_err());
        headers.insert(AUTHORIZATION, "Bearer wrong".parse().unwrap());
        assert_eq!(authenticator.identify(&known, &headers).unwrap().user, "jane");
    }
}
