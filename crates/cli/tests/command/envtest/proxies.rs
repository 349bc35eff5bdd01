//! Front proxies: whom they name, and who is believed to be one.

use super::credentials::{Credential, Validity};
use super::environment::{Environment, Programs};
use http::Method;
use serde_json::{Value, json};

const FLAGS: [&str; 6] = [
    "--requestheader-client-ca-file=DIR/proxy-ca.crt",
    "--requestheader-allowed-names=front-proxy,other-proxy",
    "--requestheader-username-headers=X-Remote-User,X-Other-User",
    "--requestheader-uid-headers=X-Remote-Uid",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
];

fn headers(all: &[(&'static str, &str)]) -> Credential {
    let header = |(name, value): &(&'static str, &str)| Credential::header(name, *value);
    all.iter().map(header).fold(Credential::default(), Credential::and)
}

/// Certificates, by what is said of them.
fn certificates(environment: &Environment) -> Vec<(&'static str, Credential)> {
    let (clients, proxies) = (&environment.authority, &environment.proxy_authority);
    vec![
        ("no certificate", Credential::default()),
        ("a proxy's", Credential::certificate(proxies.client("front-proxy", None, Validity::Now))),
        ("another proxy's", Credential::certificate(proxies.client("other-proxy", None, Validity::Now))),
        ("of an unknown name", Credential::certificate(proxies.client("nobody", None, Validity::Now))),
        ("an expired proxy's", Credential::certificate(proxies.client("front-proxy", None, Validity::Past))),
        ("a server's", Credential::certificate(proxies.server("front-proxy"))),
        ("a client's", Credential::certificate(clients.client("front-proxy", Some("devs"), Validity::Now))),
    ]
}

/// What is said in headers.
fn said() -> Vec<(&'static str, Credential)> {
    vec![
        ("nothing", Credential::default()),
        ("a user", headers(&[("x-remote-user", "jane")])),
        ("a user in another header", headers(&[("x-other-user", "joe")])),
        ("two users", headers(&[("x-other-user", "joe"), ("x-remote-user", "jane")])),
        ("an empty user", headers(&[("x-remote-user", "")])),
        ("groups", headers(&[("x-remote-group", "system:masters")])),
        (
            "a user with groups",
            headers(&[("x-remote-user", "jane"), ("x-remote-group", "a"), ("x-remote-group", "b")]),
        ),
        (
            "a user who is authenticated",
            headers(&[
                ("x-remote-user", "jane"),
                ("x-remote-group", "system:authenticated"),
                ("x-remote-group", "b"),
            ]),
        ),
        ("a master", headers(&[("x-remote-user", "root"), ("x-remote-group", "system:masters")])),
        ("anonymous", headers(&[("x-remote-user", "system:anonymous")])),
        ("a UID", headers(&[("x-remote-user", "jane"), ("x-remote-uid", "7")])),
        (
            "more of a user",
            headers(&[
                ("x-remote-user", "jane"),
                ("x-remote-extra-Scopes", "a"),
                ("x-remote-extra-scopes", "b"),
                ("x-remote-extra-example.com%2Fid", "c"),
                ("x-remote-extra-bad%zz", "d"),
            ]),
        ),
        ("a user and a token", headers(&[("x-remote-user", "jane")]).and(Credential::token("bob-token"))),
        ("a wrong token", headers(&[("x-remote-user", "jane")]).and(Credential::token("wrong"))),
    ]
}

/// Who everybody is, by what they show and say.
pub(super) async fn answers(programs: &Programs) -> Vec<String> {
    let environment = Environment::start(programs, &FLAGS).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let mut all = Vec::new();
    for (shown, certificate) in certificates(&environment) {
        for (said, headers) in said() {
            let who = headers.and(certificate.clone());
            let answer = environment.send(&who, Method::POST, path, Some(review.clone())).await;
            let mut user = answer.body["status"]["userInfo"].clone();
            if let Some(extra) = user.get_mut("extra").and_then(Value::as_object_mut) {
                extra.remove("authentication.kubernetes.io/credential-id");
            }
            all.push(format!("{shown}, {said}: {} {user}", answer.code));
        }
    }
    all.push(published(&environment).await);
    environment.stop();
    all
}

/// What other API servers are told, without the certificates themselves.
async fn published(environment: &Environment) -> String {
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    environment.until(&environment.admin(), path, |answer| answer.code == 200).await;
    let map = environment.send(&environment.admin(), Method::GET, path, None).await;
    let data = map.body["data"].as_object().unwrap();
    let told = data.iter().map(|(name, value)| match value.as_str() {
        Some(text) if text.contains("BEGIN CERTIFICATE") => format!("{name}: a certificate"),
        text => format!("{name}: {}", text.unwrap_or_default()),
    });
    told.collect::<Vec<_>>().join("; ")
}
