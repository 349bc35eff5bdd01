//! SubjectAccessReview and its like: posted, answered by the authorizers, and stored nowhere.

use crate::authorization::{Attributes, Decision, On, PolicyRule, Refusal, ResourceAttributes};
use crate::flow::{decode, managed, mutating_admission, prepare, validating_admission};
use crate::http::Answer;
use crate::object::text;
use crate::operation::Call;
use crate::request::Identity;
use crate::request::media::content_type;
use crate::request::write_options::{Write, WriteOptions};
use crate::status::{Named, Status, causes};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_schema::field::{FieldError, Path, aggregate};
use windlass_schema::names;
use windlass_schema::selector::{Fields, Labels};

pub(crate) async fn answer(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let options = WriteOptions::read(&call.query, Write::Create, &call.user_agent)?;
    let media = content_type::body(&call.content_type)?;
    let operation = call.operation(options);
    let mut review = decode::judge(&operation, decode::body(resource, &call.body, media)?, &call.warnings)?;
    if resource.namespaced {
        prepare::namespace(&operation, &mut review)?;
    }
    mutating_admission::mutate_view(&operation, &mut review, None).await?;
    if resource.kind == "SelfSubjectRulesReview" {
        validating_admission::validate_unstored(&operation, &review).await?;
        return rules(call, &review);
    }
    let spec: Spec = serde_json::from_value(review.get("spec").cloned().unwrap_or_default())
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let wrong = validate(&resource.kind, &spec, &review);
    if !wrong.is_empty() {
        // The kind of an object in the server's own form is not kept.
        return Err(Status::invalid(Named { group: &resource.group, kind: "" }, "", causes(&wrong)));
    }
    validating_admission::validate_unstored(&operation, &review).await?;
    managed::update(&operation, None, &mut review);
    let other;
    let identity = match resource.kind.as_str() {
        "SelfSubjectAccessReview" => call.identity,
        _ => {
            other = spec.identity();
            &other
        }
    };
    let (fields, labels) = (spec.field_selector(), spec.label_selector());
    let mut errors: Vec<String> =
        spec.resource_attributes.as_ref().map(evaluation_error).into_iter().collect();
    let mut status = json!({"allowed": false});
    if let Some(asked) = spec.asked(identity, &fields, &labels) {
        match call.api.authorizer.authorize(&asked).await {
            Decision::Allow(by) => status = with_reason(json!({"allowed": true}), &by.to_string()),
            Decision::Refuse(Refusal { denied, reason, error }) => {
                if denied {
                    status["denied"] = json!(true);
                }
                status = with_reason(status, &reason);
                errors.insert(0, error);
            }
        }
    }
    errors.retain(|error| !error.is_empty());
    if !errors.is_empty() {
        status["evaluationError"] = json!(errors.join("; "));
    }
    if let Some(review) = review.as_object_mut() {
        review.insert("status".to_owned(), status);
    }
    Ok(Answer::json(201, &review))
}

/// A requirement as a term of a field selector.
fn field_term(requirement: &Value) -> Option<String> {
    let values = requirement.get("values").and_then(Value::as_array)?;
    let [value] = values.as_slice() else { return None };
    let sign = match text(requirement, &["operator"]) {
        "In" => "=",
        "NotIn" => "!=",
        _ => return None,
    };
    let value = value.as_str()?.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    Some(format!("{}{sign}{value}", text(requirement, &["key"])))
}

/// A requirement as a term of a label selector.
fn label_term(requirement: &Value) -> Option<String> {
    let key = text(requirement, &["key"]);
    let values = requirement.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    match (text(requirement, &["operator"]), values.is_empty()) {
        ("In", false) => Some(format!("{key} in ({})", values.join(","))),
        ("NotIn", false) => Some(format!("{key} notin ({})", values.join(","))),
        ("Exists", true) => Some(key.to_owned()),
        ("DoesNotExist", true) => Some(format!("!{key}")),
        _ => None,
    }
}

/// What could not be read of the selectors.
fn evaluation_error(asked: &AskedResource) -> String {
    let fields = asked.field_selector.as_ref().and_then(|selector| {
        selector.ignored(|text| Fields::parse(text).is_ok(), field_term).map(|how| ("fieldSelector", how))
    });
    let labels = asked.label_selector.as_ref().and_then(|selector| {
        selector.ignored(|text| Labels::parse(text).is_ok(), label_term).map(|how| ("labelSelector", how))
    });
    let told = |(name, how)| format!("spec.resourceAttributes.{name} {how} due to parse error");
    fields.into_iter().chain(labels).map(told).collect::<Vec<_>>().join("; ")
}

