//! What a process of its own found out by trying.

use crate::net;
use crate::program::Program;
use crate::shim::keep_over_exec;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::process::{ExitCode, Stdio};

/// How each check went: what the kernel said where it said no. A check that needs an earlier one that failed was not made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checks {
    /// A network namespace, and a user namespace first where it needs one. What it says is whether it did.
    pub(super) network: Check<bool>,
    /// A bridge, a pair of links, addresses and routes.
    pub(super) links: Check<()>,
    /// Mounts of its own.
    pub(super) mounts: Check<()>,
    /// Memory as a file system.
    pub(super) tmpfs: Check<()>,
    /// A path shown elsewhere, read-only.
    pub(super) bind: Check<()>,
    /// One tree of files over another.
    pub(super) overlay: Check<()>,
    /// Processes of its own, and their `/proc`.
    pub(super) processes: Check<()>,
}

/// How a check went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Check<T> {
    /// It was not made.
    #[default]
    Skipped,
    /// It went well.
    Passed(T),
    /// It did not, and why.
    Failed(String),
}

impl<T> Check<T> {
    fn of<E: std::fmt::Display>(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Passed(value),
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    fn passed(&self) -> bool {
        matches!(self, Self::Passed(_))
    }
}

/// Runs the checks in a process of its own: all that is made is gone with it.
pub(super) fn of(program: &Program) -> io::Result<Checks> {
    let argument = serde_json::to_string(program)?;
    let output = program.command("pod-doctor").arg(argument).stdin(Stdio::null()).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("the checks ended with {}: {}", output.status, said.trim()))
    })
}

/// The hidden subcommand: makes the checks and tells how they went. Called before the program has a second thread.
pub fn run_checks(arguments: &[OsString]) -> ExitCode {
    let argument = arguments.first().and_then(|text| text.to_str()).unwrap_or_default();
    if argument == PROC {
        return match own_proc() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprint!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let Ok(program) = serde_json::from_str(argument) else { return ExitCode::FAILURE };
    match serde_json::to_string(&checks(&program)).map(|text| writeln!(io::stdout(), "{text}")) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What the first process of a namespace of processes is argument.
const PROC: &str = "proc";
/// Where things are mounted: seen by this process alone, and there on every machine.
const PLACE: &str = "/tmp";

fn checks(program: &Program) -> Checks {
    let mut checks = Checks { network: Check::of(net::leave_the_host()), ..Checks::default() };
    if !checks.network.passed() {
        return checks;
    }
    checks.links = Check::of(net::try_links());
    checks.mounts = Check::of(own_mounts());
    if !checks.mounts.passed() {
        return checks;
    }
    checks.tmpfs = Check::of(mount_at(PLACE, "tmpfs", None));
    if !checks.tmpfs.passed() {
        return checks;
    }
    checks.bind = Check::of(bind());
    checks.overlay = Check::of(overlay());
    checks.processes = Check::of(processes(program));
    checks
}

fn own_mounts() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
}

fn mount_at(place: &str, kind: &str, options: Option<&str>) -> io::Result<()> {
    Ok(mount(Some(kind), place, Some(kind), MsFlags::empty(), options)?)
}

fn bind() -> io::Result<()> {
    let place = format!("{PLACE}/bind");
    fs::create_dir(&place)?;
    let none = None::<&str>;
    mount(Some("/usr"), place.as_str(), none, MsFlags::MS_BIND, none)?;
    let locked = nix::sys::statvfs::statvfs("/usr")?.flags();
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    // What the host's mount forbids, a remount may not allow.
    for (said, flag) in [
        (nix::sys::statvfs::FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (nix::sys::statvfs::FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (nix::sys::statvfs::FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ] {
        flags.set(flag, locked.contains(said));
    }
    Ok(mount(none, place.as_str(), none, flags, none)?)
}

fn overlay() -> io::Result<()> {
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(format!("{PLACE}/{name}"))?;
    }
    let options = format!("lowerdir={PLACE}/lower,upperdir={PLACE}/upper,workdir={PLACE}/work");
    mount_at(&format!("{PLACE}/merged"), "overlay", Some(&options))
}

/// The next process this one starts is the first of a namespace.
fn processes(program: &Program) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWPID)?;
    // Where this user is not root, another program would have no rights in the namespaces made here.
    keep_over_exec()?;
    let output = program.again().command("pod-doctor").arg(PROC).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn own_proc() -> io::Result<()> {
    let place = format!("{PLACE}/proc");
    fs::create_dir(&place)?;
    mount_at(&place, "proc", None)?;
    fs::read_to_string(format!("{place}/1/stat")).map(|_| ())
}
