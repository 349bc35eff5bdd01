//! What a pod tells its agent: where it is, and who it is.

use std::path::PathBuf;
use std::time::Duration;

/// The names of the environment variables, which the operator sets.
pub mod variables {
    /// The SampleDB.
    pub const DATABASE: &str = "SAMPLEDB_NAME";
    /// The namespace of the pod.
    pub const NAMESPACE: &str = "SAMPLEDB_NAMESPACE";
    /// The name of the pod, which is that of the instance.
    pub const INSTANCE: &str = "SAMPLEDB_INSTANCE";
    /// The pod's UID.
    pub const POD_UID: &str = "SAMPLEDB_POD_UID";
    /// The Service below which instances have names.
    pub const SERVICE: &str = "SAMPLEDB_SERVICE";
    /// The database to create.
    pub const CREATE: &str = "SAMPLEDB_DATABASE";
    /// The role that owns it.
    pub const OWNER: &str = "SAMPLEDB_OWNER";
}

/// The names of the environment variables of an upgrade.
pub mod upgrade_variables {
    /// The major version that the data is of.
    pub const FROM: &str = "SAMPLEDB_UPGRADE_FROM";
    /// The major version that it becomes of.
    pub const TO: &str = "SAMPLEDB_UPGRADE_TO";
    /// Which attempt it is.
    pub const ATTEMPT: &str = "SAMPLEDB_UPGRADE_ATTEMPT";
    /// Whether indexes are built anew where text is sorted otherwise.
    pub const ACCEPT_COLLATIONS: &str = "SAMPLEDB_ACCEPT_COLLATION_CHANGES";
}

/// Where the programs of the version before are brought for an upgrade.
pub const OLD_PROGRAMS: &str = "/old-programs";
/// Where the volume is mounted.
pub const VOLUME: &str = "/var/lib/sampledb";
/// Where the sockets are: a directory of the pod's own.
pub const SOCKETS: &str = "/run/sampledb";
/// Where the credentials are mounted.
pub const CREDENTIALS: &str = "/etc/sampledb/credentials";
/// Where the certificate is mounted.
pub const TLS: &str = "/etc/sampledb/tls";
/// What the kubelet reports when the container has ended: Kubernetes' own place for it.
pub const TERMINATION_MESSAGE: &str = "/dev/termination-log";
/// The keys of the credentials.
pub const OWNER_PASSWORD: &str = "password";
/// The password by which replicas follow a primary.
pub const REPLICATION_PASSWORD: &str = "replication-password";
/// The role by which replicas follow a primary.
pub const REPLICATOR: &str = "replicator";
/// Where servers listen.
pub const PORT: u16 = 5432;

/// Settings of one agent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The SampleDB, whose name the Lease has too.
    pub database: String,
    /// The namespace.
    pub namespace: String,
    /// The instance.
    pub instance: String,
    /// The pod's UID.
    pub pod_uid: String,
    /// The Service below which instances have names.
    pub service: String,
    /// The database to create.
    pub create: String,
    /// The role that owns it.
    pub owner: String,
    /// The volume.
    pub volume: PathBuf,
    /// The directory of the sockets.
    pub sockets: PathBuf,
    /// The directory of the credentials.
    pub credentials: PathBuf,
    /// The directory of the certificate.
    pub tls: PathBuf,
}

/// An environment variable is missing.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is not set: the agent is started by the operator's pods")]
pub struct Missing(&'static str);

impl Settings {
    /// From the environment.
    ///
    /// # Errors
    /// Names the variable that is missing.
    pub fn from_env() -> Result<Self, Missing> {
        let read = |name: &'static str| {
            std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or(Missing(name))
        };
        Ok(Self {
            database: read(variables::DATABASE)?,
            namespace: read(variables::NAMESPACE)?,
            instance: read(variables::INSTANCE)?,
            pod_uid: read(variables::POD_UID)?,
            service: read(variables::SERVICE)?,
            create: read(variables::CREATE)?,
            owner: read(variables::OWNER)?,
            volume: VOLUME.into(),
            sockets: SOCKETS.into(),
            credentials: CREDENTIALS.into(),
            tls: TLS.into(),
        })
    }

    /// Where another instance is reached.
    pub fn host(&self, instance: &str) -> String {
        format!("{instance}.{}.{}.svc", self.service, self.namespace)
    }
}

/// How often a holder renews its Lease.
pub fn renewal_period(lease: Duration) -> Duration {
    lease / 5
}

/// How long after a renewal was sent its server may run without another: shorter than the Lease lasts, by the time that it takes
/// to stop it.
pub fn trusted_for(lease: Duration) -> Duration {
    lease * 4 / 5
}
