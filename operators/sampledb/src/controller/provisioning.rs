//! What a database consists of, and how it is.

use crate::api::v1alpha1::{
    Role, SampleDB, SampleDBInstance, SampleDBInstanceSpec, SampleDBInstanceStatus, SampleDBStatus,
};
use crate::children;
use crate::controller::restore::{self, Restore};
use crate::controller::{roll, upgrade, upgrade_steps};
use crate::data_version::DataVersion;
use crate::leadership::Leadership;
use crate::parameters::NOT_LOWER_ON_STANDBYS;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass::health::{Finished, finished, is_ready};
use windlass::{Apply, Observed, Plan, Propagation, Reasoned, Refusal, Until};

/// Instances whose servers are kept stopped, separated by commas.
pub const FENCED: &str = "db.windlass.dev/fenced-instances";
/// The condition of a database that hibernates.
pub const HIBERNATED: &str = "Hibernated";

#[derive(Debug)]
enum Why {
    KeepsOthersOut,
    Encrypts,
    LetsAgentsReport,
    LetsClientsFindIt,
    BoundsDisruptions,
    KeepsBackups,
    RunsInstances,
    TellsItsAgent,
    Restarts { instance: String, parameters: Vec<String> },
    SetsUp,
    CredentialsNotReady,
    PrimaryNotReady { message: String },
    Hibernating { left: usize },
    Hibernated,
    SettingUp,
    SetupFailed { message: String },
    ReplicasNotReady { names: Vec<String> },
    NoSuchKey { name: String, key: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::KeepsOthersOut => "passwords that nobody chose".to_owned(),
            Self::Encrypts => "replicas and clients verify whom they talk to".to_owned(),
            Self::LetsAgentsReport => "agents read the Lease, and report how their servers are".to_owned(),
            Self::LetsClientsFindIt => "clients find the primary and its replicas by name".to_owned(),
            Self::BoundsDisruptions => "one instance at a time may be evicted".to_owned(),
            Self::KeepsBackups => "an archive for its backups, which outlives it".to_owned(),
            Self::RunsInstances => "instances run in a StatefulSet, with a volume each".to_owned(),
            Self::TellsItsAgent => "an agent is told how its server is to be".to_owned(),
            Self::Restarts { instance, parameters } => {
                format!("{instance} restarts for its parameters {}", parameters.join(", "))
            }
            Self::SetsUp => "the initial schema is run once".to_owned(),
            Self::CredentialsNotReady => "the credentials are not there yet".to_owned(),
            Self::PrimaryNotReady { message } => format!("there is no primary yet: {message}"),
            Self::Hibernating { left } => format!("{left} pods are ending"),
            Self::Hibernated => "its servers are stopped, and its volumes are kept".to_owned(),
            Self::SettingUp => "the initial schema is being run".to_owned(),
            Self::SetupFailed { message } => {
                format!("the initial schema could not be run; delete the Job to try again: {message}")
            }
            Self::ReplicasNotReady { names } => format!("not ready: {}", names.join(", ")),
            Self::NoSuchKey { name, key } => format!("ConfigMap {name} has no key {key}"),
        }
    }
}

