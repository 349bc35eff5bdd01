//! The network process: `windlass pod-network`. It owns the node's network namespace (and, for an ordinary user, the user namespace
//! that goes with it), answers what nodes and shims ask, and lives until it is told to end: pods outlive their node.

mod control;
mod ipam;
mod links;
mod namespaces;

use super::Settings;
use super::protocol::Hello;
use super::socket_path::through_directory;
use crate::stderr_log::log;
pub(crate) use links::try_links;
pub(crate) use namespaces::leave_the_host;

use links::Links;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::setsid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// What the process says on its standard output, once.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Begun {
    /// It answers at its socket.
    Ready,
    /// Another runs in this folder already.
    Taken,
    /// It cannot run, and why.
    Failed(String),
}

/// Runs the network process; the one argument is its [`Settings`] as JSON. Called before the program has a second thread.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let begun = |begun: &Begun| {
        // Nobody reads it if the node died meanwhile; that is no reason to stop.
        _ = serde_json::to_string(begun).map(|text| writeln!(io::stdout(), "{text}"));
        _ = io::stdout().flush();
    };
    match run(arguments, &begun) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Taken) => {
            begun(&Begun::Taken);
            ExitCode::FAILURE
        }
        Err(Ended::Failed(why)) => {
            log(format!("error: {why}"));
            begun(&Begun::Failed(why));
            ExitCode::FAILURE
        }
    }
}

/// Why it ended without being told to.
enum Ended {
    Taken,
    Failed(String),
}

impl Ended {
    fn because<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed(format!("{what}: {error}"))
    }
}

fn run(arguments: &[OsString], begun: &dyn Fn(&Begun)) -> Result<(), Ended> {
    let text = arguments.first().and_then(|text| text.to_str()).unwrap_or_default();
    let settings: Settings =
        serde_json::from_str(text).map_err(Ended::because("the settings are not understood"))?;
    if let Some(why) = settings.refused() {
        return Err(Ended::Failed(why));
    }
    // Out of the reach of the terminal that started the node.
    _ = setsid();
    umask(Mode::from_bits_truncate(0o077));
    fs::create_dir_all(&settings.folder).map_err(Ended::because("cannot make the network's folder"))?;
    let _held = hold(&settings.folder.join("lock"))?;
    let folder =
        fs::canonicalize(&settings.folder).map_err(Ended::because("cannot find the network's folder"))?;
    let settings = Settings { folder, ..settings };
    _ = std::env::set_current_dir("/");
    as_many_files_as_allowed();

    let own_users = namespaces::leave_the_host().map_err(Ended::Failed)?;
    let links = Links::set_up(&settings).map_err(Ended::because("cannot set up the node's network"))?;
    let pid = nix::unistd::getpid().as_raw();
    let started = started(pid).ok_or_else(|| Ended::Failed("/proc does not show this process".into()))?;
    let hello = Hello { pid, started, own_users, settings: settings.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Ended::because("cannot wait for requests"))?;
    runtime.block_on(async {
        let control = control::Control::open(hello, links)
            .await
            .map_err(Ended::because("cannot take up the network"))?;
        let listener = listen(&settings.socket()).map_err(Ended::because("cannot listen for requests"))?;
        begun(&Begun::Ready);
        control.serve(listener).await;
        Ok(())
    })?;
    // The lock's file stays: who removed it would let two hold what they think is the same one.
    for name in ["socket", "addresses.json"] {
        _ = fs::remove_file(settings.folder.join(name));
    }
    Ok(())
}

fn hold(path: &Path) -> Result<Flock<File>, Ended> {
    let file = File::create(path).map_err(Ended::because("cannot make the network's lock"))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(held),
        Err((_, nix::Error::EWOULDBLOCK)) => Err(Ended::Taken),
        Err((_, error)) => Err(Ended::because("cannot take the network's lock")(error)),
    }
}

/// Listens where an earlier process of this folder may have listened: we hold the lock, so it is gone.
fn listen(path: &Path) -> io::Result<tokio::net::UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    through_directory(path, |path| tokio::net::UnixListener::bind(path))
}

/// Every connection of a Service takes two.
fn as_many_files_as_allowed() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// When a process started, in ticks since the machine did: the 22nd field of its `stat`, counted behind its name.
pub(super) fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
