//! An admission webhook: a typed function, and when the API server asks it.

use super::admission::Admission;
use super::patch;
use super::request::{Operation, Request, User};
use crate::error_chain::chain;
use crate::kind::{Kind, Object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What the API server waits at most, by its own rule.
const LONGEST: Duration = Duration::from_secs(30);

/// An admission webhook: a typed function, and when the API server asks it. See [the module](crate::webhook).
///
/// It is asked before an object is created or updated, unless [`Webhook::on`] says otherwise. If it does not answer, because no replica
/// runs or it panicked, the request of the user fails, unless [`Webhook::ignore_failures`] says otherwise.
#[derive(Clone)]
pub struct Webhook {
    pub(super) kind: Kind,
    pub(super) sort: Sort,
    name: Option<String>,
    operations: Vec<Operation>,
    subresource: Option<String>,
    failure_policy: &'static str,
    match_policy: &'static str,
    reinvocation_policy: &'static str,
    timeout: Duration,
    object_selector: Option<LabelSelector>,
    namespace_selector: Option<LabelSelector>,
    match_conditions: Vec<(String, String)>,
    decide: Arc<Decide>,
}

/// What an erased handler says, with its patch; or why it could not be asked.
type Decide = dyn Fn(&Asked) -> Result<Decided, String> + Send + Sync;

/// What a handler said, and changed.
pub(super) type Decided = (Admission, Vec<Value>);

/// Whether it validates, or sets defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Defaulting,
    Validating,
}

/// The `request` of an AdmissionReview.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    pub(super) uid: String,
    operation: Operation,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    user_info: User,
    namespace: Option<String>,
    name: Option<String>,
    sub_resource: Option<String>,
    dry_run: Option<bool>,
}

impl Webhook {
    /// Asks whether an object may be as it is, after all defaults are set. For a deletion the handler is given the object that is to be
    /// deleted.
    pub fn validating<K: Object, A: Into<Admission>>(
        handler: impl Fn(&K, &Request<K>) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::new::<K>(Sort::Validating, move |asked| {
            let request = asked.request::<K>()?;
            let about = if asked.operation == Operation::Delete { &asked.old_object } else { &asked.object };
            let object = decode::<K>(about)?;
            Ok((handler(&object, &request).into(), Vec::new()))
        })
    }

    /// Sets defaults. The handler may also refuse, but validating webhooks look again after everybody's defaults are set.
    pub fn defaulting<K: Object, A: Into<Admission>>(
        handler: impl Fn(&mut K, &Request<K>) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::new::<K>(Sort::Defaulting, move |asked| {
            let request = asked.request::<K>()?;
            let mut object = decode::<K>(&asked.object)?;
            let before = encode(&object)?;
            let said = handler(&mut object, &request).into();
            let patch = patch::patch(&asked.object, &before, &encode(&object)?);
            Ok((said, patch))
        })
    }

