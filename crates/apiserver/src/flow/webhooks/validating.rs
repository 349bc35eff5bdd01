//! Validating webhooks: all that a request concerns are asked at once, and one refusal is enough.

use super::matching::{Invocation, invocation};
use super::{Admitted, Unanswered, asks};
use crate::admission_plugins::AdmissionPlugin;
use crate::admission_webhooks::{Called, ErrorType, WebhookType, denied, failed, no_dry_run};
use crate::flow::convert;
use crate::operation::Operation;
use crate::status::Status;
use futures::future::join_all;
use serde_json::Value;
use windlass_clock::Clock;

/// The audit annotation of one that gave no answer, before its number.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io/round_0_index_";

/// Asks whether an object may become `object`, or be deleted if that is none; what is admitted is told if anybody is to be asked.
///
/// # Errors
/// What the first of them that refuses says.
pub(crate) async fn validate<'a>(
    operation: &'a Operation<'a>,
    object: Option<&Value>,
    admitted: impl FnOnce() -> Admitted<'a>,
) -> Result<(), Status> {
    if !asks(operation, AdmissionPlugin::ValidatingAdmissionWebhook) {
        return Ok(());
    }
    let webhooks = operation.api.webhooks.validating();
    if webhooks.is_empty() {
        return Ok(());
    }
    let admitted = admitted();
    if admitted.is_exempt() {
        return Ok(());
    }
    let mut asked = Vec::new();
    for webhook in webhooks.iter() {
        asked.extend(invocation(webhook, WebhookType::Validating, &admitted, object).await?);
    }
    if asked.is_empty() {
        return Ok(());
    }
    operation.in_time()?;
    let asking = asked.iter().enumerate().map(|(index, one)| ask(index, one, &admitted, object));
    join_all(asking).await.into_iter().collect()
}

async fn ask(
    index: usize,
    invocation: &Invocation,
    admitted: &Admitted<'_>,
    object: Option<&Value>,
) -> Result<(), Status> {
    let (operation, webhook) = (admitted.operation, &invocation.webhook);
    let metrics = &operation.api.webhooks.metrics;
    let called =
        Called { name: &webhook.name, kind: WebhookType::Validating, operation: admitted.verb.name() };
    let began = Clock::real().moment();
    let took = || Clock::real().moment().since(began);
    if operation.options.dry_run && !webhook.asked_in_dry_runs {
        metrics.rejected(&called, ErrorType::ApiServerInternal, 0);
        metrics.called(&called, took(), 0, true);
        return Err(no_dry_run(webhook));
    }
    let shown = convert::for_webhook(operation, &invocation.resource, object).await?;
    let old = convert::for_webhook(operation, &invocation.resource, admitted.old).await?;
    match admitted.ask(invocation, shown.as_deref(), old.as_deref(), false).await {
        Ok(reply) if reply.allowed => {
            metrics.called(&called, took(), 200, false);
            Ok(())
        }
        Ok(reply) => {
            let status = denied(&webhook.name, reply.result.as_ref());
            metrics.rejected(&called, ErrorType::NoError, status.code);
            metrics.called(&called, took(), status.code, true);
            Err(status)
        }
        Err(Unanswered::Late(status)) => Err(status),
        Err(Unanswered::Call(error)) => {
            metrics.called(&called, took(), error.code, !webhook.fails_open);
            if webhook.fails_open {
                tracing::warn!(webhook = webhook.name, "a webhook failed and is ignored: {}", error.why);
                metrics.failed_open(&called);
                if let Some(audited) = &operation.audited {
                    audited.annotate_admission(&format!("{FAILED_OPEN}{index}"), &webhook.name);
                }
                return Ok(());
            }
            metrics.rejected(&called, ErrorType::CallingWebhook, error.code);
            Err(failed(webhook, &error.why))
        }
    }
}
