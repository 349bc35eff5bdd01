//! Authentication. In-process clients carry their identity; over TLS a client certificate or a bearer token proves it; without
//! TLS everyone is the administrator.

use super::{token_use, websocket_token};
use crate::accounts::SecretUse;
use crate::authentication::bootstrap_token_bearer;
use crate::request::identity::Identity;
use crate::state::ApiState;
use crate::status::Status;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;

/// What is said of a token that is not believed.
const INVALID_TOKEN: &str = "invalid bearer token";

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
    api: Arc<ApiState>,
    anonymous: Arc<Identity>,
}

impl Authenticator {
    pub(crate) fn new(api: Arc<ApiState>) -> Self {
        Self { api, anonymous: Arc::new(Identity::anonymous()) }
    }

    /// A certificate counts before a token; with neither one is anonymous; with a wrong one, nobody. A token that is among
    /// protocols is taken out of them: the others are what can be spoken. Of a token that is kept in a Secret it is told that
    /// it was `used`.
    pub(crate) async fn identify(
        &self,
        certificate: &Certificate,
        headers: &mut HeaderMap,
        path: &str,
        used: &mut Option<SecretUse>,
    ) -> Result<Arc<Identity>, Status> {
        if let Certificate::Of(identity) = certificate {
            return Ok(identity.clone());
        }
        let token = bearer(headers);
        if let Some(token) = token
            && let Some(identity) = self.bearer_of(token, used).await
        {
            return Ok(identity);
        }
        let wrong = token.is_some() || matches!(certificate, Certificate::Refused);
        let shown = websocket_token::shown(headers).map_err(|()| Status::unauthorized())?;
        let Some(shown) = shown else {
            let refused = wrong || !self.api.authentication.is_anonymous_at(path);
            return if refused { Err(Status::unauthorized()) } else { Ok(self.anonymous.clone()) };
        };
        let identity = self.bearer_of(&shown.token, used).await.ok_or_else(Status::unauthorized)?;
        let protocols =
            HeaderValue::try_from(shown.protocols).map_err(|error| Status::bad_request(error.to_string()))?;
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocols);
        Ok(identity)
    }

    async fn bearer_of(&self, token: &str, used: &mut Option<SecretUse>) -> Option<Arc<Identity>> {
        let api = &self.api;
        if let Some(identity) = bearer_of_static_token(api, token) {
            return Some(identity);
        }
        let accounts = api.accounts().ok()?;
        let mut kept = None;
        let judged = accounts.bearer(token, accounts.audiences(), &api.store, api.clock.now(), &mut kept);
        if let Some(kept) = &kept {
            token_use::note(api, kept).await;
        }
        if let Ok((identity, _)) = judged {
            *used = kept;
            return Some(Arc::new(identity));
        }
        if let Some(identity) = bearer_of_bootstrap_token(api, token) {
            return Some(Arc::new(identity));
        }
        bearer_of_issued_token(api, token).await?.ok().map(Arc::new)
    }
}

/// Who bears a token of another issuer, or why it is rejected; none if no issuer is known.
async fn bearer_of_issued_token(api: &ApiState, token: &str) -> Option<Result<Identity, String>> {
    for issuer in &api.authentication.jwt {
        if let Some(judged) = issuer.bearer(token).await {
            return Some(judged);
        }
    }
    None
}

fn bearer_of_static_token(api: &ApiState, token: &str) -> Option<Arc<Identity>> {
    api.authentication.tokens.bearer(token).or_else(|| api.administrator()?.bearer(token)).cloned()
}

fn bearer_of_bootstrap_token(api: &ApiState, token: &str) -> Option<Identity> {
    let enabled = api.authentication.bootstrap_tokens;
    enabled.then(|| bootstrap_token_bearer(token, &api.store, api.clock.now())).flatten()
}

/// Who bears `token`, and for which of the `wanted` audiences it is; otherwise why it is not believed.
pub(crate) async fn review(
    api: &ApiState,
    token: &str,
    wanted: &[String],
) -> Result<(Identity, Vec<String>), String> {
    let accounts = api.accounts().map_err(|error| error.to_string())?;
    let refused = |why: String| match why.as_str() {
        "" => INVALID_TOKEN.to_owned(),
        why => format!("[{INVALID_TOKEN}, {why}]"),
    };
    let plain = bearer_of_static_token(api, token).map(|identity| Identity::clone(&identity));
    let plain = match plain.or_else(|| bearer_of_bootstrap_token(api, token)) {
        Some(identity) => Some(Ok(identity)),
        None => bearer_of_issued_token(api, token).await,
    };
    if let Some(judged) = plain {
        // It is for this server, and for nothing else.
        let own = |audience: &&String| accounts.audiences().contains(audience);
        let audiences: Vec<String> = wanted.iter().filter(own).cloned().collect();
        return match audiences.is_empty() {
            true => Err(INVALID_TOKEN.to_owned()),
            false => judged.map(|identity| (identity, audiences)).map_err(refused),
        };
    }
    let mut used = None;
    let judged = accounts.bearer(token, wanted, &api.store, api.clock.now(), &mut used);
    if let Some(used) = &used {
        token_use::note(api, used).await;
    }
    judged.map_err(refused)
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
    use crate::credentials::Credentials;
    use crate::request::identity::ANONYMOUS;

    fn authenticator() -> (Authenticator, Credentials) {
        let api = Api::new(Config::default());
        let credentials = api.credentials().unwrap().clone();
        (Authenticator::new(api.0), credentials)
    }

    async fn asked_with(header: Option<&str>) -> Result<String, u16> {
        let (authenticator, credentials) = authenticator();
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            let header = header.replace("TOKEN", credentials.admin_token());
            headers.insert(AUTHORIZATION, header.parse().unwrap());
        }
        let asked = authenticator.identify(&Certificate::None, &mut headers, "/", &mut None).await;
        asked.map(|identity| identity.user.clone()).map_err(|status| status.code)
    }

    #[tokio::test]
    async fn a_token_is_right_wrong_or_missing() {
        assert_eq!(asked_with(Some("Bearer TOKEN")).await.as_deref(), Ok("kubernetes-admin"));
        assert_eq!(asked_with(Some("bearer TOKEN more")).await.as_deref(), Ok("kubernetes-admin"));
        assert_eq!(asked_with(Some("Bearer wrong")).await, Err(401));
        for missing in [None, Some(""), Some("Bearer"), Some("Bearer  TOKEN"), Some("Basic Zm9vOmJhcg==")] {
            assert_eq!(asked_with(missing).await.as_deref(), Ok(ANONYMOUS), "{missing:?}");
        }
    }

    #[tokio::test]
    async fn a_certificate_counts_before_a_token_and_a_refused_one_as_a_wrong_token() {
        let (authenticator, _) = authenticator();
        let known = Certificate::Of(Arc::new(Identity::user("jane")));
        let mut headers = HeaderMap::new();
        assert!(authenticator.identify(&Certificate::Refused, &mut headers, "/", &mut None).await.is_err());
        headers.insert(AUTHORIZATION, "Bearer wrong".parse().unwrap());
        let known = authenticator.identify(&known, &mut headers, "/", &mut None).await;
        assert_eq!(known.unwrap().user, "jane");
    }
}
