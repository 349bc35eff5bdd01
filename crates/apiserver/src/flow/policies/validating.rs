//! Validating policies: all that a request concerns are carried out, and the first denial is told.

use super::{is_exempt, params, seen};
use crate::admission;
use crate::admission_plugins::AdmissionPlugin;
use crate::admission_policies::{AuditAnnotation, Binding, BoundPolicy, Decided, Decision, Policy};
use crate::flow::webhooks::{Admitted, ask_authorizer, asks, matched};
use crate::kinds::policy_expressions::PolicyVariables;
use crate::operation::Operation;
use crate::resource::Resource;
use crate::status::{Cause, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_schema::AuthorizerAnswers;

/// The audit annotation of validations that fail and are audited.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// How long an audit annotation of a policy may be.
const LONGEST_ANNOTATION: usize = 10 * 1024;

/// Why a request is denied.
struct Denial {
    policy: String,
    /// None if the policy itself is at fault.
    binding: Option<String>,
    message: String,
    /// Empty if there is none.
    reason: String,
}

/// What policies make of a request.
struct Verdict<'a> {
    admitted: &'a Admitted<'a>,
    object: Option<&'a Value>,
    /// The namespace, once it is needed.
    namespace: Option<Value>,
    answers: AuthorizerAnswers,
    denials: Vec<Denial>,
}

/// Whether there are policies that may be about a request.
pub(in crate::flow) fn validates(operation: &Operation<'_>) -> bool {
    asks(operation, AdmissionPlugin::ValidatingAdmissionPolicy)
        && !operation.api.policies.validating(&operation.resource.plural).is_empty()
}

/// Asks whether an object may become `object`, or be deleted if that is none; what is admitted is told if there are policies.
///
/// # Errors
/// The first denial.
pub(in crate::flow) async fn validate<'a>(
    operation: &'a Operation<'a>,
    object: Option<&Value>,
    admitted: impl FnOnce() -> Admitted<'a>,
) -> Result<(), Status> {
    if !asks(operation, AdmissionPlugin::ValidatingAdmissionPolicy) {
        return Ok(());
    }
    let policies = operation.api.policies.validating(&operation.resource.plural);
    if policies.is_empty() {
        return Ok(());
    }
    let admitted = admitted();
    if is_exempt(&admitted) {
        return Ok(());
    }
    let (namespace, answers) = (None, AuthorizerAnswers::default());
    let mut verdict = Verdict { admitted: &admitted, object, namespace, answers, denials: Vec::new() };
    for bound in policies.iter() {
        verdict.carry_out(bound).await?;
    }
    match verdict.denials.first() {
        None => Ok(()),
        Some(denial) => Err(denial.status(operation, object)),
    }
}

