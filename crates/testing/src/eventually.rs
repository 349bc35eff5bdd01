//! Waits that, when they fail, show the last state and what differed.

use crate::cluster::TestCluster;
use crate::difference::{missing, shown};
use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::time::Duration;
use windlass::{Kind, Object};
use windlass_clock::Clock;

/// The pause between two reads.
const PAUSE: Duration = Duration::from_millis(4);

/// Waits until an object is as it should be; made by [`TestCluster::eventually`]. Meanwhile the clock runs in real time.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use windlass_testing::{Data, TestCluster, config_map};
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let cluster = TestCluster::start();
/// cluster.create(config_map("a").data("k", "v")).await?;
/// cluster.eventually::<ConfigMap>("a").has(json!({"data": {"k": "v"}})).await?;
///
/// let within = std::time::Duration::from_millis(10);
/// let failed = cluster.eventually::<ConfigMap>("a").within(within).has(json!({"data": {"k": "w"}})).await;
/// let message = failed.unwrap_err().to_string();
/// assert!(message.contains(r#"data.k: is "v", should be "w""#), "{message}");
/// # Ok(())
/// # }
/// ```
#[must_use = "it looks when one of its methods is awaited"]
#[derive(Debug)]
pub struct Eventually<K> {
    cluster: TestCluster,
    name: String,
    timeout: Duration,
    kind: PhantomData<fn() -> K>,
}

impl TestCluster {
    /// Waits until the object of this name is as it should be.
    pub fn eventually<K: Object>(&self, name: &str) -> Eventually<K> {
        Eventually { cluster: self.clone(), name: name.to_owned(), timeout: self.timeout, kind: PhantomData }
    }

    /// Looks, again and again, until `holds` of what was found. `what` completes the sentence "it is not so that ...".
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// let cluster = windlass_testing::TestCluster::start();
    /// cluster.until("there are no secrets", || cluster.list::<Secret>(), Vec::is_empty).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it does not come true in time; the error shows what was found last.
    pub async fn until<T: Serialize, F: Future<Output = anyhow::Result<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> F,
        holds: impl Fn(&T) -> bool,
    ) -> anyhow::Result<T> {
        self.until_within(self.timeout, what, look, holds).await
    }

    /// As [`TestCluster::until`], with another timeout by the machine's clock.
    pub(crate) async fn until_within<T: Serialize, F: Future<Output = anyhow::Result<T>>>(
        &self,
        timeout: Duration,
        what: &str,
        look: impl Fn() -> F,
        holds: impl Fn(&T) -> bool,
    ) -> anyhow::Result<T> {
        let judge =
            |found: &T| if holds(found) { Vec::new() } else { vec![format!("it is not so that {what}")] };
        self.wait(what, timeout, look, judge).await
    }

    async fn wait<T: Serialize, F: Future<Output = anyhow::Result<T>>>(
        &self,
        what: &str,
        timeout: Duration,
        look: impl Fn() -> F,
        judge: impl Fn(&T) -> Vec<String>,
    ) -> anyhow::Result<T> {
        let wall = Clock::real();
        let deadline = wall.moment() + timeout;
        loop {
            let found = self.run_clock_while(look()).await;
            let wrong = match &found {
                Ok(found) => judge(found),
                Err(error) => vec![format!("{error:#}")],
            };
            match found {
                Ok(found) if wrong.is_empty() => return Ok(found),
                found if wall.moment() >= deadline => {
                    let last = found.ok().map(|found| serde_json::to_value(found).unwrap_or_default());
                    let last = last.map(|last| format!("\nlast seen:\n{}", shown(&readable(last))));
                    let wrong = wrong.join("\n  ");
                    let trouble = match self.trouble() {
                        lines if lines.is_empty() => String::new(),
                        lines => format!("\nwhat the operators say:\n  {}", lines.join("\n  ")),
                    };
                    bail!("not after {timeout:?}: {what}\n  {wrong}{}{trouble}", last.unwrap_or_default());
                }
                _ => self.run_clock_while(wall.sleep(PAUSE)).await,
            }
        }
    }
}

impl<K: Object> Eventually<K> {
    /// With this timeout by the machine's clock, instead of 20 s.
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// It exists.
    ///
    /// # Errors
    /// When it does not come true in time, as for all of these.
    pub async fn exists(self) -> anyhow::Result<K> {
        self.has(json!({})).await
    }

    /// It is deleted.
    ///
    /// # Errors
    /// When it is still there; the error shows it.
    pub async fn is_deleted(self) -> anyhow::Result<()> {
        let look = || self.cluster.find::<K>(&self.name);
        let judge = |found: &Option<K>| found.iter().map(|_| "it is there".to_owned()).collect();
        self.cluster.wait(&self.says("is gone"), self.timeout, look, judge).await.map(drop)
    }

    /// It has these fields with these values, whatever else it has.
    ///
    /// # Errors
    /// When it does not come true in time; the error names the fields that differ.
    pub async fn has(self, wanted: Value) -> anyhow::Result<K> {
        let says = self.says("is as it should be");
        self.judged(&says, |_, found| missing(&wanted, found)).await
    }

    /// It satisfies `holds`. `what` completes the sentence "the object ...", such as "is open".
    ///
    /// # Errors
    /// When it does not come true in time; the error shows what it was last.
    pub async fn is(self, what: &str, holds: impl Fn(&K) -> bool) -> anyhow::Result<K> {
        let says = self.says(what);
        let judge = |found: &K, _: &Value| match holds(found) {
            true => Vec::new(),
            false => vec!["it is not".to_owned()],
        };
        self.judged(&says, judge).await
    }

