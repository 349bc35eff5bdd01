//! Secrets of the type `kubernetes.io/service-account-token`: each is filled with a token of the ServiceAccount that it
//! names, and deleted when that is gone.

use crate::Settings;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::write::{Basis, Deletion};
use windlass::{Controller, Manager, Reconcile, ReconcileError, Relation, Requeue};
use windlass_apiserver::Api;

const TYPE: &str = "kubernetes.io/service-account-token";
/// Annotations that say whose token it is.
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

pub(super) fn add(manager: Manager, settings: &Settings) -> Manager {
    let Some(issuer) = settings.issuer.clone() else { return manager };
    let root_ca: Arc<[u8]> = settings.root_ca.clone().unwrap_or_default().into_bytes().into();
    let controller =
        Controller::reconciling(move |secret, ctx| reconcile(secret, ctx, issuer.clone(), root_ca.clone()))
            .named("serviceaccount-token-controller")
            .filter(|secret: &Secret| is_token(secret) && secret.metadata.deletion_timestamp.is_none())
            .watches::<ServiceAccount>(|secret: &Secret| Relation::named(annotation(secret, NAME)));
    // What is in other Secrets is nobody's business here.
    let forget = |secret: &mut Secret| {
        if !is_token(secret) {
            secret.data = None;
        }
    };
    manager.caching(move |cache| cache.transform(forget)).controller(controller)
}

fn is_token(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(TYPE)
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> &'a str {
    secret.metadata.annotations.as_ref().and_then(|all| all.get(name)).map_or("", String::as_str)
}

/// What is to be done about a Secret.
#[derive(Debug, PartialEq)]
enum Decision {
    Nothing,
    /// Its ServiceAccount is gone, or another one has its name.
    Delete,
    /// It lacks this, and a token if that is said.
    Fill {
        data: BTreeMap<String, ByteString>,
        token: bool,
    },
}

fn decide(secret: &Secret, account: Option<&ServiceAccount>, root_ca: &[u8]) -> Decision {
    let uid = annotation(secret, UID);
    let is_its_own =
        |account: &&ServiceAccount| uid.is_empty() || account.metadata.uid.as_deref() == Some(uid);
    if account.filter(is_its_own).is_none() {
        return Decision::Delete;
    }
    let held =
        |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map_or(&[][..], |value| &value.0);
    let mut data = BTreeMap::new();
    if !root_ca.is_empty() && held("ca.crt") != root_ca {
        data.insert("ca.crt".to_owned(), ByteString(root_ca.to_vec()));
    }
    if held("namespace").is_empty() {
        let namespace = secret.metadata.namespace.clone().unwrap_or_default();
        data.insert("namespace".to_owned(), ByteString(namespace.into_bytes()));
    }
    match held("token").is_empty() {
        false if data.is_empty() => Decision::Nothing,
        token => Decision::Fill { data, token },
    }
}

async fn reconcile(
    secret: Arc<Secret>,
    ctx: Reconcile<Secret>,
    issuer: Api,
    root_ca: Arc<[u8]>,
) -> Result<Requeue, ReconcileError> {
    let account = ctx.observed().get::<ServiceAccount>(annotation(&secret, NAME));
    let account = account.map_err(ReconcileError::terminal)?;
    match (decide(&secret, account.as_deref(), &root_ca), account) {
        (Decision::Delete, _) => drop(ctx.delete(&*secret, &Deletion::new(Basis::Absent)).await?),
        (Decision::Fill { mut data, token }, Some(account)) => {
            let (name, uid) = (account.metadata.name.clone(), account.metadata.uid.clone());
            let (name, uid) = (name.unwrap_or_default(), uid.unwrap_or_default());
            if token {
                let namespace = ctx.key().namespace().unwrap_or_default();
                let token = issuer.issue_secret_token(namespace, &name, &uid, ctx.key().name());
                let token = token.map_err(ReconcileError::custom)?;
                data.insert("token".to_owned(), ByteString(token.into_bytes()));
            }
            let mut filled = (*secret).clone();
            filled.data.get_or_insert_default().append(&mut data);
            let annotations = filled.metadata.annotations.get_or_insert_default();
            annotations.extend([(NAME.to_owned(), name), (UID.to_owned(), uid)]);
            ctx.replace(&filled).await?;
        }
        _ => {}
    }
    Ok(Requeue::on_change())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn secret(annotations: Value, data: Value) -> Secret {
        let metadata = json!({"name": "s", "namespace": "shop", "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata, "data": data, "type": TYPE})).unwrap()
    }

    fn account(uid: &str) -> ServiceAccount {
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": uid}})).unwrap()
    }

    #[test]
    fn a_secret_is_filled_with_what_it_lacks() {
        let lacks = |data: Value, root_ca: &[u8]| match decide(
            &secret(json!({NAME: "a"}), data),
            Some(&account("1")),
            root_ca,
        ) {
            Decision::Fill { data, token } => (data.into_keys().collect::<Vec<_>>().join(" "), token),
            other => (format!("{other:?}"), false),
        };
        assert_eq!(lacks(json!({}), b"ca"), ("ca.crt namespace".to_owned(), true));
        assert_eq!(lacks(json!({}), b""), ("namespace".to_owned(), true));
        let whole = json!({"token": "dA==", "namespace": "bg==", "ca.crt": "Y2E="});
        assert_eq!(lacks(whole.clone(), b"ca"), ("Nothing".to_owned(), false));
        assert_eq!(lacks(whole, b"another"), ("ca.crt".to_owned(), false));
    }

    #[test]
    fn a_secret_goes_with_its_account() {
        let decided = |annotations: Value, account: Option<&ServiceAccount>| {
            decide(&secret(annotations, json!({})), account, b"") == Decision::Delete
        };
        assert!(decided(json!({NAME: "a"}), None));
        assert!(!decided(json!({NAME: "a"}), Some(&account("1"))));
        assert!(!decided(json!({NAME: "a", UID: "1"}), Some(&account("1"))));
        assert!(decided(json!({NAME: "a", UID: "1"}), Some(&account("2"))));
    }
}