fn with_reason(mut status: Value, reason: &str) -> Value {
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
}

/// What whoever asks may do in a namespace.
fn rules(call: &Call<'_>, review: &Value) -> Result<Answer, Status> {
    let namespace = text(review, &["spec", "namespace"]);
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let found = call.api.authorizer.rules_for(call.identity, namespace);
    let resources = found.rules.iter().filter(|rule| !rule.resources.is_empty()).map(resource_rule);
    let paths = found.rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
    let paths = paths.map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
    let mut status = json!({
        "resourceRules": resources.collect::<Vec<_>>(),
        "nonResourceRules": paths.collect::<Vec<_>>(),
        "incomplete": found.incomplete,
    });
    if !found.errors.is_empty() {
        status["evaluationError"] = json!(aggregate(&found.errors));
    }
    let review = json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": format!("{}/{}", call.resource.group, call.resource.version),
        "metadata": {},
        "spec": {},
        "status": status,
    });
    Ok(Answer::json(201, &review))
}

fn resource_rule(rule: &PolicyRule) -> Value {
    let mut shown = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
    if !rule.resource_names.is_empty() {
        shown["resourceNames"] = json!(rule.resource_names);
    }
    shown
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    user: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
    resource_attributes: Option<AskedResource>,
    non_resource_attributes: Option<AskedPath>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AskedResource {
    namespace: String,
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<Selector>,
    label_selector: Option<Selector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    raw_selector: String,
    requirements: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AskedPath {
    path: String,
    verb: String,
}

impl Spec {
    fn identity(&self) -> Identity {
        Identity {
            user: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone().unwrap_or_default(),
            extra: self.extra.clone().unwrap_or_default(),
        }
    }

    /// Which objects it is about, by their fields, as a request would say it.
    fn field_selector(&self) -> String {
        let selector = self.resource_attributes.as_ref().and_then(|asked| asked.field_selector.as_ref());
        selector.map(|selector| selector.as_text(field_term)).unwrap_or_default()
    }

    /// And by their labels.
    fn label_selector(&self) -> String {
        let selector = self.resource_attributes.as_ref().and_then(|asked| asked.label_selector.as_ref());
        selector.map(|selector| selector.as_text(label_term)).unwrap_or_default()
    }

    fn asked<'a>(
        &'a self,
        identity: &'a Identity,
        field_selector: &'a str,
        label_selector: &'a str,
    ) -> Option<Attributes<'a>> {
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(asked), _) => {
                let on = ResourceAttributes {
                    group: &asked.group,
                    version: if asked.version.is_empty() { "*" } else { &asked.version },
                    resource: &asked.resource,
                    subresource: &asked.subresource,
                    namespace: &asked.namespace,
                    name: &asked.name,
                    field_selector,
                    label_selector,
                };
                Some(Attributes { identity, verb: &asked.verb, on: On::Resource(on) })
            }
            (None, Some(asked)) => {
                Some(Attributes { identity, verb: &asked.verb, on: On::Path(&asked.path) })
            }
            (None, None) => None,
        }
    }
}

