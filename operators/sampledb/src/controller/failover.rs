//! Who is primary: the Lease, and where writes go.

use crate::api::v1alpha1::{
    Durability, Role, SampleDB, SampleDBBackup, SampleDBInstance, SampleDBInstanceStatus,
};
use crate::children::{self, CONTAINER, ROLE_LABEL};
use crate::controller::drain::Nodes;
use crate::controller::provisioning::restarts_in_place;
use crate::controller::upgrade;
use crate::data_version::{DataVersion, Phase};
use crate::election::{self, Decision, Lost, Situation};
use crate::leadership::{self, Holder, Leadership};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use windlass::{Observed, Plan, Reason, Reasoned, Refusal};

/// The condition of this concern.
pub const CONDITION: &str = "PrimaryElected";
/// The finalizer of the controller that makes what a database consists of.
const PROVISIONING: &str = "windlass.dev/sampledb";

#[derive(Debug)]
enum Why {
    MakesTheDatabase { instance: String },
    PrimaryEnded { instance: String },
    PrimaryLate { instance: String },
    PrimaryExpired { instance: String },
    Elected { instance: String },
    MayHaveLostCommits { instance: String },
    ElectionWaits { why: String },
    HandsOver { instance: String },
    LeavesCordonedNode { instance: String, node: String },
    StaysOnCordonedNode { instance: String, node: String },
    LeavesFullVolume { instance: String },
    StaysOnFullVolume { instance: String },
    LeavesOldImage { instance: String },
    UpgradeUnderWay,
    DirectsWrites,
    TellsReplicasApart,
    LastsAnotherTime,
    GoesOnToTheEnd,
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::MakesTheDatabase { instance } => format!("{instance} makes the database"),
            Self::PrimaryEnded { instance } => format!("the container of the primary {instance} has ended"),
            Self::PrimaryLate { instance } => format!("the primary {instance} is late to renew its Lease"),
            Self::PrimaryExpired { instance } => format!("the primary {instance} has not renewed its Lease"),
            Self::Elected { instance } => {
                format!("{instance} has every acknowledged commit, and becomes primary")
            }
            Self::MayHaveLostCommits { instance } => {
                format!("{instance} becomes primary; commits that only the last primary had are lost")
            }
            Self::ElectionWaits { why } => why.clone(),
            Self::HandsOver { instance } => format!("{instance} is to become primary"),
            Self::LeavesCordonedNode { instance, node } => {
                format!("{instance} is to become primary: node {node} is cordoned")
            }
            Self::StaysOnCordonedNode { instance, node } => {
                format!(
                    "{instance} stays on node {node}, which is cordoned: no replica on another node could take over"
                )
            }
            Self::LeavesFullVolume { instance } => {
                format!("{instance} is to become primary: the volume of the primary is full")
            }
            Self::StaysOnFullVolume { instance } => {
                format!(
                    "the volume of the primary {instance} is full, and no replica with more room could take over"
                )
            }
            Self::LeavesOldImage { instance } => {
                format!("{instance} is to become primary: its server is of the image that is asked for")
            }
            Self::UpgradeUnderWay => "an upgrade to another version is under way".to_owned(),
            Self::DirectsWrites => "writes go to the primary".to_owned(),
            Self::TellsReplicasApart => "reads go to replicas".to_owned(),
            Self::GoesOnToTheEnd => "the database is being deleted".to_owned(),
            Self::LastsAnotherTime => "the Lease lasts as long as the database says".to_owned(),
        }
    }
}