    fn new<K: Object>(
        sort: Sort,
        decide: impl Fn(&Asked) -> Result<Decided, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind: Kind::of::<K>(),
            sort,
            name: None,
            operations: vec![Operation::Create, Operation::Update],
            subresource: None,
            failure_policy: "Fail",
            match_policy: "Equivalent",
            reinvocation_policy: "Never",
            timeout: Duration::from_secs(10),
            object_selector: None,
            namespace_selector: None,
            match_conditions: Vec::new(),
            decide: Arc::new(decide),
        }
    }

    /// Tells several of one kind apart: lower-case letters, digits and `-`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Asked before these operations, instead of before the object is created or updated.
    #[must_use]
    pub fn on(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.operations = operations.into_iter().collect();
        self
    }

    /// Asked about this subresource, such as `status`, instead of the object itself.
    #[must_use]
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// If it does not answer, requests go on without it.
    #[must_use]
    pub fn ignore_failures(mut self) -> Self {
        self.failure_policy = "Ignore";
        self
    }

    /// Asked only about requests that name exactly this version of the kind. Otherwise the API server converts what is in another.
    #[must_use]
    pub fn exact_version(mut self) -> Self {
        self.match_policy = "Exact";
        self
    }

    /// A defaulting webhook is asked again if a later one changed the object.
    #[must_use]
    pub fn reinvoked_if_needed(mut self) -> Self {
        self.reinvocation_policy = "IfNeeded";
        self
    }

    /// How long it may take, in whole seconds: 10 s unless said, and at most 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.clamp(Duration::from_secs(1), LONGEST);
        self
    }

    /// Asked only about objects with such labels, before or after the change.
    #[must_use]
    pub fn objects(mut self, selector: LabelSelector) -> Self {
        self.object_selector = Some(selector);
        self
    }

    /// Asked only about objects in namespaces with such labels.
    #[must_use]
    pub fn namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespace_selector = Some(selector);
        self
    }

    /// Asked only if this CEL expression holds, such as `!('system:nodes' in request.userInfo.groups)`. The name tells conditions apart.
    #[must_use]
    pub fn only_if(mut self, name: impl Into<String>, expression: impl Into<String>) -> Self {
        self.match_conditions.push((name.into(), expression.into()));
        self
    }

    /// What the handler says. `Err` when the object is none of its kind.
    pub(super) fn decide(&self, asked: &Asked) -> Result<Decided, String> {
        (self.decide)(asked)
    }

    /// The path that it is served at: that of controller-runtime, so that its dashboards read well.
    pub(crate) fn path(&self) -> String {
        let sort = match self.sort {
            Sort::Defaulting => "mutate",
            Sort::Validating => "validate",
        };
        let group = self.kind.group.replace('.', "-");
        let mut parts = vec![sort, &group, &self.kind.version, &self.kind.kind];
        parts.extend(self.name.as_deref());
        parts.extend(self.subresource.as_deref());
        let parts: Vec<String> =
            parts.into_iter().filter(|part| !part.is_empty()).map(str::to_lowercase).collect();
        format!("/{}", parts.join("-"))
    }

    /// Its name in the configuration: unique, and a domain name of at least three parts.
    fn qualified_name(&self) -> String {
        let Kind { group, version, plural, .. } = &self.kind;
        let name = self.name.as_deref().unwrap_or(match self.sort {
            Sort::Defaulting => "default",
            Sort::Validating => "validate",
        });
        let name = match &self.subresource {
            Some(subresource) => format!("{name}-{subresource}"),
            None => name.to_owned(),
        };
        let group = if group.is_empty() { "core" } else { group };
        format!("{name}.{version}.{plural}.{group}")
    }

    /// What the API server is told of it, except where it is: there is only its path.
    pub(super) fn configuration(&self) -> Value {
        let resource = match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.kind.plural),
            None => self.kind.plural.to_string(),
        };
        let operations: Vec<&str> = self.operations.iter().map(|one| one.as_str()).collect();
        let mut configuration = json!({
            "name": self.qualified_name(),
            "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": { "path": self.path() } },
            "rules": [{
                "apiGroups": [self.kind.group], "apiVersions": [self.kind.version], "resources": [resource],
                "operations": operations, "scope": if self.kind.namespaced { "Namespaced" } else { "Cluster" },
            }],
            "failurePolicy": self.failure_policy,
            "matchPolicy": self.match_policy,
            // Handlers are pure: what they decide about has not happened yet, and may never do.
            "sideEffects": "None",
            "timeoutSeconds": self.timeout.as_secs(),
        });
        if self.sort == Sort::Defaulting {
            configuration["reinvocationPolicy"] = self.reinvocation_policy.into();
        }
        for (field, selector) in
            [("objectSelector", &self.object_selector), ("namespaceSelector", &self.namespace_selector)]
        {
            if let Some(selector) = selector {
                configuration[field] = json!(selector);
            }
        }
        if !self.match_conditions.is_empty() {
            let condition =
                |(name, expression): &(String, String)| json!({ "name": name, "expression": expression });
            configuration["matchConditions"] = self.match_conditions.iter().map(condition).collect();
        }
        configuration
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Asked {
    fn request<K: Object>(&self) -> Result<Request<K>, String> {
        let old = match (self.operation, &self.old_object) {
            (Operation::Update, old) if !old.is_null() => Some(decode::<K>(old)?),
            _ => None,
        };
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Ok(Request::of(self.operation, old)
            .by(self.user_info.clone())
            .about(given(&self.namespace), given(&self.name))
            .of_subresource(given(&self.sub_resource))
            .dry_run_is(self.dry_run.unwrap_or(false)))
    }
}

fn decode<K: Object>(object: &Value) -> Result<K, String> {
    let kind = Kind::of::<K>();
    let (version, wanted) = (object["apiVersion"].as_str().unwrap_or_default(), kind.api_version());
    if version != wanted || object["kind"] != *kind.kind {
        let found = object["kind"].as_str().unwrap_or_default();
        return Err(format!(
            "this webhook is for {} ({wanted}), and the object is a {found:?} ({version:?})",
            kind.kind
        ));
    }
    K::deserialize(object).map_err(|error| {
        format!("the object is not understood as {} ({wanted}): {}", kind.kind, chain(&error))
    })
}

fn encode<K: Object>(object: &K) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|error| format!("the object cannot be written: {}", chain(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;

    #[test]
    fn a_webhook_is_named_by_its_kind_and_what_tells_it_apart() {
        let plain = Webhook::validating(|_: &Deployment, _: &Request<Deployment>| ());
        assert_eq!(plain.path(), "/validate-apps-v1-deployment");
        assert_eq!(plain.configuration()["name"], "validate.v1.deployments.apps");
        let status =
            Webhook::defaulting(|_: &mut Pod, _: &Request<Pod>| ()).named("limits").subresource("status");
        assert_eq!(status.path(), "/mutate-v1-pod-limits-status");
        assert_eq!(status.configuration()["name"], "limits-status.v1.pods.core");
        assert_eq!(status.configuration()["rules"][0]["resources"], json!(["pods/status"]));
    }
}