fn validate(kind: &str, spec: &Spec, review: &Value) -> Vec<FieldError> {
    let path = Path::new("spec");
    let mut wrong = Vec::new();
    // As the server's own form has it.
    let path_asked = || match &spec.non_resource_attributes {
        Some(asked) => json!({"Path": asked.path, "Verb": asked.verb}),
        None => Value::Null,
    };
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(_)) => wrong.push(FieldError::invalid(
            &path.child("nonResourceAttributes"),
            path_asked(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => wrong.push(FieldError::invalid(
            &path.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if kind != "SelfSubjectAccessReview"
        && spec.user.is_empty()
        && spec.groups.as_ref().is_none_or(Vec::is_empty)
    {
        let why = "at least one of user or group must be specified";
        wrong.push(FieldError::invalid(&path.child("user"), spec.user.as_str(), why));
    }
    if let Some(asked) = &spec.resource_attributes {
        let path = path.child("resourceAttributes");
        if let Some(selector) = &asked.field_selector {
            wrong.extend(selector.validate(&path.child("fieldSelector"), validate_field_requirement));
        }
        if let Some(selector) = &asked.label_selector {
            wrong.extend(selector.validate(&path.child("labelSelector"), validate_label_requirement));
        }
    }
    if kind == "LocalSubjectAccessReview" {
        let namespace = text(review, &["metadata", "namespace"]);
        if let Some(asked) = spec.resource_attributes.as_ref().filter(|asked| asked.namespace != namespace) {
            let path = Path::new("spec.resourceAttributes.namespace");
            wrong.push(FieldError::invalid(&path, asked.namespace.as_str(), "must match metadata.namespace"));
        }
        if spec.non_resource_attributes.is_some() {
            let path = Path::new("spec.nonResourceAttributes");
            let why = "disallowed on this kind of request";
            wrong.push(FieldError::invalid(&path, path_asked(), why));
        }
    }
    wrong
}

impl Selector {
    /// As a request would say it; requirements that cannot be said so are left out.
    fn as_text(&self, term: fn(&Value) -> Option<String>) -> String {
        if !self.raw_selector.is_empty() {
            return self.raw_selector.clone();
        }
        let terms: Vec<String> = self.requirements.iter().flatten().filter_map(term).collect();
        terms.join(",")
    }

    /// How much of it could not be read, if anything.
    fn ignored(&self, parses: fn(&str) -> bool, term: fn(&Value) -> Option<String>) -> Option<&'static str> {
        if !self.raw_selector.is_empty() {
            return (!parses(&self.raw_selector)).then_some("ignored");
        }
        let all = self.requirements.as_deref().unwrap_or_default();
        let read = all.iter().filter(|one| term(one).is_some_and(|term| parses(&term))).count();
        match read {
            read if read == all.len() => None,
            0 => Some("ignored"),
            _ => Some("partially ignored"),
        }
    }

    fn validate(&self, path: &Path, requirement: fn(&Value, &Path) -> Vec<FieldError>) -> Vec<FieldError> {
        let all = self.requirements.as_deref().unwrap_or_default();
        let mut wrong = Vec::new();
        match (self.raw_selector.is_empty(), all.is_empty()) {
            (false, false) => wrong.push(FieldError::invalid(
                &path.child("rawSelector"),
                self.raw_selector.as_str(),
                "may not specified at the same time as requirements",
            )),
            (true, true) => {
                let why = format!("when {path} is specified, requirements or rawSelector is required");
                wrong.push(FieldError::required(&path.child("requirements"), &why));
            }
            _ => {}
        }
        let path = path.child("requirements");
        wrong.extend(all.iter().enumerate().flat_map(|(index, one)| requirement(one, &path.index(index))));
        wrong
    }
}

fn validate_field_requirement(requirement: &Value, path: &Path) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    if text(requirement, &["key"]).is_empty() {
        wrong.push(FieldError::required(&path.child("key"), "must be specified"));
    }
    wrong.extend(validate_values(requirement, path));
    wrong
}

fn validate_label_requirement(requirement: &Value, path: &Path) -> Vec<FieldError> {
    let mut wrong: Vec<FieldError> = validate_values(requirement, path).into_iter().collect();
    let key = text(requirement, &["key"]);
    let invalid = |why: String| FieldError::invalid(&path.child("key"), key, why);
    wrong.extend(names::qualified(key).into_iter().map(invalid));
    let values = requirement.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
        let path = path.child("values").index(index);
        wrong.extend(names::label_value(value).into_iter().map(|why| FieldError::invalid(&path, value, why)));
    }
    wrong
}

/// Some operators need values, and others have none. Those that nobody knows yet are let through.
fn validate_values(requirement: &Value, path: &Path) -> Option<FieldError> {
    let none = requirement.get("values").and_then(Value::as_array).is_none_or(Vec::is_empty);
    let path = path.child("values");
    match (text(requirement, &["operator"]), none) {
        ("In" | "NotIn", true) => {
            Some(FieldError::required(&path, "must be specified when `operator` is 'In' or 'NotIn'"))
        }
        ("Exists" | "DoesNotExist", false) => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Some(FieldError::forbidden(&path, why))
        }
        _ => None,
    }
}
