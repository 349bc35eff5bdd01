//! How an admission webhook is asked.

use super::Webhooks;
use super::configuration::Webhook;
use super::review::{InvalidReply, Question, Reply};
use crate::webhook_client::CallError;
use std::time::Duration;

/// Why a webhook gave no answer.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    pub(crate) why: String,
    /// The code that its failure counts as.
    pub(crate) code: u16,
}

impl Webhooks {
    /// Asks a webhook within a time, which it is told of.
    pub(crate) async fn ask(
        &self,
        webhook: &Webhook,
        question: &Question,
        mutating: bool,
        timeout: Duration,
    ) -> Result<Reply, NoAnswer> {
        let failed = |why: String, code| NoAnswer { why: format!("failed to call webhook: {why}"), code };
        let answered = webhook.caller.post(&self.network, question.body.clone(), timeout).await;
        let answered = answered.map_err(|error| match error {
            CallError::NoClient(why) => {
                NoAnswer { why: format!("could not get REST client: {why}"), code: 500 }
            }
            CallError::Failed(why, code) => failed(why, code),
        })?;
        question.reply(&answered, mutating).map_err(|invalid| match invalid {
            InvalidReply::Unreadable(why) => failed(why, 503),
            InvalidReply::Invalid(why) => {
                NoAnswer { why: format!("received invalid webhook response: {why}"), code: 503 }
            }
        })
    }
}
