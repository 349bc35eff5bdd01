//! Service accounts' tokens: what they say, whether it still holds, and how others can check them.

mod jwt;

use crate::credentials::Credentials;
use crate::object::text;
use crate::object::uid;
use crate::request::identity::{CREDENTIAL_ID, Identity};
use jwt::Signer;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use windlass_clock::Timestamp;
use windlass_store::{Entry, Key, Store};

/// Who signs, and for whom tokens are unless they say otherwise.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// Where the public keys are.
pub(crate) const KEYS_PATH: &str = "/openid/v1/jwks";

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
pub(crate) struct Accounts(Signer);

impl Accounts {
    pub(crate) fn new(credentials: &Credentials) -> io::Result<Self> {
        Ok(Self(Signer::from_pem(credentials.accounts_key())?))
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
        self.0.sign(&json!({
            "aud": grant.audiences, "exp": now + grant.seconds, "iat": now, "nbf": now, "iss": ISSUER,
            "jti": uid(), "sub": format!("system:serviceaccount:{}:{}", grant.namespace, grant.account),
            PRIVATE: private,
        }))
    }

    /// Who bears `token`, if it is ours, in its time, and all that it speaks of is still there; and for which of the
    /// `wanted` audiences it is. Otherwise why not, if there is anything to say.
    pub(crate) fn bearer(
        &self,
        token: &str,
        wanted: &[&str],
        store: &Store,
        now: Timestamp,
    ) -> Result<(Identity, Vec<String>), String> {
        let claims = self.0.open(token).filter(|claims| claims["iss"] == ISSUER).ok_or_else(String::new)?;
        let time = |name: &str| claims.get(name).and_then(Value::as_i64);
        let now = now.as_second();
        let audiences: Vec<&str> = match &claims["aud"] {
            Value::Array(audiences) => audiences.iter().filter_map(Value::as_str).collect(),
            audience => audience.as_str().into_iter().collect(),
        };
        let matched: Vec<String> = wanted
            .iter()
            .filter(|wanted| audiences.contains(wanted))
            .map(|&wanted| wanted.to_owned())
            .collect();
        if matched.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                listed(&audiences),
                listed(wanted)
            ));
        }
        if time("exp").is_none_or(|end| now > end.saturating_add(LEEWAY)) {
            return Err("service account token has expired".to_owned());
        }
        if time("nbf").is_none_or(|start| start.saturating_sub(LEEWAY) > now) {
            return Err("service account token is not valid yet".to_owned());
        }
        let identity = identify(&claims, store, now);
        let invalidated = || "service account token has been invalidated".to_owned();
        identity.map(|identity| (identity, matched)).ok_or_else(invalidated)
    }

    /// The keys that others check tokens with.
    pub(crate) fn key_set(&self) -> Value {
        json!({"keys": [self.0.public_key()]})
    }
}

/// Audiences as messages show them.
fn listed(audiences: &[&str]) -> String {
    let quoted: Vec<String> = audiences.iter().map(|audience| format!("{audience:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Whom a token's claims name, if that account and all that the token is bound to are still there.
fn identify(claims: &Value, store: &Store, now: i64) -> Option<Identity> {
    let private = claims.get(PRIVATE)?;
    let namespace = text(private, &["namespace"]);
    let part = |kind: &str, name: &'static str| text(private, &[kind, name]).to_owned();
    let lives = |plural: &str, namespace: &str, kind: &str| {
        let entry = store.get(&Key::new(plural, namespace, part(kind, "name")))?;
        (entry.uid() == part(kind, "uid") && !is_gone(&entry, now)).then_some(entry)
    };
    lives("serviceaccounts", namespace, "serviceaccount")?;
    let mut identity = Identity::service_account(namespace, &part("serviceaccount", "name"));
    if claims["sub"] != identity.user.as_str() {
        return None;
    }
    identity.uid = part("serviceaccount", "uid");
    let id = format!("JTI={}", text(claims, &["jti"]));
    identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    let mut tell = |name: &str, what: String| identity.extra.insert(format!("{EXTRA}/{name}"), vec![what]);
    if private.get("secret").is_some() {
        lives("secrets", namespace, "secret")?;
    }
    if private.get("pod").is_some() {
        lives("pods", namespace, "pod")?;
        tell("pod-name", part("pod", "name"));
        tell("pod-uid", part("pod", "uid"));
    } else if private.get("node").is_some() {
        lives("nodes", "", "node")?;
    }
    if private.get("node").is_some() {
        tell("node-name", part("node", "name"));
        match part("node", "uid") {
            uid if uid.is_empty() => {}
            uid => drop(tell("node-uid", uid)),
        }
    }
    Some(identity)
}

/// What OpenID's clients ask first; `server` is where this server is reached.
pub(crate) fn openid_configuration(server: &str) -> Value {
    json!({
        "issuer": ISSUER, "jwks_uri": format!("https://{server}{KEYS_PATH}"),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// Has it been on its way out for long enough that its tokens no longer hold?
fn is_gone(entry: &Arc<Entry>, now: i64) -> bool {
    let value = entry.value();
    let leaves: Option<Timestamp> = text(&value, &["metadata", "deletionTimestamp"]).parse().ok();
    leaves.is_some_and(|leaves| now > leaves.as_second().saturating_add(LEEWAY))
}
