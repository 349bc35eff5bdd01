//! Admission webhooks: other servers that are asked whether an object may be written, and what it is to be.
//!
//! - `configuration`: the stored configurations as they are asked, an index that follows the store
//! - `review`: the question and the answer; `call`: how it is asked; `refusal`: what its failure means
//! - `metrics`: what is counted
//!
//! In which order they are asked during a write, and what becomes of their answers, is in `flow::webhooks`.

mod call;
mod configuration;
mod metrics;
mod refusal;
mod review;

pub(crate) use call::NoAnswer;
pub(crate) use configuration::{Webhook, Webhooks};
pub(crate) use metrics::{Called, ErrorType, WebhookType};
pub(crate) use refusal::{denied, failed, no_dry_run};
pub(crate) use review::{Question, Reply};
