//! This program as containers may meet it: a mount that cannot be written to, and from which nothing can be run any more.
//!
//! The first stage of a container is this program, in the container's namespace of processes. There it can be found as
//! `/proc/PID/exe` and, by the container's own command, as `/proc/self/exe`. Whoever could write to it would run as the node's user on the
//! machine.

use super::super::init::mounts::{flags_of, remount};
use crate::program::Program;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Nobody can write to it, whatever its owner may.
const SEALED: MsFlags = MsFlags::MS_RDONLY.union(MsFlags::MS_NOSUID).union(MsFlags::MS_NODEV);

/// Mounts the program that runs now at a path of the pod's folder, in the pod's own namespace of mounts. It stays there when the
/// machine's file is replaced.
pub fn seal(folder: &Path, program: &Program) -> io::Result<Program> {
    let identity = |file: File| file.metadata().map(|found| (found.dev(), found.ino()));
    let own = identity(File::open("/proc/self/exe")?)?;
    let at = folder.join("program");
    bind(&std::env::current_exe()?, &at)?;
    if identity(File::open(&at)?)? != own {
        return Err(io::Error::other("the program was replaced just now"));
    }
    Ok(Program { path: at, before: program.before.clone() })
}

/// One run of the program: from a mount of its own, on which nothing can be run as soon as it runs.
pub struct Once(PathBuf);

impl Once {
    pub fn prepare(program: &Program) -> io::Result<(Self, Program)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // One that was started early may wait while others begin.
        let at = program.path.with_extension(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        bind(&program.path, &at)?;
        let once = Program { path: at.clone(), before: program.before.clone() };
        Ok((Self(at), once))
    }

    /// It runs: nothing else can be run from its mount, whoever has it.
    pub fn close(&self) -> io::Result<()> {
        let flags = flags_of(File::open(&self.0)?)?;
        Ok(remount(&self.0, flags | MsFlags::MS_NOEXEC)?)
    }
}

impl Drop for Once {
    fn drop(&mut self) {
        // Who runs from it keeps it.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
        let _ = std::fs::remove_file(&self.0);
    }
}

fn bind(from: &Path, at: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    OpenOptions::new().create(true).append(true).mode(0o600).open(at)?;
    mount(Some(from), at, none, MsFlags::MS_BIND, none)?;
    Ok(remount(at, flags_of(File::open(at)?)? | SEALED)?)
}
