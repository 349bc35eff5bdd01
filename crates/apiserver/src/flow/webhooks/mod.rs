//! Admission webhooks during a write: which of them it concerns, in which order they are asked, and what becomes of their answers.
//!
//! - `matching`: which webhooks a request concerns, and in which version of its resource; `conditions`: their match conditions
//! - `request`: the request as reviews and conditions show it
//! - `mutating`, `validating`: the order, and the answers
//!
//! They are asked once per attempt of the compare-and-swap, and each for no longer than the request has time.

mod conditions;
mod matching;
mod mutating;
mod request;
mod validating;

pub(super) use conditions::ask_authorizer;
pub(super) use matching::{Invocation, matched};
pub(super) use mutating::{Rounds, decoded, mutate};
pub(super) use request::{kind_of, shown_request};
pub(crate) use validating::validate;

use crate::admission_plugins::AdmissionPlugin;
use crate::admission_webhooks::{NoAnswer, Question, Reply, Webhook};
use crate::object::{text, uid};
use crate::operation::Operation;
use crate::status::Status;
use serde_json::{Map, Value, json};
use windlass_schema::AuthorizerCheck;

/// What is being done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
    Delete,
    Connect,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A request, as webhooks are told of it.
pub(crate) struct Admitted<'a> {
    pub(crate) operation: &'a Operation<'a>,
    pub(crate) verb: Verb,
    /// Of the path, or of what is created; empty if there is none yet.
    pub(crate) name: String,
    /// Empty for what is in none; a namespace is in itself.
    pub(crate) namespace: String,
    /// What the object was, if it was.
    pub(crate) old: Option<&'a Value>,
    /// The options of the request, as its API has them.
    pub(crate) options: Value,
}

impl<'a> Admitted<'a> {
    /// A write: of `object`, which was `old`, if it was.
    pub(crate) fn write(operation: &'a Operation<'a>, object: &Value, old: Option<&'a Value>) -> Self {
        let (verb, kind) = match old {
            Some(_) => (Verb::Update, "UpdateOptions"),
            None => (Verb::Create, "CreateOptions"),
        };
        let name = match operation.name.as_str() {
            "" => text(object, &["metadata", "name"]),
            name => name,
        };
        let mut options = Map::new();
        let given = &operation.options;
        for (field, value) in
            [("fieldManager", &given.field_manager), ("fieldValidation", &given.field_validation)]
        {
            if !value.is_empty() {
                options.insert(field.to_owned(), json!(value));
            }
        }
        if given.dry_run {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        Self::new(operation, verb, name, old, options_of(kind, options))
    }

    /// The deletion of `old`; `given` is how it is asked for.
    pub(crate) fn delete(operation: &'a Operation<'a>, old: &'a Value, given: &Value) -> Self {
        let options = given.as_object().cloned().unwrap_or_default();
        let options = options_of("DeleteOptions", options);
        Self::new(operation, Verb::Delete, &operation.name, Some(old), options)
    }

    pub(super) fn new(
        operation: &'a Operation<'a>,
        verb: Verb,
        name: &str,
        old: Option<&'a Value>,
        options: Value,
    ) -> Self {
        let resource = &operation.resource;
        let namespace = match resource.group.is_empty() && resource.plural == "namespaces" {
            true => name,
            false => &operation.namespace,
        };
        Self { operation, verb, name: name.to_owned(), namespace: namespace.to_owned(), old, options }
    }

    /// Whether no webhook is asked: about what the server writes unasked, and about kinds by which a webhook could keep itself
    /// from being removed.
    fn is_exempt(&self) -> bool {
        const EXEMPT: [&str; 6] = [
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ];
        let resource = &self.operation.resource;
        resource.group == "admissionregistration.k8s.io" && EXEMPT.contains(&resource.plural.as_str())
    }

    /// What the request is about, as an authorizer is asked.
    pub(super) fn request_resource(&self) -> AuthorizerCheck {
        let operation = self.operation;
        AuthorizerCheck {
            group: operation.resource.group.clone(),
            resource: operation.resource.plural.clone(),
            subresource: operation.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..AuthorizerCheck::default()
        }
    }

    /// Adds audit annotations of a webhook.
    fn annotate(&self, webhook: &Webhook, reply: &Reply) {
        let Some(audited) = &self.operation.audited else { return };
        for (key, value) in &reply.audit_annotations {
            audited.annotate_admission(&format!("{}/{key}", webhook.name), value);
        }
    }

    /// Asks a webhook about an object.
    async fn ask(
        &self,
        invocation: &Invocation,
        object: Option<&Value>,
        old: Option<&Value>,
        mutating: bool,
    ) -> Result<Reply, Unanswered> {
        let webhook = &invocation.webhook;
        let operation = self.operation;
        let mut request = shown_request(&invocation.resource, self);
        request["object"] = json!(object);
        request["oldObject"] = json!(old);
        let question = Question::new(webhook, request, uid()).map_err(|why| {
            let why = format!("could not create admission objects: {why}");
            Unanswered::Call(NoAnswer { why, code: 400 })
        })?;
        let left = operation.time_left();
        let webhooks = &operation.api.webhooks;
        let reply = webhooks.ask(webhook, &question, mutating, webhook.timeout.min(left)).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(no_answer) => {
                // What the request has no time for is no fault of the webhook.
                operation.in_time().map_err(Unanswered::Late)?;
                return Err(Unanswered::Call(no_answer));
            }
        };
        operation.warn(reply.warnings.clone());
        self.annotate(webhook, &reply);
        Ok(reply)
    }
}

/// Why there is no answer.
enum Unanswered {
    Call(NoAnswer),
    /// The request ran out of time.
    Late(Status),
}

fn options_of(kind: &str, mut options: Map<String, Value>) -> Value {
    options.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
    options.insert("kind".to_owned(), json!(kind));
    options.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
    Value::Object(options)
}

/// Whether mutating webhooks are to be asked, if there are any.
pub(super) fn mutates(operation: &Operation<'_>) -> bool {
    asks(operation, AdmissionPlugin::MutatingAdmissionWebhook)
}

pub(super) fn asks(operation: &Operation<'_>, plugin: AdmissionPlugin) -> bool {
    operation.asks_webhooks && !operation.api.disabled_admission_plugins.contains(plugin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Api, Config, Identity};
    use bytes::Bytes;
    use http::Request;
    use http_body_util::Full;
    use tower::Service as _;

    async fn sent(api: &Api, method: &str, path: &str, body: Value) -> u16 {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        api.service(Identity::admin()).call(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_request_ends_in_its_own_time_however_long_a_webhook_takes() {
        const MAPS: &str = "/api/v1/namespaces/default/configmaps";
        // It is connected to, and says nothing.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", silent.local_addr().unwrap());
        let api = Api::new(Config::default());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "silent"},
            "webhooks": [{
                "name": "silent.example.com", "clientConfig": {"url": url}, "failurePolicy": "Ignore",
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            }],
        });
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        assert_eq!(sent(&api, "POST", path, configuration).await, 201);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert_eq!(sent(&api, "POST", &format!("{MAPS}?timeout=200ms"), map.clone()).await, 504);
        assert_eq!(sent(&api, "GET", &format!("{MAPS}/a"), Value::Null).await, 404);
        assert_eq!(sent(&api, "DELETE", &format!("{path}/silent"), Value::Null).await, 200);
        assert_eq!(sent(&api, "POST", MAPS, map).await, 201);
    }
}
