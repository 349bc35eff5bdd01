//! A node whose containers are programs of this machine, run as they are: enough to show every stream for real.

use nix::pty::{OpenptyResult, openpty};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_node::logs::{self, LogOptions, LogStream};
use windlass_node::server::{
    Backend, ContainerRef, ContainerStats, Cpu, Duplex, Exit, HttpError, Memory, NodeStats, PodName, PodRef,
    PodStats, Size, Streams, Summary,
};

/// The pod that it has, with its containers.
pub const POD: &str = "web";
pub const CONTAINERS: [&str; 2] = ["app", "side"];

pub struct Local {
    pub namespace: String,
    /// Where logs are: `CONTAINER/RESTARTS.log`.
    pub folder: PathBuf,
    /// The containers' end.
    pub ended: CancellationToken,
}

impl Backend for Local {
    async fn find(&self, container: &ContainerRef) -> Result<(), HttpError> {
        self.find_pod(&container.pod).await?;
        match CONTAINERS.contains(&container.name.as_str()) {
            true => Ok(()),
            false => {
                Err(HttpError::not_found(format!("container {:?} not found in pod {POD:?}", container.name)))
            }
        }
    }

    async fn find_pod(&self, pod: &PodRef) -> Result<(), HttpError> {
        match pod.namespace == self.namespace && pod.name == POD {
            true => Ok(()),
            false => Err(HttpError::not_found("pod does not exist")),
        }
    }

    async fn logs(&self, container: &ContainerRef, options: LogOptions) -> Result<LogStream, HttpError> {
        let restarts = if options.previous { 0 } else { 1 };
        let path = self.folder.join(&container.name).join(format!("{restarts}.log"));
        if options.previous && !path.exists() {
            let why = format!("previous terminated container {:?} in pod {POD:?} not found", container.name);
            return Err(HttpError::bad_request(why));
        }
        Ok(logs::read(path, options, self.ended.clone(), Clock::real()))
    }

    async fn exec(
        &self,
        _: &ContainerRef,
        command: Vec<String>,
        streams: Streams,
    ) -> Result<Exit, HttpError> {
        match streams.tty {
            true => in_terminal(&command, streams).await,
            false => with_pipes(&command, streams).await,
        }
    }

    /// Its process echoes lines, and exits with 7 when there are no more.
    async fn attach(&self, _: &ContainerRef, streams: Streams) -> Result<Exit, HttpError> {
        let script = "echo attached; while read line; do echo \"read $line\"; done; exit 7";
        with_pipes(&["sh".to_owned(), "-c".to_owned(), script.to_owned()], streams).await
    }

    async fn connect(&self, _: &PodRef, port: u16) -> Result<Box<dyn Duplex>, HttpError> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(HttpError::internal)?;
        Ok(Box::new(stream))
    }

    async fn stats(&self) -> Summary {
        let time = Clock::real().now();
        let cpu = Cpu { time, usage_nano_cores: 250_000_000, usage_core_nano_seconds: 5_000_000_000 };
        let memory = Memory {
            time,
            available_bytes: Some(1 << 30),
            usage_bytes: 96 << 20,
            working_set_bytes: 64 << 20,
        };
        let container = |name: &str| ContainerStats { name: name.to_owned(), start_time: time, cpu, memory };
        let pod_ref = PodName { name: POD.into(), namespace: self.namespace.clone(), uid: "1".into() };
        let containers = CONTAINERS.map(container).to_vec();
        Summary {
            node: NodeStats { node_name: "local".into(), start_time: time, cpu, memory },
            pods: vec![PodStats { pod_ref, start_time: time, containers, cpu, memory }],
        }
    }

    async fn pods(&self) -> Value {
        json!({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": POD}}]})
    }
}

async fn with_pipes(command: &[String], streams: Streams) -> Result<Exit, HttpError> {
    let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(pipe(streams.stdin.is_some()))
        .stdout(pipe(streams.stdout.is_some()))
        .stderr(pipe(streams.stderr.is_some()))
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| HttpError::internal(format!("cannot run {:?}: {error}", command[0])))?;
    let feeding = child.stdin.take().zip(streams.stdin).map(|(mut into, mut from)| {
        tokio::spawn(async move {
            let _ = tokio::io::copy(&mut from, &mut into).await;
        })
    });
    let copy = async |from: Option<&mut (dyn tokio::io::AsyncRead + Send + Unpin)>,
                      into: Option<windlass_node::server::Output>| {
        if let (Some(from), Some(mut into)) = (from, into) {
            let _ = tokio::io::copy(from, &mut into).await;
        }
    };
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let out = copy(stdout.as_mut().map(|stream| stream as _), streams.stdout);
    let complaints = copy(stderr.as_mut().map(|stream| stream as _), streams.stderr);
    let ((), (), status) = tokio::join!(out, complaints, child.wait());
    if let Some(feeding) = feeding {
        feeding.abort();
    }
    Ok(exit(status.map_err(HttpError::internal)?))
}

