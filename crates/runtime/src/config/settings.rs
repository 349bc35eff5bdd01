//! All options as values, with their defaults.

use super::options::{Options, Output};
use crate::logs::LogFormat;
use crate::serve::Bind;
use crate::webhook::WebhookServer;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What an operator is told when it starts. Its default is what holds where nothing is given.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// How to reach the cluster; nothing is the environment's way.
    pub kubeconfig: Option<PathBuf>,
    /// The namespaces to watch; none is all.
    pub namespaces: Vec<String>,
    /// The cluster's id, which is in every key.
    pub cluster_id: String,
    /// Where `/metrics` and `/debug` are served.
    pub metrics: Bind,
    /// Where `/healthz` and `/readyz` are served.
    pub health: Bind,
    /// Where webhooks are served, and how they are reached; nothing is nowhere.
    pub webhooks: Option<WebhookServer>,
    /// Where webhooks are served, over what follows from how they are reached.
    pub webhook_bind: Option<Bind>,
    /// How many ways to reach webhooks were given.
    pub(super) ways_to_webhooks: usize,
    /// Whether to work only while holding a lease.
    pub leader_elect: bool,
    /// The lease's name; nothing is the program's.
    pub lease: Option<String>,
    /// The lease's namespace; nothing is the pod's own.
    pub lease_namespace: Option<String>,
    /// How long the lease lasts.
    pub lease_lasts: Duration,
    /// How long a leader that cannot renew goes on.
    pub renew_within: Duration,
    /// How often the lease is renewed.
    pub retry: Duration,
    /// Whether to stand by when the lease is lost, instead of ending.
    pub rejoin_election: bool,
    /// How many objects controllers work on at once, by controller.
    pub concurrency: BTreeMap<String, usize>,
    /// How long the first lists may take.
    pub cache_sync_timeout: Duration,
    /// How long reconciles may take to end.
    pub graceful_shutdown_timeout: Duration,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// What is logged.
    pub log_level: String,
    /// Whether commands print JSON.
    pub json: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(Options::default())
    }
}

impl From<Options> for Settings {
    fn from(options: Options) -> Self {
        let loopback = |port| Bind::At((std::net::Ipv4Addr::LOCALHOST, port).into());
        let name = |given: Option<String>| given.filter(|name| !name.is_empty());
        let seconds = |given: Option<Duration>, default| given.unwrap_or(Duration::from_secs(default));
        let webhooks = [
            options.webhook_service.filter(|name| !name.is_empty()).map(WebhookServer::behind_service),
            options.webhook_url.and_then(|url| url.0),
            options
                .webhook_cert_dir
                .filter(|path| !path.as_os_str().is_empty())
                .map(WebhookServer::with_certificates),
        ];
        let ways_to_webhooks = webhooks.iter().flatten().count();
        let webhooks =
            webhooks.into_iter().flatten().next().and_then(|server| match options.webhook_bind_address {
                Some(Bind::At(address)) => Some(server.bind(address)),
                Some(Bind::Off) => None,
                None => Some(server),
            });
        Self {
            webhooks,
            webhook_bind: options.webhook_bind_address,
            ways_to_webhooks,
            kubeconfig: options.kubeconfig.filter(|path| !path.as_os_str().is_empty()),
            namespaces: options.namespace.into_iter().flat_map(|names| names.0).collect(),
            cluster_id: options.cluster_id.unwrap_or_else(|| "local".to_owned()),
            metrics: options.metrics_bind_address.unwrap_or_else(|| loopback(8080)),
            health: options.health_probe_bind_address.unwrap_or_else(|| loopback(8081)),
            leader_elect: options.leader_elect.unwrap_or(false),
            lease: name(options.leader_election_id),
            lease_namespace: name(options.leader_election_namespace),
            lease_lasts: seconds(options.leader_election_lease_duration, 15),
            renew_within: seconds(options.leader_election_renew_deadline, 10),
            retry: seconds(options.leader_election_retry_period, 2),
            rejoin_election: options.rejoin_election.unwrap_or(false),
            concurrency: options.concurrency.into_iter().flat_map(|workers| workers.0).collect(),
            cache_sync_timeout: seconds(options.cache_sync_timeout, 120),
            graceful_shutdown_timeout: seconds(options.graceful_shutdown_timeout, 30),
            log_format: options.log_format.unwrap_or_default(),
            log_level: options.log_level.unwrap_or_else(|| "info".to_owned()),
            json: options.output == Some(Output::Json),
        }
    }
}

impl Settings {
    /// Whether the durations of the leader election fit together, and what is said of webhooks.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.ways_to_webhooks > 1 {
            let message =
                "give one of webhook-service, webhook-url and webhook-cert-dir: they are reached in one way";
            return Err(("webhooks", message.to_owned()));
        }
        if !(self.retry < self.renew_within && self.renew_within < self.lease_lasts) {
            let message = format!(
                "the lease duration ({:?}) must be longer than the renew deadline ({:?}), and that longer than the \
                 retry period ({:?})",
                self.lease_lasts, self.renew_within, self.retry
            );
            return Err(("leader election", message));
        }
        Ok(())
    }
}
