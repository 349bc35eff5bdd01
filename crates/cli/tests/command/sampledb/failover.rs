//! No acknowledged commit is lost, and there are never two primaries: primaries are killed under load, and their volumes
//! destroyed.
//!
//! `WINDLASS_ROUNDS` says how many primaries are killed; the acceptance run (`make torture-sampledb`) has 50.

use super::place::{Place, cannot_run_postgres, first_process};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, LogParams, PostParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// What the writers were told.
#[derive(Debug, Default)]
struct Told {
    /// Rows in the order in which they were acknowledged, with timeline and host.
    acknowledged: Vec<(i64, String, String)>,
}

impl Place {
    async fn start_writers(&self, name: &str, instances: usize) {
        let from = |variable: &str, key: &str| json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": format!("{name}-credentials"), "key": key}}});
        let hosts = (0..instances).map(|number| format!("{name}-{number}.{name}-instances"));
        let command: Vec<String> = std::iter::once("writer".to_owned()).chain(hosts).collect();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "writers"},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [{
                "name": "writers", "image": "sampledb-writer:test", "command": command,
                "env": [from("PGUSER", "username"), from("PGDATABASE", "database"), from("PGPASSWORD", "password")],
            }]},
        }))
        .unwrap();
        self.world.api::<Pod>().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn told_to_writers(&self) -> Told {
        // Until it has started there is nothing.
        let said = self.world.api::<Pod>().logs("writers", &LogParams::default()).await.unwrap_or_default();
        let mut told = Told::default();
        for line in said.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["ack", id, timeline, host] = words[..] {
                told.acknowledged.push((id.parse().unwrap(), timeline.to_owned(), host.to_owned()));
            }
        }
        told
    }

    /// How many rows were acknowledged.
    pub(super) async fn acknowledged(&self) -> usize {
        self.told_to_writers().await.acknowledged.len()
    }

    /// Waits until more rows were acknowledged.
    pub(super) async fn until_more_are_acknowledged(&self, name: &str, more: usize) {
        let before = self.told_to_writers().await.acknowledged.len();
        let more = || async { self.told_to_writers().await.acknowledged.len() >= before + more };
        self.until(name, "more rows are acknowledged", more).await;
    }

    /// The kubelet waits longer each time before it starts a container again, up to minutes: a new pod starts at once.
    pub(super) async fn start_anew_if_it_waits(&self, instance: &str) {
        let pods = self.world.api::<Pod>();
        let Some(status) = pods.get_opt(instance).await.unwrap().and_then(|pod| pod.status) else { return };
        let states = status.container_statuses.into_iter().flatten().filter_map(|one| one.state?.waiting);
        if states.into_iter().any(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff")) {
            pods.delete(instance, &DeleteParams::default().grace_period(0)).await.unwrap();
        }
    }

    /// The instance's volume is lost with everything on it, and nobody reports the end of its container.
    pub(super) async fn destroy(&self, instance: &str) {
        let now = DeleteParams::default().grace_period(0);
        self.world.api::<PersistentVolumeClaim>().delete(&format!("data-{instance}"), &now).await.unwrap();
        self.world.api::<Pod>().delete(instance, &now).await.unwrap();
    }
}

