//! What process 1 of a pod does before it listens.

use super::super::client::SOCKET;
use super::super::protocol::{Launch, Launched};
use super::super::spec::{Attachment, Memory};
use super::children::Children;
use super::requests::listen;
use super::{because, read_launch, report};
use crate::net::Joining;
use crate::process_record::{FILE, Record};
use crate::stderr_log::log;
use nix::mount::{MsFlags, mount};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Becomes the pod's shim, until the pod ends.
pub fn serve() -> ExitCode {
    let Ready { launch, lock, children, joining, listener } = match set_up() {
        Ok(Some(ready)) => ready,
        Ok(None) => {
            report(&Launched::Taken);
            return ExitCode::FAILURE;
        }
        Err(error) => {
            report(&Launched::Failed(error.to_string()));
            return ExitCode::FAILURE;
        }
    };
    let ended = listen(launch, children, joining, listener);
    drop(lock);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(format!("the pod's shim gives up: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What a shim has before it listens.
struct Ready {
    launch: Launch,
    lock: File,
    children: Children,
    joining: Option<Joining>,
    listener: UnixListener,
}

fn set_up() -> io::Result<Option<Ready>> {
    let launch = read_launch()?;
    let folder = &launch.sandbox.folder;
    let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join("shim.lock"))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    // Before `/proc` is the pod's own: the node must be able to find, and if need be kill, what is only half set up.
    let record = Record::own().map_err(because("learn the shim's own pid"))?;
    std::fs::write(folder.join(FILE), serde_json::to_vec(&record)?)?;
    mounts(folder)?;
    launch.sandbox.memory.iter().try_for_each(memory)?;
    nix::unistd::sethostname(&launch.sandbox.hostname).map_err(because("set the host name"))?;
    // It comes up while the network is joined.
    let children = Children::new(launch.program.clone())?;
    children.prepare();
    let join = |network: &Attachment| {
        crate::net::join(&network.socket, &launch.sandbox.uid).map_err(because("join the pod to the network"))
    };
    let joining = launch.sandbox.network.as_ref().map(join).transpose()?;
    // After the network, which lets everybody listen on every port, and before any container: those cannot write them.
    launch.sandbox.sysctls.iter().try_for_each(|(name, value)| sysctl(name, value))?;
    let listener = bind(folder).map_err(because("listen"))?;
    Ok(Some(Ready { launch, lock, children, joining, listener }))
}

/// Memory that the pod's containers share.
pub fn shared_memory(folder: &Path) -> PathBuf {
    folder.join("shm")
}

fn mounts(folder: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), quiet, none).map_err(because("mount the pod's own /proc"))?;
    let shared = shared_memory(folder);
    DirBuilder::new().recursive(true).mode(0o700).create(&shared)?;
    mount(Some("shm"), &shared, Some("tmpfs"), quiet, Some("mode=1777,size=64m"))
        .map_err(because("mount shared memory"))
}

/// A volume that is memory: it is there as long as the pod's namespaces are.
fn memory(volume: &Memory) -> io::Result<()> {
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = match volume.limit {
        Some(limit) => format!("mode=0777,size={limit}"),
        None => "mode=0777".to_owned(),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&volume.path)?;
    mount(Some("tmpfs"), &volume.path, Some("tmpfs"), quiet, Some(options.as_str()))
        .map_err(because("mount a volume of memory"))
}

/// Sets what is the pod's own of the kernel's settings. The dots of a name are folders, and its slashes dots.
fn sysctl(name: &str, value: &str) -> io::Result<()> {
    let refused = |why: String| io::Error::other(format!("cannot set the sysctl {name} to {value:?}: {why}"));
    let parts: Vec<String> = name.split('.').map(|part| part.replace('/', ".")).collect();
    if parts.iter().any(|part| matches!(part.as_str(), "" | "." | "..")) {
        return Err(refused("it is no name of one".to_owned()));
    }
    let path = Path::new("/proc/sys").join(parts.join("/"));
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|error| refused(error.to_string()))
}

/// Binds by a short name from within the folder: the path of a socket must be short, that of a folder need not.
fn bind(folder: &Path) -> io::Result<UnixListener> {
    std::env::set_current_dir(folder)?;
    let _ = std::fs::remove_file(SOCKET);
    let listener = UnixListener::bind(SOCKET)?;
    std::fs::set_permissions(SOCKET, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    std::env::set_current_dir("/")?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
