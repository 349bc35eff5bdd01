//! What the pod of a backup's Job does: it asks the archive, by a connection that a ConfigMap and a Secret describe.
//!
//! It needs no access to the API server: what came of it is its termination message, which the operator reads.

use super::{Archive, Location, Source};
use crate::settings::{REPLICATION_PASSWORD, TERMINATION_MESSAGE};
use std::fs;
use std::path::Path;
use windlass::clock::Clock;

/// Where the pod's Secrets are mounted.
pub(crate) const CREDENTIALS: &str = "/etc/backup/credentials";
/// Where is whom to trust.
pub(crate) const TRUSTED: &str = "/etc/backup/tls";

/// The names of the environment variables, which a ConfigMap sets.
pub(crate) mod variables {
    pub(crate) const HOST: &str = "PGHOST";
    pub(crate) const PORT: &str = "PGPORT";
    pub(crate) const USER: &str = "PGUSER";
    pub(crate) const SSL_MODE: &str = "PGSSLMODE";
    pub(crate) const ARCHIVE: &str = "SAMPLEDB_ARCHIVE";
    pub(crate) const LOCATION: &str = "SAMPLEDB_LOCATION";
    pub(crate) use super::{CREDENTIALS, TRUSTED};
}

/// Has the archive take a backup. What came of it is left as the termination message.
pub(crate) async fn backup() -> Result<(), String> {
    let taken = take().await;
    let message = taken.as_ref().unwrap_or_else(|why| why);
    if let Err(error) = fs::write(TERMINATION_MESSAGE, message) {
        return Err(format!("{TERMINATION_MESSAGE}: {error}"));
    }
    taken.map(|taken| println!("{taken}"))
}

/// Has the archive delete a backup.
pub(crate) async fn forget() -> Result<(), String> {
    let (archive, at) = archive()?;
    let removed = archive.remove(&at).await.map_err(|error| error.to_string());
    if let Err(why) = &removed {
        let _ = fs::write(TERMINATION_MESSAGE, why);
    }
    removed
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("the variable {name} is not set"))
}

fn archive() -> Result<(Archive, Location), String> {
    let at: Location = variable(variables::LOCATION)?.parse().map_err(|error| format!("{error}"))?;
    Ok((Archive::of(&variable(variables::ARCHIVE)?, Clock::real()), at))
}

async fn take() -> Result<String, String> {
    let password = Path::new(CREDENTIALS).join(REPLICATION_PASSWORD);
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let verifies = variable(variables::SSL_MODE)?.starts_with("verify");
    let source = Source {
        host: variable(variables::HOST)?,
        port: variable(variables::PORT)?,
        user: variable(variables::USER)?,
        password: read(&password)?,
        trusted: if verifies { Some(read(&Path::new(TRUSTED).join("ca.crt"))?) } else { None },
    };
    let (archive, at) = archive()?;
    let info = archive.take(&at, &source).await.map_err(|error| error.to_string())?;
    serde_json::to_string(&info).map_err(|error| error.to_string())
}
