//! kubectl in a terminal, as a person has it.

use crate::local::{POD, resize};
use crate::world::World;
use crate::{OLD, PATIENCE};
use anyhow::{Context as _, ensure};
use nix::pty::{OpenptyResult, openpty};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use tokio::process::Command;
use tokio::sync::mpsc;
use windlass_clock::Clock;
use windlass_harness::{Target, reference};
use windlass_node::server::Size;

pub async fn has_the_size_of_ones_own(target: Target) -> anyhow::Result<()> {
    for declares in [true, false] {
        let world = World::make(target.clone(), declares).await?;
        for old in [false, true] {
            let how = format!("with SPDY: {old}, on a node that declares WebSocket: {declares}");
            in_terminal(&world, old).await.context(how)?;
        }
    }
    Ok(())
}

async fn in_terminal(world: &World, old: bool) -> anyhow::Result<()> {
    let OpenptyResult { master, slave } = openpty(None, None)?;
    let name = nix::unistd::ttyname(&slave)?;
    resize(&name, Size { width: 91, height: 31 }).await;
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(reference::programs()?.join("kubectl"));
    world.point(&mut command, &["exec", "-it", POD, "-c", "app", "--", "sh"]);
    let end = || slave.try_clone().map(Stdio::from);
    command.stdin(end()?).stdout(end()?).stderr(end()?);
    if old {
        command.envs(OLD);
    }
    let mut child = command.spawn()?;
    drop(command);
    drop(slave);
    let (read, mut shown) = mpsc::channel::<Vec<u8>>(16);
    let mut reading = File::from(master.try_clone()?);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reading.read(&mut buffer) {
            if read.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut typing = File::from(master);
    let mut seen = String::new();
    let mut until = async |wanted: &str| {
        while !seen.contains(wanted) {
            let data = Clock::real().timeout(PATIENCE, shown.recv()).await;
            let data = data.ok().with_context(|| format!("{wanted:?} does not come: {seen:?}"))?;
            let data = data.with_context(|| format!("it ended: {seen:?}"))?;
            seen.push_str(&String::from_utf8_lossy(&data));
        }
        anyhow::Ok(())
    };
    // What is typed is shown too, so what is waited for must not be in it.
    typing.write_all(b"echo si''ze $(stty size); tty\n")?;
    until("size 31 91").await?;
    until("/dev/pts/").await?;
    resize(&name, Size { width: 101, height: 41 }).await;
    // The new size takes a moment to get there.
    typing.write_all(b"until stty size | grep -q '41 101'; do sleep 0.05; done; echo ch''anged\n")?;
    until("changed").await?;
    typing.write_all(b"exit 5\n")?;
    let status = Clock::real().timeout(PATIENCE, child.wait()).await.ok().context("it goes on")??;
    ensure!(status.code() == Some(5), "{status}: {seen}");
    Ok(())
}
