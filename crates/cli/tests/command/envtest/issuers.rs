//! Tokens of other issuers: who is whom by which claims, and which tokens are rejected.

use super::credentials::Credential;
use super::environment::{Environment, Programs};
use super::https_server::{Answering, HttpsServer};
use super::service_account_tokens::{confused, signed, unsigned, with};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_clock::Clock;

/// The issuer's documents. The key is that of service accounts' tokens here: the issuer tells them apart.
fn documents(url: &str) -> Answering {
    let url = url.to_owned();
    let key = json!({"use": "sig", "kty": "RSA", "alg": "RS256", "kid": "one", "n": MODULUS, "e": "AQAB"});
    Arc::new(move |path, _| {
        let document =
            |issuer: &str| json!({"issuer": issuer, "jwks_uri": format!("{url}/keys")}).to_string();
        match path {
            "/claims/.well-known/openid-configuration" => (200, document(&format!("{url}/claims"))),
            "/expressions/documents" => (200, document(&format!("{url}/expressions"))),
            "/other/.well-known/openid-configuration" => (200, document(&format!("{url}/elsewhere"))),
            "/keys" => (200, json!({"keys": [key]}).to_string()),
            _ => (404, "none".to_owned()),
        }
    })
}

/// Of `rsa.pub`.
const MODULUS: &str = include_str!("rsa.modulus");

pub(super) fn configuration(jwt: &[Value], anonymous: Option<Value>) -> String {
    let mut configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt,
    });
    if let Some(anonymous) = anonymous {
        configuration["anonymous"] = anonymous;
    }
    configuration.to_string()
}

fn issuers(server: &HttpsServer) -> Vec<Value> {
    let url = |path: &str| format!("{}{path}", server.url);
    let authority = &server.authority;
    vec![
        json!({
            "issuer": {"url": url("/claims"), "audiences": ["us"], "certificateAuthority": authority},
            "claimValidationRules": [{"claim": "tenant", "requiredValue": "blue"}],
            "claimMappings": {
                "username": {"claim": "email", "prefix": "claims:"},
                "groups": {"claim": "roles", "prefix": "role:"}, "uid": {"claim": "id"},
            },
        }),
        json!({
            "issuer": {
                "url": url("/expressions"), "discoveryURL": url("/expressions/documents"),
                "audiences": ["us", "them"], "audienceMatchPolicy": "MatchAny", "certificateAuthority": authority,
            },
            "claimValidationRules": [
                {"expression": "claims.exp - claims.nbf <= 86400", "message": "it holds for too long"},
                {"expression": "!has(claims.email) || claims.email_verified", "message": "the address is not verified"},
            ],
            "claimMappings": {
                "username": {"expression": "'expressions:' + claims.sub"},
                "groups": {"expression": "claims.?roles.orValue([])"},
                "uid": {"expression": "claims.?id.orValue('')"},
                "extra": [
                    {"key": "example.com/tenant", "valueExpression": "claims.?tenant.orValue('')"},
                    {"key": "example.com/deep", "valueExpression": "claims.?deep.a__dot__b.orValue([''])"},
                ],
            },
            "userValidationRules": [
                {"expression": "!user.username.startsWith('system:')", "message": "nobody of the system"},
                {"expression": "user.groups.all(group, !group.startsWith('system:'))", "message": "no group of the system"},
                {"expression": "!('root' in user.extra.?example__dot__com__slash__tenant.orValue([]))", "message": "no root"},
            ],
        }),
        json!({
            "issuer": {"url": url("/other"), "audiences": ["us"], "certificateAuthority": authority},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        }),
    ]
}

