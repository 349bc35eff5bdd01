//! A request for a resource, routed and read.

use super::{Conversions, Operation};
use crate::audit::AuditedRequest;
use crate::faults::Mutation;
use crate::read::WatchControl;
use crate::request::Identity;
use crate::request::media::accept::Negotiated;
use crate::request::path::Target;
use crate::request::query::Query;
use crate::request::write_options::WriteOptions;
use crate::resource::Resource;
use crate::state::ApiState;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_clock::Moment;
use windlass_store::Revision;

/// A request for a resource, routed and read.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a ApiState,
    pub(crate) identity: &'a Identity,
    pub(crate) resource: Arc<Resource>,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) user_agent: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// Answer as if nothing had happened after this revision.
    pub(crate) ceiling: Option<Revision>,
    /// What the client wants to be answered with.
    pub(crate) negotiated: Negotiated,
    /// What the client is told with the answer, whatever that is.
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    /// Ends watches when the server stops.
    pub(crate) ended: CancellationToken,
    /// For a watch: who may end it or hold it back.
    pub(crate) control: Option<WatchControl>,
    /// What faults make of an object that is written.
    pub(crate) mutations: Vec<Mutation>,
    /// The request, if it is audited.
    pub(crate) audited: Option<Arc<AuditedRequest>>,
    /// When it is to be given up, by the machine's own time.
    pub(crate) deadline: Moment,
}

impl Call<'_> {
    pub(crate) fn operation(&self, options: WriteOptions) -> Operation<'_> {
        Operation {
            api: self.api,
            identity: self.identity,
            resource: self.resource.clone(),
            namespace: self.target.namespace.clone().unwrap_or_default(),
            name: self.target.name.clone().unwrap_or_default(),
            subresource: self.target.subresource.clone().unwrap_or_default(),
            options,
            warnings: self.warnings.clone(),
            mutations: self.mutations.clone(),
            audited: self.audited.clone(),
            deadline: self.deadline,
            asks_webhooks: true,
            conversions: Conversions::default(),
        }
    }
}
