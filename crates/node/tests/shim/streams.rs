//! Programs run in a container, terminals, whoever attaches, and logs that flow fast.

use crate::Test;
use crate::fixture::{Fixture, ended, holds};
use anyhow::{Context, ensure};
use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_node::shim::{Exec, Output, ShimError, Size};

pub fn tests() -> Vec<Test> {
    vec![
        ("a program is run in a container, with its streams and its exit code", |g| exec(g).boxed()),
        ("a program that cannot be run in a container says why", |g| no_exec(g).boxed()),
        ("a program run in a container dies with who asked, and with the container", |g| {
            abandoned(g).boxed()
        }),
        ("a terminal has a size, and a new one when told", |g| terminal(g).boxed()),
        ("whoever attaches sees what comes and can speak", |g| attach(g).boxed()),
        ("the input of a container ends with the first who attached, where asked so", |g| once(g).boxed()),
        ("a container with a terminal logs and can be attached to", |g| attach_terminal(g).boxed()),
        ("a log that is filled fast is rotated and loses nothing of what is kept", |g| flood(g).boxed()),
        ("a slow reader does not stop others", |g| slow(g).boxed()),
    ]
}

fn command(words: &[&str]) -> Exec {
    Exec { command: words.iter().map(|word| (*word).to_owned()).collect(), ..Exec::default() }
}

async fn all(output: Option<Output>) -> anyhow::Result<String> {
    let mut text = String::new();
    output.context("a stream")?.read_to_string(&mut text).await?;
    Ok(text)
}

async fn exec(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture.shell("app", "echo up; sleep 1000");
    container.environment.push(("COLOUR".into(), "teal".into()));
    container.identity.user = 4321;
    shim.start(&container).await?;
    let line = "echo $COLOUR $(id -u) $(hostname); cat; echo trouble >&2; exit 6";
    let mut running = shim.exec("app", Exec { stdin: true, ..command(&["sh", "-c", line]) }).await?;
    let mut stdin = running.stdin.take().context("an input")?;
    stdin.write_all(b"spoken\n").await?;
    drop(stdin);
    let said = all(running.stdout.take()).await?;
    ensure!(said == "teal 4321 lighthouse\nspoken\n", "{said}");
    ensure!(all(running.stderr.take()).await? == "trouble\n");
    ensure!(running.control.wait().await? == 6);
    // It is among the container's processes, and what it leaves is the container's.
    let running =
        shim.exec("app", command(&["sh", "-c", "sleep 1000 & cat /proc/1/cmdline | tr '\\0' ' '"])).await?;
    let mut first = vec![0; 5];
    running.stdout.context("a stream")?.read_exact(&mut first).await?;
    ensure!(first == b"sh -c", "{first:?}");
    Ok(())
}

async fn no_exec(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.shell("app", "sleep 1000")).await?;
    let refused = shim.exec("app", command(&["no-such-program"])).await.map(drop);
    let Err(ShimError::NotStarted { code: 127, message }) = refused else { anyhow::bail!("{refused:?}") };
    ensure!(message.contains("not found in $PATH"), "{message}");
    ensure!(matches!(shim.exec("other", command(&["true"])).await, Err(ShimError::NoContainer(_))));
    ensure!(matches!(shim.exec("app", command(&[])).await, Err(ShimError::Failed(_))));
    shim.signal("app", 9).await?;
    ended(&shim, "app").await?;
    ensure!(matches!(shim.exec("app", command(&["true"])).await, Err(ShimError::NotRunning(_))));
    ensure!(matches!(shim.attach("app").await, Err(ShimError::NotRunning(_))));
    Ok(())
}

async fn abandoned(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.container("app", &["sleep", "1000"])).await?;
    ensure!(fixture.processes().len() == 1);
    let running = shim.exec("app", command(&["sleep", "1000"])).await?;
    ensure!(fixture.processes().len() == 2);
    drop(running);
    for _ in 0..500 {
        if fixture.processes().len() == 1 {
            break;
        }
        fixture.clock.sleep(std::time::Duration::from_millis(10)).await;
    }
    ensure!(fixture.processes().len() == 1, "it lives on: {:?}", fixture.processes());
    let running = shim.exec("app", command(&["sleep", "1000"])).await?;
    shim.signal("app", 9).await?;
    ensure!(running.control.wait().await? == 137);
    Ok(())
}

