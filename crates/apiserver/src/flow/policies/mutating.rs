//! Mutating policies: carried out one after the other, each on what the one before made of the object; and those that want it once
//! more if others changed it after them.

use super::{is_exempt, params, seen};
use crate::admission;
use crate::admission_plugins::AdmissionPlugin;
use crate::admission_policies::{BoundPolicy, Matched, Mutated, Mutation, PatchType, Policy};
use crate::flow::webhooks::{Admitted, ask_authorizer, asks, decoded, matched};
use crate::flow::{convert, decode};
use crate::operation::Operation;
use crate::resource::Resource;
use crate::status::{Cause, Status};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_schema::apply::merge_configuration;
use windlass_schema::patch::{PatchError, json_patch};
use windlass_schema::{AuthorizerAnswers, AuthorizerCheck};

/// What tells a policy, with a binding and parameters, from all others.
type InvocationKey = (String, String, String, String);

/// What is remembered between the rounds of one attempt.
#[derive(Debug, Default)]
pub(in crate::flow) struct Rounds {
    /// Those that were carried out and want it again.
    reinvocable: BTreeSet<InvocationKey>,
    /// Those of them that are carried out again, since the object changed after them.
    again: BTreeSet<InvocationKey>,
    /// What the object was after the last of them.
    last: Option<Value>,
}

impl Rounds {
    fn changed(&mut self) {
        self.again.append(&mut self.reinvocable);
    }
}

/// A policy that is to be carried out.
struct Invocation {
    policy: Arc<Policy>,
    binding: String,
    /// The version of the resource in which it sees the object.
    resource: Arc<Resource>,
    params: Value,
}

impl Invocation {
    fn key(&self) -> InvocationKey {
        let of =
            |field: &str| self.params.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        (self.policy.name.clone(), self.binding.clone(), of("/metadata/namespace"), of("/metadata/name"))
    }
}

/// Why a policy could not be carried out.
enum Failure {
    /// Counts as its failure policy says.
    Policy(String),
    /// Counts in any case.
    Request(Status),
}

/// The policies that may be about a request.
pub(in crate::flow) fn mutates(operation: &Operation<'_>) -> Arc<[Arc<BoundPolicy>]> {
    match asks(operation, AdmissionPlugin::MutatingAdmissionPolicy) {
        true => operation.api.policies.mutating(&operation.resource.plural),
        false => Arc::new([]),
    }
}

/// Has policies change an object; says whether one was carried out, after which there is a second round.
///
/// # Errors
/// The first denial.
pub(in crate::flow) async fn mutate(
    policies: &[Arc<BoundPolicy>],
    admitted: &Admitted<'_>,
    object: &mut Value,
    rounds: &mut Rounds,
    again: bool,
) -> Result<bool, Status> {
    if policies.is_empty() || is_exempt(admitted) {
        return Ok(false);
    }
    let mut errors = Vec::new();
    let invocations = invocations(policies, admitted, object, &mut errors).await;
    let mut changed = false;
    if !invocations.is_empty() {
        if again && rounds.last.as_ref() != Some(&*object) {
            rounds.changed();
        }
        changed = run(&invocations, admitted, object, (rounds, again), &mut errors).await?;
        rounds.last = Some(object.clone());
    }
    match denied(admitted, object, errors) {
        Some(status) => Err(status),
        None => Ok(changed),
    }
}

/// Which policies are carried out: judged by the object as it is before any of them.
async fn invocations(
    policies: &[Arc<BoundPolicy>],
    admitted: &Admitted<'_>,
    object: &Value,
    errors: &mut Vec<(Option<&'static str>, String)>,
) -> Vec<Invocation> {
    let operation = admitted.operation;
    let mut invocations = Vec::new();
    for bound in policies {
        let policy = &bound.policy;
        let mut misconfigured = |binding: Option<&str>, why: &str| {
            if !policy.fails_open {
                let what = if binding.is_some() { "binding" } else { "policy" };
                errors.push((None, told(policy, binding, &format!("failed to configure {what}: {why}"))));
            }
        };
        let resource = match matched(&policy.matching, admitted, Some(object)) {
            Ok(Some(resource)) => resource,
            Ok(None) => continue,
            Err(status) => {
                misconfigured(None, &status.message);
                continue;
            }
        };
        let kind = match params::resource(operation, policy) {
            Ok(kind) => kind,
            Err(why) => {
                misconfigured(None, &why);
                continue;
            }
        };
        for binding in &bound.bindings {
            let name = Some(binding.name.as_str());
            if let Some(wanted) = &binding.matching {
                match matched(wanted, admitted, Some(object)) {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(status) => {
                        misconfigured(name, &status.message);
                        continue;
                    }
                }
            }
            let chosen = binding.param_ref.as_ref();
            match params::collect(operation, kind.as_ref(), chosen, &admitted.namespace).await {
                Ok(params) => invocations.extend(params.into_iter().map(|params| Invocation {
                    policy: policy.clone(),
                    binding: binding.name.clone(),
                    resource: resource.clone(),
                    params,
                })),
                Err(why) => misconfigured(name, &why),
            }
        }
    }
    invocations
}

async fn run(
    invocations: &[Invocation],
    admitted: &Admitted<'_>,
    object: &mut Value,
    (rounds, again): (&mut Rounds, bool),
    errors: &mut Vec<(Option<&'static str>, String)>,
) -> Result<bool, Status> {
    let mut asking = Asking {
        admitted,
        namespace: seen::namespace(admitted)?,
        on: admitted.request_resource(),
        answers: AuthorizerAnswers::default(),
    };
    let mut any = false;
    for invocation in invocations {
        admitted.operation.in_time()?;
        let policy = &invocation.policy;
        let mut failed = |why: String| {
            if !policy.fails_open {
                errors.push((Some("Invalid"), told(policy, Some(&invocation.binding), &why)));
            }
        };
        match asking.matches(invocation, object).await? {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                failed(why);
                continue;
            }
        }
        let key = invocation.key();
        // One that was not concerned in the first round is not carried out in the second.
        if again && !rounds.again.contains(&key) {
            continue;
        }
        let mut changed = false;
        for mutation in &policy.mutator().mutations {
            match asking.mutate(invocation, mutation, object).await {
                Ok(mutated) => {
                    any = true;
                    if let Some(mutated) = mutated {
                        changed |= mutated != *object;
                        *object = mutated;
                    }
                }
                Err(Failure::Policy(why)) => failed(why),
                Err(Failure::Request(status)) => return Err(status),
            }
        }
        if changed {
            rounds.changed();
        }
        if policy.reinvoked {
            rounds.reinvocable.insert(key);
        }
    }
    if any {
        // Whatever was mutated is looked at again, also by those that came last.
        rounds.changed();
    }
    Ok(any)
}

/// What expressions see beside the object, and what an authorizer said.
struct Asking<'a> {
    admitted: &'a Admitted<'a>,
    namespace: Value,
    on: AuthorizerCheck,
    answers: AuthorizerAnswers,
}

