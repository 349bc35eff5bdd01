//! The kubelet's client of a shim.

use super::protocol::{Launch, Launched, Reply, Request};
use super::running::Running;
use super::spec::{Container, ContainerState, Exec, Sandbox, Usage};
use super::state_files;
use crate::ipc;
use crate::process_record::Record;
use crate::program::Program;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use windlass_clock::Clock;

/// The name of a shim's socket in the pod's directory.
pub(super) const SOCKET: &str = "shim.sock";
/// How long a shim may take to start, which normally takes milliseconds.
const LAUNCH: Duration = Duration::from_secs(60);
/// How long a shim may take to end all its processes before it is killed itself, which ends them too.
const END: Duration = Duration::from_secs(20);
/// How long a shim may take to answer that it is there.
const HELLO: Duration = Duration::from_secs(10);

/// A request to a shim failed.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// The shim has died, and with it everything in the pod.
    #[error("the pod's shim is not running")]
    Gone,
    /// The sandbox could not be created.
    #[error("failed to create the pod's sandbox: {0}")]
    Launch(String),
    /// The container could not be started; its state says the same.
    #[error("{message}")]
    NotStarted {
        /// The exit code: 127, 126 or 128.
        code: i32,
        /// Why.
        message: String,
    },
    /// No container of this name was started.
    #[error("container {0} was never started")]
    NoContainer(String),
    /// The container does not run.
    #[error("container {0} is not running")]
    NotRunning(String),
    /// The shim could not do it.
    #[error("{0}")]
    Failed(String),
    /// The reply was unexpected.
    #[error("unexpected reply of the pod's shim")]
    UnexpectedReply,
    /// The connection failed.
    #[error("failed to communicate with the pod's shim")]
    Io(#[from] io::Error),
}

/// A pod's shim, which keeps running when this value is dropped. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shim {
    folder: PathBuf,
    clock: Clock,
}

impl Shim {
    /// Creates a pod's sandbox with its shim, or returns the one that is running.
    ///
    /// # Errors
    /// [`ShimError::Launch`] if the sandbox cannot be created.
    pub async fn launch(program: &Program, sandbox: &Sandbox) -> Result<Self, ShimError> {
        let clock = Clock::real();
        if let Some(shim) = Self::find(&sandbox.folder).await {
            return Ok(shim);
        }
        // One that does not answer holds the folder and is of no use.
        if let Some(process) = Record::read(&sandbox.folder).and_then(Record::open) {
            process.kill();
            let _ = clock.timeout(END, process.gone()).await;
        }
        std::fs::create_dir_all(&sandbox.folder)?;
        let launch = Launch { program: program.again(), sandbox: sandbox.clone(), mapped: false };
        let said = clock.timeout(LAUNCH, spoken(program, &launch)).await;
        match said.map_err(|late| ShimError::Launch(late.to_string()))?? {
            Launched::Ready => Ok(Self { folder: sandbox.folder.clone(), clock }),
            Launched::Taken => Self::find(&sandbox.folder).await.ok_or_else(|| {
                ShimError::Launch("another shim holds the pod's folder and does not answer".into())
            }),
            Launched::Failed(why) => Err(ShimError::Launch(why)),
        }
    }

    /// The running shim of a pod's directory, if there is one.
    pub async fn find(folder: &Path) -> Option<Self> {
        let shim = Self { folder: folder.to_owned(), clock: Clock::real() };
        let hello = shim.clock.timeout(HELLO, shim.ask(&Request::Hello)).await;
        matches!(hello, Ok(Ok(Reply::Done))).then_some(shim)
    }

    /// The pod's directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The shim's PID in this process's namespace; `None` if it is not running.
    pub fn pid(&self) -> Option<i32> {
        let record = Record::read(&self.folder)?;
        record.open().map(|_| record.pid)
    }

    /// Whether the shim of a pod's directory runs, whether it answers or not.
    pub fn is_alive(folder: &Path) -> bool {
        Record::read(folder).is_some_and(|record| record.open().is_some())
    }

