//! Bootstrap tokens: Secrets of kube-system with which a machine joins a cluster that does not know it yet.

use crate::object::text;
use crate::request::Identity;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use windlass_clock::Timestamp;
use windlass_store::{Key, Store};

/// The type of a Secret that is such a token.
const TYPE: &str = "bootstrap.kubernetes.io/token";

/// The group of all who bear one; further groups must begin so.
const GROUP: &str = "system:bootstrappers";

/// Who bears `token`, if a Secret says that it may be used to authenticate, and for how long.
pub(crate) fn bearer(token: &str, store: &Store, now: Timestamp) -> Option<Identity> {
    let (id, secret) = token.split_once('.').filter(|(id, secret)| is_word(id, 6) && is_word(secret, 16))?;
    let entry = store.get(&Key::new("secrets", "kube-system", format!("bootstrap-token-{id}")))?;
    let stored = entry.value();
    if text(&stored, &["type"]) != TYPE || !text(&stored, &["metadata", "deletionTimestamp"]).is_empty() {
        return None;
    }
    let is_same = |one: &str, other: &str| {
        digest(&SHA256, one.as_bytes()).as_ref() == digest(&SHA256, other.as_bytes()).as_ref()
    };
    let data = |name: &str| data(&stored, name);
    let holds = is_same(&data("token-secret")?, secret)
        && data("token-id")? == id
        && data("usage-bootstrap-authentication").is_some_and(|usage| usage == "true")
        && expires_after(data("expiration").as_deref(), now);
    if !holds {
        return None;
    }
    let mut groups = vec![GROUP.to_owned()];
    let extra = data("auth-extra-groups").filter(|extra| !extra.is_empty());
    for group in extra.iter().flat_map(|extra| extra.split(',')) {
        // One wrong group, and the token is none.
        let name = group.strip_prefix("system:bootstrappers:").filter(|name| is_group_name(name))?;
        groups.push(format!("system:bootstrappers:{name}"));
    }
    groups.sort();
    groups.dedup();
    Some(Identity::user(format!("system:bootstrap:{id}")).in_groups(groups))
}

/// A value of a Secret, if it is text.
fn data(secret: &Value, name: &str) -> Option<String> {
    let encoded = secret.get("data")?.get(name)?.as_str()?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

/// A token without a time holds for ever; one whose time cannot be read does not hold.
fn expires_after(expiration: Option<&str>, now: Timestamp) -> bool {
    match expiration {
        None | Some("") => true,
        Some(time) => time.parse::<Timestamp>().is_ok_and(|time| time > now),
    }
}

fn is_word(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// `[a-z0-9:-]{0,255}[a-z0-9]`.
fn is_group_name(name: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 256
        && name.bytes().next_back().is_some_and(is_end)
        && name.bytes().all(|byte| is_end(byte) || byte == b':' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_clock::Clock;
    use windlass_store::{Body, Change, Options};

    async fn asked(change: impl FnOnce(&mut Value), token: &str) -> Option<Identity> {
        let store = Store::new(Options::default(), Clock::real());
        let fields = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"),
            ("expiration", "2030-01-01T00:00:00Z"),
        ];
        let data: serde_json::Map<String, Value> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), json!(STANDARD.encode(value)))).collect();
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": TYPE, "data": data,
            "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system", "uid": "u"},
        });
        change(&mut secret);
        let key = Key::new("secrets", "kube-system", "bootstrap-token-abcdef");
        store.commit(Change::Create { key, body: Body::encode(&secret, Vec::new()) }).await.unwrap();
        bearer(token, &store, "2029-01-01T00:00:00Z".parse().unwrap())
    }

    const TOKEN: &str = "abcdef.0123456789abcdef";

    #[tokio::test]
    async fn a_token_is_of_a_user_and_of_its_groups() {
        let identity = asked(|_| (), TOKEN).await.unwrap();
        assert_eq!(identity.user, "system:bootstrap:abcdef");
        let groups = [GROUP, "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"];
        assert_eq!(identity.groups, groups);
    }

    #[tokio::test]
    async fn what_the_secret_does_not_allow_is_no_token() {
        for token in
            ["abcdef.0123456789abcdee", "abcdef", "ABCDEF.0123456789abcdef", "bbbbbb.0123456789abcdef"]
        {
            assert_eq!(asked(|_| (), token).await, None, "{token}");
        }
        for (name, value) in [
            ("usage-bootstrap-authentication", "false"),
            ("expiration", "2028-01-01T00:00:00Z"),
            ("expiration", "tomorrow"),
            ("token-id", "bbbbbb"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers:"),
        ] {
            let set = |secret: &mut Value| secret["data"][name] = json!(STANDARD.encode(value));
            assert_eq!(asked(set, TOKEN).await, None, "{name}={value}");
        }
        assert_eq!(asked(|secret| secret["type"] = json!("Opaque"), TOKEN).await, None);
    }
}
