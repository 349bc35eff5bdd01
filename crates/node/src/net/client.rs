//! The node's side: starts the network process or finds it again, and asks it.

use super::process::{Begun, started};
use super::protocol::{Hello, Reply, Request, read, write};
use super::socket_path::through_directory;
use super::{NetError, ServiceMap, Settings, host};
use crate::process_record::Record;
use crate::program::Program;
use parking_lot::{Mutex, RwLock};
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use windlass_clock::Clock;

/// How long an answer may take; a connection has its own limit below it.
const LIMIT: Duration = Duration::from_secs(15);
/// How long the process may take to begin, on a machine that is busy.
const BEGINNING: Duration = Duration::from_secs(30);
/// How often a process that is about to answer is asked again.
const AGAIN: Duration = Duration::from_millis(20);

/// A node's network. Dropping it ends nothing: pods outlive their node, and so does their network.
#[derive(Debug, Clone)]
pub struct Network(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: PathBuf,
    /// What it was made of, also when it was made again.
    settings: Settings,
    hello: RwLock<Hello>,
    /// How often it was made again.
    replaced: watch::Sender<u64>,
    /// Endpoints of Services on the host's side, as published last.
    on_host: Mutex<Arc<HashSet<SocketAddrV4>>>,
    clock: Clock,
}

impl Network {
    /// Finds the network of these settings, or starts it.
    ///
    /// # Errors
    /// It cannot be started (the text says why and what to do), or another with other settings runs in the folder.
    pub async fn open(program: &Program, settings: &Settings) -> Result<Self, NetError> {
        fs::create_dir_all(&settings.folder).map_err(|error| {
            NetError::Start(format!("cannot make {}: {error}", settings.folder.display()))
        })?;
        let clock = Clock::real();
        let due = clock.moment() + BEGINNING;
        loop {
            if let Some(found) = Self::find(&settings.folder).await {
                let same =
                    Settings { folder: settings.folder.clone(), ..found.settings().clone() } == *settings;
                return if same { Ok(found) } else { Err(NetError::Other) };
            }
            match clock.timeout(BEGINNING, start(program, settings)).await {
                Ok(Ok(Begun::Ready)) => {}
                // Another is about to answer, or about to be gone.
                Ok(Ok(Begun::Taken)) => clock.sleep(AGAIN).await,
                Ok(Ok(Begun::Failed(why))) => return Err(NetError::Start(why)),
                Ok(Err(error)) => return Err(NetError::Start(error.to_string())),
                Err(_) => return Err(NetError::Late),
            }
            if clock.moment() >= due {
                return Err(NetError::Late);
            }
        }
    }

    /// The network that answers in this folder, if one does.
    pub async fn find(folder: &Path) -> Option<Self> {
        let (socket, clock) = (folder.join("socket"), Clock::real());
        match ask(&clock, &socket, &Request::Hello).await {
            Ok((Reply::Hello(hello), _)) => {
                let (settings, hello) = (hello.settings.clone(), RwLock::new(hello));
                let (on_host, replaced) = (Mutex::default(), watch::Sender::default());
                Some(Self(Arc::new(Inner { socket, settings, hello, replaced, on_host, clock })))
            }
            _ => None,
        }
    }

    /// What it was made of.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The process whose user namespace pods must join first; none where the network needed none of its own.
    pub fn user_namespace_of(&self) -> Option<i32> {
        let hello = self.0.hello.read();
        hello.own_users.then_some(hello.pid)
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.0.hello.read().pid
    }

    /// A name for this network and no later one: a pod that joined another has lost its interface with it, and for an ordinary
    /// user cannot be given a new one, since its namespaces belong to users that are gone.
    pub fn instance(&self) -> String {
        let hello = self.0.hello.read();
        format!("{}.{}", hello.pid, hello.started)
    }

    /// Returns when its process is gone.
    pub async fn gone(&self) {
        let Hello { pid, started: since, .. } = *self.0.hello.read();
        let watched = async { Record { pid, start: since }.open()?.gone().await.ok() };
        if watched.await.is_none() {
            // It is gone already, or cannot be watched here.
            while started(pid) == Some(since) && !is_zombie(pid) {
                self.0.clock.sleep(AGAIN).await;
            }
        }
    }

