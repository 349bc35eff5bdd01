//! Mutating webhooks: asked one after the other, each on what the one before made of the object; and those that want it once more
//! if others changed it after them.

use super::matching::{Invocation, invocation};
use super::request::kind_of;
use super::{Admitted, Unanswered, Verb};
use crate::admission_webhooks::{
    Called, ErrorType, NoAnswer, Reply, Webhook, WebhookType, denied, failed, no_dry_run,
};
use crate::facts::FACTS;
use crate::flow::{convert, decode};
use crate::kinds;
use crate::resource::Resource;
use crate::status::Status;
use crate::typed;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_clock::Clock;
use windlass_schema::json as reader;
use windlass_schema::patch::json_patch;

/// What is remembered between the rounds of one attempt.
#[derive(Debug, Default)]
pub(in crate::flow) struct Rounds {
    /// Those that were asked and want to be asked again.
    reinvocable: BTreeSet<String>,
    /// Those of them that are to be asked again, since the object changed after them.
    again: BTreeSet<String>,
    /// What the object was after the last of them.
    last: Option<Value>,
}

impl Rounds {
    fn changed(&mut self) {
        self.again.append(&mut self.reinvocable);
    }
}

/// What a webhook did to a request.
enum Failure {
    Call(NoAnswer),
    Rejected(Status),
    Internal(Status),
    Late(Status),
}

/// Has webhooks change an object; says whether one did, after which built-in plug-ins and then the webhooks that want it have
/// another look, in a second round. What is deleted is none that could be changed.
///
/// # Errors
/// What the first of them that refuses says.
pub(in crate::flow) async fn mutate(
    webhooks: &[Arc<Webhook>],
    admitted: &Admitted<'_>,
    mut object: Option<&mut Value>,
    rounds: &mut Rounds,
    round: usize,
) -> Result<bool, Status> {
    if admitted.is_exempt() {
        return Ok(false);
    }
    let again = round > 0;
    if again && rounds.last.as_ref() != object.as_deref() {
        rounds.changed();
    }
    let mut any = false;
    for (index, webhook) in webhooks.iter().enumerate() {
        let found = invocation(webhook, WebhookType::Mutating, admitted, object.as_deref()).await?;
        let Some(invocation) = found else { continue };
        // One that was not concerned in the first round is not asked in the second.
        if again && !rounds.again.contains(&webhook.uid) {
            continue;
        }
        let place = format!("round_{round}_index_{index}");
        let changed = asked(&invocation, admitted, object.as_deref_mut(), &place).await?;
        if changed {
            rounds.changed();
            any = true;
        }
        if webhook.reinvoked {
            rounds.reinvocable.insert(webhook.uid.clone());
        }
    }
    rounds.last = object.as_deref().cloned();
    Ok(any)
}

/// Asks one, counts what came of it, and says whether it changed the object.
async fn asked(
    invocation: &Invocation,
    admitted: &Admitted<'_>,
    object: Option<&mut Value>,
    place: &str,
) -> Result<bool, Status> {
    let (operation, webhook) = (admitted.operation, &invocation.webhook);
    let metrics = &operation.api.webhooks.metrics;
    let called = Called { name: &webhook.name, kind: WebhookType::Mutating, operation: admitted.verb.name() };
    let began = Clock::real().moment();
    let outcome = ask(invocation, admitted, object, place).await;
    let took = Clock::real().moment().since(began);
    if let Some(audited) = &operation.audited {
        let told = json!({
            "configuration": webhook.configuration, "webhook": webhook.name, "mutated": matches!(outcome, Ok(true)),
        });
        audited.annotate_admission(&format!("mutation.webhook.admission.k8s.io/{place}"), &told.to_string());
    }
    match outcome {
        Ok(changed) => {
            metrics.called(&called, took, 200, false);
            Ok(changed)
        }
        Err(Failure::Late(status)) => Err(status),
        Err(Failure::Rejected(status)) => {
            metrics.rejected(&called, ErrorType::NoError, status.code);
            metrics.called(&called, took, status.code, true);
            Err(status)
        }
        Err(Failure::Internal(status)) => {
            metrics.rejected(&called, ErrorType::ApiServerInternal, 0);
            metrics.called(&called, took, 0, true);
            Err(status)
        }
        Err(Failure::Call(error)) => {
            metrics.called(&called, took, error.code, !webhook.fails_open);
            if webhook.fails_open {
                tracing::warn!(webhook = webhook.name, "a webhook failed and is ignored: {}", error.why);
                metrics.failed_open(&called);
                if let Some(audited) = &operation.audited {
                    let key = format!("failed-open.mutation.webhook.admission.k8s.io/{place}");
                    audited.annotate_admission(&key, &webhook.name);
                }
                return Ok(false);
            }
            metrics.rejected(&called, ErrorType::CallingWebhook, error.code);
            Err(failed(webhook, &error.why))
        }
    }
}