/// Who may be primary, given what is there.
///
/// # Errors
/// When the Lease was changed by somebody else, or it asks for what its controller does not watch.
pub fn decide(database: &SampleDB, observed: &Observed) -> Result<Plan, Refusal> {
    let name = database.name_any();
    let Some(lease) = observed.get::<Lease>(&name)? else {
        let instance = children::instance_name(database, 0);
        let quorum =
            usize::from(database.spec.instances > 1 && database.spec.durability == Durability::Required);
        let lease = written(database, Lease::default(), &Leadership::first(&instance, quorum));
        return Ok(Plan::new().claim(lease, Why::MakesTheDatabase { instance }));
    };
    let leadership = Leadership::of(&lease)
        .map_err(|error| Refusal::new(Reason::new("InvalidLease", error.to_string())))?;
    let data = DataVersion::of(&lease)
        .map_err(|error| Refusal::new(Reason::new("InvalidLease", error.to_string())))?;
    let pods = observed.list::<Pod>()?;
    let instances = observed.list::<SampleDBInstance>()?;
    let reports: Vec<(&str, &SampleDBInstanceStatus)> = instances
        .iter()
        .filter_map(|one| Some((one.metadata.name.as_deref()?, one.status.as_ref()?)))
        .collect();
    let barred: BTreeSet<&str> = instances
        .iter()
        .filter(|one| one.spec.fenced || is_surplus(database, &one.name_any()))
        .filter_map(|one| one.metadata.name.as_deref())
        .collect();
    let nodes = observed.list::<Node>()?;
    let nodes = Nodes::of(&pods, &nodes);
    let concerned = leadership.holder.as_ref().or(leadership.previous.as_ref());
    let situation = Situation {
        leadership: &leadership,
        unchanged_for: observed.unchanged_for::<Lease>(&name)?.unwrap_or_default(),
        lease_duration: leadership::duration(&lease),
        end_is_reported: concerned.is_some_and(|holder| has_ended(holder, &pods)),
        durability: database.spec.durability,
        reports: reports.clone(),
        barred: barred.clone(),
        draining: nodes.draining().into_iter().chain(full(&reports)).collect(),
    };
    let plan = direct(database, &leadership, data.as_ref(), &reports, &pods);
    let claim = |leadership: &Leadership| written(database, (*lease).clone(), leadership);
    let upgrading = upgrade::Situation {
        database,
        leadership: &leadership,
        data: data.as_ref(),
        reports: &reports,
        pods: &pods,
        unchanged_for: situation.unchanged_for,
        lease_duration: situation.lease_duration,
        job: match data.as_ref().and_then(DataVersion::phase) {
            Some(Phase::Upgrading { attempt }) => {
                observed.get::<Job>(&children::upgrade::name(database, *attempt))?
            }
            _ => None,
        },
        backup: observed.get::<SampleDBBackup>(&database.upgrade_backup_name())?,
    };
    if let Some(change) = upgrade::decide(&upgrading) {
        let mut lease = claim(&change.leadership);
        change.data.write(&mut lease);
        return Ok(plan.claim(lease, change.why));
    }
    let outdated = outdated(database, data.as_ref(), &pods);
    Ok(match election::decide(&situation) {
        Decision::Elect { .. } | Decision::Wait { .. }
            if data.as_ref().is_some_and(DataVersion::stops_servers) =>
        {
            plan.wait(Why::UpgradeUnderWay, windlass::Until::Change)
        }
        Decision::Keep(again) => {
            let holder = leadership.holder.as_ref().map(|holder| holder.instance.as_str());
            let cordoned = holder.and_then(|holder| nodes.cordoned(holder));
            let is_full = full(&reports).any(|instance| Some(instance) == holder);
            let successor = match data.as_ref().and_then(|data| data.upgrade.as_ref()) {
                Some(_) => None,
                None => successor(database, &leadership, &reports, &barred, &nodes, &outdated),
            };
            if let Some(target) = successor {
                let mut next = leadership.clone();
                next.switchover_to = Some(target.to_owned());
                let instance = target.to_owned();
                let why = match cordoned {
                    Some(node) => Why::LeavesCordonedNode { instance, node: node.to_owned() },
                    None if is_full => Why::LeavesFullVolume { instance },
                    None if holder.is_some_and(|holder| outdated.contains(holder)) => {
                        Why::LeavesOldImage { instance }
                    }
                    None => Why::HandsOver { instance },
                };
                return Ok(plan.claim(claim(&next), why));
            }
            if leadership::duration(&lease) != lease_duration(database) {
                return Ok(plan.claim(claim(&leadership), Why::LastsAnotherTime));
            }
            let plan = plan.requeue_after(again.max(Duration::from_millis(100)));
            let stays = leadership.holder.as_ref().filter(|_| leadership.switchover_to.is_none());
            let instance = stays.map(|holder| holder.instance.clone());
            match (cordoned, instance) {
                (Some(node), Some(instance)) => {
                    // A drain is going to end it: whoever drains the node has to know.
                    let node = node.to_owned();
                    plan.condition(CONDITION, true, Why::StaysOnCordonedNode { instance, node })
                }
                (None, Some(instance)) if is_full => {
                    plan.condition(CONDITION, true, Why::StaysOnFullVolume { instance })
                }
                _ => plan,
            }
        }
        Decision::Warn(next) => {
            let instance = leadership.holder.map(|holder| holder.instance).unwrap_or_default();
            plan.claim(claim(&next), Why::PrimaryLate { instance })
        }
        Decision::Vacate { leadership: next, why } => {
            let instance = leadership.holder.map(|holder| holder.instance).unwrap_or_default();
            let why = match why {
                Lost::Ended => Why::PrimaryEnded { instance },
                Lost::Expired => Why::PrimaryExpired { instance },
            };
            plan.claim(claim(&next), why)
        }
        Decision::Wait { why, again } => {
            let plan = plan.wait(Why::ElectionWaits { why }, windlass::Until::Change);
            match again {
                Some(again) => plan.requeue_after(again.max(Duration::from_millis(100))),
                None => plan,
            }
        }
        Decision::Elect { leadership: next, instance, may_lose } => {
            let why = match may_lose {
                true => Why::MayHaveLostCommits { instance },
                false => Why::Elected { instance },
            };
            plan.claim(claim(&next), why)
        }
    })
}

