//! A container's life: start, log, signals, exit code, and being found again.

use crate::Test;
use crate::fixture::{Fixture, ended, holds, last};
use anyhow::{Context, ensure};
use futures::FutureExt;
use windlass_node::shim::{Phase, Shim, ShimError};

pub fn tests() -> Vec<Test> {
    vec![
        ("a program runs, writes its log and leaves its exit code", |g| a_program_runs(g).boxed()),
        ("the same attempt is never started twice", |g| never_twice(g).boxed()),
        ("a shim outlives whoever launched it and is found again", |g| found_again(g).boxed()),
        ("a signal reaches a program that handles it", |g| handled(g).boxed()),
        ("a container that ignores its signal is ended by the ninth", |g| ignored(g).boxed()),
        ("daemons die with their container", |g| daemons(g).boxed()),
        ("a restart is a new attempt, and the one before is remembered", |g| restarted(g).boxed()),
        ("a signal by which it ended is its exit code", |g| by_signal(g).boxed()),
    ]
}

async fn a_program_runs(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.shell("app", "echo one; echo two >&2; printf three; exit 7")).await?;
    let phase = ended(&shim, "app").await?;
    let Phase::Exited { started, finished, code: 7, out_of_memory: false } = phase else {
        anyhow::bail!("{phase:?}")
    };
    ensure!(started > 0 && finished >= started);
    let mut logged = fixture.logged("app")?;
    logged.sort();
    ensure!(logged == ["stderr F two", "stdout F one", "stdout P three"], "{logged:?}");
    let first = std::fs::read_to_string(fixture.log("app", 0))?;
    let time = first.split(' ').next().context("a time")?;
    ensure!(time.len() == "2026-11-15T10:00:00.123456789Z".len() && time.ends_with('Z'), "{time}");
    Ok(())
}

async fn never_twice(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let container = fixture.shell("app", "echo ran >> /count; sleep 1000");
    let (first, second, third) =
        tokio::join!(shim.start(&container), shim.start(&container), shim.start(&container));
    first.and(second).and(third)?;
    let count = fixture.path("roots/app/count");
    holds(&count, "ran").await?;
    shim.signal("app", 9).await?;
    ended(&shim, "app").await?;
    shim.start(&container).await?;
    ensure!(std::fs::read_to_string(&count)? == "ran\n");
    ensure!(matches!(shim.signal("app", 15).await, Err(ShimError::NotRunning(_))));
    ensure!(matches!(shim.signal("other", 15).await, Err(ShimError::NoContainer(_))));
    Ok(())
}

async fn found_again(fixture: Fixture) -> anyhow::Result<()> {
    ensure!(Shim::find(&fixture.path("pod")).await.is_none());
    let shim = fixture.launch().await?;
    let pid = shim.pid().context("it lives")?;
    shim.start(&fixture.shell("app", "echo up; sleep 1000")).await?;
    drop(shim);
    let found = Shim::find(&fixture.path("pod")).await.context("it lives")?;
    ensure!(found.pid() == Some(pid));
    ensure!(matches!(last(found.states().await?, "app").context("it runs")?.phase, Phase::Running { .. }));
    let same = fixture.launch().await?;
    ensure!(same.pid() == Some(pid), "launched beside the one that was there");
    same.end().await?;
    ensure!(Shim::find(&fixture.path("pod")).await.is_none());
    ensure!(matches!(found.states().await, Err(ShimError::Gone)));
    found.end().await?;
    fixture.until_no_process().await
}

async fn handled(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.shell("app", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"))
        .await?;
    holds(&fixture.log("app", 0), "up").await?;
    shim.signal("app", 15).await?;
    ensure!(ended(&shim, "app").await?.code() == Some(3));
    ensure!(fixture.logged("app")?.contains(&"stdout F bye".to_owned()));
    Ok(())
}

async fn ignored(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.shell("app", "trap '' TERM; echo up; while :; do sleep 0.05; done")).await?;
    holds(&fixture.log("app", 0), "up").await?;
    shim.signal("app", 15).await?;
    shim.signal("app", 15).await?;
    ensure!(last(shim.states().await?, "app").context("it runs")?.phase.code().is_none());
    shim.signal("app", 9).await?;
    ensure!(ended(&shim, "app").await?.code() == Some(137));
    Ok(())
}

async fn daemons(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let line = "for i in 1 2 3; do setsid sh -c 'setsid sleep 1000 & sleep 1000' & done; echo up; read line < /go; exit 4";
    let fifo = fixture.path("roots/app/go");
    std::fs::create_dir_all(fixture.path("roots/app"))?;
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o666))?;
    shim.start(&fixture.shell("app", line)).await?;
    shim.start(&fixture.shell("other", "echo up; sleep 1000")).await?;
    holds(&fixture.log("app", 0), "up").await?;
    holds(&fixture.log("other", 0), "up").await?;
    for _ in 0..500 {
        // The shell, three times a shell and two sleeps; and the other container's shell and sleep.
        if fixture.processes().len() >= 12 {
            break;
        }
        fixture.clock.sleep(std::time::Duration::from_millis(10)).await;
    }
    tokio::task::spawn_blocking(move || std::fs::write(&fifo, "go\n")).await??;
    ensure!(ended(&shim, "app").await?.code() == Some(4));
    for _ in 0..500 {
        if fixture.processes().len() <= 2 {
            return Ok(());
        }
        fixture.clock.sleep(std::time::Duration::from_millis(10)).await;
    }
    anyhow::bail!("the daemons live: {:?}", fixture.processes())
}

async fn restarted(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture.shell("app", "exit 5");
    for attempt in 0..4 {
        container.attempt = attempt;
        container.log = fixture.log("app", attempt);
        shim.start(&container).await?;
        while last(shim.states().await?, "app").context("it was started")?.phase.code().is_none() {
            shim.changed(0).await?;
        }
    }
    let kept: Vec<_> =
        shim.states().await?.into_iter().map(|state| (state.attempt, state.phase.code())).collect();
    ensure!(kept == [(2, Some(5)), (3, Some(5))], "{kept:?}");
    Ok(())
}

async fn by_signal(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    // A first process cannot be ended by its own signal: its child is, and passes it on.
    shim.start(&fixture.shell("app", "sh -c 'kill -11 $$'; exit $?")).await?;
    ensure!(ended(&shim, "app").await?.code() == Some(128 + 11));
    Ok(())
}
