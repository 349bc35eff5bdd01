//! The loop: look, decide, do one step, report, and again.

use super::configuration::Files;
use super::data::{Number, Volume, random_id};
use super::kubernetes::{ApiError, Kubernetes};
use super::metrics;
use super::next::{self, Data, Step, View};
use super::primary::Primary;
use super::probe::Health;
use super::renewal::Renewal;
use super::server::{Server, adopt_orphans};
use super::sql::{Sql, SqlError, State};
use super::tls::Tls;
use super::upgrade;
use super::watchdog::Leash;
use crate::api::v1alpha1::{Role, SampleDBInstance, SampleDBInstanceStatus};
use crate::archive::{AskError, TakeError};
use crate::data_version::DataVersion;
use crate::leadership::Leadership;
use crate::lsn::Lsn;
use crate::parameters::NOT_LOWER_ON_STANDBYS;
use crate::programs::{self, ProgramError, control_field};
use crate::settings::{Settings, TERMINATION_MESSAGE};
use k8s_openapi::api::coordination::v1::Lease;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use windlass::clock::{Clock, Moment};

/// How often it looks, whatever happens.
const TICK: Duration = Duration::from_millis(250);
/// How long it waits after a step that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long a server may take to stop.
const STOP: Duration = Duration::from_secs(60);
/// How long other programs may take.
pub(super) const SHORT: Duration = Duration::from_secs(300);
/// A server that ran this long did start.
const STARTED: Duration = Duration::from_secs(10);
/// How long a server that answered may say nothing, before it is taken for one that hangs; and one that was just started.
const SILENCE: Duration = Duration::from_secs(15);
const FIRST_SILENCE: Duration = Duration::from_secs(60);
/// How old the connection to the server may become: that a server takes new ones, only a new one shows.
const CONNECTION_AGE: Duration = Duration::from_secs(5);
/// A volume with less room than this is full: a server needs some for its write-ahead log, whose files have 16 MiB. It is full until
/// there is twice as much.
const ROOM: u64 = 32 << 20;
/// How long a replica may be without a connection to a primary that is there, before its data is rewound, and then copied anew.
const CUT_OFF: Duration = Duration::from_secs(15);

