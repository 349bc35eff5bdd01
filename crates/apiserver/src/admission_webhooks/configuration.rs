//! The stored webhook configurations, as they are asked.

use super::metrics::Metrics;
use crate::dial::Dialer;
use crate::following::{Following, Index};
use crate::kinds::match_conditions::MatchConditions;
use crate::match_resources::{MatchResources, Rule};
use crate::object::{list, text};
use crate::webhook_client::{Caller, ClientConfig, Network};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_schema::selector::Labels;
use windlass_store::{Entry, Store};

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// How long a webhook may take that does not say so, and the most that it may say, in seconds.
const USUAL_TIMEOUT: u64 = 10;
const LONGEST_TIMEOUT: u64 = 30;

/// All webhooks, in the order in which they are asked: by the names of their configurations, and as those have them.
pub(crate) struct Webhooks {
    following: Following<Configurations>,
    pub(crate) network: Network,
    pub(crate) metrics: Metrics,
}

impl Webhooks {
    pub(crate) fn new(store: Arc<Store>, dialer: Arc<Dialer>) -> Self {
        let network = Network { store: store.clone(), dialer };
        Self { following: Following::new(store), network, metrics: Metrics::default() }
    }

    pub(crate) fn mutating(&self) -> Arc<[Arc<Webhook>]> {
        self.following.current().mutating.all.clone()
    }

    pub(crate) fn validating(&self) -> Arc<[Arc<Webhook>]> {
        self.following.current().validating.all.clone()
    }
}

#[derive(Default)]
struct Configurations {
    mutating: Configured,
    validating: Configured,
}

/// The webhooks of one sort.
struct Configured {
    by_configuration: BTreeMap<String, Vec<Arc<Webhook>>>,
    all: Arc<[Arc<Webhook>]>,
}

impl Default for Configured {
    fn default() -> Self {
        Self { by_configuration: BTreeMap::new(), all: Arc::new([]) }
    }
}

impl Index for Configurations {
    const RESOURCES: &'static [&'static str] = &[MUTATING, VALIDATING];

    fn take(&mut self, entry: &Entry, gone: bool) {
        let configured = match &*entry.key().resource {
            MUTATING => &mut self.mutating,
            _ => &mut self.validating,
        };
        let name = &entry.key().name;
        match gone {
            true => drop(configured.by_configuration.remove(&**name)),
            false => drop(configured.by_configuration.insert(name.to_string(), read(name, &entry.value()))),
        }
        configured.all = configured.by_configuration.values().flatten().cloned().collect();
    }
}

fn read(configuration: &str, object: &Value) -> Vec<Arc<Webhook>> {
    let read = |(index, webhook): (usize, &Value)| match Written::deserialize(webhook) {
        Ok(written) => Some(Arc::new(Webhook::new(configuration, index, written))),
        Err(error) => {
            // What is stored was validated, so that this is nothing that a client can bring about.
            tracing::error!(%error, configuration, webhook = text(webhook, &["name"]), "a webhook is not read");
            None
        }
    };
    list(object, &["webhooks"]).iter().enumerate().filter_map(read).collect()
}

/// One webhook.
pub(crate) struct Webhook {
    pub(crate) configuration: String,
    pub(crate) name: String,
    /// Tells it from all others.
    pub(crate) uid: String,
    /// Whether the request goes on without its answer.
    pub(crate) fails_open: bool,
    /// What it is asked about.
    pub(crate) matching: MatchResources,
    /// Whether it may be asked about what is not to happen.
    pub(crate) asked_in_dry_runs: bool,
    pub(crate) timeout: Duration,
    /// The versions of AdmissionReview that it understands, the best first.
    pub(super) review_versions: Vec<String>,
    /// Whether it is asked again if others changed the object after it.
    pub(crate) reinvoked: bool,
    pub(crate) conditions: MatchConditions,
    pub(super) caller: Caller,
}

impl Webhook {
    fn new(configuration: &str, index: usize, written: Written) -> Self {
        let conditions = written.match_conditions.unwrap_or_default();
        let seconds = written.timeout_seconds.unwrap_or(USUAL_TIMEOUT).clamp(1, LONGEST_TIMEOUT);
        Self {
            uid: format!("{configuration}/{}/{index}", written.name),
            configuration: configuration.to_owned(),
            fails_open: written.failure_policy.as_deref() == Some("Ignore"),
            matching: MatchResources {
                rules: written.rules.unwrap_or_default(),
                excluded: Vec::new(),
                equivalent: written.match_policy.as_deref() != Some("Exact"),
                namespaces: selector(&written.namespace_selector),
                objects: selector(&written.object_selector),
            },
            asked_in_dry_runs: matches!(written.side_effects.as_deref(), Some("None" | "NoneOnDryRun")),
            timeout: Duration::from_secs(seconds),
            review_versions: written.admission_review_versions,
            reinvoked: written.reinvocation_policy.as_deref() == Some("IfNeeded"),
            conditions: MatchConditions::new(
                conditions.iter().map(|condition| condition.expression.as_str()),
            ),
            caller: Caller::new(written.client_config),
            name: written.name,
        }
    }
}

fn selector(written: &Value) -> Labels {
    Labels::from_json(written).unwrap_or_default()
}

/// A webhook as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    name: String,
    client_config: ClientConfig,
    rules: Option<Vec<Rule>>,
    failure_policy: Option<String>,
    match_policy: Option<String>,
    namespace_selector: Value,
    object_selector: Value,
    side_effects: Option<String>,
    timeout_seconds: Option<u64>,
    admission_review_versions: Vec<String>,
    reinvocation_policy: Option<String>,
    match_conditions: Option<Vec<MatchCondition>>,
}

/// A condition in CEL.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct MatchCondition {
    expression: String,
}