fn exit(status: ExitStatus) -> Exit {
    Exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// In a terminal of its own: a pair of files, between which and the streams two threads copy.
async fn in_terminal(command: &[String], mut streams: Streams) -> Result<Exit, HttpError> {
    let OpenptyResult { master, slave } = openpty(None, None).map_err(HttpError::internal)?;
    let name = nix::unistd::ttyname(&slave).map_err(HttpError::internal)?;
    // The first size comes at once, and the program may ask for it.
    if let Ok(Some(size)) =
        Clock::real().timeout(std::time::Duration::from_secs(2), streams.sizes.recv()).await
    {
        resize(&name, size).await;
    }
    let end = || slave.try_clone().map(Stdio::from).map_err(HttpError::internal);
    let mut setsid = Command::new("setsid");
    setsid.args(["--ctty", "--wait"]).args(command).kill_on_drop(true);
    setsid.stdin(end()?).stdout(end()?).stderr(end()?);
    let mut child = setsid.spawn().map_err(HttpError::internal)?;
    // Whoever else has this end keeps it from ending.
    drop(setsid);
    drop(slave);
    let (read, mut output) = mpsc::channel::<Vec<u8>>(16);
    let reading = clone(&master)?;
    std::thread::spawn(move || read_all(reading, &read));
    let (write, input) = mpsc::channel::<Vec<u8>>(16);
    let writing = clone(&master)?;
    std::thread::spawn(move || write_all(writing, input));
    let mut stdin = streams.stdin.take();
    let feeding = tokio::spawn(async move {
        let mut buffer = [0; 1024];
        while let Some(stdin) = &mut stdin {
            match stdin.read(&mut buffer).await {
                Ok(read @ 1..) if write.send(buffer[..read].to_vec()).await.is_ok() => {}
                _ => return,
            }
        }
    });
    let mut sizes = streams.sizes;
    let resizing = tokio::spawn(async move {
        while let Some(size) = sizes.recv().await {
            resize(&name, size).await;
        }
    });
    let mut stdout = streams.stdout;
    let copying = async {
        while let Some(data) = output.recv().await {
            if let Some(stdout) = &mut stdout {
                let _ = stdout.write_all(&data).await;
            }
        }
    };
    drop(master);
    let waiting = async {
        let status = child.wait().await;
        feeding.abort();
        resizing.abort();
        status
    };
    let (status, ()) = tokio::join!(waiting, copying);
    Ok(exit(status.map_err(HttpError::internal)?))
}

fn clone(file: &OwnedFd) -> Result<File, HttpError> {
    file.try_clone().map(File::from).map_err(HttpError::internal)
}

fn read_all(mut terminal: File, read: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    // When nobody has the other end any more, reading fails.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        if read.blocking_send(buffer[..count].to_vec()).is_err() {
            return;
        }
    }
}

fn write_all(mut terminal: File, mut input: mpsc::Receiver<Vec<u8>>) {
    while let Some(data) = input.blocking_recv() {
        if terminal.write_all(&data).is_err() {
            return;
        }
    }
}

/// By a program, since there is no safe call for it.
pub async fn resize(terminal: &std::path::Path, size: Size) {
    let sizes = ["rows".to_owned(), size.height.to_string(), "cols".to_owned(), size.width.to_string()];
    let _ = Command::new("stty").arg("-F").arg(terminal).args(sizes).status().await;
}
