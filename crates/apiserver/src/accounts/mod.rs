//! Service accounts' tokens: what they say, whether it still holds, and how others can check them.

mod jwt;

use crate::credentials::Credentials;
use crate::flow::authenticate::{CREDENTIAL_ID, Identity};
use crate::flow::prepare::uid;
use crate::kinds::text;
use crate::store::{Entry, Key, Store};
use jwt::Signer;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use windlass_clock::Timestamp;

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

    /// Who bears `token`, if it is ours, for us, in its time, and all that it speaks of is still there.
    pub(crate) fn bearer(&self, token: &str, store: &Store, now: Timestamp) -> Option<Identity> {
        let claims = self.0.open(token)?;
        let time = |name: &str| claims.get(name).and_then(Value::as_i64);
        let now = now.as_second();
        let for_us = match &claims["aud"] {
            Value::Array(audiences) => audiences.iter().any(|audience| audience == ISSUER),
            audience => audience == ISSUER,
        };
        if claims["iss"] != ISSUER
            || !for_us
            || now > time("exp")?.saturating_add(LEEWAY)
            || time("nbf")?.saturating_sub(LEEWAY) > now
        {
            return None;
        }
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
        let id = format!("JTI={}", text(&claims, &["jti"]));
        identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
        let mut tell =
            |name: &str, what: String| identity.extra.insert(format!("{EXTRA}/{name}"), vec![what]);
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

    /// The keys that others check tokens with.
    pub(crate) fn key_set(&self) -> Value {
        json!({"keys": [self.0.public_key()]})
    }
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