async fn terminal(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(&fixture.shell("app", "sleep 1000")).await?;
    let line = "tty; stty size; read go; stty size; echo $TERM; exit 9";
    let size = Some(Size { columns: 100, rows: 40 });
    let exec = Exec { terminal: true, stdin: true, size, ..command(&["sh", "-c", line]) };
    let mut running = shim.exec("app", exec).await?;
    let mut output = running.stdout.take().context("a terminal")?;
    let mut said = String::new();
    let mut chunk = [0; 256];
    while !said.contains("40 100") {
        let count = output.read(&mut chunk).await?;
        ensure!(count > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    ensure!(said.starts_with("/dev/pts/0\r\n"), "{said}");
    running.control.resize(Size { columns: 77, rows: 33 }).await?;
    // The shim takes messages in order of their connection, and the terminal's input is another.
    for _ in 0..200 {
        let probe = shim.exec("app", command(&["stty", "-F", "/dev/pts/0", "size"])).await?;
        if all(probe.stdout).await? == "33 77\n" {
            break;
        }
    }
    running.stdin.as_mut().context("a terminal")?.write_all(b"go\n").await?;
    output.read_to_string(&mut said).await?;
    ensure!(said.contains("33 77\r\nxterm\r\n"), "{said}");
    ensure!(running.control.wait().await? == 9);
    Ok(())
}

async fn attach(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture
        .shell("app", "echo early; while read line; do echo out $line; echo err $line >&2; done; exit 2");
    container.stdin = true;
    shim.start(&container).await?;
    holds(&fixture.log("app", 0), "early").await?;
    let mut first = shim.attach("app").await?;
    let mut stdin = first.stdin.take().context("an input")?;
    stdin.write_all(b"one\n").await?;
    holds(&fixture.log("app", 0), "err one").await?;
    drop((first, stdin));
    // The input stays open for the next.
    let mut second = shim.attach("app").await?;
    second.stdin.as_mut().context("an input")?.write_all(b"two\n").await?;
    holds(&fixture.log("app", 0), "err two").await?;
    shim.signal("app", 9).await?;
    ensure!(all(second.stdout.take()).await? == "out two\n");
    ensure!(all(second.stderr.take()).await? == "err two\n");
    ensure!(second.control.wait().await? == 137);
    Ok(())
}

async fn once(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture.shell("app", "cat; exit 2");
    (container.stdin, container.stdin_once) = (true, true);
    shim.start(&container).await?;
    let mut attached = shim.attach("app").await?;
    attached.stdin.as_mut().context("an input")?.write_all(b"words\n").await?;
    holds(&fixture.log("app", 0), "words").await?;
    drop(attached);
    ensure!(ended(&shim, "app").await?.code() == Some(2));
    Ok(())
}

async fn attach_terminal(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture.shell("app", "tty; read line; echo heard $line; exit 3");
    (container.terminal, container.stdin) = (true, true);
    shim.start(&container).await?;
    holds(&fixture.log("app", 0), "/dev/pts/0").await?;
    let mut attached = shim.attach("app").await?;
    attached.stdin.as_mut().context("an input")?.write_all(b"you\n").await?;
    let said = all(attached.stdout.take()).await?;
    ensure!(said.ends_with("heard you\r\n"), "{said:?}");
    ensure!(attached.control.wait().await? == 3);
    ensure!(ended(&shim, "app").await?.code() == Some(3));
    Ok(())
}

async fn flood(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    // 300,000 lines of 130 bytes with their times: more than three files.
    let line = "seq -f '%08.0f xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' 300000; echo end >&2";
    shim.start(&fixture.shell("app", line)).await?;
    // The shim answers while it is flooded.
    ensure!(shim.states().await?.len() == 1);
    ensure!(ended(&shim, "app").await?.code() == Some(0));
    let mut files: Vec<_> =
        std::fs::read_dir(fixture.path("logs/app"))?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    ensure!(files.len() >= 3 && files.len() <= 5, "{files:?}");
    // The one that is written sorts first by name and is the newest.
    files.rotate_left(1);
    let mut expected = None;
    for file in &files {
        ensure!(file.metadata()?.len() < 11 << 20, "{file:?} is too large");
        for line in std::fs::read_to_string(file)?.lines().filter(|line| line.contains(" stdout ")) {
            let number: u32 = line.split(' ').nth(3).context("a number")?.parse()?;
            ensure!(expected.is_none_or(|expected| expected == number), "{number} after {expected:?}");
            expected = Some(number + 1);
        }
    }
    ensure!(expected == Some(300_001), "{expected:?}");
    Ok(())
}

async fn slow(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut noisy = fixture
        .shell("noisy", "echo up; read go; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
    noisy.stdin = true;
    shim.start(&noisy).await?;
    let mut never_reads = shim.attach("noisy").await?;
    never_reads.stdin.as_mut().context("an input")?.write_all(b"go\n").await?;
    let said = fixture.said(&shim, &fixture.shell("other", "echo calm")).await?;
    ensure!(said == ["calm"]);
    shim.end().await?;
    Ok(())
}