    /// Starts its process again, where it is gone. The network is another then: pods that were attached have lost their interfaces.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn reopen(&self, program: &Program) -> Result<(), NetError> {
        let found = Self::open(program, self.settings()).await?;
        let hello = found.0.hello.read().clone();
        *self.0.hello.write() = hello;
        self.0.replaced.send_modify(|times| *times += 1);
        Ok(())
    }

    /// Changes whenever its process was started again: what was published is to be published again.
    pub fn replaced(&self) -> watch::Receiver<u64> {
        self.0.replaced.subscribe()
    }

    /// Where it is asked: what a shim needs to join.
    pub fn socket(&self) -> &Path {
        &self.0.socket
    }

    /// The pod's address: the same for the same pod, until it is released.
    ///
    /// # Errors
    /// None is left, or the network does not answer.
    pub async fn allocate(&self, pod_uid: &str) -> Result<Ipv4Addr, NetError> {
        match self.ask(&Request::Allocate { uid: pod_uid.into() }).await? {
            (Reply::Address(address), _) => Ok(address),
            (other, _) => Err(other.unexpected()),
        }
    }

    /// Takes the pod's address back, and its interface with it. A pod that holds none is no error.
    ///
    /// # Errors
    /// The network does not answer, or the kernel refuses.
    pub async fn release(&self, pod_uid: &str) -> Result<(), NetError> {
        self.done(&Request::Release { uid: pod_uid.into() }).await
    }

    /// Who holds an address, by UID: what is to be released after a restart if its pod is gone.
    ///
    /// # Errors
    /// The network does not answer.
    pub async fn allocated(&self) -> Result<Vec<(String, Ipv4Addr)>, NetError> {
        match self.ask(&Request::ListAllocated).await? {
            (Reply::Allocated(all), _) => Ok(all),
            (other, _) => Err(other.unexpected()),
        }
    }

    /// Replaces what the network knows of Services, at once and as a whole. Connections to endpoints that stay are not touched.
    ///
    /// # Errors
    /// The network does not answer.
    pub async fn publish(&self, table: &ServiceMap) -> Result<(), NetError> {
        let backends =
            table.services.iter().flat_map(|service| &service.ports).flat_map(|port| &port.backends);
        let outside = backends.filter(|backend| !self.settings().pods.contains(*backend.ip()));
        *self.0.on_host.lock() = Arc::new(outside.copied().collect());
        self.done(&Request::Publish { table: table.clone() }).await
    }

    /// A connection from inside the node's network, to a pod or a Service. It is a socket of that network, handed over: nothing
    /// is copied on its way.
    ///
    /// # Errors
    /// [`NetError::Connect`] where the other side refuses or does not answer.
    pub async fn connect(&self, to: SocketAddrV4) -> Result<TcpStream, NetError> {
        match self.ask(&Request::Connect { to }).await? {
            (Reply::Done, Some(descriptor)) => {
                let stream = std::net::TcpStream::from(descriptor);
                stream.set_nonblocking(true)?;
                Ok(TcpStream::from_std(stream)?)
            }
            (other, _) => Err(other.unexpected()),
        }
    }

    /// Makes the connections that the network cannot: to the API at `api` (a host and a port, as this process reaches it) for those who
    /// ask `kubernetes.default`, and to endpoints of published Services that are no pods of this node. Runs until it is dropped;
    /// connections that were made outlive it.
    ///
    /// # Errors
    /// It cannot listen in the network's folder.
    pub async fn serve_host(&self, api: &str) -> Result<(), NetError> {
        Ok(host::serve(&self.settings().host_socket(), api, || self.0.on_host.lock().clone()).await?)
    }

    /// Ends the network and waits until its process is gone. Pods that still run lose their interfaces.
    ///
    /// # Errors
    /// It does not answer, or does not end.
    pub async fn end(self) -> Result<(), NetError> {
        self.done(&Request::End).await?;
        let Hello { pid, started: since, .. } = *self.0.hello.read();
        let gone = async {
            while started(pid) == Some(since) && !is_zombie(pid) {
                self.0.clock.sleep(AGAIN).await;
            }
        };
        self.0.clock.timeout(LIMIT, gone).await.map_err(|_| NetError::Late)
    }

    async fn done(&self, request: &Request) -> Result<(), NetError> {
        match self.ask(request).await? {
            (Reply::Done, _) => Ok(()),
            (other, _) => Err(other.unexpected()),
        }
    }

    async fn ask(&self, request: &Request) -> Result<(Reply, Option<OwnedFd>), NetError> {
        ask(&self.0.clock, &self.0.socket, request).await
    }
}

async fn ask(clock: &Clock, socket: &Path, request: &Request) -> Result<(Reply, Option<OwnedFd>), NetError> {
    let asking = async {
        let stream = through_directory(socket, |path| std::os::unix::net::UnixStream::connect(path))?;
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        write(&stream, request, None).await?;
        read(&stream).await?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    Ok(clock.timeout(LIMIT, asking).await.map_err(|_| NetError::Late)??)
}

/// Starts the process and waits for what it says of itself.
async fn start(program: &Program, settings: &Settings) -> io::Result<Begun> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(settings.folder.join("log"))?;
    let mut command = tokio::process::Command::from(program.command("pod-network"));
    command.arg(serde_json::to_string(settings)?).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    let begun = serde_json::from_str(&line).map_err(|_| {
        io::Error::other(format!("it ended at once; see {}", settings.folder.join("log").display()))
    })?;
    // Whoever outlives the other: a child that ends while we live is waited for, and leaves no zombie.
    tokio::spawn(async move { child.wait().await });
    Ok(begun)
}

/// Ended, but not waited for by its parent.
fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}
