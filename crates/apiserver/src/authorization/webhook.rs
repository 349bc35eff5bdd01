//! The webhook authorizer: asks another server, by a SubjectAccessReview, and remembers the answer for a while.

use super::{Attributes, On, Refusal};
use crate::client::{Answered, Endpoint, InvalidKubeconfig};
use crate::request::Identity;
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use windlass_clock::{Clock, Moment};
use windlass_schema::field::aggregate;
use windlass_schema::selector::{Fields, LabelOperator, Labels};
use windlass_schema::{Expression, Schema, VariableType};

/// How many answers are remembered.
const REMEMBERED: usize = 8192;

/// What is longer is not remembered: a client chooses what it asks for.
const LONGEST_REMEMBERED: usize = 10_000;

/// How often it is asked, if it says that it failed, and how long to wait in between; each wait is half as long again.
const ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// What counts when the webhook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    /// The other authorizers decide.
    NoOpinion,
    /// It is denied.
    Deny,
}

/// The version of the reviews that a webhook understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// How a webhook is asked, and what its answers are good for.
pub(crate) struct WebhookSettings {
    pub(crate) authorized_ttl: Duration,
    pub(crate) unauthorized_ttl: Duration,
    pub(crate) timeout: Duration,
    pub(crate) version: ReviewVersion,
    pub(crate) failure_policy: FailurePolicy,
    /// It is only asked about requests for which all of these hold.
    pub(crate) match_conditions: Vec<Expression>,
}

/// An authorizer of another server, as `--authorization-webhook-config-file` or an AuthorizationConfiguration names it. Clones
/// share what they remember.
#[derive(Clone)]
pub struct WebhookAuthorizer(Arc<Inner>);

struct Inner {
    settings: WebhookSettings,
    endpoint: Endpoint,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    known: HashMap<String, (ReviewStatus, Moment)>,
    /// In the order in which they were given.
    order: VecDeque<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    allowed: bool,
    denied: bool,
    reason: String,
}

impl WebhookAuthorizer {
    /// Asks where a kubeconfig leads.
    pub(crate) fn new(kubeconfig: &Path, settings: WebhookSettings) -> Result<Self, InvalidKubeconfig> {
        let endpoint = Endpoint::from_kubeconfig(kubeconfig, settings.timeout)?;
        Ok(Self(Arc::new(Inner { settings, endpoint, answers: Mutex::default() })))
    }

    /// Why it is allowed, or why not.
    pub(super) async fn authorize(&self, asked: &Attributes<'_>) -> Result<String, Refusal> {
        let settings = &self.0.settings;
        let spec = spec(asked);
        match matches(&settings.match_conditions, &spec) {
            Ok(true) => {}
            Ok(false) => return Err(Refusal::default()),
            Err(error) => return Err(self.failed(error)),
        }
        let key = spec.to_string();
        let remembered = self.0.answers.lock().get(&key);
        let status = match remembered {
            Some(status) => status,
            None => {
                let status = self.ask(&spec).await.map_err(|error| {
                    tracing::warn!(%error, "an authorization webhook failed");
                    self.failed(error)
                })?;
                let ttl = if status.allowed { settings.authorized_ttl } else { settings.unauthorized_ttl };
                if length(asked) < LONGEST_REMEMBERED && !ttl.is_zero() {
                    self.0.answers.lock().put(key, status.clone(), ttl);
                }
                status
            }
        };
        let ReviewStatus { allowed, denied, reason } = status;
        let error = match allowed && denied {
            true => "webhook subject access review returned both allow and deny response".to_owned(),
            false => String::new(),
        };
        if allowed && !denied { Ok(reason) } else { Err(Refusal { denied, reason, error }) }
    }

    fn failed(&self, error: String) -> Refusal {
        let denied = self.0.settings.failure_policy == FailurePolicy::Deny;
        Refusal { denied, reason: String::new(), error }
    }

