//! Service accounts' tokens: what they say, whether it still holds, and how others can check them.

mod secret_tokens;

pub(crate) use secret_tokens::{LAST_USED, SecretUse};

use crate::authentication::{DEFAULT_ISSUER, ServiceAccountIssuer};
use crate::credentials::{Credentials, CredentialsError};
use crate::jwt::Signer;
use crate::object::text;
use crate::object::uid;
use crate::request::identity::{CREDENTIAL_ID, Identity};
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use windlass_clock::Timestamp;
use windlass_store::{Entry, Key, Store};

/// Where the public keys are.
const KEYS_PATH: &str = "/openid/v1/jwks";

/// How far clocks may be apart, and how long an object that goes still counts: the reference's own measure.
const LEEWAY: i64 = 60;

/// What a token says of its account, beside the usual.
const PRIVATE: &str = "kubernetes.io";

/// What can be told about a token's bearer beside name and groups.
const EXTRA: &str = "authentication.kubernetes.io";

/// What a token is bound to: it holds as long as that is there.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// `pod`, `node` or `secret`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// Empty for the node of a pod that is not there: it is told, not checked.
    pub(crate) uid: String,
}

/// What a token is asked for.
#[derive(Debug)]
pub(crate) struct Grant<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) account: &'a str,
    pub(crate) account_uid: &'a str,
    pub(crate) audiences: &'a [Value],
    pub(crate) bound: &'a [Bound],
    pub(crate) seconds: i64,
    /// After how long use of the token is to be warned about.
    pub(crate) warn_after: Option<i64>,
}

/// Makes tokens and reads them.
pub(crate) struct Accounts {
    signer: Signer,
    /// The first names who signs; the others are accepted.
    issuers: Vec<String>,
    /// For whom tokens are that do not say otherwise, and for whom those are that this server accepts.
    audiences: Vec<String>,
}

impl Accounts {
    /// With the key of the credentials, if the issuer has none.
    pub(crate) fn new<'a>(
        issuer: &ServiceAccountIssuer,
        credentials: impl FnOnce() -> Result<&'a Credentials, CredentialsError>,
    ) -> io::Result<Self> {
        let signer = match &issuer.signing_key {
            Some(key) => Signer::from_pem(key, &issuer.keys)?,
            None => Signer::from_pem(credentials().map_err(io::Error::other)?.accounts_key(), &issuer.keys)?,
        };
        let issuers = issuer.names();
        let audiences = match issuer.audiences.as_slice() {
            [] => issuers.clone(),
            audiences => audiences.to_vec(),
        };
        Ok(Self { signer, issuers, audiences })
    }

    /// For whom the tokens are that this server accepts.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.audiences
    }

    fn issuer(&self) -> &str {
        self.issuers.first().map_or(DEFAULT_ISSUER, String::as_str)
    }

    /// A token; none if the machine gives no random numbers.
    pub(crate) fn issue(&self, grant: &Grant<'_>, now: Timestamp) -> Option<String> {
        let mut private = Map::new();
        private.insert("namespace".to_owned(), json!(grant.namespace));
        private.insert("serviceaccount".to_owned(), json!({"name": grant.account, "uid": grant.account_uid}));
        for bound in grant.bound {
            let mut reference = json!({"name": bound.name});
            if !bound.uid.is_empty() {
                reference["uid"] = json!(bound.uid);
            }
            private.insert(bound.kind.to_owned(), reference);
        }
        let now = now.as_second();
        if let Some(after) = grant.warn_after {
            private.insert("warnafter".to_owned(), json!(now + after));
        }
        self.signer.sign(&json!({
            "aud": grant.audiences, "exp": now + grant.seconds, "iat": now, "nbf": now, "iss": self.issuer(),
            "jti": uid(), "sub": format!("system:serviceaccount:{}:{}", grant.namespace, grant.account),
            PRIVATE: private,
        }))
    }

    /// A token that is kept in a Secret; none if the machine gives no random numbers.
    pub(crate) fn issue_for_secret(
        &self,
        namespace: &str,
        account: &str,
        account_uid: &str,
        secret: &str,
    ) -> Option<String> {
        self.signer.sign(&secret_tokens::claims(namespace, account, account_uid, secret))
    }

    /// Who bears `token`, if it is ours, in its time, and all that it speaks of is still there; and for which of the
    /// `wanted` audiences it is. Otherwise why not, if there is anything to say. Where it is kept in a Secret, that is `used`.
    pub(crate) fn bearer(
        &self,
        token: &str,
        wanted: &[String],
        store: &Store,
        now: Timestamp,
        used: &mut Option<SecretUse>,
    ) -> Result<(Identity, Vec<String>), String> {
        let claims = self.signer.open(token, |issuer| {
            issuer == secret_tokens::ISSUER || self.issuers.iter().any(|known| known == issuer)
        })?;
        let now = now.as_second();
        let mut audiences: Vec<&str> = match &claims["aud"] {
            Value::Array(audiences) => audiences.iter().filter_map(Value::as_str).collect(),
            audience => audience.as_str().into_iter().collect(),
        };
        if audiences.is_empty() {
            // As tokens of Secrets are.
            audiences = self.audiences.iter().map(String::as_str).collect();
        }
        let matched: Vec<String> =
            wanted.iter().filter(|wanted| audiences.contains(&wanted.as_str())).cloned().collect();
        if matched.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                listed(&audiences),
                listed(wanted)
            ));
        }
        if claims["iss"] == secret_tokens::ISSUER {
            return Ok((secret_tokens::identify(token, &claims, store, used)?, matched));
        }
        validate_times(&claims, now)?;
        Ok((identify(&claims, store, now)?, matched))
    }

    /// The keys that others check tokens with.
    pub(crate) fn key_set(&self) -> Value {
        json!({"keys": self.signer.public_keys()})
    }

    /// What OpenID's clients ask first; `server` is where this server is reached.
    pub(crate) fn openid_configuration(&self, server: &str) -> Value {
        json!({
            "issuer": self.issuer(), "jwks_uri": format!("https://{server}{KEYS_PATH}"),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": self.signer.algorithms(),
        })
    }
}