fn rounds() -> usize {
    std::env::var("WINDLASS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Each timeline has one primary, and what is acknowledged on one is acknowledged before anything on the next.
fn has_one_primary_at_a_time(told: &Told) {
    let mut hosts: BTreeMap<&str, &str> = BTreeMap::new();
    let mut latest = "";
    for (id, timeline, host) in &told.acknowledged {
        assert!(
            timeline.as_str() >= latest,
            "row {id} was acknowledged on timeline {timeline} after {latest}"
        );
        latest = timeline;
        let first = hosts.entry(timeline).or_insert(host);
        assert_eq!(first, host, "timeline {timeline} has two primaries");
    }
}

impl Place {
    /// The acknowledged rows that are not there.
    async fn missing(&self, name: &str, told: &Told) -> Vec<i64> {
        // Right after a failover a connection may be refused.
        for _ in 0..60 {
            let there = self.psql(name, "SELECT id FROM acknowledged").await;
            let there: Result<BTreeSet<i64>, _> = there.lines().map(str::parse).collect();
            if let Ok(there) = there {
                let ids = told.acknowledged.iter().map(|(id, ..)| *id);
                return ids.filter(|id| !there.contains(id)).collect();
            }
        }
        panic!("{name} cannot be read: {}", self.told(name).await);
    }

    /// Fails if an acknowledged row is not there, or if there were two primaries at once.
    pub(super) async fn has_lost_nothing(&self, name: &str) {
        let told = self.told_to_writers().await;
        has_one_primary_at_a_time(&told);
        let missing = self.missing(name, &told).await;
        println!("acknowledged {}, lost {}", told.acknowledged.len(), missing.len());
        assert!(missing.is_empty(), "{missing:?}");
    }

    pub(super) async fn prepare(&self, name: &str, spec: serde_json::Value) {
        self.create(name, spec).await;
        self.is_ready(name).await;
        self.begin_to_write(name).await;
    }

    /// Starts writers that connect to every instance.
    pub(super) async fn begin_to_write(&self, name: &str) {
        self.psql(name, "CREATE TABLE acknowledged (id bigint PRIMARY KEY)").await;
        self.start_writers(name, 3).await;
        self.until_more_are_acknowledged(name, 50).await;
    }
}

#[tokio::test]
async fn no_acknowledged_commit_is_lost_when_primaries_are_killed() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.prepare("ledger", json!({"instances": 3})).await;
    let clock = place.world.clock.clone();
    for round in 0..rounds() {
        let primary = place.primary("ledger").await.unwrap();
        let began = clock.moment();
        let how = match round % 2 {
            0 => {
                kill(first_process(&primary).unwrap(), Signal::SIGKILL).unwrap();
                "killed"
            }
            _ => {
                place.destroy(&primary).await;
                "destroyed"
            }
        };
        place.until_more_are_acknowledged("ledger", 20).await;
        let wrote = clock.moment() - began;
        place.start_anew_if_it_waits(&primary).await;
        place.is_ready("ledger").await;
        println!(
            "round {round}: {primary} was {how}; written again after {wrote:?}, whole after {:?}",
            clock.moment() - began
        );
        place.until_more_are_acknowledged("ledger", 20).await;
    }
    place.has_lost_nothing("ledger").await;
}

/// The processes of a database's instances that receive data. Tests run side by side: each has a database of another name.
fn receivers(name: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let receives = |entry: &fs::DirEntry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&format!("{name}-"))
            && String::from_utf8_lossy(&arguments).contains("walreceiver")
    };
    let receiving = processes.filter(receives);
    receiving.filter_map(|entry| Some(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))).collect()
}

/// What the test above is worth: where commits are acknowledged by the primary alone, the same check finds them missing.
#[tokio::test]
async fn the_check_finds_commits_that_were_lost() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.prepare("journal", json!({"instances": 3, "durability": "preferred"})).await;
    let primary = place.primary("journal").await.unwrap();
    let frozen = receivers("journal");
    assert_eq!(frozen.len(), 2, "there are two replicas");
    for process in &frozen {
        kill(*process, Signal::SIGSTOP).unwrap();
    }
    // Commits wait until the primary has noticed, and has told so in the Lease; then it acknowledges alone.
    place.until_more_are_acknowledged("journal", 20).await;
    place.destroy(&primary).await;
    // They end with what they had received and not written: one that went on would still write it.
    for process in &frozen {
        kill(*process, Signal::SIGKILL).unwrap();
    }
    place.until_more_are_acknowledged("journal", 5).await;
    let told = place.told_to_writers().await;
    let missing = place.missing("journal", &told).await;
    println!("acknowledged {}, lost {}", told.acknowledged.len(), missing.len());
    assert!(!missing.is_empty());
}
