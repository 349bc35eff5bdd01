//! Memory and what is used of it, last words, roots of an image, and pods on a network of their own.

use crate::Test;
use crate::fixture::{Fixture, ended, holds};
use anyhow::{Context, ensure};
use futures::FutureExt;
use windlass_node::net::{Network, Settings};
use windlass_node::shim::{Attachment, Bind, Exec, Phase, Root, Shim};

pub fn tests() -> Vec<Test> {
    vec![
        ("a container above its memory is killed and reported so", |g| memory(g).boxed()),
        ("what a container uses is told", |g| usage(g).boxed()),
        ("a container leaves its last words in a file", |g| last_words(g).boxed()),
        ("an unpacked root file system runs as it is and stays as it was", |g| image(g).boxed()),
        ("links in an image do not lead a mount out of it", |g| links(g).boxed()),
        ("a pod on the network has its address, and both ends leave together", |g| network(g).boxed()),
    ]
}

async fn memory(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    // Held by a child, not by the first process: the whole container is counted, and ends.
    let mut greedy =
        fixture.shell("greedy", "head -c 300000000 /dev/zero | tail -c 300000000; echo survived");
    greedy.memory_limit = Some(100 << 20);
    shim.start(&greedy).await?;
    let mut modest = fixture.shell("modest", "head -c 1000 /dev/zero | tail; exit 0");
    modest.memory_limit = Some(100 << 20);
    shim.start(&modest).await?;
    let phase = ended(&shim, "greedy").await?;
    ensure!(matches!(phase, Phase::Exited { code: 137, out_of_memory: true, .. }), "{phase:?}");
    let phase = ended(&shim, "modest").await?;
    ensure!(matches!(phase, Phase::Exited { code: 0, out_of_memory: false, .. }), "{phase:?}");
    Ok(())
}

async fn usage(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    shim.start(
        &fixture.shell("busy", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; sleep 1000"),
    )
    .await?;
    shim.start(&fixture.shell("idle", "sleep 1000")).await?;
    holds(&fixture.log("busy", 0), "done").await?;
    let usage = shim.usage().await?;
    let of = |name: &str| usage.iter().find(|one| one.name == name).cloned().context("its usage");
    let (busy, idle) = (of("busy")?, of("idle")?);
    ensure!(busy.cpu_nanoseconds > idle.cpu_nanoseconds, "{usage:?}");
    ensure!(
        (1..=2).contains(&busy.processes) && busy.memory_bytes > 50 << 10 && busy.memory_bytes < 50 << 20,
        "{usage:?}"
    );
    Ok(())
}

async fn last_words(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let mut container = fixture.shell("app", "echo it is full > /dev/termination-log; exit 1");
    container.identity.user = 999;
    let words = fixture.path("pod/containers/app/words");
    container.termination_message = Some(Bind {
        from: words.clone(),
        to: "/dev/termination-log".into(),
        read_only: false,
        ..Bind::default()
    });
    shim.start(&container).await?;
    ended(&shim, "app").await?;
    ensure!(std::fs::read_to_string(words)? == "it is full\n");
    Ok(())
}

/// A root file system with nothing but a shell's programs: the host's, copied with what they need.
fn unpacked(fixture: &Fixture) -> anyhow::Result<std::path::PathBuf> {
    let image = fixture.path("image");
    let needs = ["/bin/sh", "/bin/ls", "/bin/cat", "/bin/touch", "/bin/mkdir", "/bin/echo", "/bin/rm"];
    for program in needs {
        let libraries = std::process::Command::new("ldd").arg(program).output()?;
        let libraries = String::from_utf8(libraries.stdout)?;
        let paths = libraries.split_whitespace().filter(|word| word.starts_with('/')).chain([program]);
        for path in paths {
            let to = image.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(to.parent().context("a folder")?)?;
            std::fs::copy(path, to)?;
        }
    }
    std::fs::write(image.join("of-the-image"), "kept")?;
    Ok(image)
}

async fn image(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let image = unpacked(&fixture)?;
    let mut container = fixture.shell("app", "ls / ; rm /of-the-image; echo own > /own; cat /own");
    container.root = Root::FileSystem { image: image.clone(), writable: fixture.path("writes") };
    let said = fixture.said(&shim, &container).await?;
    ensure!(
        said.iter().any(|name| name == "of-the-image") && said.last().is_some_and(|own| own == "own"),
        "{said:?}"
    );
    ensure!(!said.iter().any(|name| name == "home"), "the host's root: {said:?}");
    ensure!(std::fs::read_to_string(image.join("of-the-image"))? == "kept");
    ensure!(!image.join("own").exists());
    // What it wrote is there for its next attempt.
    container.attempt = 1;
    container.command = ["sh", "-c", "cat /own; cat /of-the-image || echo gone"].map(String::from).to_vec();
    shim.start(&container).await?;
    holds(&fixture.log("app", 0), "gone").await
}

async fn links(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let image = unpacked(&fixture)?;
    std::fs::create_dir_all(fixture.path("outside"))?;
    std::fs::create_dir_all(fixture.path("volume"))?;
    std::fs::write(fixture.path("volume/file"), "of the volume")?;
    std::os::unix::fs::symlink(fixture.path("outside"), image.join("data"))?;
    std::os::unix::fs::symlink("../../../../../../../../../../etc", image.join("up"))?;
    let mut container = fixture.shell("app", "cat /data/file; ls /up/");
    container.root = Root::FileSystem { image, writable: fixture.path("writes") };
    container.binds = vec![Bind {
        from: fixture.path("volume"),
        to: "/data/deep".into(),
        read_only: false,
        ..Bind::default()
    }];
    container.command = ["sh", "-c", "cat /data/deep/file; ls /up/"].map(String::from).to_vec();
    let started = shim.start(&container).await;
    // The link leads to a folder that the container does not have: the mount is refused, or made inside.
    if started.is_ok() {
        ended(&shim, "app").await?;
    }
    ensure!(std::fs::read_dir(fixture.path("outside"))?.count() == 0, "something was made outside");
    Ok(())
}

async fn network(fixture: Fixture) -> anyhow::Result<()> {
    let settings = Settings::of_node(7, fixture.path("network"));
    let network = Network::open(&fixture.program, &settings).await?;
    let on_network = async {
        let mut sandbox = fixture.sandbox();
        let address = network.allocate(&sandbox.uid).await?;
        sandbox.user_namespace_of = network.user_namespace_of();
        sandbox.network = Some(Attachment { socket: network.socket().to_owned(), address });
        let shim = Shim::launch(&fixture.program, &sandbox).await?;
        let line = "cat /proc/net/fib_trie; id -u; ls /sys/class/net; sleep 1000";
        let mut container = fixture.shell("app", line);
        container.identity.user = 999;
        shim.start(&container).await?;
        holds(&fixture.log("app", 0), " lo").await?;
        holds(&fixture.log("app", 0), &address.to_string()).await?;
        let exec = Exec { command: vec!["id".into(), "-u".into()], ..Exec::default() };
        let running = shim.exec("app", exec).await?;
        ensure!(running.control.wait().await? == 0);
        shim.end().await?;
        anyhow::Ok(())
    };
    let ended = on_network.await;
    network.end().await?;
    ended
}