/// As [`decide`], for a database that is being deleted: there is a primary for as long as one is needed.
///
/// # Errors
/// As [`decide`].
pub fn decide_to_the_end(database: &SampleDB, observed: &Observed) -> Result<Plan, Refusal> {
    if !database.finalizers().iter().any(|finalizer| finalizer == PROVISIONING) {
        return Ok(Plan::new());
    }
    Ok(decide(database, observed)?.wait(Why::GoesOnToTheEnd, windlass::Until::Change))
}

fn lease_duration(database: &SampleDB) -> Duration {
    Duration::from_secs(u64::try_from(database.spec.lease_duration_seconds).unwrap_or(10))
}

/// A Lease that says this.
fn written(database: &SampleDB, mut lease: Lease, leadership: &Leadership) -> Lease {
    if lease.metadata.name.is_none() {
        lease.metadata = ObjectMeta { name: Some(database.name_any()), ..ObjectMeta::default() };
    }
    leadership.write(&mut lease);
    lease.spec.get_or_insert_default().lease_duration_seconds = Some(database.spec.lease_duration_seconds);
    lease
}

fn is_surplus(database: &SampleDB, instance: &str) -> bool {
    children::ordinal(&database.name_any(), instance).is_none_or(|ordinal| ordinal >= database.spec.instances)
}

/// Instances whose volumes are full.
fn full<'a>(reports: &[(&'a str, &SampleDBInstanceStatus)]) -> impl Iterator<Item = &'a str> {
    reports.iter().filter(|(_, report)| report.volume_full).map(|(name, _)| *name)
}

/// Instances whose servers are of another image than the one that is asked for.
fn outdated(database: &SampleDB, data: Option<&DataVersion>, pods: &[Arc<Pod>]) -> BTreeSet<String> {
    let image = upgrade::image(database, data);
    let others = pods.iter().filter(|pod| upgrade::server_image(pod).is_some_and(|its| its != image));
    others.map(|pod| pod.name_any()).collect()
}

