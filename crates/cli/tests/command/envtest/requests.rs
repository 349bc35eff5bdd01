//! The same requests to any API server, by everybody who proves to be somebody, or does not.

use super::credentials::{Authority, Credential, Validity};
use super::environment::{Answer, Environment, Programs};
use super::service_account_tokens::{ISSUER, claims, confused, signed, unsigned, with};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

/// What those are told who prove nothing right.
pub(super) const UNAUTHORIZED: &str = r#"401 {"apiVersion":"v1","code":401,"kind":"Status","message":"Unauthorized","metadata":{},"reason":"Unauthorized","status":"Failure"}"#;

const WHO_AM_I: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What is asked, and what it came to, in an order that is always the same.
pub(super) async fn answers(programs: &Programs) -> Vec<(String, String)> {
    let flags = ["--enable-bootstrap-token-auth", "--api-audiences=https://issuer.example.com,other"];
    let environment = Environment::start(programs, &flags).await;
    let uid = prepare(&environment).await;
    let mut answers = Vec::new();
    for (name, credential) in credentials(&environment, &uid).await {
        for (question, method, path, body) in [
            ("health", Method::GET, "/healthz", None),
            ("list", Method::GET, MAPS, None),
            ("who am I", Method::POST, WHO_AM_I, Some(review("SelfSubjectReview", json!({})))),
        ] {
            let answer = environment.send(&credential, method, path, body).await;
            answers.push((format!("{name}: {question}"), shown(answer)));
        }
    }
    for (name, token) in tokens(&uid) {
        for audiences in [json!([]), json!([ISSUER]), json!(["other", "third"]), json!(["third"])] {
            let spec = json!({"token": token, "audiences": audiences});
            let body = review("TokenReview", spec);
            let path = "/apis/authentication.k8s.io/v1/tokenreviews";
            let answer = environment.send(&environment.admin(), Method::POST, path, Some(body)).await;
            answers.push((format!("{name}: reviewed for {audiences}"), shown(without_spec(answer))));
        }
    }
    let account = Credential::token(&signed(&header(), &claims(&uid)));
    for (name, who) in [
        ("nothing", Credential::default()),
        ("a user", Credential::token("bob-token")),
        ("an account", account),
    ] {
        for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"] {
            let answer = environment.send(&who, Method::GET, path, None).await;
            answers.push((format!("{name}: {path}"), shown(without_address(answer))));
        }
    }
    for path in PATHS {
        for (name, who) in [("nothing", Credential::default()), ("a user", Credential::token("bob-token"))] {
            let answer = environment.send(&who, Method::GET, path, None).await;
            // What a redirection says of itself is the library's own.
            answers.push((format!("{name}: {path}"), answer.code.to_string()));
        }
    }
    environment.stop();
    answers
}

/// Ways around the rules, if a path were read twice, or in two ways.
const PATHS: &[&str] = &[
    "/healthz/../api/v1/secrets",
    "/healthz/%2e%2e/api/v1/secrets",
    "/healthz%2f..%2fapi/v1/secrets",
    "/api/v1/namespaces/default/../kube-system/secrets",
    "/api/v1/namespaces/default/%2e%2e/kube-system/secrets",
    "/api/v1/namespaces/default%2f..%2fkube-system/secrets",
    "/api/v1/namespaces/default/secrets%2f",
    "/api//v1/secrets",
    "//api/v1/secrets",
    "/API/v1/secrets",
    "/%61pi/v1/secrets",
    "/api/v1/%73ecrets",
    "/api/v1/secrets;/healthz",
    "/healthz;/api/v1/secrets",
    "/healthz?/api/v1/secrets",
    "/healthz/",
    "/healthz//",
    "/api/v1/secrets/",
    "/api/v1/namespaces//secrets",
    "/version/",
    "/Version",
    "/apis/apps/v1/../../../api/v1/secrets",
];

fn header() -> Value {
    json!({"alg": "RS256"})
}

