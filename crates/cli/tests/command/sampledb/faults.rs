//! What happens to servers, agents, disks, clocks and the control plane, under load: no acknowledged commit is lost.
//!
//! `WINDLASS_OUTAGE_SECONDS` says how long the control plane is away.

use super::place::{Place, agent_process, cannot_run_postgres, children, first_process, postmaster};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, LogParams, Patch, PatchParams, PostParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use windlass_clock::Timestamp;

impl Place {
    /// Waits until an instance's server is another process than before.
    async fn until_another_server(&self, name: &str, instance: &str, before: Pid) {
        let another = || async { postmaster(instance).is_some_and(|now| now != before) };
        self.until(name, &format!("{instance} has another server"), another).await;
    }

    /// When rows were acknowledged, by the kubelet's clock.
    async fn acknowledged_at(&self) -> Vec<Timestamp> {
        let params = LogParams { timestamps: true, ..LogParams::default() };
        let said = self.world.api::<Pod>().logs("writers", &params).await.unwrap();
        let acknowledged = said.lines().filter_map(|line| line.split_once(" ack "));
        acknowledged.map(|(at, _)| at.parse().unwrap()).collect()
    }
}

fn stop(processes: impl IntoIterator<Item = Pid>) {
    for process in processes {
        kill(process, Signal::SIGSTOP).unwrap();
    }
}

#[tokio::test]
async fn a_frozen_agent_and_a_frozen_server_end_and_nothing_is_lost() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    let clock = place.world.clock.clone();
    place.prepare("vault", json!({"instances": 3})).await;
    let told = |what: &str, began| println!("{what}: written again after {:?}", clock.moment() - began);

    // Its watchdog ends the server of an agent that is frozen.
    let (primary, began) = (place.primary("vault").await.unwrap(), clock.moment());
    let server = postmaster(&primary).unwrap();
    stop(agent_process(&primary));
    place.until_another_server("vault", &primary, server).await;
    place.until_more_are_acknowledged("vault", 20).await;
    told("the agent was frozen", began);
    place.is_ready("vault").await;

    // With the watchdog frozen, too, the server goes on: another becomes primary, and the first acknowledges nothing.
    let (primary, began) = (place.primary("vault").await.unwrap(), clock.moment());
    let frozen = [first_process(&primary).unwrap(), agent_process(&primary).unwrap()];
    stop(frozen);
    place
        .until("vault", "another is primary", || async {
            place.primary("vault").await.is_some_and(|now| now != primary)
        })
        .await;
    place.until_more_are_acknowledged("vault", 20).await;
    told("agent and watchdog were frozen", began);
    for process in frozen {
        // The watchdog ends the agent at once, which may be gone by then.
        let _ = kill(process, Signal::SIGCONT);
    }
    place.is_ready("vault").await;

    // A server that takes no connections, and one of which no process goes on.
    for whole in [false, true] {
        let (primary, began) = (place.primary("vault").await.unwrap(), clock.moment());
        let server = postmaster(&primary).unwrap();
        let below = if whole { children(server) } else { vec![] };
        stop(std::iter::once(server).chain(below));
        place.until_another_server("vault", &primary, server).await;
        place.until_more_are_acknowledged("vault", 20).await;
        told(if whole { "the server was frozen" } else { "its first process was frozen" }, began);
        place.is_ready("vault").await;
    }
    place.has_lost_nothing("vault").await;
}

#[tokio::test]
async fn a_control_plane_that_is_away_stops_no_database() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let seconds = std::env::var("WINDLASS_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    let outage = Duration::from_secs(seconds.unwrap_or(20));
    let place = Place::with_node_apart().await;
    let clock = place.world.clock.clone();
    place.prepare("station", json!({"instances": 3})).await;
    let (primary, pods) = (place.primary("station").await, place.pod_uids().await);
    place.freeze_control_plane(true);
    let from = clock.now();
    clock.sleep(outage).await;
    let until = clock.now();
    place.freeze_control_plane(false);
    place.until_more_are_acknowledged("station", 20).await;
    place.is_ready("station").await;
    let at = place.acknowledged_at().await;
    let during: Vec<Timestamp> = at.into_iter().filter(|at| *at >= from && *at <= until).collect();
    let moments = std::iter::once(&from).chain(&during).chain(std::iter::once(&until));
    let moments: Vec<&Timestamp> = moments.collect();
    let longest = moments.windows(2).map(|pair| pair[1].duration_since(*pair[0])).max().unwrap();
    println!(
        "{} commits in {outage:?} without a control plane; the longest pause was {longest}",
        during.len()
    );
    assert!(longest.as_secs() < 5, "{longest}: {}", place.told("station").await);
    // On a busy machine it may not be in time with its first renewal after that, and then hands over.
    println!("the primary was {primary:?} and is {:?}", place.primary("station").await);
    assert_eq!(place.pod_uids().await, pods);
    for instance in ["station-0", "station-1", "station-2"] {
        assert!(!place.has_restarted(instance).await, "{instance}");
    }
    place.has_lost_nothing("station").await;
}