    async fn ask(&self, spec: &Value) -> Result<ReviewStatus, String> {
        let Inner { settings, endpoint, .. } = &*self.0;
        let (version, spec) = match settings.version {
            ReviewVersion::V1 => ("authorization.k8s.io/v1", spec.clone()),
            ReviewVersion::V1Beta1 => ("authorization.k8s.io/v1beta1", as_v1beta1(spec)),
        };
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": version, "metadata": {}, "spec": spec,
            "status": {"allowed": false},
        });
        let body = Bytes::from(review.to_string());
        let mut wait = FIRST_WAIT;
        let mut attempt = 1;
        loop {
            let answered = endpoint.client.post_json(&endpoint.url, body.clone()).await;
            let (why, again) = match answered {
                Ok(answered) if answered.status.is_success() => return read(&answered),
                Ok(answered) => {
                    let again = answered.retry_after
                        || matches!(
                            answered.status,
                            StatusCode::INTERNAL_SERVER_ERROR
                                | StatusCode::TOO_MANY_REQUESTS
                                | StatusCode::GATEWAY_TIMEOUT
                        );
                    (refused(&answered), again)
                }
                Err(error) => (error.to_string(), error.broke),
            };
            if !again || attempt == ATTEMPTS {
                return Err(why);
            }
            attempt += 1;
            Clock::real().sleep(wait).await;
            wait = wait * 3 / 2;
        }
    }
}

impl fmt::Debug for WebhookAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookAuthorizer").field("url", &self.0.endpoint.url).finish_non_exhaustive()
    }
}

impl Answers {
    fn get(&self, key: &str) -> Option<ReviewStatus> {
        let (status, until) = self.known.get(key)?;
        (Clock::real().moment() < *until).then(|| status.clone())
    }

    fn put(&mut self, key: String, status: ReviewStatus, ttl: Duration) {
        let until = Clock::real().moment() + ttl;
        if self.known.insert(key.clone(), (status, until)).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }
}

fn read(answered: &Answered) -> Result<ReviewStatus, String> {
    #[derive(Deserialize)]
    struct Review {
        kind: String,
        #[serde(default)]
        status: ReviewStatus,
    }
    let review: Review = serde_json::from_slice(&answered.body).map_err(|error| error.to_string())?;
    match review.kind.as_str() {
        "SubjectAccessReview" => Ok(review.status),
        kind => Err(format!("the webhook answered with a {kind}, not with a SubjectAccessReview")),
    }
}

/// Why a webhook did not answer, in the words of Kubernetes' clients.
fn refused(answered: &Answered) -> String {
    let code = answered.status.as_u16();
    let reason = answered.status.canonical_reason().unwrap_or_default();
    let body = String::from_utf8_lossy(&answered.body);
    format!("the webhook answered {code} {reason}: {}", body.trim())
}

/// How much of it a client chooses.
fn length(asked: &Attributes<'_>) -> usize {
    match asked.on {
        On::Path(path) => path.len(),
        On::Resource(on) => [on.namespace, on.group, on.version, on.resource, on.subresource, on.name]
            .iter()
            .map(|part| part.len())
            .sum(),
    }
}

/// What is asked, as reviews say it.
fn spec(asked: &Attributes<'_>) -> Value {
    let Identity { user, uid, groups, extra } = asked.identity;
    let mut spec = json!({});
    let mut put = |name: &str, value: Value| {
        spec[name] = value;
    };
    match asked.on {
        On::Path(path) => put("nonResourceAttributes", json!({"path": path, "verb": asked.verb})),
        On::Resource(on) => {
            let mut attributes = json!({});
            for (name, value) in [
                ("namespace", on.namespace),
                ("verb", asked.verb),
                ("group", on.group),
                ("version", on.version),
                ("resource", on.resource),
                ("subresource", on.subresource),
                ("name", on.name),
            ] {
                if !value.is_empty() {
                    attributes[name] = json!(value);
                }
            }
            for (name, requirements) in [
                ("fieldSelector", field_requirements(on.field_selector)),
                ("labelSelector", label_requirements(on.label_selector)),
            ] {
                if !requirements.is_empty() {
                    attributes[name] = json!({"requirements": requirements});
                }
            }
            put("resourceAttributes", attributes);
        }
    }
    if !user.is_empty() {
        put("user", json!(user));
    }
    if !groups.is_empty() {
        put("groups", json!(groups));
    }
    if !extra.is_empty() {
        put("extra", json!(extra));
    }
    if !uid.is_empty() {
        put("uid", json!(uid));
    }
    spec
}

