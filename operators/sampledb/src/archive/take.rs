//! A base backup of a primary, with the write-ahead log that it needs, and its verification.

use super::destination::Destination;
use super::{Info, Location, Source, WalRange};
use crate::durable_files::write_durably;
use crate::lsn::Lsn;
use crate::programs::{self, ProgramError, control_field, passfile_line};
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windlass::clock::Clock;

/// How long a base backup, and its verification, may take.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long other programs may take.
const SHORT: Duration = Duration::from_secs(300);

/// A backup was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("the archive's volume: {0}")]
    Volume(#[from] io::Error),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("pg_controldata prints no system identifier")]
    NoIdentifier,
}

/// What a backup's manifest says cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("the backup's manifest: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the backup's manifest names no part of the write-ahead log")]
    NoWal,
}

/// Takes a backup, unless it is there; only one that was verified is.
pub(crate) async fn take(
    clock: &Clock,
    destination: &Arc<dyn Destination>,
    at: &Location,
    source: &Source,
    scratch: &Path,
) -> Result<Info, TakeError> {
    if let Some(info) = destination.find(at)? {
        return Ok(info);
    }
    let began = clock.moment();
    let unfinished = Unfinished { destination: destination.clone(), at: at.clone() };
    let data = destination.begin(at)?;
    let place = data.to_str().ok_or_else(|| io::Error::other("its path is no text"))?;
    let passfile = scratch.join("passfile");
    write_durably(&passfile, passfile_line(&source.user, &source.password).as_bytes(), 0o600)?;
    let conninfo = conninfo(source, scratch)?;
    let arguments = [
        "--pgdata",
        place,
        "--dbname",
        &conninfo,
        "--checkpoint=fast",
        // Through a slot of its own, so that nothing is missing; the server bounds what that may keep.
        "--wal-method=stream",
        "--manifest-checksums=SHA256",
        "--no-password",
    ];
    tracing::info!("a backup of {source:?} is taken as {at}");
    programs::run(clock, "pg_basebackup", &arguments, Some(&passfile), LONGEST).await?;
    let system_identifier = verify(clock, &data).await?;
    let wal = wal_range(&data)?;
    let files = data.clone();
    let size = tokio::task::spawn_blocking(move || size_of(&files)).await.map_err(io::Error::other)??;
    let info = Info {
        size_bytes: i64::try_from(size).unwrap_or(i64::MAX),
        duration_seconds: i64::try_from(clock.moment().since(began).as_secs()).unwrap_or(i64::MAX),
        wal,
        system_identifier,
        version: Some(fs::read_to_string(data.join("PG_VERSION"))?.trim().to_owned()),
    };
    destination.publish(at, &info)?;
    drop(unfinished);
    tracing::info!("{at} is whole, {} bytes", info.size_bytes);
    Ok(info)
}

/// Verifies the files of a backup, and the write-ahead log that it needs, by its manifest. Answers whose data it is.
pub(crate) async fn verify(clock: &Clock, data: &Path) -> Result<String, TakeError> {
    let place = data.to_str().ok_or_else(|| io::Error::other("its path is no text"))?;
    programs::run(clock, "pg_verifybackup", &["--exit-on-error", place], None, LONGEST).await?;
    let printed = programs::run(clock, "pg_controldata", &["-D", place], None, SHORT).await?.output;
    control_field(&printed, "Database system identifier").map(str::to_owned).ok_or(TakeError::NoIdentifier)
}

/// What was begun is taken away, however it ends; what was published is there no more under that name.
struct Unfinished {
    destination: Arc<dyn Destination>,
    at: Location,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Err(error) = self.destination.abandon(&self.at) {
            tracing::warn!("what was taken of {} is left: {error}", self.at);
        }
    }
}

fn conninfo(source: &Source, scratch: &Path) -> io::Result<String> {
    let ssl = match &source.trusted {
        Some(trusted) => {
            let path = scratch.join("source-ca.crt");
            write_durably(&path, trusted.as_bytes(), 0o600)?;
            format!("sslmode=verify-full sslrootcert={}", path.display())
        }
        None => "sslmode=prefer".to_owned(),
    };
    Ok(format!(
        "host={} port={} user={} dbname=postgres application_name=sampledb-archive {ssl} connect_timeout=10 \
         keepalives_idle=30 keepalives_interval=10 keepalives_count=3",
        source.host, source.port, source.user
    ))
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(rename = "WAL-Ranges", default)]
    wal: Vec<ManifestRange>,
}

#[derive(Deserialize)]
struct ManifestRange {
    #[serde(rename = "Timeline")]
    timeline: u32,
    #[serde(rename = "Start-LSN")]
    begin: Lsn,
    #[serde(rename = "End-LSN")]
    end: Lsn,
}

fn wal_range(data: &Path) -> Result<WalRange, TakeError> {
    let file = File::open(data.join("backup_manifest"))?;
    Ok(range_of(BufReader::new(file))?)
}

fn range_of(manifest: impl io::Read) -> Result<WalRange, ManifestError> {
    let manifest: Manifest = serde_json::from_reader(manifest)?;
    // One of each timeline that it spans.
    let begin = manifest.wal.iter().map(|range| range.begin).min();
    let last = manifest.wal.iter().max_by_key(|range| (range.timeline, range.end));
    let (Some(begin), Some(last)) = (begin, last) else { return Err(ManifestError::NoWal) };
    Ok(WalRange { begin, end: last.end, timeline: last.timeline })
}

/// How large the files below a directory are.
fn size_of(directory: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let file = entry.metadata()?;
        size += if file.is_dir() { size_of(&entry.path())? } else { file.len() };
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_tells_which_part_of_the_log_is_needed() {
        let of = |ranges: &str| {
            let text = format!(
                r#"{{"PostgreSQL-Backup-Manifest-Version": 1, "Files": [{{"Path": "x"}}], "WAL-Ranges": [{ranges}]}}"#
            );
            range_of(text.as_bytes())
        };
        let one = of(r#"{"Timeline": 1, "Start-LSN": "0/2000028", "End-LSN": "0/2000100"}"#).unwrap();
        assert_eq!(one, WalRange { begin: Lsn(0x0200_0028), end: Lsn(0x0200_0100), timeline: 1 });
        let two = of(
            r#"{"Timeline": 2, "Start-LSN": "0/30", "End-LSN": "0/40"}, {"Timeline": 1, "Start-LSN": "0/20", "End-LSN": "0/30"}"#,
        );
        assert_eq!(two.unwrap(), WalRange { begin: Lsn(0x20), end: Lsn(0x40), timeline: 2 });
        assert!(matches!(of(""), Err(ManifestError::NoWal)));
        assert!(range_of(&b"{\"WAL-Ran"[..]).is_err());
    }

    #[test]
    fn the_size_is_that_of_all_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/one"), [0; 10]).unwrap();
        fs::write(folder.path().join("two"), [0; 5]).unwrap();
        assert_eq!(size_of(folder.path()).unwrap(), 15);
    }
}