impl Verdict<'_> {
    /// Carries out a policy with all its bindings.
    async fn carry_out(&mut self, bound: &BoundPolicy) -> Result<(), Status> {
        let (policy, operation) = (&*bound.policy, self.admitted.operation);
        let matched_as = match matched(&policy.matching, self.admitted, self.object) {
            Ok(None) => return Ok(()),
            Ok(Some(resource)) => resource,
            Err(status) => {
                self.misconfigured(policy, None, &status.message);
                return Ok(());
            }
        };
        let kind = match params::resource(operation, policy) {
            Ok(kind) => kind,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let mut annotations = Annotations::default();
        let mut seen: Option<PolicyVariables> = None;
        for binding in &bound.bindings {
            if let Some(wanted) = &binding.matching {
                match matched(wanted, self.admitted, self.object) {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(status) => {
                        self.misconfigured(policy, Some(binding), &status.message);
                        continue;
                    }
                }
            }
            let chosen = binding.param_ref.as_ref();
            let namespace = &self.admitted.namespace;
            let params = match params::collect(operation, kind.as_ref(), chosen, namespace).await {
                Ok(params) => params,
                Err(why) => {
                    self.misconfigured(policy, Some(binding), &why);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if seen.is_none() {
                match self.seen(&matched_as).await? {
                    Ok(found) => seen = Some(found),
                    Err(why) => {
                        let why = format!("failed to convert object version: {why}");
                        self.misconfigured(policy, Some(binding), &why);
                        continue;
                    }
                }
            }
            let Some(seen) = &mut seen else { continue };
            for param in params {
                operation.in_time()?;
                seen.params = param;
                let decided = self.decide(policy, seen).await;
                self.take(policy, binding, decided, &mut annotations);
            }
        }
        annotations.publish(operation, &policy.name);
        Ok(())
    }

    /// What expressions see; the inner error is that the object has no such version.
    async fn seen(&mut self, resource: &Resource) -> Result<Result<PolicyVariables, String>, Status> {
        if self.namespace.is_none() {
            self.namespace = Some(seen::namespace(self.admitted)?);
        }
        let namespace = self.namespace.as_ref().unwrap_or(&Value::Null);
        Ok(seen::variables(self.admitted, resource, self.object, namespace)
            .await
            .map_err(|status| status.message))
    }

    /// Decides, asking the authorizer for what that needs. What a question costs bounds how many there are.
    async fn decide(&mut self, policy: &Policy, seen: &PolicyVariables) -> Decided {
        let on = self.admitted.request_resource();
        loop {
            match policy.validator().decide(seen, &self.answers, &on) {
                Ok(decided) => return decided,
                Err(check) => {
                    let decision = ask_authorizer(self.admitted.operation, &check).await;
                    self.answers.learn(*check, decision);
                }
            }
        }
    }

    fn take(&mut self, policy: &Policy, binding: &Binding, decided: Decided, annotations: &mut Annotations) {
        for (index, decision) in decided.decisions.into_iter().enumerate() {
            let Decision::Deny { message, reason } = decision else { continue };
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => self.deny(policy, Some(binding), message.clone(), reason.clone()),
                    "Audit" => self.audit(policy, binding, index, &message),
                    "Warn" => {
                        let warning = format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                            policy.name, binding.name
                        );
                        self.admitted.operation.warn(vec![warning]);
                    }
                    _ => {}
                }
            }
        }
        for annotation in decided.annotations {
            match annotation {
                AuditAnnotation::Publish { key, value } => annotations.add(key, value),
                AuditAnnotation::Failed(why) => self.deny(policy, Some(binding), why, String::new()),
                AuditAnnotation::Exclude => {}
            }
        }
    }

    fn audit(&self, policy: &Policy, binding: &Binding, index: usize, message: &str) {
        let Some(audited) = &self.admitted.operation.audited else { return };
        let told = json!([{
            "message": message, "policy": policy.name, "binding": binding.name, "expressionIndex": index,
            "validationActions": binding.actions,
        }]);
        audited.annotate_admission(FAILURE, &told.to_string());
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if policy.fails_open {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.deny(policy, binding, format!("failed to configure {what}: {why}"), String::new());
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, message: String, reason: String) {
        let binding = binding.map(|binding| binding.name.clone());
        self.denials.push(Denial { policy: policy.name.clone(), binding, message, reason });
    }
}

impl Denial {
    fn status(&self, operation: &Operation<'_>, object: Option<&Value>) -> Status {
        let Self { policy, message, .. } = self;
        let message = match &self.binding {
            Some(binding) => format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"
            ),
            None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
        };
        let mut status = admission::forbidden(operation, object.unwrap_or(&Value::Null), &message);
        let reason = if self.reason.is_empty() { "Invalid" } else { &self.reason };
        status.code = match reason {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        status.reason = reason.to_owned().into();
        status.details.get_or_insert_default().causes.push(Cause { message, ..Cause::default() });
        status
    }
}

/// The audit annotations of a policy, of all its bindings.
#[derive(Default)]
struct Annotations(BTreeMap<String, Vec<String>>);

impl Annotations {
    fn add(&mut self, key: String, mut value: String) {
        if value.len() > LONGEST_ANNOTATION {
            let end = (0..=LONGEST_ANNOTATION).rev().find(|end| value.is_char_boundary(*end));
            value.truncate(end.unwrap_or_default());
        }
        let values = self.0.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }

    fn publish(self, operation: &Operation<'_>, policy: &str) {
        let Some(audited) = &operation.audited else { return };
        for (key, values) in self.0 {
            audited.annotate_admission(&format!("{policy}/{key}"), &values.join(", "));
        }
    }
}
