//! The controller of `RedisCache`.

use crate::api::v1alpha1::{RedisCache, RedisCacheStatus};
use crate::children;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::ResourceExt;
use windlass::health::{Finished, finished};
use windlass::{Apply, Generate, Observed, Plan, Propagation, Reasoned, Refusal, Until, restart_on_change};

/// Why this controller does what it does: in events, conditions and logs.
#[derive(Debug)]
enum Why {
    KeepsOthersOut,
    ConfiguresTheServers,
    LetsClientsFindThem,
    RunsTheServers,
    BacksUp,
    WaitsForThePassword,
    TakesALastBackup,
    LastBackupRuns,
    LastBackupFailed { message: String },
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::KeepsOthersOut => "a password that nobody chose".to_owned(),
            Self::ConfiguresTheServers => "redis.conf follows from the settings".to_owned(),
            Self::LetsClientsFindThem => "each server has a name of its own below the Service's".to_owned(),
            Self::RunsTheServers => "the servers run in a StatefulSet, with a volume each".to_owned(),
            Self::BacksUp => "backups are taken on a schedule".to_owned(),
            Self::WaitsForThePassword => "the password is not there yet".to_owned(),
            Self::TakesALastBackup => "a last backup is taken before the data is deleted".to_owned(),
            Self::LastBackupRuns => "the last backup is being taken".to_owned(),
            Self::LastBackupFailed { message } => format!(
                "the last backup failed, and nothing is deleted: delete its Job to try again, or set spec.backup.onDelete \
                 to false: {message}"
            ),
        }
    }
}

/// What a RedisCache needs, given what is there.
///
/// # Errors
/// When the claim for its backups is not there, or it asks for what its controller does not watch.
pub fn decide(cache: &RedisCache, observed: &Observed) -> Result<Plan, Refusal> {
    if let Some(backup) = &cache.spec.backup {
        observed.referenced::<PersistentVolumeClaim>(&backup.claim)?;
    }
    let secret = children::secret(cache);
    let password = observed.get::<Secret>(&secret.name_any())?;
    let mut plan = Plan::new()
        .create_once(secret, Generate::new().text("/stringData/password", 32), Why::KeepsOthersOut)
        .apply(children::settings(cache), Why::ConfiguresTheServers)
        .apply(children::service(cache), Why::LetsClientsFindThem);
    if let Some(schedule) = cache.spec.backup.as_ref().and_then(|backup| backup.schedule.as_deref()) {
        plan = plan.apply(children::backups(cache, schedule), Why::BacksUp);
    }
    let Some(password) = password else {
        // Without it, the first servers would be replaced as soon as it is there.
        return Ok(plan.wait(Why::WaitsForThePassword, Until::Change));
    };
    let mut servers = children::servers(cache);
    if let Some(spec) = &mut servers.spec {
        restart_on_change(&mut spec.template, &(&cache.spec.settings, &password.data));
    }
    let ready = observed.get::<StatefulSet>(&cache.name_any())?;
    let ready = ready.and_then(|servers| servers.status.as_ref()?.ready_replicas).unwrap_or(0);
    Ok(plan
        .apply(Apply::new(servers).recreate(Propagation::Orphan), Why::RunsTheServers)
        .status(RedisCacheStatus { ready, secret: Some(password.name_any()), ..Default::default() })
        .until_healthy(observed))
}

/// What is left to do for a RedisCache that is being deleted. Its servers run until that is done.
///
/// # Errors
/// When it asks for what its controller does not watch.
pub fn clean_up(cache: &RedisCache, observed: &Observed) -> Result<Plan, Refusal> {
    let Some(backup) = cache.spec.backup.as_ref().filter(|backup| backup.on_delete) else {
        return Ok(Plan::new());
    };
    let job = children::last_backup(cache, backup);
    let taken = observed.get::<Job>(&job.name_any())?.and_then(|job| finished(&job));
    Ok(match taken {
        Some(Finished::Complete) => Plan::new(),
        Some(Finished::Failed { message, .. }) => Plan::waiting(Why::LastBackupFailed { message }),
        None => Plan::waiting(Why::LastBackupRuns).apply(job, Why::TakesALastBackup),
    })
}