    /// Starts a container, and returns when its program is running. An attempt is never started twice.
    ///
    /// # Errors
    /// [`ShimError::NotStarted`] where its program is absent or its root cannot be made.
    pub async fn start(&self, container: &Container) -> Result<(), ShimError> {
        done(self.ask(&Request::Start(Box::new(container.clone()))).await?)
    }

    /// Sends a signal to a container's first process. Number 9 ends all its processes; others reach it only where it
    /// has a handler for them, as for every first process.
    ///
    /// # Errors
    /// [`ShimError::NotRunning`] where it ended.
    pub async fn signal(&self, name: &str, signal: i32) -> Result<(), ShimError> {
        done(self.ask(&Request::Signal { name: name.to_owned(), signal }).await?)
    }

    /// The states of all container attempts.
    ///
    /// # Errors
    /// [`ShimError::Gone`]; then [`container_states`] reads what it left.
    pub async fn states(&self) -> Result<Vec<ContainerState>, ShimError> {
        match self.ask(&Request::States).await? {
            Reply::States(states) => Ok(states),
            other => Err(refusal(other)),
        }
    }

    /// Waits until the states are newer than version `since`, and returns the version they have. Begin with 0.
    ///
    /// # Errors
    /// [`ShimError::Gone`] as soon as the shim dies.
    pub async fn changed(&self, since: u64) -> Result<u64, ShimError> {
        match self.ask(&Request::Changed { since }).await? {
            Reply::Version(version) => Ok(version),
            other => Err(refusal(other)),
        }
    }

    /// Runs a program in a container.
    ///
    /// # Errors
    /// [`ShimError::NotStarted`] where there is no such program there.
    pub async fn exec(&self, name: &str, exec: Exec) -> Result<Running, ShimError> {
        let (terminal, stdin) = (exec.terminal, exec.stdin);
        let socket = self.connect().await?;
        ipc::send_async(&socket, &Request::Exec { name: name.to_owned(), exec }, &[]).await?;
        let (reply, descriptors) = ipc::receive_async(&socket).await?.ok_or(ShimError::Gone)?;
        done(reply)?;
        Running::of_exec(socket, descriptors, terminal, stdin)
    }

    /// Attaches to a container's streams. Dropping the result does not affect the container.
    ///
    /// # Errors
    /// [`ShimError::NotRunning`] where it ended.
    pub async fn attach(&self, name: &str) -> Result<Running, ShimError> {
        let socket = self.connect().await?;
        ipc::send_async(&socket, &Request::Attach { name: name.to_owned() }, &[]).await?;
        let (reply, descriptors) = ipc::receive_async(&socket).await?.ok_or(ShimError::Gone)?;
        done(reply)?;
        Running::of_attach(socket, descriptors)
    }

    /// The resource usage of each running container.
    ///
    /// # Errors
    /// [`ShimError::Gone`].
    pub async fn usage(&self) -> Result<Vec<Usage>, ShimError> {
        match self.ask(&Request::Usage).await? {
            Reply::Usage(usage) => Ok(usage),
            other => Err(refusal(other)),
        }
    }

    /// Connects to a port of the pod's own loopback. It is a socket of the pod's network, handed over.
    ///
    /// # Errors
    /// [`ShimError::Failed`] where nobody listens there.
    pub async fn connect_to(&self, port: u16) -> Result<TcpStream, ShimError> {
        let socket = self.connect().await?;
        ipc::send_async(&socket, &Request::Connect { port }, &[]).await?;
        let (reply, mut descriptors) = ipc::receive_async(&socket).await?.ok_or(ShimError::Gone)?;
        done(reply)?;
        let stream = std::net::TcpStream::from(descriptors.pop().ok_or(ShimError::UnexpectedReply)?);
        stream.set_nonblocking(true)?;
        Ok(TcpStream::from_std(stream)?)
    }

    /// Ends the pod of a folder, as [`end`](Self::end): also one that answers no more because it is about to end, and so is not
    /// [found](Self::find).
    ///
    /// # Errors
    /// As [`end`](Self::end).
    pub async fn end_in(folder: &Path) -> Result<(), ShimError> {
        Self { folder: folder.to_owned(), clock: Clock::real() }.end().await
    }

