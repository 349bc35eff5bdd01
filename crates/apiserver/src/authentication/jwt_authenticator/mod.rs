//! Tokens of other issuers: JSON Web Tokens as OpenID Connect has them, and whom their claims name.

mod claims;
mod issuer;

pub(super) use claims::{
    ClaimMappings, ExtraMapping, Mapping, RequiredClaim, UserValidationRule, ValidationRule, claims_variable,
    user_variable,
};

use crate::client::{HttpsClient, Trust};
use crate::jwt::Parts;
use crate::request::Identity;
use http::Uri;
use issuer::Issuer;
use serde_json::Value;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use windlass_clock::{Clock, Timestamp};

/// How long an issuer may take to show its keys.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How far ahead of this clock the time may be from which on a token holds.
const LEEWAY: i64 = 60;

/// The algorithms that tokens may be signed with, as the reference lists them. `ES512` is not verified here.
pub(super) const ALGORITHMS: [&str; 9] =
    ["ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"];

/// Authenticates the tokens of one issuer. Clones share its keys.
#[derive(Clone)]
pub struct JwtAuthenticator(Arc<Inner>);

struct Inner {
    url: String,
    audiences: Vec<String>,
    algorithms: Vec<String>,
    issuer: Issuer,
    mappings: ClaimMappings,
}

/// An issuer whose tokens are accepted, and how they name users.
pub(super) struct TrustedIssuer<'a> {
    /// The `iss` of its tokens, below which it shows its keys.
    pub(super) url: &'a str,
    /// Where it shows them, if somewhere else.
    pub(super) discovery_url: Option<&'a str>,
    /// Who signs the certificate that it shows, as PEM; those that this machine trusts without.
    pub(super) certificate_authority: Option<&'a str>,
    /// A token has to be for one of these.
    pub(super) audiences: Vec<String>,
    pub(super) algorithms: Vec<String>,
    pub(super) mappings: ClaimMappings,
}

impl JwtAuthenticator {
    pub(super) fn new(issuer: TrustedIssuer<'_>) -> io::Result<Self> {
        let TrustedIssuer { url, discovery_url, certificate_authority, audiences, algorithms, mappings } =
            issuer;
        let trust = certificate_authority.map_or(Trust::System, Trust::Authorities);
        let client = HttpsClient::new(trust, None, None, TIMEOUT)?;
        let document = match discovery_url {
            Some(url) => url.to_owned(),
            None => format!("{}/.well-known/openid-configuration", url.trim_end_matches('/')),
        };
        let document =
            document.parse::<Uri>().map_err(|error| io::Error::other(format!("{url}: {error}")))?;
        let issuer = Issuer::new(url.to_owned(), document, client);
        Ok(Self(Arc::new(Inner { url: url.to_owned(), audiences, algorithms, issuer, mappings })))
    }

    /// Who bears a token of this issuer, or why it is rejected; none if it is of another.
    pub(crate) async fn bearer(&self, token: &str) -> Option<Result<Identity, String>> {
        let parts = Parts::of(token)?;
        if parts.claims["iss"] != self.0.url.as_str() {
            return None;
        }
        Some(self.verified(&parts).await)
    }

    async fn verified(&self, token: &Parts<'_>) -> Result<Identity, String> {
        let verify = |why: String| format!("oidc: verify token: {why}");
        self.0.issuer.find().await?;
        let algorithm = token.header("alg");
        if !self.0.algorithms.iter().any(|known| known == algorithm) {
            let known: Vec<String> = self.0.algorithms.iter().map(|known| format!("{known:?}")).collect();
            return Err(verify(format!(
                "oidc: id token signed with unsupported algorithm, expected [{}] got {algorithm:?}",
                known.join(" ")
            )));
        }
        let verifies = self.0.issuer.verifies(token).await?;
        if !verifies {
            return Err(verify("failed to verify signature: failed to verify id token signature".to_owned()));
        }
        validate_types(&token.claims)
            .map_err(|why| verify(format!("oidc: failed to unmarshal claims: {why}")))?;
        // Issuers are of the world outside, whatever time the API itself lives by.
        self.check(&token.claims, Clock::real().now()).map_err(verify)?;
        self.0.mappings.identity(&token.claims)
    }

    /// Whether a token is for this server, and in its time.
    fn check(&self, claims: &Value, now: Timestamp) -> Result<(), String> {
        let wanted = &self.0.audiences;
        let audiences: Vec<&str> = match &claims["aud"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        if !audiences.iter().any(|audience| wanted.iter().any(|wanted| wanted == audience)) {
            let listed = |all: &[&str]| {
                let quoted: Vec<String> = all.iter().map(|one| format!("{one:?}")).collect();
                format!("[{}]", quoted.join(" "))
            };
            let wanted = match wanted.as_slice() {
                [one] => format!("{one:?}"),
                all => {
                    let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
                    all.sort_unstable();
                    format!("in {}", listed(&all))
                }
            };
            return Err(format!("oidc: expected audience {wanted} got {}", listed(&audiences)));
        }
        // Times may have fractions.
        let seconds = |name: &str| claims[name].as_f64().map(|seconds| seconds as i64);
        let expiry = seconds("exp").unwrap_or_default();
        if expiry < now.as_second() {
            let at = Timestamp::from_second(expiry).unwrap_or_default();
            return Err(format!("oidc: token is expired (Token Expiry: {at})"));
        }
        if let Some(start) = seconds("nbf").filter(|start| now.as_second() + LEEWAY < *start) {
            let at = Timestamp::from_second(start).unwrap_or_default();
            return Err(format!("oidc: current time {now} before the nbf (not before) time: {at}"));
        }
        Ok(())
    }
}

/// The claims that every token may have are of their types.
fn validate_types(claims: &Value) -> Result<(), String> {
    let wrong = |name: &str, wanted: &str| match claims.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(_)) if wanted == "string" => None,
        Some(Value::Number(_)) if wanted == "number" => None,
        Some(other) => {
            let found = windlass_schema::json::kind(other);
            Some(format!(
                "json: cannot unmarshal {found} into Go struct field idToken.{name} of type {wanted}"
            ))
        }
    };
    let texts = ["iss", "sub", "nonce", "at_hash"].into_iter().map(|name| (name, "string"));
    let times = ["exp", "iat", "nbf"].into_iter().map(|name| (name, "number"));
    match texts.chain(times).find_map(|(name, wanted)| wrong(name, wanted)) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

impl fmt::Debug for JwtAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtAuthenticator").field("url", &self.0.url).finish_non_exhaustive()
    }
}