#[tokio::test]
async fn lost_copies_are_made_anew_and_what_may_be_lost_is_decided_by_people() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    place.prepare("archive", json!({"instances": 3})).await;
    let primary = place.primary("archive").await.unwrap();
    let replicas: Vec<String> =
        (0..3).map(|number| format!("archive-{number}")).filter(|name| *name != primary).collect();

    // All but the primary's: commits wait until there is another copy.
    for replica in &replicas {
        place.destroy(replica).await;
    }
    place.until_more_are_acknowledged("archive", 20).await;
    place.is_ready("archive").await;
    place.has_lost_nothing("archive").await;
    assert_eq!(place.primary("archive").await.as_ref(), Some(&primary));

    // The primary's and a replica's: that one may have acknowledged what the other has not.
    place.destroy(&primary).await;
    place.destroy(&replicas[0]).await;
    place.has_condition("archive", "PrimaryElected", "False", "ElectionWaits").await;
    let answers = || async {
        let output = place.sampledb_output(&["failover", "archive"]).await;
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        String::from_utf8(output.stdout).unwrap().contains(&replicas[1])
            && error.contains("--accept-data-loss")
    };
    place.until("archive", "the one that is left has answered", answers).await;
    assert_eq!(place.primary("archive").await, None);
    let said = place.sampledb(&["failover", "archive", "--accept-data-loss"]).await;
    assert!(said.contains(&format!("{} is primary", replicas[1])), "{said}");
    place.is_ready("archive").await;
    place.until_more_are_acknowledged("archive", 20).await;
    let output = place.sampledb_output(&["failover", "archive", "--accept-data-loss"]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("is primary of archive"), "{output:?}");
}

#[tokio::test]
async fn two_operators_and_clocks_that_jump_do_no_harm() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let place = Place::start().await;
    let _another = place.start_another_operator();
    place.prepare("twins", json!({"instances": 3})).await;
    // What others see of the clock of a primary's node, after it jumped. Nobody goes by it.
    for (acquired, kind) in
        [("2099-01-01T00:00:00.000000Z", "into the future"), ("1970-01-01T00:00:00.000000Z", "into the past")]
    {
        let times = json!({"spec": {"acquireTime": acquired, "renewTime": acquired}});
        let leases = place.world.api::<Lease>();
        leases.patch("twins", &PatchParams::default(), &Patch::Merge(times)).await.unwrap();
        let (primary, began) = (place.primary("twins").await.unwrap(), place.world.clock.moment());
        kill(first_process(&primary).unwrap(), Signal::SIGKILL).unwrap();
        place.until_more_are_acknowledged("twins", 20).await;
        println!("the clock jumped {kind}: written again after {:?}", place.world.clock.moment() - began);
        place.is_ready("twins").await;
    }
    place.sampledb(&["switchover", "twins"]).await;
    place.change("twins", json!({"parameters": {"max_connections": "120"}})).await;
    place.until_setting("twins", "max_connections", "120").await;
    place.change("twins", json!({"instances": 2})).await;
    place.until("twins", "two pods are left", || async { place.pod_uids().await.len() == 2 }).await;
    place.is_ready("twins").await;
    place.has_lost_nothing("twins").await;
}

/// A small disk, until this is dropped.
struct Disk(PathBuf);

impl Disk {
    /// In memory, if it can be mounted here.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0777"), "tmpfs"])
            .arg(path)
            .output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(path.to_owned()))
    }

    /// Leaves no room on it.
    fn fill(&self) {
        let filling = self.0.join("filling");
        let mut file = fs::File::create(filling).unwrap();
        let block = vec![0_u8; 1 << 20];
        for size in [block.len(), 4096, 1] {
            while std::io::Write::write_all(&mut file, &block[..size]).is_ok() {}
        }
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("filling")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[tokio::test]
async fn a_primary_with_a_full_disk_is_followed_by_another() {
    if let Some(why) = cannot_run_postgres() {
        println!("{why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Before the cluster: its node sees mounts of before its start.
    let Some(disk) = Disk::mount(&folder.path().join("disk"), "400m") else {
        println!("skipped: a tmpfs can be mounted by root alone");
        return;
    };
    let place = Place::start().await;
    let claim = json!({"namespace": "default", "name": "data-cellar-0"});
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": "small"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
            "hostPath": {"path": disk.0}, "claimRef": claim,
        },
    }))
    .unwrap();
    Api::all(place.world.client.clone()).create(&PostParams::default(), &volume).await.unwrap();
    place.prepare("cellar", json!({"instances": 3})).await;
    let bound = place.world.api::<PersistentVolumeClaim>().get("data-cellar-0").await.unwrap();
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("small"));
    assert_eq!(place.primary("cellar").await.as_deref(), Some("cellar-0"));

    let began = place.world.clock.moment();
    disk.fill();
    place
        .until("cellar", "another is primary", || async {
            place.primary("cellar").await.is_some_and(|now| now != "cellar-0")
        })
        .await;
    place.until_more_are_acknowledged("cellar", 20).await;
    println!("its disk was full: written again after {:?}", place.world.clock.moment() - began);
    disk.empty();
    place
        .until("cellar", "it is back", || async {
            place.start_anew_if_it_waits("cellar-0").await;
            place.is_ready_now("cellar").await
        })
        .await;
    place.until_more_are_acknowledged("cellar", 20).await;
    place.has_lost_nothing("cellar").await;
}