/// Tokens of an issuer, good and bad.
fn tokens(issuer: &str) -> Vec<(&'static str, String)> {
    let now = Clock::real().now().as_second();
    let good = json!({
        "iss": issuer, "sub": "jane", "aud": "us", "exp": now + 600, "nbf": now - 60, "iat": now, "tenant": "blue",
        "email": "jane@example.com", "email_verified": true, "roles": ["dev", "ops"], "id": "7", "jti": "token-one",
    });
    let header = json!({"alg": "RS256", "kid": "one"});
    let sign = |name: &str, value: Value| signed(&header, &with(good.clone(), name, value));
    vec![
        ("good", signed(&header, &good)),
        ("without the name of its key", signed(&json!({"alg": "RS256"}), &good)),
        ("for several", sign("aud", json!(["others", "us"]))),
        ("for them", sign("aud", json!("them"))),
        ("for others", sign("aud", json!("others"))),
        ("for nobody", sign("aud", Value::Null)),
        ("expired", sign("exp", json!(now - 60))),
        ("that does not end", sign("exp", Value::Null)),
        ("that begins soon", sign("nbf", json!(now + 30))),
        ("that begins later", sign("nbf", json!(now + 600))),
        ("that holds for a week", sign("exp", json!(now + 7 * 86400))),
        ("of nobody", sign("sub", Value::Null)),
        ("of somebody without a name", sign("sub", json!(""))),
        ("of a number", sign("sub", json!(7))),
        ("without an address", sign("email", Value::Null)),
        ("of an address that is a list", sign("email", json!(["jane"]))),
        ("of an address that is not verified", sign("email_verified", json!(false))),
        ("of an address of which nothing is known", sign("email_verified", Value::Null)),
        ("of an address that is verified by a text", sign("email_verified", json!("true"))),
        ("of one role", sign("roles", json!("dev"))),
        ("of no role", sign("roles", Value::Null)),
        ("of roles that are none", sign("roles", json!(["dev", 7]))),
        ("of a role that is a number", sign("roles", json!(7))),
        ("of roles of the system", sign("roles", json!(["system:masters"]))),
        ("of an empty role", sign("roles", json!(["", "dev"]))),
        ("without an id", sign("id", Value::Null)),
        ("of an id that is a number", sign("id", json!(7))),
        ("of another tenant", sign("tenant", json!("red"))),
        ("of no tenant", sign("tenant", Value::Null)),
        ("of a tenant that is root", sign("tenant", json!("root"))),
        ("with more", sign("deep", json!({"a.b": ["x", "y"]}))),
        ("with something else", sign("deep", json!({"a.b": {"c": 1}}))),
        ("without an identifier", sign("jti", Value::Null)),
        ("of another key", signed(&json!({"alg": "RS256", "kid": "two"}), &good)),
        ("that claims another algorithm", signed(&json!({"alg": "RS512", "kid": "one"}), &good)),
        ("that claims a curve", signed(&json!({"alg": "ES256", "kid": "one"}), &good)),
        ("without a signature", unsigned(&json!({"alg": "none"}), &good)),
        ("signed with the public key", confused(&good)),
    ]
}

/// Who bears which token, and what a review says of it.
pub(super) async fn answers(programs: &Programs) -> Vec<String> {
    let server = HttpsServer::start(documents).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authentication.yaml");
    let anonymous = json!({"enabled": true, "conditions": [{"path": "/healthz"}, {"path": "/livez"}]});
    std::fs::write(&file, configuration(&issuers(&server), Some(anonymous))).unwrap();
    let flag = format!("--authentication-config={}", file.display());
    let environment = Environment::start(programs, &[flag.as_str()]).await;
    let mut all = Vec::new();
    for path in ["/healthz", "/livez", "/livez?verbose", "/livez/ping", "/readyz", "/version"] {
        let answer = environment.send(&Credential::default(), Method::GET, path, None).await;
        all.push(format!("anonymous at {path}: {}", answer.code));
    }
    for issuer in ["/claims", "/expressions"] {
        let url = format!("{}{issuer}", server.url);
        let (_, good) = tokens(&url).swap_remove(0);
        // The reference looks for the keys when it likes.
        environment.until(&Credential::token(&good), "/version", |answer| answer.code == 200).await;
    }
    for issuer in ["/claims", "/expressions", "/other", "/unknown"] {
        for (name, token) in tokens(&format!("{}{issuer}", server.url)) {
            all.push(format!("{issuer}, a token {name}: {}", told(&environment, &token, &server.url).await));
        }
    }
    environment.stop();
    all
}

async fn told(environment: &Environment, token: &str, url: &str) -> String {
    let review = |kind: &str, spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": kind, "spec": spec});
    let path = |kind: &str| format!("/apis/authentication.k8s.io/v1/{kind}");
    let own = review("SelfSubjectReview", json!({}));
    let answer = environment
        .send(&Credential::token(token), Method::POST, &path("selfsubjectreviews"), Some(own))
        .await;
    let reviewed = review("TokenReview", json!({"token": token}));
    let reviewed =
        environment.send(&environment.admin(), Method::POST, &path("tokenreviews"), Some(reviewed)).await;
    let status = reviewed.body["status"].to_string().replace(url, "URL");
    // Times are written in other ways.
    let status = match status.split_once("Token Expiry: ").or_else(|| status.split_once("current time ")) {
        Some((before, _)) => format!("{before}…"),
        None => status,
    };
    // A key that is not there is looked for in the end, and what comes of that depends on when.
    let status = if status.contains("not initialized") || status.contains("did not match") {
        "not ready".into()
    } else {
        status
    };
    format!("{} {}; {status}", answer.code, answer.body["status"]["userInfo"])
}
