//! What the API server is to know of webhooks: where they are and whom to trust. Pure.

use super::hook::{Sort, Webhook};
use super::server::CONVERT;
use super::serving::{BaseUrl, Reached, WebhookServer};
use super::versions::Conversions;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The kinds of webhook configurations, by what their webhooks do.
pub(super) const KINDS: [(Sort, &str, &str); 2] = [
    (Sort::Validating, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    (Sort::Defaulting, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
];

/// Where webhooks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Service { name: String, namespace: String },
    Url(BaseUrl),
}

impl Address {
    /// Where a path is, and whom to trust, as PEM.
    pub(super) fn client_config(&self, path: &str, trusted: &str) -> Value {
        let bundle = STANDARD.encode(trusted);
        match self {
            Self::Service { name, namespace } => {
                json!({ "service": { "name": name, "namespace": namespace, "path": path }, "caBundle": bundle })
            }
            Self::Url(base) => json!({ "url": format!("{base}{path}"), "caBundle": bundle }),
        }
    }

    /// A whole webhook configuration.
    pub(super) fn configuration(
        &self,
        sort: Sort,
        name: &str,
        webhooks: &[Webhook],
        trusted: &str,
    ) -> Option<Value> {
        let kind = KINDS.iter().find(|(one, ..)| *one == sort).map(|(_, kind, _)| *kind)?;
        let of_sort = webhooks.iter().filter(|one| one.sort == sort);
        let all: Vec<Value> = of_sort
            .map(|one| {
                let mut configuration = one.configuration();
                configuration["clientConfig"] = self.client_config(&one.path(), trusted);
                configuration
            })
            .collect();
        (!all.is_empty()).then(|| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "windlass" } },
                "webhooks": all,
            })
        })
    }

    /// The `spec.conversion` of a CRD.
    pub(super) fn conversion(&self, trusted: &str) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": self.client_config(CONVERT, trusted),
                "conversionReviewVersions": ["v1"],
            },
        })
    }
}

/// The operations of a JSON patch that fill in whom to trust where a configuration leads to this Service; and the paths that it lacks.
pub(super) fn fill_in(
    live: &Value,
    address: &Address,
    webhooks: &[Webhook],
    sort: Sort,
    trusted: &str,
) -> (Vec<Value>, Vec<String>) {
    let configured: Vec<&Value> = live["webhooks"].as_array().into_iter().flatten().collect();
    let (mut operations, mut lacking) = (Vec::new(), Vec::new());
    for webhook in webhooks.iter().filter(|one| one.sort == sort) {
        let wanted = address.client_config(&webhook.path(), trusted);
        let leads_here = |one: &&Value| is_within(&wanted["service"], &one["clientConfig"]["service"]);
        match configured.iter().position(leads_here) {
            None => lacking.push(webhook.path()),
            Some(place) if configured[place]["clientConfig"]["caBundle"] == wanted["caBundle"] => {}
            Some(place) => operations.push(json!({
                "op": "add", "path": format!("/webhooks/{place}/clientConfig/caBundle"), "value": wanted["caBundle"],
            })),
        }
    }
    (operations, lacking)
}

/// Whether all of one value is in another, which may have more fields.
pub(super) fn is_within(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| is_within(value, live)))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted.iter().zip(live).all(|(wanted, live)| is_within(wanted, live))
        }
        (wanted, live) => wanted == live,
    }
}

/// What `describe` says of webhooks; nothing where there are none.
pub(crate) fn described(webhooks: &[Webhook], conversions: &[Conversions]) -> Option<Value> {
    let of = |sort: Sort| -> Vec<Value> {
        webhooks.iter().filter(|one| one.sort == sort).map(Webhook::configuration).collect()
    };
    let conversions: Vec<String> = conversions.iter().map(Conversions::definition).collect();
    (!webhooks.is_empty() || !conversions.is_empty()).then(|| {
        json!({ "validating": of(Sort::Validating), "mutating": of(Sort::Defaulting), "conversions": conversions })
    })
}

/// The rules that a manager needs to make its webhooks known, and to share its certificates.
pub(crate) fn rules(
    server: &WebhookServer,
    program: &str,
    webhooks: &[Webhook],
    conversions: &[Conversions],
) -> Vec<Value> {
    let rule = |group: &str, resource: &str, verbs: &[&str], names: &[String]| {
        let mut rule = json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    };
    let name = [server.configuration_name(program, webhooks)];
    let (mut rules, by_url) = (Vec::new(), matches!(server.reached, Reached::Url(_)));
    if matches!(server.reached, Reached::Certificates(_)) {
        return rules;
    }
    if let Reached::Service { name, .. } = &server.reached {
        rules.push(rule("", "secrets", &["create"], &[]));
        rules.push(rule("", "secrets", &["get", "patch"], &[name.clone(), format!("{name}-ca")]));
    }
    for (sort, _, resource) in KINDS {
        if by_url {
            rules.push(rule("admissionregistration.k8s.io", resource, &["create"], &[]));
            rules.push(rule("admissionregistration.k8s.io", resource, &["delete", "get", "update"], &name));
        } else if webhooks.iter().any(|one| one.sort == sort) {
            rules.push(rule("admissionregistration.k8s.io", resource, &["get", "patch"], &name));
        }
    }
    if !conversions.is_empty() {
        let names: Vec<String> = conversions.iter().map(Conversions::definition).collect();
        rules.push(rule("apiextensions.k8s.io", "customresourcedefinitions", &["get", "patch"], &names));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::Request;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn webhook() -> Webhook {
        Webhook::validating(|_: &ConfigMap, _: &Request<ConfigMap>| ())
    }

    #[test]
    fn whom_to_trust_is_filled_in_where_the_service_is_ours() {
        let address = Address::Service { name: "s".into(), namespace: "n".into() };
        let service = |path: &str| json!({"clientConfig": {"service": {"name": "s", "namespace": "n", "path": path, "port": 443}}});
        let live = json!({"webhooks": [service("/other"), service("/validate-v1-configmap")]});
        let fill = |live: &Value| fill_in(live, &address, &[webhook()], Sort::Validating, "pem");
        let added = json!({"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "cGVt"});
        assert_eq!(fill(&live), (vec![added], vec![]));
        let mut told = live.clone();
        told["webhooks"][1]["clientConfig"]["caBundle"] = "cGVt".into();
        assert_eq!(fill(&told), (vec![], vec![]));
        assert_eq!(fill(&json!({})), (vec![], vec!["/validate-v1-configmap".to_owned()]));
    }

    #[test]
    fn what_the_api_server_defaults_is_no_difference() {
        let wanted = json!({"a": [{"b": 1}]});
        assert!(is_within(&wanted, &json!({"a": [{"b": 1, "c": 2}], "d": 1})));
        assert!(
            !is_within(&wanted, &json!({"a": [{"b": 1}, {"b": 1}]}))
                && !is_within(&wanted, &json!({"a": [{}]}))
        );
    }

    #[test]
    fn rules_name_what_they_are_for() {
        let rules = rules(&WebhookServer::behind_service("s"), "p", &[webhook()], &[]);
        let expected = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"], "resourceNames": ["s", "s-ca"]},
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
             "verbs": ["get", "patch"], "resourceNames": ["s"]},
        ]);
        assert_eq!(Value::from(rules), expected);
    }
}