/// What a database needs, given what is there. `agent_image` brings the agent.
///
/// # Errors
/// When the ConfigMap with its schema is not there, or it asks for what its controller does not watch.
pub fn decide(database: &SampleDB, observed: &Observed, agent_image: &str) -> Result<Plan, Refusal> {
    let name = database.name_any();
    let lease = observed.get::<Lease>(&name)?;
    let leadership = lease.as_ref().and_then(|lease| Leadership::of(lease).ok());
    let data = lease.and_then(|lease| DataVersion::of(&lease).ok()).flatten();
    let image = upgrade::image(database, data.as_ref());
    let holder = leadership.as_ref().and_then(|leadership| leadership.holder.as_ref());
    let holder = holder.map(|holder| holder.instance.as_str());
    // A primary beyond the number that is wanted stays until it has handed over.
    let last = holder.and_then(|holder| children::ordinal(&name, holder)).unwrap_or(0);
    let running = database.spec.instances.max(last + 1);
    let instances: Vec<String> =
        (0..running).map(|ordinal| children::instance_name(database, ordinal)).collect();

    let (secret, generate) = children::secret(database);
    let (authority, generate_authority) = children::certificate_authority(database);
    let (certificate, generate_certificate) = children::certificate(database);
    let is_made = leadership.as_ref().is_some_and(|leadership| leadership.system_identifier.is_some());
    let restore = match restore::source(database, observed, is_made)? {
        Restore::From(source, archive) => Some((source, archive)),
        Restore::Nothing => None,
        Restore::Wait(plan) => return Ok(plan),
    };
    let mut plan = Plan::new()
        .create_once(secret, generate, Why::KeepsOthersOut)
        .create_once(authority, generate_authority, Why::Encrypts)
        .create_once(certificate, generate_certificate, Why::Encrypts)
        .apply(children::account(database), Why::LetsAgentsReport)
        .apply(children::role(database, &instances), Why::LetsAgentsReport)
        .apply(children::role_binding(database), Why::LetsAgentsReport)
        .apply(children::disruption_budget(database), Why::BoundsDisruptions);
    if let Some(archive) = children::archive::of(database, &image) {
        plan = plan.apply(archive, Why::KeepsBackups);
    }
    for service in children::services(database) {
        plan = plan.apply(service, Why::LetsClientsFindIt);
    }
    let fenced = fenced(database);
    let known = known(observed, &instances)?;
    let restarting = restart(&known, holder);
    for instance in &instances {
        let now = known.iter().find(|one| one.name_any() == *instance);
        let mut restart = now.and_then(|one| one.spec.restart.clone());
        let mut why = Why::TellsItsAgent;
        if let Some((_, parameters)) = restarting.as_ref().filter(|(name, _)| name == instance) {
            restart = now.and_then(|one| one.metadata.generation).map(|generation| generation.to_string());
            why = Why::Restarts { instance: instance.clone(), parameters: parameters.clone() };
        }
        let spec = SampleDBInstanceSpec {
            database: name.clone(),
            instances: database.spec.instances,
            durability: database.spec.durability,
            parameters: database.spec.parameters.clone(),
            fenced: fenced.contains(instance.as_str()),
            restart,
            tls: all_have_tls(&known),
            require_tls: database.spec.require_tls,
            // It is seen to here only for its last backup.
            closed: database.metadata.deletion_timestamp.is_some(),
            restore: restore.as_ref().map(|(source, _)| source.clone()),
        };
        plan = plan.apply(children::instance(database, instance, spec), why);
    }
    if observed.get::<Secret>(&children::secret_name(database))?.is_none() {
        // Without it, no pod can start.
        return Ok(plan.wait(Why::CredentialsNotReady, Until::Change));
    }
    let restored_from = restore.as_ref().map(|(_, archive)| archive.as_str());
    // One that is being deleted is needed for a last backup.
    let hibernates = database.spec.hibernated && database.metadata.deletion_timestamp.is_none();
    let is_upgraded = data.as_ref().is_some_and(DataVersion::stops_servers);
    let running = if hibernates || is_upgraded { 0 } else { running };
    let servers = children::servers(database, running, &image, agent_image, restored_from);
    plan = plan.apply(Apply::new(servers).recreate(Propagation::Orphan), Why::RunsInstances);
    if hibernates && !is_upgraded {
        return hibernate(database, observed, plan);
    }
    if let Some(data) = &data {
        plan = upgrade_steps::decide(database, observed, data, agent_image, plan)?;
    }
    plan = roll::decide(observed, data.as_ref(), &image, holder, &instances, plan)?;
    report(database, observed, plan, holder, &instances)
}

/// The servers stop, and their volumes stay.
fn hibernate(database: &SampleDB, observed: &Observed, plan: Plan) -> Result<Plan, Refusal> {
    let left = observed.list::<Pod>()?.len();
    let why = || if left == 0 { Why::Hibernated } else { Why::Hibernating { left } };
    let status = SampleDBStatus {
        ready: Some(format!("0/{}", database.spec.instances)),
        secret: Some(children::secret_name(database)),
        set_up: database.status.as_ref().is_some_and(|status| status.set_up),
        ..SampleDBStatus::default()
    };
    Ok(plan.status(status).condition(HIBERNATED, left == 0, why()).wait(why(), Until::Change))
}

/// The instances that are there.
fn known(observed: &Observed, names: &[String]) -> Result<Vec<Arc<SampleDBInstance>>, Refusal> {
    let mut known = Vec::new();
    for name in names {
        known.extend(observed.get::<SampleDBInstance>(name)?);
    }
    Ok(known)
}

/// Whether replicas may insist on TLS. Not while a server has none: it was built without, or its agent is of an earlier version.
fn all_have_tls(known: &[Arc<SampleDBInstance>]) -> bool {
    let lacks = |status: &SampleDBInstanceStatus| match status.tls {
        Some(tls) => !tls,
        None => status.role != Role::Stopped,
    };
    !known.iter().filter_map(|one| one.status.as_ref()).any(lacks)
}

/// Whether a primary restarts where it is, rather than after it has handed over: of some parameters a replica has the old value as
/// long as its primary has.
pub(super) fn restarts_in_place(parameters: &[String], instances: usize) -> bool {
    let follows = |name: &String| NOT_LOWER_ON_STANDBYS.iter().any(|(known, _)| known == name);
    instances == 1 || parameters.iter().all(follows)
}