/// To whom a primary that may not stay hands over: a replica that is connected, rather not on a node that is being emptied.
fn successor<'a>(
    database: &SampleDB,
    leadership: &Leadership,
    reports: &[(&'a str, &SampleDBInstanceStatus)],
    barred: &BTreeSet<&str>,
    nodes: &Nodes<'_>,
    outdated: &BTreeSet<String>,
) -> Option<&'a str> {
    let holder = leadership.holder.as_ref().filter(|_| leadership.switchover_to.is_none())?;
    let restarts = reports.iter().any(|(name, report)| {
        *name == holder.instance
            && !report.pending_restart.is_empty()
            && !restarts_in_place(&report.pending_restart, reports.len())
    });
    // Replicas have restarted before.
    let alone = reports.iter().all(|(name, report)| {
        *name == holder.instance || (report.ready && report.pending_restart.is_empty())
    });
    // Replicas run the image that is asked for, before their primary does.
    let is_last = outdated.len() == 1 && outdated.contains(&holder.instance);
    let must_go = is_surplus(database, &holder.instance) || ((restarts || is_last) && alone);
    // From a cordoned node only to one that is elected for sure: any other could be on a cordoned node, too, and so on.
    let is_cordoned = nodes.cordoned(&holder.instance).is_some();
    let acknowledges = |report: &SampleDBInstanceStatus| {
        report.clone.as_ref().is_some_and(|clone| leadership.synchronous.clones.contains(clone))
    };
    let is_full = full(reports).any(|instance| instance == holder.instance);
    let fit = |(name, report): &&(&str, &SampleDBInstanceStatus)| {
        let is_replica = *name != holder.instance && report.ready && report.role == Role::Replica;
        let is_better = nodes.stays(name, report) && acknowledges(report);
        let has_room = acknowledges(report) && !report.volume_full;
        let may_go = (is_cordoned && is_better) || (is_full && has_room);
        is_replica && !barred.contains(name) && (must_go || may_go)
    };
    let rank = |(name, report): &&(&str, &SampleDBInstanceStatus)| {
        (!nodes.stays(name, report), report.volume_full, !acknowledges(report))
    };
    reports.iter().filter(fit).min_by_key(rank).map(|(name, _)| *name)
}

/// Whether the end of the container in which a holder took the Lease is reported.
///
/// The agent leaves the identity of its run as the container's termination message, so that no clock is compared with another:
/// clocks jump. That its pod is not there means nothing: it may have been deleted without the kubelet's word.
fn has_ended(holder: &Holder, pods: &[Arc<Pod>]) -> bool {
    let Some(run) = &holder.run else { return false };
    let pod = pods.iter().find(|pod| pod.metadata.uid.is_some() && pod.metadata.uid == holder.pod_uid);
    let status = pod.and_then(|pod| container(pod));
    status.is_some_and(|status| ends(status).any(|end| end.message.as_ref() == Some(run)))
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == CONTAINER)
}

fn ends(status: &ContainerStatus) -> impl Iterator<Item = &ContainerStateTerminated> {
    [&status.state, &status.last_state].into_iter().flatten().filter_map(|state| state.terminated.as_ref())
}

/// Where writes and reads go.
fn direct(
    database: &SampleDB,
    leadership: &Leadership,
    data: Option<&DataVersion>,
    reports: &[(&str, &SampleDBInstanceStatus)],
    pods: &[Arc<Pod>],
) -> Plan {
    let report = |name: &str| reports.iter().find(|(one, _)| *one == name).map(|(_, report)| *report);
    let role_of = |pod: &Pod| {
        let report = report(&pod.name_any()).filter(|report| report.pod_uid == pod.metadata.uid);
        report.map_or(Role::Stopped, |report| report.role)
    };
    let holder = leadership.holder.as_ref();
    let primary = pods.iter().find(|pod| {
        let name = pod.name_any();
        let is_open = report(&name).is_some_and(|report| report.ready && report.epoch == leadership.epoch);
        holder.is_some_and(|holder| {
            holder.instance == name && holder.run.is_some() && holder.pod_uid == pod.metadata.uid
        }) && role_of(pod) == Role::Primary
            && is_open
            && !data.is_some_and(DataVersion::keeps_writes_out)
    });
    let endpoints = children::read_write_endpoints(database, primary.map(|pod| &**pod));
    let mut plan = Plan::new().apply(endpoints, Why::DirectsWrites);
    for pod in pods {
        let wanted = match role_of(pod) {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Stopped => "none",
        };
        if pod.labels().get(ROLE_LABEL).map(String::as_str) != Some(wanted) {
            let patch = json!({ "metadata": { "labels": { ROLE_LABEL: wanted } } });
            plan = plan.patch::<Pod>(pod.name_any(), patch, Why::TellsReplicasApart);
        }
    }
    plan
}

/// Whether two versions of a pod differ in what is decided by.
pub fn pod_differs(one: &Pod, other: &Pod) -> bool {
    let matters = |pod: &Pod| {
        let status = pod.status.clone().unwrap_or_default();
        let ends: Vec<ContainerStateTerminated> =
            container(pod).map(|status| ends(status).cloned().collect()).unwrap_or_default();
        let role = pod.labels().get(ROLE_LABEL).cloned();
        (pod.metadata.uid.clone(), status.pod_ip, role, ends)
    };
    matters(one) != matters(other)
}
