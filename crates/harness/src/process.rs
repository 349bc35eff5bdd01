//! Child processes that cannot outlive us, and what the kernel says they used.

use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A running child process with its log. Killed and reaped when dropped; on Linux also when this process dies in any
/// other way.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Arc<Mutex<Child>>,
    log: PathBuf,
}

/// What a process used so far, by the kernel's own accounting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// User and system time of all its threads.
    pub cpu: Duration,
    /// The most memory it had resident at any time, in bytes.
    pub peak_memory: u64,
    /// The memory it has resident now, in bytes.
    pub memory: u64,
}

impl Process {
    /// Starts `program` with its output appended to `log`.
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be started.
    pub fn spawn(name: &str, program: &Path, arguments: &[String], log: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = killed_with_parent(program);
        command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = spawn_from_long_lived_thread(command)?;
        Ok(Self { name: name.to_owned(), child: Arc::new(Mutex::new(child)), log: log.to_owned() })
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.lock().id()
    }

    /// How it ended, if it has.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.child.lock().try_wait().ok().flatten()
    }

    /// Asks it to end (SIGTERM).
    ///
    /// # Errors
    /// When it has ended already.
    pub fn terminate(&self) -> io::Result<()> {
        let id = i32::try_from(self.id()).map_err(io::Error::other)?;
        Ok(nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGTERM)?)
    }

    /// What its log says last about a failure, in one line: what a person would look for first.
    pub fn last_words(&self) -> String {
        last_words(&read_end(&self.log, 64 * 1024).unwrap_or_default())
    }

    /// What it used so far; none where the kernel does not report it (only Linux does).
    pub fn usage(&self) -> Option<Usage> {
        Usage::of(self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = self.child.lock();
        // Its data is about to be thrown away, so there is nothing to end gently; it may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Usage {
    /// What the process with this id used so far.
    pub fn of(id: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        Self::parse(&stat, &status)
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The second field is the program's name in brackets and may contain anything; count from its end.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        let kilobytes = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            // The kernel reports in units of USER_HZ, which is 100 on every architecture that Linux supports.
            cpu: Duration::from_millis(ticks * 10),
            peak_memory: kilobytes("VmHWM")? * 1024,
            memory: kilobytes("VmRSS")? * 1024,
        })
    }
}

/// A command that the kernel kills when we die, where `setpriv` (util-linux) can ask for that. Asking ourselves would
/// take unsafe code between fork and exec.
fn killed_with_parent(program: &Path) -> Command {
    static SETPRIV: OnceLock<bool> = OnceLock::new();
    let known = SETPRIV.get_or_init(|| {
        let probe =
            Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    });
    if *known {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

type Job = (Command, SyncSender<io::Result<Child>>);

/// Spawns from a thread that lives as long as we do: the kernel ties the child to the thread that made it, and a
/// test's own thread ends with the test.
fn spawn_from_long_lived_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<SyncSender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, receiver) = sync_channel::<Job>(1);
        std::thread::spawn(move || {
            while let Ok((mut command, answer)) = receiver.recv() {
                // Whoever asked and left gets no child: its drop does not kill, so nobody may be left holding one.
                if let Err(unsent) = answer.send(command.spawn())
                    && let Ok(mut child) = unsent.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        sender
    });
    let (sender, receiver) = sync_channel(1);
    let gone = |_| io::Error::other("the thread that starts processes ended");
    spawner.send((command, sender)).map_err(|error| gone(error.to_string()))?;
    receiver.recv().map_err(|error| gone(error.to_string()))?
}

/// The line with the cause of a failure: the last one that a Go program marks as an error, else the last one at all.
fn last_words(log: &str) -> String {
    let klog_failure = |line: &str| {
        let mut start = line.chars();
        matches!(start.next(), Some('E' | 'F')) && start.next().is_some_and(|next| next.is_ascii_digit())
    };
    let is_error = |line: &&str| {
        line.starts_with("panic: ")
            || line.contains("no space left on device")
            || line.contains("\"level\":\"fatal\"")
            || line.contains("\"level\":\"error\"")
            || klog_failure(line)
    };
    let line =
        log.lines().rev().find(is_error).or_else(|| log.lines().next_back()).unwrap_or("it logged nothing");
    line.chars().take(500).collect()
}

/// The end of a file, at most `limit` bytes of it.
fn read_end(path: &Path, limit: u64) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_past_a_name_with_brackets_and_blanks() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 1 0 1 1 1";
        let status = "Name:\ta) b (c\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let usage = Usage::parse(stat, status).unwrap();
        assert_eq!(usage.cpu, Duration::from_secs(2));
        assert_eq!((usage.peak_memory, usage.memory), (2 << 20, 1 << 20));
        assert_eq!(Usage::parse("nonsense", ""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_used_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.peak_memory >= usage.memory && usage.memory > 0);
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let process =
            Process::spawn("sleep", Path::new("sleep"), &["60".into()], &folder.path().join("log")).unwrap();
        let id = process.id();
        assert!(process.exited().is_none());
        drop(process);
        assert!(Usage::of(id).is_none());
    }

    #[test]
    fn a_program_that_fails_leaves_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), "echo first; echo last words >&2; exit 3".to_owned()];
        let process = Process::spawn("sh", Path::new("sh"), &arguments, &folder.path().join("log")).unwrap();
        while process.exited().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(process.exited().unwrap().code(), Some(3));
        assert_eq!(process.last_words(), "last words");
    }

    #[test]
    fn the_last_words_tell_why_and_not_where() {
        let log =
            "I1115 fine\npanic: write wal: no space left on device\n\ngoroutine 1 [running]:\nmain.main()\n";
        assert_eq!(last_words(log), "panic: write wal: no space left on device");
        assert_eq!(
            last_words("I1115 fine\nE1115 run.go:72] bad flag\nI1115 bye\n"),
            "E1115 run.go:72] bad flag"
        );
        assert_eq!(last_words(""), "it logged nothing");
    }
}
