//! Audit: who asked for what, when, and what came of it, as far as a policy says; one JSON line for each stage of a request.
//!
//! Events are those of `audit.k8s.io/v1`, so that what reads the audit log of any Kubernetes reads this one. A request that the
//! policy does not name costs nothing but finding that out.

mod event;
mod log;
mod policy;

pub use log::AuditLog;
pub use policy::{AuditPolicy, InvalidAuditPolicy};

pub(crate) use event::AuditedRequest;

use crate::authorization::Attributes;
use crate::status::Status;
use event::Origin;
use log::Writer;
use policy::Stage;
use std::net::IpAddr;
use std::sync::Arc;
use windlass_clock::Clock;

/// What is audited, and where it is written.
#[derive(Debug, Clone)]
pub struct AuditConfig {
    /// Which requests, and how much of them.
    pub policy: AuditPolicy,
    /// Where to.
    pub log: AuditLog,
}

/// Where the client of a connection is, told with each of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceAddress(pub(crate) IpAddr);

/// Audits the requests of a server.
pub(crate) struct Auditor {
    policy: AuditPolicy,
    writer: Writer,
    clock: Clock,
}

impl Auditor {
    pub(crate) fn new(config: AuditConfig, clock: Clock) -> Self {
        Self { policy: config.policy, writer: Writer::new(config.log), clock }
    }

    /// Begins to audit a request, if the policy wants it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        asked: &Attributes<'_>,
        parts: &http::request::Parts,
    ) -> Option<AuditedRequest> {
        let rule = self.policy.rule_for(asked)?;
        let audited = AuditedRequest::new(self.clone(), rule, asked, &Origin::of(parts));
        audited.write(Stage::RequestReceived);
        Some(audited)
    }

    /// Audits a request whose sender proved nothing right.
    pub(crate) fn unauthenticated(
        self: &Arc<Self>,
        asked: &Attributes<'_>,
        parts: &http::request::Parts,
        status: &Status,
    ) {
        let Some(rule) = self.policy.rule_for(asked) else { return };
        AuditedRequest::new(self.clone(), rule, asked, &Origin::of(parts)).refuse(status);
    }
}
