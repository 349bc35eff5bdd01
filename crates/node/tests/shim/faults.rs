//! What goes wrong: programs that are not there, a shim that is killed, mounts that cannot be made.

use crate::Test;
use crate::fixture::{Fixture, ended, holds, last};
use anyhow::{Context, ensure};
use futures::FutureExt;
use windlass_node::shim::{Bind, Phase, Shim, ShimError};

pub fn tests() -> Vec<Test> {
    vec![
        ("a program that does not exist is 127, one without a run bit 126", |g| no_program(g).boxed()),
        ("a mount of nothing fails the container and names it", |g| no_source(g).boxed()),
        ("killing the shim ends everything, and the next launch says so", |g| killed(g).boxed()),
        ("a record of another process is not believed", |g| recycled(g).boxed()),
        ("a pod that cannot be made says why", |g| refused(g).boxed()),
    ]
}

async fn no_program(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    std::fs::create_dir_all(fixture.path("roots"))?;
    let cases = [
        (
            "absent",
            vec!["no-such-program"],
            127,
            "exec: \"no-such-program\": executable file not found in $PATH",
        ),
        ("path", vec!["/no/such"], 127, "exec: \"/no/such\": stat /no/such: no such file or directory"),
        ("norun", vec!["/usr/share/common-licenses/GPL-3"], 126, "permission denied"),
        ("folder", vec!["/usr"], 126, "permission denied"),
    ];
    for (name, command, expected, text) in cases {
        let started = shim.start(&fixture.container(name, &command)).await;
        let Err(ShimError::NotStarted { code, message }) = started else {
            anyhow::bail!("{name}: {started:?}")
        };
        ensure!(code == expected && message.contains(text), "{name}: {code} {message}");
        let state = last(shim.states().await?, name).context("it failed")?;
        ensure!(matches!(state.phase, Phase::Failed { code, .. } if code == expected), "{state:?}");
    }
    shim.start(&fixture.shell("after", "exit 0")).await?;
    ensure!(ended(&shim, "after").await?.code() == Some(0));
    Ok(())
}

async fn no_source(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture.shell("app", "exit 0");
    container.binds.push(Bind {
        from: "/no/such/volume".into(),
        to: "/data".into(),
        read_only: false,
        ..Bind::default()
    });
    let started = shim.start(&container).await;
    let Err(ShimError::NotStarted { code: 128, message }) = started else { anyhow::bail!("{started:?}") };
    ensure!(message.contains("/no/such/volume"), "{message}");
    Ok(())
}

async fn killed(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.shell("app", "setsid sleep 1000 & echo up; sleep 1000")).await?;
    holds(&fixture.log("app", 0), "up").await?;
    let pid = shim.pid().context("it lives")?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)?;
    let died = loop {
        match shim.changed(u64::MAX - 1).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    ensure!(matches!(died, ShimError::Gone), "{died:?}");
    fixture.until_no_process().await?;
    ensure!(Shim::find(&fixture.path("pod")).await.is_none());
    let left = windlass_node::shim::container_states(&fixture.path("pod")).await;
    ensure!(matches!(left[..], [ref one] if matches!(one.phase, Phase::Running { .. })), "{left:?}");

    let next = fixture.launch().await?;
    let state = last(next.states().await?, "app").context("it is remembered")?;
    ensure!(state.phase.code() == Some(137), "{state:?}");
    let mut again = fixture.shell("app", "exit 0");
    again.attempt = 1;
    next.start(&again).await?;
    ensure!(ended(&next, "app").await?.code() == Some(0));
    Ok(())
}

async fn recycled(fixture: Fixture) -> anyhow::Result<()> {
    let folder = fixture.path("pod");
    std::fs::create_dir_all(&folder)?;
    let mut victim = tokio::process::Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    let pid = victim.id().context("it lives")?;
    std::fs::write(folder.join("shim.json"), format!("{{\"pid\":{pid},\"start\":1}}"))?;
    let shim = fixture.launch().await?;
    ensure!(shim.pid().is_some_and(|own| own != i32::try_from(pid).unwrap_or(0)));
    shim.end().await?;
    ensure!(victim.try_wait()?.is_none(), "a stranger was killed");
    victim.kill().await?;
    Ok(())
}

async fn refused(fixture: Fixture) -> anyhow::Result<()> {
    let mut sandbox = fixture.sandbox();
    sandbox.user_namespace_of = Some(i32::MAX);
    let launched = Shim::launch(&fixture.program, &sandbox).await;
    let Err(ShimError::Launch(why)) = launched else { anyhow::bail!("launched") };
    ensure!(why.contains("user namespace"), "{why}");
    Ok(())
}
