//! Match conditions of a webhook during a request: evaluated, and again with what the authorizer answered.

use super::Admitted;
use super::matching::Invocation;
use super::request::shown_request;
use crate::admission_webhooks::{Called, WebhookType};
use crate::authorization::{Attributes, Decision, On, Refusal, ResourceAttributes};
use crate::flow::convert;
use crate::kinds::match_conditions::{ConditionVariables, Holds};
use crate::operation::Operation;
use crate::request::Identity;
use crate::status::Status;
use serde_json::Value;
use windlass_clock::Clock;
use windlass_schema::field::aggregate;
use windlass_schema::{AuthorizerAnswers, AuthorizerCheck, AuthorizerDecision};

/// Whether all conditions of a webhook hold.
///
/// # Errors
/// 403 when one fails, and the webhook is not to be done without.
pub(super) async fn hold(
    invocation: &Invocation,
    kind: WebhookType,
    admitted: &Admitted<'_>,
    object: Option<&Value>,
) -> Result<bool, Status> {
    let (operation, webhook) = (admitted.operation, &invocation.webhook);
    let object = convert::for_webhook(operation, &invocation.resource, object).await?;
    let old = convert::for_webhook(operation, &invocation.resource, admitted.old).await?;
    let seen = ConditionVariables {
        object: object.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        old: old.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        request: shown_request(&invocation.resource, admitted),
        on: admitted.request_resource(),
    };
    let mut answers = AuthorizerAnswers::default();
    let began = Clock::real().moment();
    let (holds, failed) = loop {
        match webhook.conditions.hold(&seen, &answers) {
            Holds::Yes => break (true, Vec::new()),
            Holds::No => break (false, Vec::new()),
            Holds::Failed(failed) => break (!webhook.fails_open, failed),
            // What a check costs bounds how many there are.
            Holds::Unanswered(check) => {
                let decision = ask_authorizer(operation, &check).await;
                answers.learn(*check, decision);
            }
        }
    };
    let called = Called { name: &webhook.name, kind, operation: admitted.verb.name() };
    let took = Clock::real().moment().since(began);
    operation.api.webhooks.metrics.conditions(&called, took, failed.len(), !holds);
    match failed.is_empty() || !holds {
        true => Ok(holds),
        false => Err(Status::forbidden(operation.resource.named(), &admitted.name, &aggregate(&failed))),
    }
}

/// What the authorizers say to a question of an expression.
pub(in crate::flow) async fn ask_authorizer(
    operation: &Operation<'_>,
    check: &AuthorizerCheck,
) -> AuthorizerDecision {
    let account;
    let identity = match &check.service_account {
        None => operation.identity,
        Some((namespace, name)) => {
            account = Identity::service_account(namespace, name);
            &account
        }
    };
    let on = match &check.path {
        Some(path) => On::Path(path),
        None => On::Resource(ResourceAttributes {
            group: &check.group,
            version: "*",
            resource: &check.resource,
            subresource: &check.subresource,
            namespace: &check.namespace,
            name: &check.name,
            field_selector: &check.field_selector,
            label_selector: &check.label_selector,
        }),
    };
    let attributes = Attributes { identity, verb: &check.verb, on };
    match operation.api.authorizer.authorize(&attributes).await {
        Decision::Allow(by) => {
            AuthorizerDecision { allowed: true, reason: by.to_string(), error: String::new() }
        }
        Decision::Refuse(Refusal { reason, error, .. }) => {
            AuthorizerDecision { allowed: false, reason, error }
        }
    }
}
