//! Tokens that are kept in Secrets: they name no time and no audience, and hold as long as the Secret has them and their
//! account is there.

use crate::object::text;
use crate::request::identity::Identity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_store::{Entry, Key, Store};

/// Who signs them.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

// What they say beside the usual.
const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const ACCOUNT: &str = "kubernetes.io/serviceaccount/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// A label of a Secret whose token no longer counts.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

pub(super) fn claims(namespace: &str, account: &str, account_uid: &str, secret: &str) -> Value {
    json!({
        "iss": ISSUER, "sub": format!("system:serviceaccount:{namespace}:{account}"),
        NAMESPACE: namespace, SECRET: secret, ACCOUNT: account, ACCOUNT_UID: account_uid,
    })
}

/// Whom a token names, if it still holds; otherwise why not.
pub(super) fn identify(token: &str, claims: &Value, store: &Store) -> Result<Identity, String> {
    let claim = |name: &str, what: &str| match text(claims, &[name]) {
        "" => Err(format!("{what} claim is missing")),
        value => Ok(value),
    };
    let subject = claim("sub", "sub")?;
    let namespace = claim(NAMESPACE, "namespace")?;
    let secret_name = claim(SECRET, "secretName")?;
    let name = claim(ACCOUNT, "serviceAccountName")?;
    let uid = claim(ACCOUNT_UID, "serviceAccountUID")?;
    if subject != format!("system:serviceaccount:{namespace}:{name}") {
        return Err("sub claim is invalid".to_owned());
    }
    let secret = store.get(&Key::new("secrets", namespace, secret_name)).map(|entry| entry.value());
    let secret = secret.filter(|secret| !is_going(secret)).ok_or("Token has been invalidated")?;
    if STANDARD.decode(text(&secret, &["data", "token"])).unwrap_or_default() != token.as_bytes() {
        return Err("Token does not match server's copy".to_owned());
    }
    let account = store.get(&Key::new("serviceaccounts", namespace, name));
    let account = account.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    still_there(&account, namespace, name, uid)?;
    if !text(&secret, &["metadata", "labels", INVALID_SINCE]).is_empty() {
        return Err(format!(
            "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked invalid. \
             Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
             '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        ));
    }
    let mut identity = Identity::service_account(namespace, name);
    identity.uid = uid.to_owned();
    Ok(identity)
}

fn still_there(account: &Entry, namespace: &str, name: &str, claimed: &str) -> Result<(), String> {
    if is_going(&account.value()) {
        return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
    }
    match account.uid() {
        uid if uid == claimed => Ok(()),
        uid => Err(format!("ServiceAccount UID ({uid}) does not match claim ({claimed})")),
    }
}

fn is_going(object: &Value) -> bool {
    !text(object, &["metadata", "deletionTimestamp"]).is_empty()
}
