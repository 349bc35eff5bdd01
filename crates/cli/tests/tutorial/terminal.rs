//! A terminal: what is typed into it runs in the folder and with the variables that the last command left.

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use windlass_clock::Clock;

/// The longest that a command may take; the first of them builds the library.
const LIMIT: Duration = Duration::from_secs(1800);
/// The longest that a program may take to exit.
const END: Duration = Duration::from_secs(60);

/// What all terminals of a run have in common.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Where the reader begins, with an empty folder.
    pub(crate) folder: PathBuf,
    /// For files of our own.
    pub(crate) aside: PathBuf,
    pub(crate) variables: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Terminal {
    number: usize,
    /// What it is for, where the reader has none of it.
    purpose: &'static str,
    running: Option<Running>,
}

/// A command that goes on until Ctrl-C.
#[derive(Debug)]
struct Running {
    child: Child,
    log: PathBuf,
}

impl Terminal {
    pub(crate) fn new(number: usize) -> Self {
        Self { number, purpose: "typed", running: None }
    }

    /// Another that begins as this one is now, for something of ours.
    pub(crate) fn beside(&self, purpose: &'static str) -> Self {
        Self { number: self.number, purpose, running: None }
    }

    /// Runs commands to their end. Answers whether they went well, and what they printed.
    pub(crate) async fn run(&mut self, desk: &Desk, typed: &str) -> anyhow::Result<(bool, String)> {
        let (child, log) = self.start(desk, typed)?;
        let mut running = Running { child, log };
        let ended = running.ended(LIMIT).await;
        let printed = running.printed()?;
        Ok((ended.with_context(|| format!("so far it printed\n{printed}"))?, printed))
    }

    /// Starts commands that end by Ctrl-C.
    pub(crate) fn leave_running(&mut self, desk: &Desk, typed: &str) -> anyhow::Result<()> {
        ensure!(self.running.is_none(), "something runs in terminal {} already", self.number);
        let (child, log) = self.start(desk, typed)?;
        self.running = Some(Running { child, log });
        Ok(())
    }

    /// Presses Ctrl-C. Answers what was printed.
    pub(crate) async fn interrupt(&mut self) -> anyhow::Result<String> {
        let mut running = self.running.take().context("nothing runs in that terminal")?;
        ensure!(running.child.try_wait()?.is_none(), "it ended by itself:\n{}", running.printed()?);
        running.signal(Signal::SIGINT);
        let well = running.ended(END).await?;
        let printed = running.printed()?;
        ensure!(well, "it did not end well:\n{printed}");
        Ok(printed)
    }

    /// What runs here has printed so far.
    pub(crate) fn printed(&self) -> String {
        self.running.as_ref().and_then(|running| running.printed().ok()).unwrap_or_default()
    }

    fn start(&self, desk: &Desk, typed: &str) -> anyhow::Result<(Child, PathBuf)> {
        let state = desk.aside.join(format!("terminal-{}", self.number));
        let script = format!(
            "set -euo pipefail\nif [ -f {0:?} ]; then . {0:?}; fi\n{typed}\n{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > {0:?}\n",
            state.display().to_string()
        );
        let log = state.with_extension(self.purpose);
        let out = File::create(&log)?;
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).current_dir(&desk.folder);
        // A file, since a pipe would be held open by what is left running. A group, since Ctrl-C is for all of it.
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        for (name, _) in std::env::vars().filter(|(name, _)| is_of_the_build(name)) {
            command.env_remove(name);
        }
        command.envs(desk.variables.iter().cloned());
        Ok((command.spawn().context("cannot start bash")?, log))
    }
}

/// What cargo and make tell those whom they start is not meant for those whom the reader starts.
fn is_of_the_build(name: &str) -> bool {
    let own = ["CARGO_HOME", "CARGO_TERM_COLOR"].contains(&name);
    (name.starts_with("CARGO") && !own)
        || ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KUBECONFIG", "WINDLASS_OPERATOR"].contains(&name)
}

impl Running {
    async fn ended(&mut self, limit: Duration) -> anyhow::Result<bool> {
        let clock = Clock::real();
        let due = clock.moment() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            if clock.moment() > due {
                bail!("it takes longer than {} seconds", limit.as_secs());
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
    }

    fn signal(&self, signal: Signal) {
        let _ = i32::try_from(self.child.id()).map(|id| killpg(Pid::from_raw(id), signal));
    }

    fn printed(&self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.log)?).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// A folder for a reader, whose builds share what this repository has built.
pub(crate) fn desk(place: &Path, repository: &Path) -> anyhow::Result<Desk> {
    let folder = |name: &str| -> anyhow::Result<PathBuf> {
        let folder = place.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let (desk, aside, run, settings) =
        (folder("desk")?, folder("aside")?, folder("run")?, folder("settings")?);
    fs::create_dir_all(desk.join(".cargo"))?;
    // The reader's own profile is in Cargo.toml.
    let shared = windlass_harness::projects::cargo_settings(repository) + "\n[net]\noffline = true\n";
    fs::write(desk.join(".cargo/config.toml"), shared)?;
    let program = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let mut path = vec![program.parent().context("the program is in a folder")?.to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    path.extend(windlass_harness::reference::programs().ok());
    let path =
        std::env::join_paths(path)?.into_string().map_err(|_| anyhow::anyhow!("PATH is not in UTF-8"))?;
    let text = |path: &Path| path.display().to_string();
    let variables = [
        ("PATH", path),
        ("XDG_RUNTIME_DIR", text(&run)),
        ("XDG_CONFIG_HOME", text(&settings)),
        // Others may run an operator on this machine, at the usual ports.
        ("WINDLASS_METRICS_BIND_ADDRESS", "0".to_owned()),
        ("WINDLASS_HEALTH_PROBE_BIND_ADDRESS", "0".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok(Desk { folder: desk, aside, variables })
}
