//! Health: one answer for all checks, or one check by its name. There is one process, which answers or does not; the checks
//! are named as those who ask for single ones know them.

use crate::http::ApiBody;
use crate::http::response::{plain, respond};
use crate::request::query::Query;

use http::{Response, StatusCode};

/// The checks of `livez`, in their order.
const CHECKS: &[&str] = &[
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// `readyz` does not look at the certificate, and does at what follows the store, and at last whether it is to stop.
fn checks(endpoint: &str) -> Vec<&'static str> {
    let mut checks = CHECKS.to_vec();
    if endpoint == "readyz" {
        checks.retain(|check| *check != "loopback-serving-certificate");
        let after = checks.iter().position(|check| *check == "etcd").map_or(0, |at| at + 1);
        checks.splice(after..after, ["etcd-readiness", "informer-sync"]);
        checks.push("shutdown");
    }
    checks
}

/// The checks that fail while the store cannot be written. To start the process anew would not help, so it is alive.
const OF_THE_STORE: &[&str] = &["etcd", "etcd-readiness"];

/// Answers `/livez`, `/readyz` or `/healthz`, and what is below them.
pub(crate) fn answer(endpoint: &str, check: &str, query: &Query, can_write: bool) -> Response<ApiBody> {
    let checks = checks(endpoint);
    let excluded = |check: &str| query.all("exclude").any(|excluded| excluded == check);
    let fails = |check: &str| endpoint == "readyz" && !can_write && OF_THE_STORE.contains(&check);
    if !check.is_empty() {
        return match checks.contains(&check) {
            true if fails(check) => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal server error: the store cannot be written\n",
            ),
            true => plain(StatusCode::OK, "ok"),
            false => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        };
    }
    let failed = checks.iter().any(|check| fails(check) && !excluded(check));
    if !failed && query.get("verbose").is_none() {
        return plain(StatusCode::OK, "ok");
    }
    let mut unknown: Vec<&str> = query.all("exclude").filter(|name| !checks.contains(name)).collect();
    unknown.sort_unstable();
    let mut text = String::new();
    for check in &checks {
        text.push_str(&match (excluded(check), fails(check)) {
            (true, _) => format!("[+]{check} excluded: ok\n"),
            (false, true) => format!("[-]{check} failed: reason withheld\n"),
            (false, false) => format!("[+]{check} ok\n"),
        });
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        text.push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
    }
    let (code, outcome) = match failed {
        true => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        false => (StatusCode::OK, "passed"),
    };
    text.push_str(&format!("{endpoint} check {outcome}\n"));
    respond(code, "text/plain; charset=utf-8", ApiBody::full(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(endpoint: &str, check: &str, query: &str) -> (u16, String) {
        asked_while(true, endpoint, check, query)
    }

    fn asked_while(can_write: bool, endpoint: &str, check: &str, query: &str) -> (u16, String) {
        let response = answer(endpoint, check, &Query::parse(query), can_write);
        let body = response.body().bytes().expect("a whole body").to_vec();
        (response.status().as_u16(), String::from_utf8(body).expect("text"))
    }

    #[test]
    fn a_server_whose_store_cannot_be_written_is_alive_and_not_ready() {
        let asked = |endpoint, check, query| asked_while(false, endpoint, check, query);
        let (code, text) = asked("readyz", "", "");
        assert_eq!(code, 500);
        assert!(text.starts_with("[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n"), "{text}");
        assert!(text.ends_with("readyz check failed\n"), "{text}");
        assert_eq!((asked("readyz", "etcd", "").0, asked("readyz", "ping", "").0), (500, 200));
        assert_eq!(asked("readyz", "", "exclude=etcd&exclude=etcd-readiness"), (200, "ok".to_owned()));
        assert_eq!(asked("livez", "", ""), (200, "ok".to_owned()));
    }

    #[test]
    fn checks_are_known_by_their_names() {
        assert_eq!(asked("livez", "", "").1, "ok");
        assert_eq!(asked("livez", "ping", "").0, 200);
        assert_eq!(asked("livez", "none", "").0, 404);
        assert_eq!(asked("livez", "informer-sync", "").0, 404);
        assert_eq!(asked("readyz", "informer-sync", "").0, 200);
        let (_, text) = asked("livez", "", "verbose&exclude=ping&exclude=nope");
        assert!(text.starts_with("[+]ping excluded: ok\n[+]log ok\n"), "{text}");
        assert!(text.ends_with("no matches for \"nope\"\nlivez check passed\n"), "{text}");
    }
}
