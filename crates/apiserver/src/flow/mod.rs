//! The way of a write, one file per step, in the order in which they run:
//! authenticate, authorize, decode + default, managed fields, mutate, prepare, validate, admit, commit.
//!
//! Updates and patches run it again inside the retry of the compare-and-swap.

pub(crate) mod admit;
pub(crate) mod authenticate;
pub(crate) mod authorize;
pub(crate) mod commit;
pub(crate) mod decode;
pub(crate) mod managed;
pub(crate) mod mutate;
pub(crate) mod prepare;
mod protocol_token;
pub(crate) mod validate;
pub(crate) mod yaml;
mod yaml_told;

use crate::api::Inner;
use crate::faults::Mutation;
use crate::flow::authenticate::Identity;
use crate::query::{Strictness, WriteOptions};
use crate::resource::Resource;
use crate::status::Status;
use crate::store::Key;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;

/// One write on its way through the steps.
pub(crate) struct Operation<'a> {
    pub(crate) api: &'a Inner,
    pub(crate) identity: &'a Identity,
    pub(crate) resource: Arc<Resource>,
    /// From the path; empty for what belongs to the whole cluster.
    pub(crate) namespace: String,
    /// From the path; empty when creating.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    pub(crate) options: WriteOptions,
    /// What the client is told with the answer.
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    /// What faults make of the object.
    pub(crate) mutations: Vec<Mutation>,
}

impl Operation<'_> {
    /// Where an object of this name is stored.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key::new(self.resource.storage_key(), self.namespace.as_str(), name)
    }

    /// Tells the client something beside the answer, once.
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        let mut told = self.warnings.lock();
        for warning in warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
    }

    /// The wall clock, as objects are stamped.
    pub(crate) fn now(&self) -> String {
        stamp(self.api.clock.now())
    }

    /// Refuses, warns about or ignores what decoding found to be unknown or duplicate.
    pub(crate) fn judge(
        &self,
        decoded: decode::Decoded,
        warnings: &Mutex<Vec<String>>,
    ) -> Result<Value, Status> {
        match self.options.strictness {
            Strictness::Strict if !decoded.complaints.is_empty() => {
                let text = format!("strict decoding error: {}", decoded.complaints.join(", "));
                Err(decode::unhandled(&self.resource, &text))
            }
            Strictness::Warn => {
                warnings.lock().extend(decoded.complaints);
                Ok(decoded.value)
            }
            _ => Ok(decoded.value),
        }
    }
}

/// A time as metadata has it.
pub(crate) fn stamp(time: windlass_clock::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
