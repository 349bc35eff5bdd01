//! Probes of the kubelet: `exec` of this program, which asks the agent over a socket of the pod.

use parking_lot::Mutex;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use windlass::clock::{Clock, Moment};

/// How long an agent may be busy with one step, before it is taken for dead.
const BUSY: Duration = Duration::from_secs(60);
/// How long a question may take.
const LIMIT: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether the agent works.
    Live,
    /// Whether its server takes connections.
    Ready,
}

impl Question {
    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "live" => Some(Self::Live),
            "ready" => Some(Self::Ready),
            _ => None,
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Live => b'l',
            Self::Ready => b'r',
        }
    }
}

/// What the agent answers.
#[derive(Debug, Clone)]
pub struct Health {
    state: Arc<Mutex<State>>,
    clock: Clock,
}

#[derive(Debug)]
struct State {
    seen: Moment,
    busy: bool,
    ready: bool,
}

impl Health {
    /// Of an agent that has just started.
    pub fn new(clock: Clock) -> Self {
        let state = State { seen: clock.moment(), busy: false, ready: false };
        Self { state: Arc::new(Mutex::new(state)), clock }
    }

    /// The agent works; whether its server takes connections.
    pub fn works(&self, ready: bool) {
        let mut state = self.state.lock();
        (state.seen, state.busy, state.ready) = (self.clock.moment(), false, ready);
    }

    /// The agent does what may take long: making or copying data, stopping a server.
    pub fn is_busy(&self) {
        self.state.lock().busy = true;
    }

    fn answer(&self, question: u8) -> bool {
        let state = self.state.lock();
        match question {
            b'l' => state.busy || self.clock.moment() < state.seen + BUSY,
            b'r' => state.ready,
            _ => false,
        }
    }

    /// Answers for as long as the agent runs.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn serve(&self, directory: &Path) -> io::Result<()> {
        let path = socket(directory);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let health = self.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answered = async {
                    let question = stream.read_u8().await?;
                    stream.write_u8(u8::from(health.answer(question))).await
                };
                let _ = health.clock.timeout(LIMIT, answered).await;
            }
        });
        Ok(())
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("agent.sock")
}

/// Asks the agent of this pod.
///
/// # Errors
/// When it does not answer.
pub fn ask(directory: &Path, question: Question) -> io::Result<bool> {
    let mut stream = UnixStream::connect(socket(directory))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(&[question.byte()])?;
    let mut answer = [0_u8];
    stream.read_exact(&mut answer)?;
    Ok(answer[0] == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_is_asked_over_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ask(folder.path(), Question::Live).is_err());
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let health = Health::new(clock);
        health.serve(folder.path()).unwrap();
        let path = folder.path().to_owned();
        let asked = |question| {
            let path = path.clone();
            async move { tokio::task::spawn_blocking(move || ask(&path, question)).await.unwrap().unwrap() }
        };
        assert!(asked(Question::Live).await && !asked(Question::Ready).await);
        health.works(true);
        assert!(asked(Question::Ready).await);
        driver.run_for(BUSY * 2).await;
        assert!(!asked(Question::Live).await);
        health.is_busy();
        assert!(asked(Question::Live).await);
    }
}
