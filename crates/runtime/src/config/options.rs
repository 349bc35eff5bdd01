//! Each option, as it can be given in any place. What is not given is `None`, or empty.

use crate::logs::{self, LogFormat};
use crate::serve::Bind;
use crate::webhook::WebhookServer;
use clap::Args as _;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The options of an operator. Defaults are in [`Settings`](super::Settings): one here would hide what the file says.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub(super) struct Options {
    /// A YAML file with options, under these names
    #[arg(long, value_name = "FILE", value_parser = path)]
    pub(super) config: Option<PathBuf>,
    /// The kubeconfig [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE", value_parser = path)]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Watch this namespace only; may be repeated [default: all namespaces]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = names)]
    pub(super) namespace: Vec<Names>,
    /// The name of this cluster in keys [default: local]
    #[arg(long, value_name = "ID")]
    pub(super) cluster_id: Option<String>,
    /// The address of /metrics and /debug; :PORT for all interfaces, 0 to disable [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = bind)]
    pub(super) metrics_bind_address: Option<Bind>,
    /// The address of /healthz and /readyz; the kubelet needs :PORT, 0 to disable [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS", value_parser = bind)]
    pub(super) health_probe_bind_address: Option<Bind>,
    /// The Service by which the API server reaches the webhooks; certificates are made in Secrets beside it
    #[arg(long, value_name = "NAME")]
    pub(super) webhook_service: Option<String>,
    /// The URL by which the API server reaches the webhooks, such as https://HOST:9443
    #[arg(long, value_name = "URL", value_parser = webhook_url)]
    pub(super) webhook_url: Option<WebhookUrl>,
    /// A folder with tls.crt and tls.key for the webhooks, from cert-manager or somebody else
    #[arg(long, value_name = "FOLDER", value_parser = path)]
    pub(super) webhook_cert_dir: Option<PathBuf>,
    /// The address of the webhooks [default: :9443, or that of a loopback --webhook-url]
    #[arg(long, value_name = "ADDRESS", value_parser = bind)]
    pub(super) webhook_bind_address: Option<Bind>,
    /// Reconcile only while holding a lease: for several replicas
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(super) leader_elect: Option<bool>,
    /// The name of the lease [default: that of the program]
    #[arg(long, value_name = "NAME")]
    pub(super) leader_election_id: Option<String>,
    /// The namespace of the lease [default: that of the pod, or of the kubeconfig]
    #[arg(long, value_name = "NAMESPACE")]
    pub(super) leader_election_namespace: Option<String>,
    /// How long the lease is valid after it was last renewed [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) leader_election_lease_duration: Option<Duration>,
    /// How long a leader that cannot renew its lease goes on [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) leader_election_renew_deadline: Option<Duration>,
    /// How long to wait between attempts to acquire or renew the lease [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) leader_election_retry_period: Option<Duration>,
    /// Wait for the lease again when it is lost, instead of exiting
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(super) rejoin_election: Option<bool>,
    /// The number of concurrent reconciles of a controller; may be repeated
    #[arg(long, value_name = "CONTROLLER=N", value_parser = concurrency)]
    pub(super) concurrency: Vec<Concurrency>,
    /// How long the caches may take to sync [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) cache_sync_timeout: Option<Duration>,
    /// How long reconciles may take to end when the operator is stopped [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) graceful_shutdown_timeout: Option<Duration>,
    /// The format of log lines: json or human [default: human]
    #[arg(long, value_name = "FORMAT", value_parser = log_format)]
    pub(super) log_format: Option<LogFormat>,
    /// error, warn, info, debug or trace; or by module: info,kube=debug [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = log_level)]
    pub(super) log_level: Option<String>,
    /// The format that plan and why print: text or json [default: text]
    #[arg(long, short, value_name = "FORMAT", value_parser = output)]
    pub(super) output: Option<Output>,
}

/// Namespaces, with commas between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Names(pub(super) Vec<String>);

/// The number of workers by controller, with commas between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Concurrency(pub(super) BTreeMap<String, usize>);

/// A URL of webhooks; nothing for an empty one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WebhookUrl(pub(super) Option<WebhookServer>);

/// How commands print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Text,
    Json,
}