/// Audiences as messages show them.
fn listed<T: AsRef<str>>(audiences: &[T]) -> String {
    let quoted: Vec<String> = audiences.iter().map(|audience| format!("{:?}", audience.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

/// A token that says nothing of a time has no such limit.
fn validate_times(claims: &Value, now: i64) -> Result<(), String> {
    let time = |name: &str| claims.get(name).and_then(Value::as_f64).map(|seconds| seconds as i64);
    let refused = if time("nbf").is_some_and(|start| start.saturating_sub(LEEWAY) > now) {
        "service account token is not valid yet"
    } else if time("exp").is_some_and(|end| now > end.saturating_add(LEEWAY)) {
        "service account token has expired"
    } else if time("iat").is_some_and(|issued| issued.saturating_sub(LEEWAY) > now) {
        "service account token is issued in the future"
    } else {
        return Ok(());
    };
    Err(refused.to_owned())
}

/// Whom a token's claims name, if that account and all that the token is bound to are still there.
fn identify(claims: &Value, store: &Store, now: i64) -> Result<Identity, String> {
    let private = &claims[PRIVATE];
    let namespace = text(private, &["namespace"]);
    let part = |kind: &str, name: &'static str| text(private, &[kind, name]).to_owned();
    let name = part("serviceaccount", "name");
    if name.is_empty() {
        return Err("resource name may not be empty".to_owned());
    }
    let account = store.get(&Key::new("serviceaccounts", namespace, name.as_str()));
    let account = account.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    let (uid, claimed) = (account.uid(), part("serviceaccount", "uid"));
    if uid != claimed {
        return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    if is_gone(&account, now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    let lives = |plural: &str, namespace: &str, kind: &str| {
        let invalidated = || "service account token has been invalidated".to_owned();
        let entry = store.get(&Key::new(plural, namespace, part(kind, "name"))).ok_or_else(invalidated)?;
        let (uid, claimed) = (entry.uid(), part(kind, "uid"));
        if uid != claimed {
            return Err(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})"
            ));
        }
        if is_gone(&entry, now) { Err(invalidated()) } else { Ok(()) }
    };
    let mut identity = Identity::service_account(namespace, &name);
    identity.uid = claimed;
    let id = text(claims, &["jti"]);
    if !id.is_empty() {
        identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
    }
    let mut tell = |name: &str, what: String| identity.extra.insert(format!("{EXTRA}/{name}"), vec![what]);
    let is_bound_to = |kind: &str| private.get(kind).is_some_and(|bound| !bound.is_null());
    if is_bound_to("secret") {
        lives("secrets", namespace, "secret")?;
    }
    if is_bound_to("pod") {
        lives("pods", namespace, "pod")?;
        tell("pod-name", part("pod", "name"));
        tell("pod-uid", part("pod", "uid"));
    } else if is_bound_to("node") {
        lives("nodes", "", "node")?;
    }
    if is_bound_to("node") {
        tell("node-name", part("node", "name"));
        match part("node", "uid") {
            uid if uid.is_empty() => {}
            uid => drop(tell("node-uid", uid)),
        }
    }
    Ok(identity)
}

/// Has it been on its way out for long enough that its tokens no longer hold?
fn is_gone(entry: &Arc<Entry>, now: i64) -> bool {
    let value = entry.value();
    let leaves: Option<Timestamp> = text(&value, &["metadata", "deletionTimestamp"]).parse().ok();
    leaves.is_some_and(|leaves| now > leaves.as_second().saturating_add(LEEWAY))
}