    /// It has a condition of this type that holds or does not.
    ///
    /// # Errors
    /// When it does not come true in time; the error shows the conditions that it has.
    pub async fn has_condition(self, of: &str, holds: bool) -> anyhow::Result<K> {
        let wanted = if holds { "True" } else { "False" };
        self.condition(of, move |condition| condition["status"] == wanted, &format!("is {wanted}")).await
    }

    /// It has a condition of this type with this reason.
    ///
    /// # Errors
    /// When it does not come true in time; the error shows the conditions that it has.
    pub async fn has_condition_because(self, of: &str, reason: &str) -> anyhow::Result<K> {
        self.condition(
            of,
            move |condition| condition["reason"] == *reason,
            &format!("is so because of {reason}"),
        )
        .await
    }

    async fn condition(self, of: &str, holds: impl Fn(&Value) -> bool, says: &str) -> anyhow::Result<K> {
        let what = self.says(&format!("has a condition {of} that {says}"));
        self.judged(&what, |_, found| {
            let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
            match conditions.into_iter().flatten().find(|condition| condition["type"] == *of) {
                Some(condition) if holds(condition) => Vec::new(),
                Some(condition) => vec![format!("it is {condition}")],
                None => vec![format!("it has no condition {of}")],
            }
        })
        .await
    }

    /// An event about it has this reason; returns the event's message.
    ///
    /// # Errors
    /// When there is no such event in time; the error shows the events there are.
    pub async fn has_event(self, reason: &str) -> anyhow::Result<String> {
        let prefix = format!("{reason}: ");
        let look = || self.cluster.events::<K>(&self.name);
        let judge = |message: &Vec<String>| match message.iter().any(|one| one.starts_with(&prefix)) {
            true => Vec::new(),
            false => vec![format!("no event says {reason}")],
        };
        let what = self.says(&format!("has an event {reason}"));
        let message = self.cluster.wait(&what, self.timeout, look, judge).await?;
        let message = message.into_iter().find_map(|one| one.strip_prefix(&prefix).map(str::to_owned));
        message.context("it was there a moment ago")
    }

    async fn judged(self, what: &str, judge: impl Fn(&K, &Value) -> Vec<String>) -> anyhow::Result<K> {
        let look = || self.cluster.find::<K>(&self.name);
        let judge = |found: &Option<K>| match found {
            None => vec!["it is not there".to_owned()],
            Some(found) => judge(found, &serde_json::to_value(found).unwrap_or_default()),
        };
        let found = self.cluster.wait(what, self.timeout, look, judge).await?;
        found.context("it was there a moment ago")
    }

    fn says(&self, what: &str) -> String {
        let kind = Kind::of::<K>();
        match kind.namespaced {
            true => format!("{kind} {}/{} {what}", self.cluster.namespace(), self.name),
            false => format!("{kind} {} {what}", self.name),
        }
    }
}

/// Without managed fields, which nobody reads.
fn readable(mut value: Value) -> Value {
    let objects = match &mut value {
        Value::Array(objects) => objects.iter_mut().collect(),
        one => vec![one],
    };
    for object in objects {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Data, config_map, named};
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    const SOON: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_wait_in_vain_shows_the_last_state_and_what_differed() {
        let cluster = TestCluster::start();
        cluster.create(config_map("a").data("k", "v")).await.unwrap();
        let wanted = json!({"data": {"k": "w"}, "metadata": {"name": "a"}});
        let message =
            cluster.eventually::<ConfigMap>("a").within(SOON).has(wanted).await.unwrap_err().to_string();
        assert!(message.starts_with("not after 20ms: ConfigMap default/a is as it should be"), "{message}");
        assert!(message.contains(r#"data.k: is "v", should be "w""#), "{message}");
        assert!(message.contains("last seen:") && message.contains("    k: v"), "{message}");
        assert!(!message.contains("managedFields"), "{message}");
        let message =
            cluster.eventually::<ConfigMap>("b").within(SOON).exists().await.unwrap_err().to_string();
        assert!(message.contains("it is not there"), "{message}");
        let message =
            cluster.eventually::<ConfigMap>("a").within(SOON).is_deleted().await.unwrap_err().to_string();
        assert!(message.contains("it is there"), "{message}");
        let message =
            cluster.eventually::<ConfigMap>("a").within(SOON).has_event("Why").await.unwrap_err().to_string();
        assert!(message.contains("no event says Why"), "{message}");
    }

    #[tokio::test]
    async fn a_condition_is_awaited_with_its_status_and_its_reason() {
        let cluster = TestCluster::start();
        cluster.create(named::<Namespace>("n")).await.unwrap();
        let condition = json!({"type": "Ready", "status": "True", "reason": "Up", "message": "",
                               "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let cluster_of_task = cluster.clone();
        let later = tokio::spawn(async move {
            Clock::real().sleep(SOON).await;
            cluster_of_task.patch_status::<Namespace>("n", json!({"conditions": [condition]})).await
        });
        cluster.eventually::<Namespace>("n").has_condition("Ready", true).await.unwrap();
        cluster.eventually::<Namespace>("n").has_condition_because("Ready", "Up").await.unwrap();
        later.await.unwrap().unwrap();
        let failed = cluster.eventually::<Namespace>("n").within(SOON).has_condition("Ready", false).await;
        assert!(failed.unwrap_err().to_string().contains(r#""reason":"Up""#));
    }
}