async fn ask(
    invocation: &Invocation,
    admitted: &Admitted<'_>,
    object: Option<&mut Value>,
    place: &str,
) -> Result<bool, Failure> {
    let (operation, webhook, resource) = (admitted.operation, &invocation.webhook, &invocation.resource);
    if operation.options.dry_run && !webhook.asked_in_dry_runs {
        return Err(Failure::Internal(no_dry_run(webhook)));
    }
    operation.in_time().map_err(Failure::Late)?;
    // The reference says twice that it is its own fault.
    let unconverted = |status: Status| match status.code {
        500 => Failure::Internal(Status::internal(status.message)),
        _ => Failure::Late(status),
    };
    let shown = convert::for_webhook(operation, resource, object.as_deref()).await.map_err(unconverted)?;
    let shown = shown.map(Cow::into_owned);
    let old = convert::for_webhook(operation, resource, admitted.old).await.map_err(unconverted)?;
    let reply = admitted.ask(invocation, shown.as_ref(), old.as_deref(), true).await;
    let reply = reply.map_err(|error| match error {
        Unanswered::Call(no_answer) => Failure::Call(no_answer),
        Unanswered::Late(status) => Failure::Late(status),
    })?;
    if !reply.allowed {
        return Err(Failure::Rejected(denied(&webhook.name, reply.result.as_ref())));
    }
    let Some(patch) = patch_of(&reply)? else { return Ok(false) };
    let (Some(object), Some(shown)) = (object, shown) else {
        return Err(Failure::Internal(Status::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        ))));
    };
    if reply.patch_type != "JSONPatch" {
        let why = format!("unsupported patch type {:?}", reply.patch_type);
        return Err(Failure::Call(NoAnswer { why, code: 400 }));
    }
    let internal = |why: String| Failure::Internal(Status::internal(why));
    let patched = json_patch(&shown, &patch).map_err(|error| internal(error.to_string()))?;
    let patched = decoded(resource, admitted, patched, &shown).map_err(internal)?;
    if let Some(audited) = &operation.audited {
        let told = json!({
            "configuration": webhook.configuration, "webhook": webhook.name, "patch": patch, "patchType": "JSONPatch",
        });
        audited.annotate_request(&format!("patch.webhook.admission.k8s.io/{place}"), &told.to_string());
    }
    if patched == shown {
        return Ok(false);
    }
    *object = convert::from_webhook(operation, patched).await.map_err(Failure::Internal)?;
    Ok(true)
}

/// The patch of an answer; none if there is nothing in it.
fn patch_of(reply: &Reply) -> Result<Option<Value>, Failure> {
    if reply.patch.is_empty() {
        return Ok(None);
    }
    let undecodable = |why: String| {
        let why = format!("received undecodable patch in webhook response: {why}");
        Failure::Call(NoAnswer { why, code: 503 })
    };
    match reader::read(&reply.patch).map_err(|error| undecodable(error.to_string()))?.value {
        Value::Null => Ok(None),
        Value::Array(steps) if steps.is_empty() => Ok(None),
        Value::Array(steps) => match steps.iter().find(|step| !step.is_object() && !step.is_null()) {
            None => Ok(Some(Value::Array(steps))),
            Some(step) => {
                let shape = typed::shape(step);
                let go = "jsonpatch.Operation";
                Err(undecodable(format!("json: cannot unmarshal {shape} into Go value of type {go}")))
            }
        },
        other => {
            let shape = typed::shape(&other);
            Err(undecodable(format!("json: cannot unmarshal {shape} into Go value of type jsonpatch.Patch")))
        }
    }
}

/// What a webhook or a policy made of an object, read as one of its kind, with its defaults.
pub(in crate::flow) fn decoded(
    resource: &Resource,
    admitted: &Admitted<'_>,
    patched: Value,
    shown: &Value,
) -> Result<Value, String> {
    let (_, kind) = decode::version_and_kind(&patched)?;
    if resource.custom && kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{patched}'"));
    }
    let (group, version, kind) = kind_of(resource, &admitted.operation.subresource);
    if admitted.verb != Verb::Connect && kind == resource.kind {
        return decode::changed(resource, patched, Some(shown)).map(|decoded| decoded.value);
    }
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let Some(definition) = FACTS.struct_of(&api_version, kind) else { return Ok(patched) };
    let typed = typed::convert(&FACTS.structs, &definition, patched, "", &mut Vec::new());
    let mut typed = typed.map_err(|failure| failure.0)?;
    kinds::defaults::fill(&FACTS.structs, &definition, &mut typed);
    typed["kind"] = json!(kind);
    typed["apiVersion"] = json!(api_version);
    Ok(typed)
}
