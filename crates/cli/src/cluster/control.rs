//! The control socket of a running cluster, in its folder, for commands of the same user.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use windlass_apiserver::Credentials;
use windlass_clock::Clock;
use windlass_cluster::Time;

/// Its name in the folder.
const SOCKET: &str = "control";
/// The longest command.
const LONGEST: u64 = 64 * 1024;
/// The most that the clock is advanced at once: a hundred years.
const FURTHEST: u64 = 100 * 366 * 86_400;

/// Answers commands until the cluster ends.
pub(crate) fn listen(folder: &Path, time: Time, credentials: Credentials) -> anyhow::Result<()> {
    let path = folder.join(SOCKET);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", path.display()));
        }
        _ => {}
    }
    let listener =
        UnixListener::bind(&path).with_context(|| format!("cannot listen on {}", path.display()))?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    tokio::spawn(async move {
        // One at a time: who moves the clock waits until it has moved.
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut line = String::new();
            let (reader, mut writer) = stream.split();
            let mut reader = tokio::io::BufReader::new(reader.take(LONGEST));
            let read = reader.read_line(&mut line);
            if let Ok(Ok(_)) = Clock::real().timeout(Duration::from_secs(5), read).await {
                let answer = match obey(&line, &time, &credentials).await {
                    Ok(answer) => format!("ok {answer}\n"),
                    Err(error) => format!("error {error:#}\n"),
                };
                let _ = writer.write_all(answer.as_bytes()).await;
            }
        }
    });
    Ok(())
}

async fn obey(line: &str, time: &Time, credentials: &Credentials) -> anyhow::Result<String> {
    match line.trim_end().split_once(' ') {
        Some(("advance", seconds)) => advance(seconds, time).await,
        Some(("issue", identity)) => issue(identity, credentials),
        _ => bail!("there is no such command"),
    }
}

async fn advance(seconds: &str, time: &Time) -> anyhow::Result<String> {
    let seconds: u64 = seconds.parse().context("it is no number of seconds")?;
    if seconds > FURTHEST {
        bail!("that is too far");
    }
    if time.driver().is_none() {
        bail!("the cluster keeps the machine's time; start it with --clock to move it");
    }
    time.advance(Duration::from_secs(seconds)).await;
    Ok(time.clock().now().to_string())
}

/// Whom a certificate is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
}

/// A certificate and its key.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

fn issue(identity: &str, credentials: &Credentials) -> anyhow::Result<String> {
    let Identity { user, groups } = serde_json::from_str(identity).context("it names nobody")?;
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let (certificate, key) = credentials.issue_client(&user, &groups)?;
    // Without a line end, as JSON has none.
    Ok(serde_json::to_string(&Issued { certificate, key })?)
}

/// Asks the cluster in a folder to do something, and waits for what it says.
pub(crate) fn ask(folder: &Path, command: &str) -> anyhow::Result<String> {
    let path = folder.join(SOCKET);
    let mut stream = UnixStream::connect(&path)
        .with_context(|| format!("cannot reach the cluster at {}", path.display()))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    match answer.trim_end().split_once(' ') {
        Some(("ok", said)) => Ok(said.to_owned()),
        Some(("error", why)) => bail!("{why}"),
        _ => bail!("the cluster ended before it answered"),
    }
}