/// The agent cannot go on; the kubelet starts it again.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its settings are not there.
    #[error(transparent)]
    Settings(#[from] crate::settings::Missing),
    /// There is no way to the API server.
    #[error("no client for the API server: {0}")]
    Client(#[from] Box<kube::Error>),
    /// Something about files.
    #[error("{what}: {why}")]
    Files {
        /// What.
        what: &'static str,
        /// Why.
        why: io::Error,
    },
}

/// A step failed; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Sql(#[from] SqlError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Archive(#[from] AskError),
    #[error(transparent)]
    Backup(#[from] TakeError),
    #[error("the volume: {0}")]
    Volume(#[from] io::Error),
    #[error("{0}")]
    Other(String),
}

/// Runs the agent until it is told to end.
///
/// # Errors
/// [`AgentError`]
pub async fn run() -> Result<(), AgentError> {
    let settings = Settings::from_env()?;
    let clock = Clock::real();
    adopt_orphans();
    let client = kube::Client::try_default().await.map_err(Box::new)?;
    let kubernetes = Kubernetes::new(client, &settings, clock.clone());
    let files = |what| move |why| AgentError::Files { what, why };
    let volume = Volume::at(&settings.volume);
    let clone = volume.clone_id().map_err(files("the volume"))?;
    let run = random_id().map_err(files("an identity for this run"))?;
    if let Err(error) = fs::write(TERMINATION_MESSAGE, &run) {
        tracing::warn!("{TERMINATION_MESSAGE}: {error}: when this container ends, its Lease is waited out");
    }
    let health = Health::new(clock.clone());
    health.serve(&settings.sockets).map_err(files("the socket for probes"))?;
    metrics::serve(&settings, &clock).await.map_err(files("the port for metrics"))?;
    let terminate = signal(SignalKind::terminate()).map_err(files("signals"))?;
    let interrupt = signal(SignalKind::interrupt()).map_err(files("signals"))?;
    let (lease, instance) = (kubernetes.watch_lease(), kubernetes.watch_instance());
    let writes = Arc::new(AtomicBool::new(false));
    let renewal = Renewal {
        kubernetes: kubernetes.clone(),
        settings: settings.clone(),
        clock: clock.clone(),
        run: run.clone(),
        leash: Arc::new(Leash::from_stdin()),
        lease: lease.clone(),
        instance: instance.clone(),
        writes: writes.clone(),
    };
    tokio::spawn(renewal.keep());
    let span = tracing::info_span!("agent", database = %settings.database, instance = %settings.instance);
    let agent = Agent {
        settings,
        clock,
        kubernetes,
        volume,
        clone,
        run,
        health,
        lease,
        instance,
        writes,
        server: Server::default(),
        started: None,
        answered: None,
        crashes: 0,
        sql: None,
        control: None,
        configured: None,
        tls: Tls::default(),
        ended_at: None,
        settled: false,
        streamed: None,
        rewound: false,
        restarted: None,
        pending_restart: Vec::new(),
        primary: Primary::default(),
        volume_full: false,
        forgets: false,
        reported: None,
        said: String::new(),
    };
    tracing::Instrument::instrument(agent.work(terminate, interrupt), span).await;
    Ok(())
}

pub(super) struct Agent {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) kubernetes: Kubernetes,
    pub(super) volume: Volume,
    pub(super) clone: String,
    pub(super) run: String,
    pub(super) health: Health,
    pub(super) lease: watch::Receiver<Option<Arc<Lease>>>,
    instance: watch::Receiver<Option<Arc<SampleDBInstance>>>,
    /// Whether the server takes writes, or may soon: for the renewal of the Lease.
    pub(super) writes: Arc<AtomicBool>,
    pub(super) server: Server,
    started: Option<Moment>,
    /// When the server last answered anything since then.
    answered: Option<Moment>,
    pub(super) crashes: u32,
    pub(super) sql: Option<Sql>,
    /// What pg_controldata printed last, and of which version of the file.
    control: Option<(ControlFile, String)>,
    /// The configuration that the server was given last.
    pub(super) configured: Option<Files>,
    pub(super) tls: Tls,
    /// Where the data ended when the server was last asked, for a standby that has applied everything.
    ended_at: Option<Lsn>,
    settled: bool,
    /// When the standby was last connected to a primary, or told to follow another.
    pub(super) streamed: Option<Moment>,
    pub(super) rewound: bool,
    restarted: Option<String>,
    /// Parameters that a restart changes.
    pub(super) pending_restart: Vec<String>,
    pub(super) primary: Primary,
    volume_full: bool,
    /// Whether the data of the version before an upgrade is being deleted, or was.
    forgets: bool,
    reported: Option<SampleDBInstanceStatus>,
    said: String,
}

/// What was seen in one turn of the loop.
pub(super) struct Seen {
    pub(super) leadership: Option<Leadership>,
    pub(super) instance: Option<Arc<SampleDBInstance>>,
    pub(super) data: Option<Data>,
    server: next::Server,
    pub(super) epoch: i32,
    followed: i32,
    /// What the Lease says of the data's version.
    version: Option<DataVersion>,
}

impl Seen {
    /// The Lease's epoch.
    pub(super) fn epoch_of_lease(&self) -> i32 {
        self.leadership.as_ref().map_or(0, |leadership| leadership.epoch)
    }
}

impl Agent {
    async fn work(mut self, mut terminate: Signal, mut interrupt: Signal) {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                () = self.turn() => {}
            }
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                changed = self.lease.changed() => if changed.is_err() { break },
                changed = self.instance.changed() => if changed.is_err() { break },
                () = self.clock.sleep(TICK) => {}
            }
        }
        self.end().await;
    }

    /// The pod ends: whoever is primary hands over.
    async fn end(&mut self) {
        tracing::info!("the agent was asked to end");
        self.health.is_busy();
        self.server.stop(&self.clock, STOP).await;
        if let Err(error) = self.release().await {
            tracing::warn!("the Lease could not be given back: {error}");
        }
    }

    async fn turn(&mut self) {
        let (message, failed) = match self.look_and_act().await {
            Ok(message) => (message, false),
            Err(error) => {
                tracing::warn!("{error}");
                (error.to_string(), true)
            }
        };
        if self.said != message {
            tracing::info!("{message}");
            self.said.clone_from(&message);
        }
        if let Err(error) = self.report(&message).await {
            tracing::warn!("the status could not be reported: {error}");
        }
        self.server.reap();
        if failed {
            self.clock.sleep(AFTER_FAILURE).await;
        }
    }

    async fn look_and_act(&mut self) -> Result<String, StepError> {
        let seen = self.look().await?;
        let step = next::decide(&self.view(&seen));
        match &step {
            Step::Nothing(_) => {}
            step => tracing::info!("{step:?}"),
        }
        self.carry_out(step, &seen).await
    }

    async fn look(&mut self) -> Result<Seen, StepError> {
        let lease = self.lease.borrow_and_update().clone();
        let instance = self.instance.borrow_and_update().clone();
        let leadership = match &lease {
            Some(lease) => Some(Leadership::of(lease).map_err(ApiError::from)?),
            None => None,
        };
        let data = self.look_at_data().await?;
        self.look_at_tls().await?;
        let server = self.look_at_server().await;
        self.note(&server);
        let (epoch, followed) = (self.volume.number(Number::Epoch)?, self.volume.number(Number::Followed)?);
        let version = lease.and_then(|lease| DataVersion::of(&lease).ok()).flatten();
        Ok(Seen { leadership, instance, data, server, epoch, followed, version })
    }

    async fn look_at_data(&mut self) -> Result<Option<Data>, StepError> {
        if !self.volume.has_data() {
            return Ok(None);
        }
        let printed = self.control_data().await?;
        let field = |name: &str| {
            control_field(&printed, name)
                .map(str::to_owned)
                .ok_or_else(|| StepError::Other(format!("pg_controldata prints no {name}")))
        };
        let timeline = field("Latest checkpoint's TimeLineID")?.parse().unwrap_or(0);
        let floors = NOT_LOWER_ON_STANDBYS.iter().filter_map(|(parameter, name)| {
            Some(((*parameter).to_owned(), control_field(&printed, name)?.parse().ok()?))
        });
        Ok(Some(Data {
            system_identifier: field("Database system identifier")?,
            standby: self.volume.is_standby(),
            timelines: self.volume.timelines(timeline)?,
            floors: floors.collect(),
        }))
    }

    /// What pg_controldata prints. It is run when the file has changed: several times a second is too often for a program.
    async fn control_data(&mut self) -> Result<String, StepError> {
        let path = self.volume.data();
        // Looked at before it is read: a change in between is seen the next time.
        let file = ControlFile::at(&path)?;
        if let Some((_, printed)) = self.control.as_ref().filter(|(of, _)| *of == file) {
            return Ok(printed.clone());
        }
        let arguments = ["-D", text(&path)?];
        let printed = programs::run(&self.clock, "pg_controldata", &arguments, None, SHORT).await?.output;
        self.control = Some((file, printed.clone()));
        Ok(printed)
    }

    async fn look_at_server(&mut self) -> next::Server {
        let (runs, ended) = self.server.poll();
        if let Some(status) = ended {
            let lasted = self.started.map(|at| self.clock.moment().since(at)).unwrap_or_default();
            tracing::warn!("the server ended after {} s: {status}", lasted.as_secs());
            self.crashes = if lasted < STARTED { self.crashes + 1 } else { 1 };
        }
        if !runs {
            self.sql = None;
            self.writes.store(false, Ordering::Relaxed);
            return next::Server::Stopped;
        }
        let state = self.state().await;
        let now = self.clock.moment();
        if state.as_ref().err().is_none_or(SqlError::is_an_answer) {
            self.answered = Some(now);
        }
        match state {
            Ok(state) => {
                self.writes.store(!state.in_recovery, Ordering::Relaxed);
                next::Server::Running(state)
            }
            Err(error) => {
                self.sql = None;
                let (since, limit) = match self.answered {
                    Some(answered) => (Some(answered), SILENCE),
                    None => (self.started, FIRST_SILENCE),
                };
                if since.is_some_and(|since| now.since(since) > limit) {
                    tracing::warn!("the server hangs: {error}");
                    return next::Server::Silent;
                }
                next::Server::Starting
            }
        }
    }

    async fn state(&mut self) -> Result<State, SqlError> {
        let sql = match self.sql.take().filter(Sql::is_open) {
            Some(sql) if sql.age() < CONNECTION_AGE => sql,
            old => match (Sql::connect(&self.clock, &self.settings, "postgres").await, old) {
                (Ok(new), _) => new,
                // It has no connection left, and says so: it can be asked by the one that there is.
                (Err(error), Some(old)) if error.is_an_answer() => old,
                (Err(error), _) => return Err(error),
            },
        };
        let state = sql.state().await?;
        self.sql = Some(sql);
        Ok(state)
    }

    /// Remembers what only several looks together tell.
    fn note(&mut self, server: &next::Server) {
        let now = self.clock.moment();
        match server {
            next::Server::Running(state) => {
                let ended_at =
                    (state.in_recovery && !state.receives && state.replayed).then_some(state.flushed);
                self.settled = ended_at.is_some() && ended_at == self.ended_at;
                self.ended_at = ended_at;
                if state.streams || !state.in_recovery {
                    self.streamed = Some(now);
                    self.rewound = false;
                }
                if self.started.is_some_and(|at| now.since(at) > STARTED) {
                    self.crashes = 0;
                }
            }
            _ => {
                (self.settled, self.ended_at) = (false, None);
                // One that lacks data to become consistent answers nothing, and would wait for ever.
                if *server == next::Server::Stopped || !self.server.waits_for_data() {
                    self.streamed = Some(now);
                }
            }
        }
    }

    fn view<'a>(&'a self, seen: &'a Seen) -> View<'a> {
        View {
            instance: &self.settings.instance,
            run: &self.run,
            clone: &self.clone,
            leadership: seen.leadership.as_ref(),
            spec: seen.instance.as_ref().map(|instance| &instance.spec),
            data: seen.data.clone(),
            server: seen.server.clone(),
            epoch: seen.epoch,
            followed: seen.followed,
            settled: self.settled,
            crashes: self.crashes,
            cut_off: self.streamed.is_some_and(|at| self.clock.moment().since(at) > CUT_OFF),
            rewound: self.rewound,
            restarted: self.restarted.as_deref(),
            superseded: seen.version.as_ref().and_then(|version| version.superseded.as_deref()),
        }
    }

    /// Does one step. Answers what it did, or what is waited for.
    async fn carry_out(&mut self, step: Step, seen: &Seen) -> Result<String, StepError> {
        match step {
            Step::Nothing(message) => return self.keep_up(message, seen).await,
            Step::Take => self.take().await?,
            Step::Initialize => self.initialize().await?,
            Step::Restore => return self.restore(seen).await,
            Step::RecordIdentifier => self.record_identifier(seen).await?,
            Step::Clone(from) => return self.copy(&from, seen).await,
            Step::Rewind(from) => return self.rewind(&from, seen).await,
            Step::RecordEpoch => {
                self.volume.keep(Number::Epoch, seen.epoch_of_lease())?;
            }
            Step::RecordFollowed => {
                self.volume.keep(Number::Followed, seen.epoch_of_lease())?;
                self.streamed = Some(self.clock.moment());
            }
            Step::BecomeStandby => self.volume.make_standby()?,
            Step::Start { follow } => self.start(follow.as_deref(), seen).await?,
            Step::Follow(instance) => {
                self.configure(instance.as_deref(), seen)?;
                return Ok(match instance {
                    Some(instance) => format!("it connects to {instance}"),
                    None => "it disconnects from the primary before".to_owned(),
                });
            }
            Step::Stop(why) => {
                self.stop().await;
                return Ok(why);
            }
            Step::Kill => {
                if seen.server == next::Server::Silent {
                    self.crashes += 1;
                }
                self.sql = None;
                self.server.kill(&self.clock).await;
            }
            Step::Promote => self.promote(seen).await?,
            Step::Leave => {
                self.leave().await?;
                return Ok("it asks to be counted on no more: its data is to be replaced".to_owned());
            }
            Step::Release(why) => {
                self.release().await?;
                return Ok(why);
            }
            Step::HandOver(target) => return self.hand_over(&target).await,
            Step::Restart(token) => {
                self.stop().await;
                self.restarted = Some(token);
                return Ok("the server restarts".to_owned());
            }
        }
        Ok("it starts".to_owned())
    }

    /// Nothing changes: a primary sees to its replicas, and everyone to the configuration.
    async fn keep_up(&mut self, message: String, seen: &Seen) -> Result<String, StepError> {
        let next::Server::Running(state) = &seen.server else { return Ok(message) };
        self.forget_old_data(seen);
        let (Some(leadership), true) = (&seen.leadership, message.is_empty()) else { return Ok(message) };
        if state.in_recovery {
            let primary = leadership.holder.as_ref().map(|holder| holder.instance.clone());
            self.configure(primary.as_deref(), seen)?;
            if let Some(sql) = &self.sql {
                self.pending_restart = sql.pending_restart().await?;
            }
            return Ok(message);
        }
        self.keep_up_primary(leadership, seen).await
    }

    /// What an upgrade left of the version before is deleted once there is no way back to it.
    fn forget_old_data(&mut self, seen: &Seen) {
        let is_over = seen.version.as_ref().is_some_and(|version| version.upgrade.is_none());
        if is_over && self.volume.before().exists() && !std::mem::replace(&mut self.forgets, true) {
            let volume = self.volume.clone();
            tokio::task::spawn_blocking(move || upgrade::forget_old_data(&volume));
        }
    }

    async fn start(&mut self, follow: Option<&str>, seen: &Seen) -> Result<(), StepError> {
        self.write_passfile()?;
        let synchronous = seen.leadership.as_ref().map(|one| one.synchronous.clone()).unwrap_or_default();
        let files = self.wanted(follow, seen, &synchronous);
        self.write_configuration(&files)?;
        self.configured = Some(files);
        self.tls.renewed = false;
        self.primary = Primary::starting_with(synchronous);
        self.writes.store(!self.volume.is_standby(), Ordering::Relaxed);
        self.server.start(&self.volume)?;
        (self.started, self.answered) = (Some(self.clock.moment()), None);
        self.restarted = seen.instance.as_ref().and_then(|instance| instance.spec.restart.clone());
        Ok(())
    }

    pub(super) async fn stop(&mut self) {
        self.health.is_busy();
        self.sql = None;
        self.server.stop(&self.clock, STOP).await;
    }

    pub(super) async fn report(&mut self, message: &str) -> Result<(), StepError> {
        let data = self.look_at_data().await.ok().flatten();
        let server = self.look_at_server().await;
        if let Ok(room) = self.volume.room() {
            self.volume_full = room < if self.volume_full { 2 * ROOM } else { ROOM };
        }
        let message = match message {
            "" if self.volume_full => "its volume is full",
            message => message,
        };
        let leadership = self.lease.borrow().as_ref().and_then(|lease| Leadership::of(lease).ok());
        let vacant = leadership.is_some_and(|leadership| leadership.holder.is_none());
        let (role, ready, state) = match &server {
            next::Server::Running(state) if state.in_recovery => (Role::Replica, state.streams, Some(state)),
            next::Server::Running(state) => (Role::Primary, self.primary.is_open(), Some(state)),
            next::Server::Starting | next::Server::Silent => (Role::Replica, false, None),
            next::Server::Stopped => (Role::Stopped, false, None),
        };
        let status = SampleDBInstanceStatus {
            role,
            ready,
            pod_uid: Some(self.settings.pod_uid.clone()),
            clone: data.as_ref().map(|_| self.clone.clone()),
            system_identifier: data.as_ref().map(|data| data.system_identifier.clone()),
            epoch: self.volume.number(Number::Epoch)?,
            timeline: data.as_ref().map_or(0, |data| {
                let at = state.map(|state| state.flushed);
                at.map_or(data.timelines.last(), |at| data.timelines.at(at))
            }),
            flushed: self.ended_at.filter(|_| vacant && self.settled),
            version: state.map(|state| state.version.clone()),
            observed_generation: self.instance.borrow().as_ref().and_then(|one| one.metadata.generation),
            pending_restart: self.pending_restart.clone(),
            restarted: self.restarted.clone(),
            tls: self.tls.is_used(),
            closed: Some(self.primary.is_closed()),
            volume_full: self.volume_full,
            message: message.to_owned(),
            // That is for an upgrade's Jobs to say.
            upgrade: None,
        };
        self.health.works(ready);
        if self.reported.as_ref() != Some(&status) {
            self.kubernetes.report(&status).await?;
            self.reported = Some(status);
        }
        Ok(())
    }
}

/// A version of the file that pg_controldata prints.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ControlFile {
    written: SystemTime,
    number: u64,
}

impl ControlFile {
    fn at(data: &Path) -> io::Result<Self> {
        let file = fs::metadata(data.join("global/pg_control"))?;
        Ok(Self { written: file.modified()?, number: file.ino() })
    }
}

/// A path as a program's argument.
pub(super) fn text(path: &Path) -> Result<&str, StepError> {
    path.to_str().ok_or_else(|| StepError::Other("the volume's path is no text".to_owned()))
}