/// Groups have another name there.
fn as_v1beta1(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(groups) = spec.as_object_mut().and_then(|fields| fields.remove("groups")) {
        spec["group"] = groups;
    }
    spec
}

/// None if it cannot be read: selectors only narrow what is asked.
fn field_requirements(selector: &str) -> Vec<Value> {
    let parsed = Fields::parse(selector).ok();
    let requirements = parsed.iter().flat_map(Fields::requirements);
    requirements
        .map(|one| {
            let operator = if one.equals { "In" } else { "NotIn" };
            json!({"key": one.field, "operator": operator, "values": [one.value]})
        })
        .collect()
}

fn label_requirements(selector: &str) -> Vec<Value> {
    let parsed = Labels::parse(selector).ok();
    let requirements = parsed.iter().flat_map(Labels::requirements);
    let shown = requirements.filter_map(|one| {
        let operator = match one.operator {
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In => "In",
            LabelOperator::NotEquals | LabelOperator::NotIn => "NotIn",
            LabelOperator::Exists => "Exists",
            LabelOperator::DoesNotExist => "DoesNotExist",
            // There is no word for them there. It may be left out, for selectors only narrow what is asked.
            LabelOperator::GreaterThan | LabelOperator::LessThan => return None,
        };
        let mut requirement = json!({"key": one.key, "operator": operator});
        if !one.values.is_empty() {
            requirement["values"] = json!(one.values);
        }
        Some(requirement)
    });
    shown.collect()
}

/// What match conditions see of a review.
static REQUEST: LazyLock<Schema> = LazyLock::new(|| {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let object = |names: &[&str], others: &[(&str, Value)]| {
        let mut properties = serde_json::Map::new();
        properties.extend(names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))));
        properties.extend(others.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
        json!({"type": "object", "properties": properties})
    };
    let requirement = object(&["key", "operator"], &[("values", texts.clone())]);
    let requirements = json!({"type": "array", "items": requirement});
    let selector = object(&["rawSelector"], &[("requirements", requirements)]);
    let names = ["namespace", "verb", "group", "version", "resource", "subresource", "name"];
    let resource = object(&names, &[("fieldSelector", selector.clone()), ("labelSelector", selector)]);
    let extra = json!({"type": "object", "additionalProperties": texts});
    let schema = object(
        &["user", "uid"],
        &[
            ("resourceAttributes", resource),
            ("nonResourceAttributes", object(&["path", "verb"], &[])),
            ("groups", texts.clone()),
            ("extra", extra),
        ],
    );
    Schema::from_json(&schema).expect("the schema of a review is valid")
});

/// The variable that match conditions have.
pub(super) fn request() -> (&'static str, VariableType<'static>) {
    ("request", VariableType::Object("kubernetes.SubjectAccessReviewSpec", &REQUEST))
}

/// Whether all conditions hold. One that does not hold counts before one that fails.
fn matches(conditions: &[Expression], spec: &Value) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let mut seen = spec.clone();
    // Texts that are not said are empty, not absent.
    for (name, empty) in
        [("user", json!("")), ("uid", json!("")), ("groups", json!([])), ("extra", json!({}))]
    {
        if seen.get(name).is_none() {
            seen[name] = empty;
        }
    }
    if let Some(attributes) = seen.get_mut("resourceAttributes").and_then(Value::as_object_mut) {
        for name in ["namespace", "verb", "group", "version", "resource", "subresource", "name"] {
            attributes.entry(name).or_insert_with(|| json!(""));
        }
    }
    let (name, kind) = request();
    let mut failed = Vec::new();
    for condition in conditions {
        match condition.evaluate(&[(name, kind, &seen)]) {
            Ok(Value::Bool(true)) => {}
            Ok(Value::Bool(false)) => return Ok(false),
            Ok(_) => failed.push("eval result type should be bool".to_owned()),
            Err(why) => failed.push(format!(
                "cel evaluation error: expression '{}' resulted in error: {why}",
                condition.source()
            )),
        }
    }
    if failed.is_empty() { Ok(true) } else { Err(aggregate(&failed)) }
}
