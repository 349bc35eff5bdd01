//! One request on its way, as its events tell it.

use super::policy::{Level, RequestRule, Stage};
use super::{Auditor, SourceAddress};
use crate::accounts::SecretUse;
use crate::authorization::{Attributes, On};
use crate::http::ApiBody;
use crate::object::uid;
use crate::request::Identity;
use crate::status::Status;
use http::Response;
use http::header::USER_AGENT;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// As Kubernetes writes times to the microsecond.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";

/// A request's id, if its client gave one.
const AUDIT_ID: &str = "audit-id";

/// Longer than any Status that tells of success, in bytes.
const SHORT: usize = 16 * 1024;

/// What a request says of where it comes from.
pub(super) struct Origin {
    uri: String,
    id: String,
    user_agent: Option<String>,
    addresses: Vec<String>,
    /// The Secret of the token that it was made with, if it is kept in one.
    secret: Option<SecretUse>,
}

impl Origin {
    pub(super) fn of(parts: &Parts) -> Self {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let forwarded = header("x-forwarded-for").unwrap_or_default().split(',').map(str::trim);
        let mut addresses: Vec<String> = forwarded
            .filter(|address| address.parse::<std::net::IpAddr>().is_ok())
            .map(str::to_owned)
            .collect();
        if let Some(SourceAddress(address)) = parts.extensions.get() {
            addresses.push(address.to_string());
        }
        Self {
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            id: header(AUDIT_ID).filter(|id| !id.is_empty()).map_or_else(uid, str::to_owned),
            user_agent: header(USER_AGENT.as_str()).map(str::to_owned),
            addresses,
            secret: parts.extensions.get().cloned(),
        }
    }
}

/// A request that is audited.
pub(crate) struct AuditedRequest {
    auditor: Arc<Auditor>,
    rule: RequestRule,
    event: Mutex<Map<String, Value>>,
}

impl AuditedRequest {
    pub(super) fn new(
        auditor: Arc<Auditor>,
        rule: RequestRule,
        asked: &Attributes<'_>,
        origin: &Origin,
    ) -> Self {
        let mut event = Map::new();
        let mut set = |name: &str, value: Value| _ = event.insert(name.to_owned(), value);
        set("kind", json!("Event"));
        set("apiVersion", json!("audit.k8s.io/v1"));
        set("level", json!(format!("{:?}", rule.level)));
        set("auditID", json!(origin.id));
        set("requestURI", json!(origin.uri));
        set("verb", json!(asked.verb));
        set("user", asked.identity.to_value());
        if !origin.addresses.is_empty() {
            set("sourceIPs", json!(origin.addresses));
        }
        if let Some(agent) = &origin.user_agent {
            set("userAgent", json!(agent));
        }
        if let On::Resource(on) = &asked.on {
            let fields = [
                ("resource", on.resource),
                ("namespace", on.namespace),
                ("name", on.name),
                ("apiGroup", on.group),
                ("apiVersion", on.version),
                ("subresource", on.subresource),
            ];
            let object: Map<String, Value> = fields
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect();
            set("objectRef", json!(object));
        }
        if let Some(secret) = &origin.secret {
            let [kind, of] = secret.annotations();
            set("annotations", json!({kind.0: kind.1, of.0: of.1}));
        }
        set("requestReceivedTimestamp", json!(auditor.clock.now().strftime(TIME).to_string()));
        Self { auditor, rule, event: Mutex::new(event) }
    }

    /// Writes what is known at a stage, unless the policy leaves it out.
    pub(super) fn write(&self, stage: Stage) {
        if self.rule.omits(stage) {
            return;
        }
        let mut event = self.event.lock().clone();
        event.insert("stage".to_owned(), json!(format!("{stage:?}")));
        event.insert("stageTimestamp".to_owned(), json!(self.auditor.clock.now().strftime(TIME).to_string()));
        self.auditor.writer.write(&Value::Object(event));
    }

    fn set(&self, name: &str, value: Value) {
        self.event.lock().insert(name.to_owned(), value);
    }