impl Options {
    /// The options as clap knows them.
    pub(super) fn command() -> clap::Command {
        Self::augment_args(clap::Command::new("options")).no_binary_name(true).disable_help_flag(true)
    }

    /// Each by the identifier that clap gives it.
    pub(super) fn names() -> impl Iterator<Item = String> {
        Self::command().get_arguments().map(|arg| arg.get_id().to_string()).collect::<Vec<_>>().into_iter()
    }

    /// What is given here, or else in a place that counts less.
    pub(super) fn or(self, less: Self) -> Self {
        let several = |more: Vec<_>, less| if more.is_empty() { less } else { more };
        let concurrency = if self.concurrency.is_empty() { less.concurrency } else { self.concurrency };
        Self {
            config: self.config.or(less.config),
            kubeconfig: self.kubeconfig.or(less.kubeconfig),
            namespace: several(self.namespace, less.namespace),
            cluster_id: self.cluster_id.or(less.cluster_id),
            metrics_bind_address: self.metrics_bind_address.or(less.metrics_bind_address),
            health_probe_bind_address: self.health_probe_bind_address.or(less.health_probe_bind_address),
            webhook_service: self.webhook_service.or(less.webhook_service),
            webhook_url: self.webhook_url.or(less.webhook_url),
            webhook_cert_dir: self.webhook_cert_dir.or(less.webhook_cert_dir),
            webhook_bind_address: self.webhook_bind_address.or(less.webhook_bind_address),
            leader_elect: self.leader_elect.or(less.leader_elect),
            leader_election_id: self.leader_election_id.or(less.leader_election_id),
            leader_election_namespace: self.leader_election_namespace.or(less.leader_election_namespace),
            leader_election_lease_duration: self
                .leader_election_lease_duration
                .or(less.leader_election_lease_duration),
            leader_election_renew_deadline: self
                .leader_election_renew_deadline
                .or(less.leader_election_renew_deadline),
            leader_election_retry_period: self
                .leader_election_retry_period
                .or(less.leader_election_retry_period),
            rejoin_election: self.rejoin_election.or(less.rejoin_election),
            concurrency,
            cache_sync_timeout: self.cache_sync_timeout.or(less.cache_sync_timeout),
            graceful_shutdown_timeout: self.graceful_shutdown_timeout.or(less.graceful_shutdown_timeout),
            log_format: self.log_format.or(less.log_format),
            log_level: self.log_level.or(less.log_level),
            output: self.output.or(less.output),
        }
    }
}

/// An empty path is none, as an empty variable is.
fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

fn each(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn names(text: &str) -> Result<Names, String> {
    Ok(Names(each(text).map(str::to_owned).collect()))
}

fn concurrency(text: &str) -> Result<Concurrency, String> {
    each(text).map(workers).collect::<Result<_, _>>().map(Concurrency)
}

fn workers(text: &str) -> Result<(String, usize), String> {
    let wrong = || format!("{text:?} is not CONTROLLER=N with a number of at least 1");
    let (controller, count) = text.split_once('=').ok_or_else(wrong)?;
    match count.trim().parse() {
        Ok(count) if count > 0 => Ok((controller.trim().to_owned(), count)),
        _ => Err(wrong()),
    }
}

fn bind(text: &str) -> Result<Bind, String> {
    text.parse().map_err(|error: crate::serve::InvalidAddress| error.to_string())
}

fn webhook_url(text: &str) -> Result<WebhookUrl, String> {
    if text.is_empty() {
        return Ok(WebhookUrl(None));
    }
    let server = WebhookServer::at_url(text).map_err(|error| error.to_string())?;
    Ok(WebhookUrl(Some(server)))
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "not a duration: write 30s, 2m or 1h30m".to_owned();
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).map_err(|_| wrong())
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "json" => Ok(LogFormat::Json),
        "human" => Ok(LogFormat::Human),
        _ => Err("write json or human".to_owned()),
    }
}

fn log_level(text: &str) -> Result<String, String> {
    logs::filter(text).map(|_| text.to_owned())
}

fn output(text: &str) -> Result<Output, String> {
    match text {
        "text" => Ok(Output::Text),
        "json" => Ok(Output::Json),
        _ => Err("write text or json".to_owned()),
    }
}