/// Makes what credentials speak of; the uid of the account `default`.
async fn prepare(environment: &Environment) -> String {
    let admin = environment.admin();
    let make = async |path: &str, object: Value| {
        let answer = environment.send(&admin, Method::POST, path, Some(object)).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.body["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let uid = make("/api/v1/namespaces/default/serviceaccounts", account).await;
    for (id, changed) in [
        ("abcdef", json!({})),
        ("expire", json!({"expiration": STANDARD.encode("2020-01-01T00:00:00Z")})),
        ("unused", json!({"usage-bootstrap-authentication": STANDARD.encode("false")})),
        ("groups", json!({"auth-extra-groups": STANDARD.encode("system:masters")})),
    ] {
        let data = |text: &str| json!(STANDARD.encode(text));
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
            "data": {
                "token-id": data(id), "token-secret": data("0123456789abcdef"),
                "usage-bootstrap-authentication": data("true"),
                "auth-extra-groups": data("system:bootstrappers:team"),
            },
        });
        for (name, value) in changed.as_object().unwrap() {
            secret["data"][name] = value.clone();
        }
        make("/api/v1/namespaces/kube-system/secrets", secret).await;
    }
    // The reference hears of Secrets and accounts a moment later.
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    for token in ["abcdef.0123456789abcdef".to_owned(), signed(&header(), &claims(&uid))] {
        environment.until(&Credential::token(&token), path, |answer| answer.code != 401).await;
    }
    uid
}

/// Everybody, by name.
async fn credentials(environment: &Environment, uid: &str) -> Vec<(String, Credential)> {
    let authority = &environment.authority;
    let other = Authority::new();
    let header_of = |value: &str| Credential::header("authorization", value);
    let jane = authority.client("jane", Some("devs"), Validity::Now);
    let stranger = other.client("jane", Some("system:masters"), Validity::Now);
    let mut all = vec![
        ("nothing", Credential::default()),
        ("another scheme", header_of("Basic YTpi")),
        ("no token", header_of("Bearer")),
        ("an empty token", header_of("Bearer ")),
        ("two spaces", header_of("Bearer  jane-token")),
        ("a scheme in small letters", header_of("bearer jane-token")),
        ("words after the token", header_of("Bearer jane-token more")),
        ("the token alone", header_of("jane-token")),
        ("a long token", Credential::token(&"x".repeat(20_000))),
        (
            "an administrator's certificate",
            Credential::certificate(authority.client("root", Some("system:masters"), Validity::Now)),
        ),
        ("a user's certificate", Credential::certificate(jane.clone())),
        (
            "a certificate without a name",
            Credential::certificate(authority.client("", Some("devs"), Validity::Now)),
        ),
        ("a certificate of another CA", Credential::certificate(stranger.clone())),
        ("an expired certificate", Credential::certificate(authority.client("jane", None, Validity::Past))),
        ("a server's certificate", Credential::certificate(authority.server("jane"))),
        (
            "a certificate beside a wrong token",
            Credential::certificate(jane.clone()).and(Credential::token("wrong")),
        ),
        (
            "a certificate beside another's token",
            Credential::certificate(jane).and(Credential::token("bob-token")),
        ),
        (
            "a certificate of another CA beside a token",
            Credential::certificate(stranger).and(Credential::token("bob-token")),
        ),
        (
            "headers of a front proxy",
            Credential::header("x-remote-user", "root")
                .and(Credential::header("x-remote-group", "system:masters")),
        ),
        (
            "headers of a front proxy beside a token",
            Credential::header("x-remote-user", "root").and(Credential::token("bob-token")),
        ),
    ]
    .into_iter()
    .map(|(name, credential)| (name.to_owned(), credential))
    .collect::<Vec<_>>();
    all.extend(tokens(uid).into_iter().map(|(name, token)| (name.to_owned(), Credential::token(&token))));
    all
}

