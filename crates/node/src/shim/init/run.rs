//! The last steps before a process is the container's program: user, rights, streams, and finding the program.

use super::super::capabilities;
use super::super::spec::{Identity, Privileges};
use super::Fault;
use crate::path_below::Below;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is searched where the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is to be run, and as what.
pub struct Run<'a> {
    pub command: &'a [String],
    pub environment: Vec<(String, String)>,
    pub folder: Option<&'a Path>,
    pub identity: &'a Identity,
    pub privileges: &'a Privileges,
    pub terminal: bool,
    pub mapped: bool,
    /// Whether it is the container's first program, and not run in it later.
    pub first: bool,
}

impl Run<'_> {
    /// Becomes the program; returns only with what is wrong.
    pub fn run(mut self, streams: &[OwnedFd]) -> Fault {
        match self.prepare(streams) {
            Ok(mut command) => {
                let error = command.exec();
                refused(&self.command[0], &error)
            }
            Err(fault) => fault,
        }
    }

    fn prepare(&mut self, streams: &[OwnedFd]) -> Result<Command, Fault> {
        complete(&mut self.environment, "PATH", USUAL_PATH);
        complete(&mut self.environment, "HOME", &home_of(self.identity.user));
        if self.terminal {
            complete(&mut self.environment, "TERM", "xterm");
        }
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
        let folder = self.folder.unwrap_or(Path::new("/"));
        self.enter(folder).map_err(Fault::during(format!("enter the folder {}", folder.display())))?;
        if !self.mapped {
            streams.iter().for_each(|stream| give(stream, self.identity.user));
        }
        self.become_identity().map_err(Fault::during("become the container's user"))?;
        let program = self.find()?;
        let [stdin, stdout, stderr] = streams else {
            return Err(Fault::during("be told of streams")(ErrorKind::NotFound.into()));
        };
        let redirected = rustix::stdio::dup2_stdin(stdin)
            .and_then(|()| rustix::stdio::dup2_stdout(stdout))
            .and_then(|()| rustix::stdio::dup2_stderr(stderr));
        redirected.map_err(|error| Fault::during("redirect its streams")(error.into()))?;
        // The standard library puts signals back as a program expects them.
        let mut command = Command::new(program);
        command.arg0(&self.command[0]).args(&self.command[1..]).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Enters the working directory. One that is absent is made for the container's first program only: the container may have put a
    /// link to anywhere in its place since. Links of `/proc`, which may lead to the machine's files, are not followed.
    fn enter(&self, folder: &Path) -> io::Result<()> {
        let root = Below::root(Path::new("/"))?;
        let found = match root.find(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.first => {
                let made = root.make_folder(folder, 0o755)?;
                let (user, group) = (self.identity.user, self.identity.group);
                let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
                let _ = rustix::fs::fchown(&made, Some(user), Some(group));
                made
            }
            found => found?,
        };
        Ok(rustix::process::fchdir(found)?)
    }

    /// Order matters: each step takes a right that the one before still needed.
    fn become_identity(&self) -> io::Result<()> {
        capabilities::bound(self.privileges)?;
        capabilities::forget_inheritable()?;
        if !self.mapped {
            let groups: Vec<_> = self.identity.groups.iter().map(|group| Gid::from_raw(*group)).collect();
            setgroups(&groups)?;
            let (user, group) = (Uid::from_raw(self.identity.user), Gid::from_raw(self.identity.group));
            setresgid(group, group, group)?;
            setresuid(user, user, user)?;
        }
        if self.privileges.no_new {
            rustix::thread::set_no_new_privs(true)?;
        }
        Ok(())
    }

    /// Looks the program up, as who runs it.
    fn find(&self) -> Result<PathBuf, Fault> {
        let name = &self.command[0];
        if name.contains('/') {
            return usable(Path::new(name))
                .map(|()| PathBuf::from(name))
                .map_err(|error| refused(name, &error));
        }
        let path = self
            .environment
            .iter()
            .rev()
            .find(|(key, _)| key == "PATH")
            .map_or(USUAL_PATH, |(_, value)| value);
        let mut forbidden = false;
        for folder in path.split(':').filter(|folder| !folder.is_empty()) {
            let candidate = Path::new(folder).join(name);
            match usable(&candidate) {
                Ok(()) => return Ok(candidate),
                Err(error) => forbidden |= error.kind() == ErrorKind::PermissionDenied,
            }
        }
        if forbidden {
            return Err(Fault { code: 126, message: format!("exec: \"{name}\": permission denied") });
        }
        Err(Fault { code: 127, message: format!("exec: \"{name}\": executable file not found in $PATH") })
    }
}

/// Gives a pipe to whom it is for, so that `/dev/stdout` can be opened by name. What is no pipe is not the container's alone.
fn give(stream: &OwnedFd, user: u32) {
    let is_pipe = rustix::fs::fstat(stream)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo());
    if is_pipe {
        let _ = rustix::fs::fchown(stream, Some(rustix::fs::Uid::from_raw(user)), None);
    }
}

/// Adds a variable, unless it is there.
pub fn complete(environment: &mut Vec<(String, String)>, name: &str, value: &str) {
    if !environment.iter().any(|(key, _)| key == name) {
        environment.push((name.to_owned(), value.to_owned()));
    }
}

fn usable(program: &Path) -> io::Result<()> {
    if std::fs::metadata(program)?.is_dir() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(accessat(CWD, program, Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Why a program that is named by a path does not run, as container runtimes put it.
fn refused(name: &str, error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Fault { code: 127, message: format!("exec: \"{name}\": stat {name}: no such file or directory") }
        }
        ErrorKind::PermissionDenied => {
            Fault { code: 126, message: format!("exec: \"{name}\": permission denied") }
        }
        _ => Fault { code: 126, message: format!("exec: \"{name}\": {error}") },
    }
}

/// The home of a user by the container's own list of users.
fn home_of(user: u32) -> String {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    home_in(&list, user).unwrap_or(if user == 0 { "/root" } else { "/" }).to_owned()
}

fn home_in(list: &str, user: u32) -> Option<&str> {
    list.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(user)).then(|| fields.get(5).copied())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_found_by_number() {
        let list = "root:x:0:0:root:/root:/bin/sh\nbroken\npostgres:x:999:999::/var/lib/postgresql:/bin/sh\n";
        assert_eq!(home_in(list, 999), Some("/var/lib/postgresql"));
        assert_eq!(home_in(list, 7), None);
    }
}