    /// Adds an annotation.
    pub(crate) fn annotate(&self, name: &str, value: &str) {
        let mut event = self.event.lock();
        let annotations = event.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(name.to_owned(), json!(value));
        }
    }

    /// Adds an annotation of admission: what was said first stays, for a write may be admitted more than once.
    pub(crate) fn annotate_admission(&self, name: &str, value: &str) {
        let mut event = self.event.lock();
        let annotations = event.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.entry(name).or_insert_with(|| json!(value));
        }
    }

    /// The same for what tells of the object that is sent, where that is written down.
    pub(crate) fn annotate_request(&self, name: &str, value: &str) {
        if self.wants_request() {
            self.annotate_admission(name, value);
        }
    }

    /// The request is made as somebody else.
    pub(crate) fn impersonates(&self, identity: &Identity, constraint: Option<&str>) {
        self.set("impersonatedUser", identity.to_value());
        if let Some(constraint) = constraint {
            self.set("authenticationMetadata", json!({"impersonationConstraint": constraint}));
        }
    }

    /// What the authorizers said.
    pub(crate) fn decided(&self, allowed: bool, reason: &str) {
        let decision = if allowed { "allow" } else { "forbid" };
        self.annotate("authorization.k8s.io/decision", decision);
        self.annotate("authorization.k8s.io/reason", reason);
    }

    /// The authorizers could say nothing.
    pub(crate) fn failed_to_decide(&self) {
        self.annotate("authorization.k8s.io/reason", "internal error");
    }

    /// Whether the object that is sent is written down.
    pub(crate) fn wants_request(&self) -> bool {
        self.rule.level >= Level::Request
    }

    /// Whether the object that is answered is written down.
    pub(crate) fn wants_response(&self) -> bool {
        self.rule.level >= Level::RequestResponse
    }

    /// The object that is sent.
    pub(crate) fn requests(&self, object: Value) {
        // The name of what is created is in the object alone.
        if let Some(Value::Object(reference)) = self.event.lock().get_mut("objectRef")
            && let Some(name) = object.pointer("/metadata/name")
        {
            reference.entry("name").or_insert_with(|| name.clone());
        }
        self.set("requestObject", self.stripped(object));
    }

    /// The object that is answered.
    pub(crate) fn answers(&self, object: Value) {
        self.set("responseObject", self.stripped(object));
    }

    fn stripped(&self, mut object: Value) -> Value {
        if self.rule.omits_managed_fields {
            let strip = |object: &mut Value| {
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("managedFields");
                }
            };
            strip(&mut object);
            let items = object.get_mut("items").and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(strip);
        }
        object
    }

    /// The answer is on its way: that is the end of the request, or the beginning of one that goes on.
    pub(crate) fn respond(self: Arc<Self>, response: Response<ApiBody>) -> Response<ApiBody> {
        let code = response.status().as_u16();
        let goes_on = response.body().is_watch() || response.body().is_passed();
        // A Status that tells of success is short; a long answer is not read once more to find that it is none.
        let short = response.body().length().is_some_and(|length| length <= SHORT);
        let body = if code >= 400 || short { response.body().bytes() } else { None };
        let answered = body.and_then(|body| serde_json::from_slice::<Value>(&body).ok());
        match answered.filter(|answered| answered["kind"] == "Status") {
            Some(status) => {
                self.set("responseStatus", status_of(&status, code));
                if self.wants_response() {
                    self.event.lock().entry("responseObject").or_insert(status);
                }
            }
            None => self.set("responseStatus", json!({"metadata": {}, "code": code})),
        }
        if !goes_on {
            self.write(Stage::ResponseComplete);
            return response;
        }
        self.write(Stage::ResponseStarted);
        response.map(|body| body.until_end(Box::new(Completed(self))))
    }

    /// The sender proved nothing right, so nobody knows who it was.
    pub(super) fn refuse(&self, status: &Status) {
        self.set("user", json!({}));
        let code = status.code;
        if let Ok(status) = serde_json::from_slice(&status.to_bytes()) {
            self.set("responseStatus", status_of(&status, code));
            if self.wants_response() {
                self.set("responseObject", status);
            }
        }
        self.write(Stage::ResponseStarted);
    }
}

/// Writes that a request that goes on has ended, when it is dropped.
struct Completed(Arc<AuditedRequest>);

impl Drop for Completed {
    fn drop(&mut self) {
        self.0.write(Stage::ResponseComplete);
    }
}

/// What is told of a Status at every level: its own fields, but not what a list of it would have.
fn status_of(status: &Value, code: u16) -> Value {
    let mut told = json!({"metadata": {}, "code": code});
    for field in ["status", "message", "reason", "details"] {
        if let Some(value) = status.get(field) {
            told[field] = value.clone();
        }
    }
    told
}
