//! What the pods of an upgrade's Jobs do: data of the next version is made beside that of the last, and put into its place, or that of
//! the last is put back.
//!
//! Whatever is killed meanwhile, the data is that of one version, whole; what was not finished is begun anew.
//!
//! - `collect`: brings the programs of the last version into a pod of the next
//! - `collations`: whether text sorts as before
//! - `servers`: servers that nobody else can connect to

mod collations;
mod collect;
mod servers;

pub(super) use collect::collect;

use super::data::Volume;
use super::kubernetes::Kubernetes;
use crate::api::v1alpha1::UpgradeReport;
use crate::data_version::{ACCEPT_COLLATIONS, DataVersion, Phase, major};
use crate::durable_files::remove;
use crate::programs::{self, ProgramError, control_field};
use crate::settings::{OLD_PROGRAMS, Settings, upgrade_variables};
use collations::Changed;
use servers::PrivateServer;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass::clock::Clock;

/// How long a step may take that reads or writes all of the data.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long others may take.
const SHORT: Duration = Duration::from_secs(600);
/// How often a report is tried.
const REPORTS: u32 = 30;
/// The first version that keeps statistics in an upgrade.
const KEEPS_STATISTICS: u32 = 18;
/// How much is told of a list of what pg_upgrade refuses, in bytes.
const LISTED: u64 = 400;
/// Of the room that a copy takes, this much more has to be there.
const SPARE: u64 = 256 << 20;

/// Why an upgrade did not come to its end.
#[derive(Debug, thiserror::Error)]
enum UpgradeError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It is not to be done, or nobody says that it is.
    #[error("{0}")]
    Over(String),
    #[error("the volume: {0}")]
    Volume(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
}

fn refused<T>(why: String) -> Result<T, UpgradeError> {
    Err(UpgradeError::Refused(why))
}

struct Work {
    clock: Clock,
    settings: Settings,
    kubernetes: Kubernetes,
    volume: Volume,
    from: String,
    to: String,
    attempt: i32,
}

/// Upgrades the data of an instance.
pub(super) async fn upgrade() -> Result<(), String> {
    let work = Work::from_env().await?;
    work.report_what_came_of(async { work.upgrade().await }).await
}

/// Puts the data of the last version back.
pub(super) async fn revert() -> Result<(), String> {
    let work = Work::from_env().await?;
    work.report_what_came_of(async {
        work.volume.swap_back()?;
        work.expect(&work.from)
    })
    .await
}

impl Work {
    async fn from_env() -> Result<Self, String> {
        let settings = Settings::from_env().map_err(|error| error.to_string())?;
        let client = kube::Client::try_default().await.map_err(|error| format!("no client: {error}"))?;
        let clock = Clock::real();
        let attempt = variable(upgrade_variables::ATTEMPT)?;
        Ok(Self {
            kubernetes: Kubernetes::new(client, &settings, clock.clone()),
            volume: Volume::at(&settings.volume),
            from: variable(upgrade_variables::FROM)?,
            to: variable(upgrade_variables::TO)?,
            attempt: attempt.parse().map_err(|error| format!("{}: {error}", upgrade_variables::ATTEMPT))?,
            settings,
            clock,
        })
    }

    /// Does the work, and reports which data is in its place then, or why it is not. A pod whose attempt is over says nothing: what
    /// others reported stands.
    async fn report_what_came_of(
        &self,
        work: impl Future<Output = Result<(), UpgradeError>>,
    ) -> Result<(), String> {
        let _lock = self.lock().await.map_err(|error| error.to_string())?;
        let done = async {
            self.expect_to_be_due().await?;
            work.await?;
            self.done().await
        };
        match done.await {
            Ok(report) => self.report(report).await,
            Err(error @ UpgradeError::Over(_)) => Err(error.to_string()),
            Err(error) => {
                let message = error.to_string();
                self.report(UpgradeReport { message: message.clone(), ..UpgradeReport::default() }).await?;
                Err(message)
            }
        }
    }

    /// Waits until no other pod works on the volume.
    async fn lock(&self) -> io::Result<fs::File> {
        loop {
            if let Some(lock) = self.volume.lock()? {
                return Ok(lock);
            }
            tracing::info!("another pod works on the volume");
            self.clock.sleep(Duration::from_secs(5)).await;
        }
    }

    async fn done(&self) -> Result<UpgradeReport, UpgradeError> {
        let data = self.volume.data();
        Ok(UpgradeReport {
            version: Some(self.volume.major()?),
            system_identifier: Some(self.control_field(None, &data, "Database system identifier").await?),
            clone: Some(self.volume.clone_id_of_attempt(self.attempt)?),
            ..UpgradeReport::default()
        })
    }

