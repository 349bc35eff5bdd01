//! What it means for a request that a webhook refuses it, or gives no answer.

use super::configuration::Webhook;
use crate::status::{Details, Status};
use serde_json::Value;

/// 500 for a webhook that gave no answer and is not to be done without.
pub(crate) fn failed(webhook: &Webhook, why: &str) -> Status {
    Status::internal(format!("failed calling webhook {:?}: {why}", webhook.name))
}

/// 400 for a request that is not to happen, and that a webhook would act upon.
pub(crate) fn no_dry_run(webhook: &Webhook) -> Status {
    Status::bad_request(format!("admission webhook {:?} does not support dry run", webhook.name))
}

/// The status that a webhook gives as its reason, as far as it gives one.
pub(crate) fn denied(webhook: &str, result: Option<&Value>) -> Status {
    let text = |field: &str| result.and_then(|result| result.get(field)?.as_str()).unwrap_or_default();
    let by = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code =
        result.and_then(|result| result.get("code")?.as_u64()).and_then(|code| u16::try_from(code).ok());
    let details = result.and_then(|result| result.get("details")).filter(|details| details.is_object());
    let details = details.and_then(|details| serde_json::from_value::<Details>(details.clone()).ok());
    Status {
        // A refusal is none with the code of a success, and what is no code of HTTP cannot be answered.
        code: code.filter(|code| (400..1000).contains(code)).unwrap_or(400),
        reason: text("reason").to_owned().into(),
        message,
        details: details.map(Box::new),
        continue_token: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_has_what_the_webhook_says() {
        let message = |result: Value| denied("a.b.c", Some(&result)).message;
        let by = "admission webhook \"a.b.c\" denied the request";
        assert_eq!(denied("a.b.c", None).message, format!("{by} without explanation"));
        assert_eq!(message(json!({"message": "no"})), format!("{by}: no"));
        assert_eq!(message(json!({"reason": "Because"})), format!("{by}: Because"));
        let status = denied(
            "a.b.c",
            Some(&json!({"code": 418, "details": {"name": "x", "causes": [{"field": "f"}]}})),
        );
        assert_eq!((status.code, status.details.unwrap().causes.len()), (418, 1));
        for code in [json!(200), json!(0), json!(70000), json!("x"), json!(-1)] {
            assert_eq!(denied("a.b.c", Some(&json!({"code": code}))).code, 400);
        }
    }
}