impl Asking<'_> {
    /// Whether the match conditions of a policy hold; the inner error is why that cannot be told.
    async fn matches(
        &mut self,
        invocation: &Invocation,
        object: &Value,
    ) -> Result<Result<bool, String>, Status> {
        let mut seen =
            seen::variables(self.admitted, &invocation.resource, Some(object), &self.namespace).await?;
        seen.params = invocation.params.clone();
        loop {
            match invocation.policy.mutator().matches(&seen, &self.answers, &self.on) {
                Matched::Yes => return Ok(Ok(true)),
                Matched::No => return Ok(Ok(false)),
                Matched::Failed(why) => return Ok(Err(why)),
                Matched::Unanswered(check) => self.ask(*check).await,
            }
        }
    }

    /// What a mutation makes of an object.
    async fn mutate(
        &mut self,
        invocation: &Invocation,
        mutation: &Mutation,
        object: &Value,
    ) -> Result<Option<Value>, Failure> {
        let (admitted, resource) = (self.admitted, &*invocation.resource);
        let seen = seen::variables(admitted, resource, Some(object), &self.namespace).await;
        let mut seen = seen.map_err(Failure::Request)?;
        seen.params = invocation.params.clone();
        let patch = loop {
            match invocation.policy.mutator().evaluate(mutation, &seen, &self.answers, &self.on) {
                Mutated::Patch(patch) => break patch,
                Mutated::Failed(why) => return Err(Failure::Policy(why)),
                Mutated::Unanswered(check) => self.ask(*check).await,
            }
        };
        let shown = seen.object;
        let patched = match mutation.patch_type {
            PatchType::ApplyConfiguration => apply(resource, &shown, patch)?,
            PatchType::JsonPatch => match json_patch(&shown, &patch) {
                Ok(patched) => strictly(resource, patched)?,
                Err(PatchError::DoesNotApply(why)) if why.ends_with("test failed") => return Ok(None),
                Err(PatchError::DoesNotApply(why)) => {
                    return Err(Failure::Policy(format!("JSON Patch: {why}")));
                }
                Err(error) => return Err(Failure::Policy(format!("JSON Patch: {error}"))),
            },
        };
        let patched = decoded(resource, admitted, patched, &shown)
            .map_err(|why| Failure::Request(Status::internal(why)))?;
        convert::from_webhook(admitted.operation, patched).await.map(Some).map_err(Failure::Request)
    }

    /// What a question costs bounds how many there are.
    async fn ask(&mut self, check: AuthorizerCheck) {
        let decision = ask_authorizer(self.admitted.operation, &check).await;
        self.answers.learn(check, decision);
    }
}

/// An object with a configuration laid over it.
fn apply(resource: &Resource, object: &Value, mut patch: Value) -> Result<Value, Failure> {
    for field in ["apiVersion", "kind"] {
        patch[field] = object.get(field).cloned().unwrap_or_default();
    }
    let merged = merge_configuration(resource.schema(), object, &patch);
    merged.map_err(|why| Failure::Policy(format!("error applying patch: {why}")))
}

/// What a patch left behind must not have fields that its kind does not.
fn strictly(resource: &Resource, patched: Value) -> Result<Value, Failure> {
    if resource.custom || patched.get("kind").and_then(Value::as_str) != Some(&resource.kind) {
        return Ok(patched);
    }
    let internal = |why: String| Failure::Request(Status::internal(why));
    let complaints = decode::object(resource, patched.clone()).map_err(internal)?.complaints;
    match complaints.is_empty() {
        true => Ok(patched),
        false => Err(internal(format!("strict decoding error: {}", complaints.join(", ")))),
    }
}

fn told(policy: &Policy, binding: Option<&str>, why: &str) -> String {
    let name = &policy.name;
    match binding {
        Some(binding) => format!("policy '{name}' with binding '{binding}' denied request: {why}"),
        None => format!("policy {name:?} denied request: {why}"),
    }
}

/// 403 with all errors, in the words of the first.
fn denied(
    admitted: &Admitted<'_>,
    object: &Value,
    errors: Vec<(Option<&'static str>, String)>,
) -> Option<Status> {
    let (reason, message) = errors.first()?;
    let mut status = admission::forbidden(admitted.operation, object, "");
    status.message = message.clone();
    if let Some(reason) = reason {
        status.reason = (*reason).into();
    }
    let causes = errors.iter().map(|(_, message)| Cause { message: message.clone(), ..Cause::default() });
    status.details.get_or_insert_default().causes.extend(causes);
    Some(status)
}