/// Tokens, good and bad.
fn tokens(uid: &str) -> Vec<(&'static str, String)> {
    let good = claims(uid);
    let sign = |name: &str, value: Value| signed(&header(), &with(good.clone(), name, value));
    let now = good["iat"].as_i64().unwrap();
    let mut other_account = good.clone();
    other_account["kubernetes.io"]["serviceaccount"]["name"] = json!("another");
    let mut other_uid = good.clone();
    other_uid["kubernetes.io"]["serviceaccount"]["uid"] = json!("another");
    let mut no_id = good.clone();
    no_id.as_object_mut().unwrap().remove("jti");
    let mut gone_pod = good.clone();
    gone_pod["kubernetes.io"]["pod"] = json!({"name": "gone", "uid": "u"});
    let mut gone_secret = good.clone();
    gone_secret["kubernetes.io"]["secret"] = json!({"name": "gone", "uid": "u"});
    let bare = good["kubernetes.io"].clone();
    vec![
        ("a static token", "jane-token".to_owned()),
        ("a static token without groups", "bob-token".to_owned()),
        ("a wrong token", "wrong".to_owned()),
        ("a bootstrap token", "abcdef.0123456789abcdef".to_owned()),
        ("a wrong bootstrap token", "abcdef.0123456789abcdee".to_owned()),
        ("an unknown bootstrap token", "absent.0123456789abcdef".to_owned()),
        ("an expired bootstrap token", "expire.0123456789abcdef".to_owned()),
        ("a bootstrap token for something else", "unused.0123456789abcdef".to_owned()),
        ("a bootstrap token of wrong groups", "groups.0123456789abcdef".to_owned()),
        ("a service account's token", signed(&header(), &good)),
        ("a token for another audience", sign("aud", json!(["third"]))),
        ("a token for two audiences", sign("aud", json!(["third", "other"]))),
        ("a token for an audience that is no list", sign("aud", json!("other"))),
        ("a token for no audience", sign("aud", Value::Null)),
        ("an expired token", sign("exp", json!(now - 600))),
        ("a token that does not end", sign("exp", Value::Null)),
        ("a token that begins later", sign("nbf", json!(now + 600))),
        ("a token of another issuer", sign("iss", json!("https://elsewhere.example.com"))),
        ("a token of no issuer", sign("iss", Value::Null)),
        ("a token for somebody else", sign("sub", json!("system:serviceaccount:kube-system:default"))),
        ("a token for no account", sign("sub", json!("jane"))),
        ("a token that says nothing of Kubernetes", sign("kubernetes.io", Value::Null)),
        ("a token of an account that is not there", signed(&header(), &other_account)),
        ("a token of an account that was there before", signed(&header(), &other_uid)),
        ("a token without an id", signed(&header(), &no_id)),
        ("a token issued later", sign("iat", json!(now + 600))),
        ("a token whose times are no whole numbers", sign("exp", json!(now as f64 + 600.5))),
        ("a token whose time is text", sign("exp", json!("later"))),
        ("a token of a pod that is gone", signed(&header(), &gone_pod)),
        ("a token of a secret that is gone", signed(&header(), &gone_secret)),
        ("a token without a signature", unsigned(&json!({"alg": "none"}), &good)),
        ("a token that claims another algorithm", signed(&json!({"alg": "ES256"}), &good)),
        ("a token that claims no algorithm", signed(&json!({}), &good)),
        ("a token signed with the public key", confused(&good)),
        ("a token with an unknown key", signed(&json!({"alg": "RS256", "kid": "unknown"}), &good)),
        ("claims alone", bare.to_string()),
        ("three points", "...".to_owned()),
    ]
}

fn review(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": kind, "spec": spec})
}

/// A review without what was asked, which holds the token.
fn without_spec(mut answer: Answer) -> Answer {
    if let Some(object) = answer.body.as_object_mut() {
        object.remove("spec");
    }
    answer
}

/// OpenID's documents without where this server is.
fn without_address(mut answer: Answer) -> Answer {
    if let Some(uri) = answer.body.get_mut("jwks_uri") {
        let path = uri.as_str().and_then(|uri| uri.splitn(4, '/').nth(3)).unwrap_or_default().to_owned();
        *uri = json!(path);
    }
    answer
}

/// What does not change from run to run.
fn shown(mut answer: Answer) -> String {
    mask(&mut answer.body);
    // The reference names the library that found it.
    format!("{} {}", answer.code, answer.body)
        .replace("go-jose/go-jose: error in cryptographic primitive", "invalid signature")
        .replace("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate", "invalid claims")
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("managedFields");
            for (name, value) in object.iter_mut() {
                match name.as_str() {
                    // Those of users in a file are short.
                    "uid" if value.as_str().is_some_and(|uid| uid.len() < 8) => {}
                    "uid" | "resourceVersion" | "creationTimestamp" => *value = json!("masked"),
                    _ => mask(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) if text.starts_with("X509SHA256=") => *text = "X509SHA256=masked".to_owned(),
        Value::String(text) => {
            // An account's uid, in a message.
            if let Some((before, rest)) = text.split_once("UID (")
                && let Some((_, after)) = rest.split_once(')')
            {
                *text = format!("{before}UID (masked){after}");
            }
        }
        _ => {}
    }
}
