//! What the bench's operators have in common: each Greeting owns one ConfigMap and has a status.
//!
//! Their Go twin on controller-runtime is in `controller-runtime/`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Config, CustomResource};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_clock::Clock;

/// How many reconciles run at once, in each of them.
pub const WORKERS: u16 = 4;

/// What is to be said.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bench.windlass.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
pub struct GreetingSpec {
    /// The text.
    pub text: String,
    /// When this text was asked for, in nanoseconds since 1970; absent when nobody measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<i64>,
}

/// What is said.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GreetingStatus {
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Greeting {
    /// Whether its status says what its spec does.
    pub fn is_said(&self) -> bool {
        self.status.as_ref().and_then(|status| status.text.as_ref()) == Some(&self.spec.text)
    }

    /// The status that it should have.
    pub fn said(&self) -> GreetingStatus {
        GreetingStatus { text: Some(self.spec.text.clone()) }
    }

    /// Its child, without an owner.
    pub fn child(&self) -> ConfigMap {
        let mut child = ConfigMap::default();
        child.metadata.name.clone_from(&self.metadata.name);
        child.metadata.namespace.clone_from(&self.metadata.namespace);
        child.data = Some([("text".to_owned(), self.spec.text.clone())].into());
        child
    }
}

/// By when it was asked for.
static DELAYS: Mutex<BTreeMap<i64, Duration>> = Mutex::new(BTreeMap::new());

/// Notes how long ago this greeting was asked for, if the first reconcile for it has just begun. One that is decided about again,
/// on what its own reconcile wrote, began before.
pub fn note_delay(greeting: &Greeting) {
    let Some(sent) = greeting.spec.sent.filter(|_| !greeting.is_said()) else { return };
    let now = Clock::real().now().as_nanosecond();
    let delay = u64::try_from(now - i128::from(sent)).unwrap_or(0);
    DELAYS.lock().entry(sent).or_insert(Duration::from_nanos(delay));
}

/// Prints what was noted, as one line of JSON.
pub fn print_delays() {
    let mut all: Vec<Duration> = std::mem::take(&mut *DELAYS.lock()).into_values().collect();
    all.sort_unstable();
    let mut told = serde_json::json!({ "delays": all.len() });
    for (name, rank) in [("p50_ms", 50), ("p99_ms", 99)] {
        if let Some(delay) = all.get((all.len().saturating_sub(1)) * rank / 100) {
            told[name] = (delay.as_secs_f64() * 1e3).into();
        }
    }
    println!("{told}");
}

/// The way to the cluster of `KUBECONFIG`, with the name by which its requests are found again.
///
/// # Errors
/// When there is no such cluster.
pub async fn config(name: &'static str) -> anyhow::Result<Config> {
    let mut config = Config::infer().await?;
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(name)));
    Ok(config)
}