    async fn report(&self, report: UpgradeReport) -> Result<(), String> {
        let report = UpgradeReport { attempt: self.attempt, ..report };
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.kubernetes.report_upgrade(&report).await {
                Ok(()) => return Ok(()),
                Err(error) if attempts == REPORTS => return Err(error.to_string()),
                Err(error) => {
                    tracing::warn!("{error}");
                    self.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    async fn says(&self, message: &str) -> Result<(), UpgradeError> {
        tracing::info!("{message}");
        let report = UpgradeReport { message: message.to_owned(), ..UpgradeReport::default() };
        self.report(report).await.map_err(UpgradeError::Refused)
    }

    /// Nothing is changed by a pod whose attempt is not the one that the Lease names: it was begun long ago, or was given up.
    async fn expect_to_be_due(&self) -> Result<(), UpgradeError> {
        let mut attempts = 0;
        let data = loop {
            attempts += 1;
            match self.kubernetes.data_version().await {
                Ok(data) => break data,
                Err(error) if attempts == REPORTS => return Err(UpgradeError::Over(error.to_string())),
                Err(error) => {
                    tracing::warn!("{error}");
                    self.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        };
        match data.as_ref().and_then(DataVersion::phase) {
            Some(Phase::Upgrading { attempt } | Phase::Reverting { attempt, .. })
                if *attempt == self.attempt =>
            {
                Ok(())
            }
            _ => Err(UpgradeError::Over(format!("attempt {} is not under way any more", self.attempt))),
        }
    }

    fn expect(&self, version: &str) -> Result<(), UpgradeError> {
        let there = self.volume.major()?;
        if there == version {
            return Ok(());
        }
        refused(format!("the volume has data of PostgreSQL {there}, and not of {version}"))
    }

    async fn upgrade(&self) -> Result<(), UpgradeError> {
        // An attempt before this one may have been killed at any moment.
        self.volume.swap()?;
        if self.volume.major().is_ok_and(|there| there == self.to) {
            return Ok(());
        }
        self.expect(&self.from)?;
        if self.volume.is_standby() {
            return refused("the data is that of a replica".to_owned());
        }
        let old = OldPrograms::found()?;
        self.says("the servers of both versions are compared").await?;
        self.stop_cleanly(&old).await?;
        self.make(&old).await?;
        // Files are copied where the file system cannot share their blocks.
        let how: &[&str] = match self.pg_upgrade(&old, &["--check", "--clone"]).await {
            Ok(_) => &["--clone"],
            Err(UpgradeError::Program(ProgramError::Failed { said, .. })) if says_no_clones(&said) => {
                self.has_room()?;
                self.pg_upgrade(&old, &["--check"]).await?;
                &[]
            }
            Err(error) => return Err(error),
        };
        self.says("pg_upgrade makes data of the next version").await?;
        // What a check leaves behind would be in the way.
        self.make(&old).await?;
        self.pg_upgrade(&old, how).await?;
        self.check_new_data().await?;
        self.expect_to_be_due().await?;
        self.volume.keep_upgraded()?;
        self.volume.swap()?;
        self.expect(&self.to)
    }

    /// A server that was killed has to recover before: pg_upgrade takes data of one that stopped.
    async fn stop_cleanly(&self, old: &OldPrograms) -> Result<(), UpgradeError> {
        let data = self.volume.data();
        servers::configure(&data, &self.settings.sockets)?;
        if self.control_field(Some(old), &data, "Database cluster state").await? == "shut down" {
            return Ok(());
        }
        self.says("the last server of the version before recovers").await?;
        let server =
            PrivateServer::start(&self.clock, &self.settings.sockets, &old.bin, &data, LONGEST).await?;
        server.stop().await?;
        match self.control_field(Some(old), &data, "Database cluster state").await?.as_str() {
            "shut down" => Ok(()),
            state => refused(format!("the server of the version before left its data {state}")),
        }
    }

    /// Makes an empty database of the next version, with what pg_upgrade wants to be the same.
    async fn make(&self, old: &OldPrograms) -> Result<(), UpgradeError> {
        let data = self.volume.data();
        let place = self.volume.begin_upgrade()?;
        let segment = self.control_field(Some(old), &data, "Bytes per WAL segment").await?;
        let segment = segment.parse::<u64>().unwrap_or(16 << 20) >> 20;
        let has_checksums = self.control_field(Some(old), &data, "Data page checksum version").await? != "0";
        let segment = format!("--wal-segsize={segment}");
        let mut arguments = vec![
            "--pgdata",
            text(&place)?,
            "--username=postgres",
            "--auth=scram-sha-256",
            "--auth-local=peer",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            &segment,
        ];
        match has_checksums {
            true => arguments.push("--data-checksums"),
            // Since this version they are the default.
            false if number(&self.to) >= 18 => arguments.push("--no-data-checksums"),
            false => {}
        }
        programs::run(&self.clock, "initdb", &arguments, None, SHORT).await?;
        servers::configure(&place, &self.settings.sockets)?;
        Ok(())
    }

    /// What it refuses is in files, which are told with what it prints.
    async fn pg_upgrade(&self, old: &OldPrograms, how: &[&str]) -> Result<(), UpgradeError> {
        let (data, place) = (self.volume.data(), self.volume.upgrading());
        let path = |path: &Path| path.display().to_string();
        let (bin, data, place) = (path(&old.bin), path(&data), path(&place));
        let sockets = path(&self.settings.sockets);
        let mut arguments = vec![
            "--old-bindir",
            &bin,
            "--old-datadir",
            &data,
            "--new-datadir",
            &place,
            "--username",
            "postgres",
            "--socketdir",
            &sockets,
        ];
        arguments.extend(how);
        match programs::run_in(&self.clock, "pg_upgrade", &arguments, &self.settings.sockets, LONGEST).await {
            Ok(_) => Ok(()),
            Err(ProgramError::Failed { program, said }) => {
                let said = with_files(&said);
                Err(ProgramError::Failed { program, said }.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn has_room(&self) -> Result<(), UpgradeError> {
        let (size, room) = (size_of(&self.volume.data())?, self.volume.room()?);
        let needed = size.saturating_add(SPARE);
        if room >= needed {
            return Ok(());
        }
        refused(format!(
            "the volume has {} MiB left, and a copy of the data needs {}: set spec.storage.size",
            room >> 20,
            needed >> 20
        ))
    }

    /// Statistics are made, without which queries are slow; and text has to sort as it did, or indexes are built anew.
    async fn check_new_data(&self) -> Result<(), UpgradeError> {
        let place = self.volume.upgrading();
        let sockets = &self.settings.sockets;
        let server = PrivateServer::start(&self.clock, sockets, Path::new(""), &place, SHORT).await?;
        let checked = async {
            self.says("statistics are collected").await?;
            let mut arguments = vec!["--all", "--analyze-only"];
            if number(&self.to) >= KEEPS_STATISTICS {
                arguments.push("--missing-stats-only");
            }
            server.run("vacuumdb", &arguments, LONGEST).await?;
            self.check_collations(&server).await
        };
        let checked = checked.await;
        server.stop().await?;
        checked
    }

    async fn check_collations(&self, server: &PrivateServer<'_>) -> Result<(), UpgradeError> {
        let changed = collations::changed(server).await?;
        if changed.is_empty() {
            return Ok(());
        }
        if variable(upgrade_variables::ACCEPT_COLLATIONS).as_deref() != Ok("true") {
            let told: Vec<String> = changed.iter().map(Changed::told).collect();
            return refused(format!(
                "text sorts otherwise with the next version ({}), and indexes have to be built anew: annotate the SampleDB with \
                 {ACCEPT_COLLATIONS}=true",
                told.join(", ")
            ));
        }
        self.says("indexes are built anew, since text sorts otherwise").await?;
        server.run("reindexdb", &["--all"], LONGEST).await?;
        Ok(collations::accept(server, &changed).await?)
    }

    async fn control_field(
        &self,
        old: Option<&OldPrograms>,
        data: &Path,
        name: &str,
    ) -> Result<String, UpgradeError> {
        let program = old.map_or_else(|| "pg_controldata".into(), |old| old.bin.join("pg_controldata"));
        let program = program.display().to_string();
        let printed = programs::run(&self.clock, &program, &["-D", text(data)?], None, SHORT).await?.output;
        match control_field(&printed, name) {
            Some(value) => Ok(value.to_owned()),
            None => refused(format!("pg_controldata prints no {name}")),
        }
    }
}

/// The programs of the version before.
struct OldPrograms {
    bin: PathBuf,
}

impl OldPrograms {
    fn found() -> Result<Self, UpgradeError> {
        let bin = fs::read_to_string(Path::new(OLD_PROGRAMS).join(collect::WHERE))?;
        Ok(Self { bin: PathBuf::from(bin.trim()) })
    }
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("the variable {name} is not set"))
}

fn text(path: &Path) -> Result<&str, UpgradeError> {
    path.to_str().ok_or_else(|| UpgradeError::Refused("the volume's path is no text".to_owned()))
}

fn number(version: &str) -> u32 {
    major(version).parse().unwrap_or(0)
}

/// Whether pg_upgrade failed since the file system shares no blocks between files.
fn says_no_clones(said: &str) -> bool {
    said.contains("could not clone file") || said.contains("file cloning not supported")
}

/// A message with the beginnings of the lists that it names, which nobody can read when the pod has ended.
fn with_files(said: &str) -> String {
    let mut all = said.to_owned();
    let named = said.split_whitespace().filter(|word| word.starts_with('/') && word.ends_with(".txt"));
    for path in named {
        let mut content = String::new();
        if let Ok(file) = fs::File::open(path) {
            // A list may be cut within a letter; then it is not told.
            let _ = file.take(LISTED).read_to_string(&mut content);
        }
        if !content.trim().is_empty() {
            all.push_str(&format!(": {}", content.trim()));
        }
    }
    all
}

/// How large the files below a directory are. A server's data nests a few directories, which nobody else can write.
fn size_of(directory: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        size += if kind.is_dir() { size_of(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(size)
}

/// Takes away what an upgrade left of the version before.
pub(super) fn forget_old_data(volume: &Volume) {
    let before = volume.before();
    if before.exists() {
        tracing::info!("the data of the version before is deleted");
        if let Err(error) = remove(&before) {
            tracing::warn!("the data of the version before is not deleted: {error}");
        }
    }
}
