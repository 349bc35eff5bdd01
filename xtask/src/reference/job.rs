//! A long command with progress, that Ctrl-C ends together with everything it started.

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Set once the user asked to stop.
fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(flag.clone());
    }
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    ctrlc::set_handler(move || set.store(true, Ordering::SeqCst)).context("cannot listen for Ctrl-C")?;
    Ok(FLAG.get_or_init(|| flag).clone())
}

/// Runs `command` to its end, counting the lines it writes to stderr as steps out of `total`. Returns its stdout.
///
/// # Errors
/// When it cannot start, fails (with the last lines that it wrote), or the user interrupts it.
#[expect(
    clippy::disallowed_methods,
    reason = "this small tool waits for a real process and is tested by running it"
)]
pub(crate) fn run(what: &str, total: usize, command: &mut Command) -> anyhow::Result<String> {
    let interrupted = interrupted()?;
    // A group of its own: Ctrl-C reaches this process alone, which then ends the whole group, compilers included.
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    let group = Pid::from_raw(i32::try_from(child.id()).context("a process id is positive")?);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());

    let steps = Arc::new(AtomicUsize::new(0));
    let counted = steps.clone();
    let errors = std::thread::spawn(move || {
        let mut last = std::collections::VecDeque::new();
        for line in stderr.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            if last.len() == 12 {
                last.pop_front();
            }
            last.push_back(line);
        }
        Vec::from(last).join("\n")
    });
    let output = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stdout) = stdout {
            // What is not text is no answer of a tool we call; the status decides.
            let _ = stdout.read_to_string(&mut text);
        }
        text
    });

    let terminal = std::io::stderr().is_terminal();
    let start = Instant::now();
    let mut next_report = Duration::from_secs(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if interrupted.load(Ordering::SeqCst) {
            // The group may be gone already; the wait below tells.
            let _ = killpg(group, Signal::SIGKILL);
            child.wait()?;
            break None;
        }
        let passed = start.elapsed();
        if passed >= next_report {
            let done = steps.load(Ordering::Relaxed).min(total.max(1));
            let share = if total > 0 { format!(" {done}/{total}") } else { String::new() };
            let (lead, end) = if terminal { ("\r", "") } else { ("", "\n") };
            eprint!("{lead}{what}{share} ({} s){end}", passed.as_secs());
            let _ = std::io::stderr().flush();
            next_report = passed + Duration::from_secs(if terminal { 1 } else { 20 });
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if terminal && start.elapsed() > Duration::from_secs(1) {
        eprintln!();
    }
    let last = errors.join().unwrap_or_default();
    let text = output.join().unwrap_or_default();
    match status {
        None => bail!("interrupted"),
        Some(status) if status.success() => Ok(text),
        Some(status) => bail!("{what} failed ({status}):\n{last}"),
    }
}