    /// Kills everything in the pod and returns when it has terminated. A pod without a shim is no error.
    ///
    /// # Errors
    /// A process that cannot be killed, such as one that waits for a dead disk.
    pub async fn end(&self) -> Result<(), ShimError> {
        let process = Record::read(&self.folder).and_then(Record::open);
        let asked = self.clock.timeout(END, self.ask(&Request::End)).await;
        let Some(process) = process else {
            remove_traces(&self.folder);
            return match asked {
                Ok(Err(error)) if !matches!(error, ShimError::Gone) => Err(error),
                _ => Ok(()),
            };
        };
        if !matches!(asked, Ok(Ok(_))) {
            process.kill();
        }
        let gone = self.clock.timeout(END, process.gone()).await;
        gone.map_err(|late| ShimError::Failed(format!("the pod's processes do not end: {late}")))??;
        remove_traces(&self.folder);
        Ok(())
    }

    async fn ask(&self, request: &Request) -> Result<Reply, ShimError> {
        let socket = self.connect().await?;
        // A shim that dies meanwhile resets the connection or closes it: both mean that it is gone.
        let answer = async {
            ipc::send_async(&socket, request, &[]).await?;
            ipc::receive_async::<Reply>(&socket).await
        };
        match answer.await {
            Ok(Some((reply, _))) => Ok(reply),
            Ok(None) => Err(ShimError::Gone),
            Err(error) if closed(&error) => Err(ShimError::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// Through the folder's descriptor: the path of a socket must be short, that of a folder need not.
    async fn connect(&self) -> Result<UnixStream, ShimError> {
        let folder = match std::fs::File::open(&self.folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ShimError::Gone),
            Err(error) => return Err(error.into()),
        };
        match UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())).await {
            Ok(socket) => Ok(socket),
            Err(error) if closed(&error) => Err(ShimError::Gone),
            Err(error) => Err(error.into()),
        }
    }
}

/// The container states in the directory of a pod whose shim has died. Containers that are reported as running are not.
pub async fn container_states(folder: &Path) -> Vec<ContainerState> {
    state_files::read(folder)
}

fn closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof)
}

fn done(reply: Reply) -> Result<(), ShimError> {
    if let Reply::Done = reply { Ok(()) } else { Err(refusal(reply)) }
}

fn refusal(reply: Reply) -> ShimError {
    match reply {
        Reply::NoContainer(name) => ShimError::NoContainer(name),
        Reply::NotRunning(name) => ShimError::NotRunning(name),
        Reply::NotStarted(code, message) => ShimError::NotStarted { code, message },
        Reply::Failed(why) => ShimError::Failed(why),
        Reply::Done | Reply::States(_) | Reply::Version(_) | Reply::Usage(_) | Reply::Exited(_) => {
            ShimError::UnexpectedReply
        }
    }
}

/// What a shim that was killed could not remove itself.
fn remove_traces(folder: &Path) {
    for name in [SOCKET, crate::process_record::FILE] {
        let _ = std::fs::remove_file(folder.join(name));
    }
}

/// Runs stage 0 and returns what the shim said when it was ready.
async fn spoken(program: &Program, launch: &Launch) -> Result<Launched, ShimError> {
    let mut command = program.command("pod-shim");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = tokio::process::Command::from(command)
        .spawn()
        .map_err(|error| ShimError::Launch(format!("cannot run {}: {error}", program.path.display())))?;
    let mut input = child.stdin.take().expect("it was asked for");
    let mut output = child.stdout.take().expect("it was asked for");
    // A child that gave up without reading says why on its output.
    let _ = input.write_all(&serde_json::to_vec(launch).map_err(io::Error::from)?).await;
    drop(input);
    let mut said = Vec::new();
    output.read_to_end(&mut said).await?;
    let status = child.wait().await?;
    serde_json::from_slice(&said)
        .map_err(|_| ShimError::Launch(format!("the shim ended without a word ({status})")))
}