/// Which instance restarts next, and for which parameters: one at a time while all are ready, replicas first.
fn restart(known: &[Arc<SampleDBInstance>], holder: Option<&str>) -> Option<(String, Vec<String>)> {
    let status = |one: &SampleDBInstance| one.status.clone().unwrap_or_default();
    let busy = known.iter().any(|one| {
        let status = status(one);
        !status.ready || (one.spec.restart.is_some() && one.spec.restart != status.restarted)
    });
    if busy {
        return None;
    }
    let pending: Vec<(String, Vec<String>)> = known
        .iter()
        .filter(|one| status(one).observed_generation == one.metadata.generation)
        .map(|one| (one.name_any(), status(one).pending_restart))
        .filter(|(_, parameters)| !parameters.is_empty())
        .collect();
    let is_primary = |name: &str| holder == Some(name);
    let replica = pending.iter().find(|(name, _)| !is_primary(name));
    let primary = pending
        .iter()
        .find(|(name, parameters)| is_primary(name) && restarts_in_place(parameters, known.len()));
    replica.or(primary).cloned()
}

fn fenced(database: &SampleDB) -> BTreeSet<&str> {
    let annotation = database.metadata.annotations.as_ref().and_then(|all| all.get(FENCED));
    annotation.into_iter().flat_map(|names| names.split(',')).map(str::trim).collect()
}

/// Whether the pod that reported this is ready.
fn runs(observed: &Observed, name: &str, status: &SampleDBInstanceStatus) -> Result<bool, Refusal> {
    let pod = observed.get::<Pod>(name)?;
    Ok(pod.is_some_and(|pod| pod.metadata.uid == status.pod_uid && is_ready(&pod)))
}

/// Whether clients reach it by the Service for writes.
fn takes_writes(
    database: &SampleDB,
    observed: &Observed,
    status: &SampleDBInstanceStatus,
) -> Result<bool, Refusal> {
    let slice = observed.get::<EndpointSlice>(&children::read_write_name(database))?;
    let targets = slice.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let uids = targets.filter_map(|endpoint| endpoint.target_ref.as_ref()?.uid.as_ref());
    Ok(uids.into_iter().any(|uid| Some(uid) == status.pod_uid.as_ref()))
}

/// The rest of a plan: the setup, and what is awaited.
fn report(
    database: &SampleDB,
    observed: &Observed,
    mut plan: Plan,
    holder: Option<&str>,
    instances: &[String],
) -> Result<Plan, Refusal> {
    let mut ready = Vec::new();
    let mut primary: Option<SampleDBInstanceStatus> = None;
    let mut message = "the first instance starts".to_owned();
    for name in instances {
        let Some(status) = observed.get::<SampleDBInstance>(name)?.and_then(|one| one.status.clone()) else {
            continue;
        };
        // An agent that has ended reports nothing any more; the kubelet does.
        let is_ready = status.ready && runs(observed, name, &status)?;
        if is_ready {
            ready.push(name.clone());
        }
        if holder == Some(name.as_str()) {
            if !status.message.is_empty() {
                message = format!("{name}: {}", status.message);
            }
            let open = is_ready && takes_writes(database, observed, &status)?;
            primary = Some(status).filter(|status| status.role == Role::Primary && open);
        }
    }
    let mut set_up = database.status.as_ref().is_some_and(|status| status.set_up);
    if let (Some(schema), Some(_), false) = (&database.spec.initial_schema, &primary, set_up) {
        let there = observed.referenced::<ConfigMap>(&schema.name)?;
        if !there.data.as_ref().is_some_and(|data| data.contains_key(&schema.key)) {
            let (name, key) = (schema.name.clone(), schema.key.clone());
            return Err(Refusal::new(Why::NoSuchKey { name, key }));
        }
        let job = children::setup(database, schema);
        let run = observed.get::<Job>(&job.name_any())?.and_then(|job| finished(&job));
        plan = plan.apply(children::setup_script(database), Why::SetsUp).apply(job, Why::SetsUp);
        match run {
            Some(Finished::Complete) => set_up = true,
            Some(Finished::Failed { message, .. }) => {
                plan = plan.wait(Why::SetupFailed { message }, Until::Change);
            }
            None => plan = plan.wait(Why::SettingUp, Until::Change),
        }
    }
    let missing: Vec<String> = instances.iter().filter(|name| !ready.contains(name)).cloned().collect();
    if primary.is_none() {
        plan = plan.wait(Why::PrimaryNotReady { message }, Until::Change);
    } else if !missing.is_empty() {
        plan = plan.wait(Why::ReplicasNotReady { names: missing }, Until::Change);
    }
    let status = SampleDBStatus {
        ready: Some(format!("{}/{}", ready.len(), database.spec.instances)),
        primary: holder.filter(|_| primary.is_some()).map(str::to_owned),
        version: primary.and_then(|primary| primary.version),
        secret: Some(children::secret_name(database)),
        set_up,
        // Another controller's.
        storage: None,
        conditions: Vec::new(),
    };
    Ok(plan.status(status))
}

/// Whether two versions of a pod differ in what is decided by.
pub fn pod_differs(one: &Pod, other: &Pod) -> bool {
    let matters = |pod: &Pod| {
        (is_ready(pod), pod.metadata.uid.clone(), pod.metadata.deletion_timestamp.is_some(), roll::runs(pod))
    };
    matters(one) != matters(other)
}
