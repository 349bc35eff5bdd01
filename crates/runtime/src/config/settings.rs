//! Everything that can be said, as values.

use super::options::Known;
use crate::logs::LogFormat;
use crate::serve::Bind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What an operator's process is told when it starts. Its default is what holds when nobody says anything.
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
        let mut settings = Self {
            kubeconfig: None,
            namespaces: Vec::new(),
            cluster_id: String::new(),
            metrics: Bind::Off,
            health: Bind::Off,
            leader_elect: false,
            lease: None,
            lease_namespace: None,
            lease_lasts: Duration::ZERO,
            renew_within: Duration::ZERO,
            retry: Duration::ZERO,
            rejoin_election: false,
            concurrency: BTreeMap::new(),
            cache_sync_timeout: Duration::ZERO,
            graceful_shutdown_timeout: Duration::ZERO,
            log_format: LogFormat::Human,
            log_level: String::new(),
            json: false,
        };
        for known in super::options::OPTIONS.iter().filter(|known| !known.default.is_empty()) {
            settings
                .set(known, &[known.default.to_owned()])
                .expect("the table's defaults are values; a test reads them");
        }
        settings
    }
}

impl Settings {
    /// Takes what was said about one option.
    pub(super) fn set(&mut self, known: &Known, values: &[String]) -> Result<(), String> {
        let value = values.last().map(String::as_str).unwrap_or_default();
        let some = || Some(value.to_owned()).filter(|value| !value.is_empty());
        match known.name {
            "kubeconfig" => self.kubeconfig = some().map(PathBuf::from),
            "namespace" => self.namespaces = each(values).map(str::to_owned).collect(),
            "cluster-id" => self.cluster_id = value.to_owned(),
            "metrics-bind-address" => self.metrics = value.parse().map_err(say)?,
            "health-probe-bind-address" => self.health = value.parse().map_err(say)?,
            "leader-elect" => self.leader_elect = switch(value)?,
            "leader-election-id" => self.lease = some(),
            "leader-election-namespace" => self.lease_namespace = some(),
            "leader-election-lease-duration" => self.lease_lasts = duration(value)?,
            "leader-election-renew-deadline" => self.renew_within = duration(value)?,
            "leader-election-retry-period" => self.retry = duration(value)?,
            "rejoin-election" => self.rejoin_election = switch(value)?,
            "concurrency" => self.concurrency = each(values).map(workers).collect::<Result<_, _>>()?,
            "cache-sync-timeout" => self.cache_sync_timeout = duration(value)?,
            "graceful-shutdown-timeout" => self.graceful_shutdown_timeout = duration(value)?,
            "log-format" => {
                self.log_format = match value {
                    "json" => LogFormat::Json,
                    "human" => LogFormat::Human,
                    other => return Err(format!("{other:?} is neither json nor human")),
                }
            }
            "log-level" => {
                crate::logs::filter(value)?;
                self.log_level = value.to_owned();
            }
            "output" => {
                self.json = match value {
                    "json" => true,
                    "text" => false,
                    other => return Err(format!("{other:?} is neither text nor json")),
                }
            }
            // Read before all others.
            "config" => {}
            other => unreachable!("{other} is in the table and not here; a test sets each"),
        }
        Ok(())
    }

    /// Whether what was said fits together.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(self.retry < self.renew_within && self.renew_within < self.lease_lasts) {
            return Err(format!(
                "a lease of {:?} must be longer than the {:?} that a leader goes on without renewing, and those \
                 longer than the {:?} between two attempts",
                self.lease_lasts, self.renew_within, self.retry
            ));
        }
        Ok(())
    }
}

fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn each(values: &[String]) -> impl Iterator<Item = &str> {
    values.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|value| !value.is_empty())
}

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

fn duration(value: &str) -> Result<Duration, String> {
    let wrong = || format!("{value:?} is no duration: write 30s, 2m or 1h30m");
    let parsed: jiff::SignedDuration = value.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).map_err(|_| wrong())
}

fn workers(value: &str) -> Result<(String, usize), String> {
    let wrong = || format!("{value:?} is no CONTROLLER=N");
    let (controller, count) = value.split_once('=').ok_or_else(wrong)?;
    match count.trim().parse() {
        Ok(count) if count > 0 => Ok((controller.trim().to_owned(), count)),
        _ => Err(wrong()),
    }
}
