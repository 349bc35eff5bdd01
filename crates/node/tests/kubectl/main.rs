//! The real kubectl against the node's server, through the embedded API and through the reference: logs, exec, attach, cp and
//! port-forward, over WebSocket and over SPDY.

mod local;
mod terminal;
mod world;

use anyhow::{Context as _, ensure};
use local::POD;
use std::process::ExitCode;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use windlass_clock::Clock;
use windlass_harness::{Environment, Suite, Target};
use world::{World, finish, noise};

/// How long anything that should happen may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Turns kubectl to SPDY.
const OLD: [(&str, &str); 2] =
    [("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false"), ("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false")];

fn main() -> ExitCode {
    Suite::on([world::embedded(), Environment::reference()])
        .test("logs are shown in part, with times, of the run before and along", logs)
        .test("a command's output, complaints and exit code come back", exec)
        .test("what goes in comes out, to the last byte", exec_with_much_input)
        .test("a terminal has the size of one's own", terminal::has_the_size_of_ones_own)
        .test("attaching joins a process", attach)
        .test("files are copied there and back", cp)
        .test("ports are forwarded", forward)
        .test("top shows what nodes and pods use", top)
        .test("a node tells its health, pods and figures through a proxy", proxied)
        .test("nobody comes in without a certificate", refuses_strangers)
        .run()
}

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("2026-11-15T10:00:{number:02}.5Z stdout F line {number}\n")).collect()
}

async fn logs(target: Target) -> anyhow::Result<()> {
    let world = World::make(target, true).await?;
    std::fs::write(world.log("app", 0), lines(0..1))?;
    std::fs::write(world.log("app", 1), lines(1..5))?;
    let shown = async |more: &[&str]| world.prints(&[&["logs", POD, "-c", "app"], more].concat()).await;
    ensure!(shown(&[]).await? == "line 1\nline 2\nline 3\nline 4\n");
    ensure!(shown(&["--previous"]).await? == "line 0\n");
    ensure!(shown(&["--tail=2"]).await? == "line 3\nline 4\n");
    ensure!(shown(&["--tail=1", "--timestamps"]).await? == "2026-11-15T10:00:04.5Z line 4\n");
    ensure!(shown(&["--since-time=2026-11-15T10:00:04Z"]).await? == "line 4\n");
    let now = Clock::real().now();
    std::fs::write(world.log("app", 1), format!("{}{now} stdout F new\n", lines(1..2)))?;
    ensure!(shown(&["--since=10m"]).await?.ends_with("new\n"));
    ensure!(shown(&["--limit-bytes=4"]).await? == "line");

    let ran = world.run(&["logs", POD, "-c", "side", "--previous"]).await?;
    let why = "previous terminated container \"side\" in pod \"web\" not found";
    ensure!(ran.stderr == format!("Error from server (BadRequest): {why}\n"), "{ran:?}");
    let path = format!("/api/v1/namespaces/{}/pods/{POD}/log", world.namespace);
    let ran = world.run(&["get", "--raw", &path]).await?;
    let why = "a container name must be specified for pod web, choose one of: [app side]";
    ensure!(ran.stderr == format!("Error from server (BadRequest): {why}\n"), "{ran:?}");
    let ran = world.run(&["get", "--raw", &format!("{path}?container=none")]).await?;
    ensure!(ran.stderr.contains("container none is not valid for pod web"), "{ran:?}");
    let ran = world.run(&["get", "--raw", &format!("{path}?container=app&tailLines=-1")]).await?;
    ensure!(
        ran.stderr.contains("tailLines: Invalid value: -1: must be greater than or equal to 0"),
        "{ran:?}"
    );

    let mut following = world.kubectl(&["logs", POD, "-c", "app", "-f", "--tail=1"])?.spawn()?;
    let stdout = following.stdout.take().context("it is piped")?;
    let mut shown = BufReader::new(stdout).lines();
    let next = async |shown: &mut tokio::io::Lines<BufReader<tokio::process::ChildStdout>>| {
        let line = Clock::real().timeout(PATIENCE, shown.next_line()).await;
        anyhow::Ok(line.ok().context("nothing comes")??)
    };
    ensure!(next(&mut shown).await?.as_deref() == Some("new"));
    // Rotated while it is followed.
    std::fs::rename(world.log("app", 1), world.folder.path().join("app/1.log.20261115-110000"))?;
    std::fs::write(world.log("app", 1), lines(8..9))?;
    ensure!(next(&mut shown).await?.as_deref() == Some("line 8"));
    world.ended.cancel();
    ensure!(next(&mut shown).await?.is_none());
    ensure!(Clock::real().timeout(PATIENCE, following.wait()).await.ok().context("it goes on")??.success());
    Ok(())
}

/// Once for each way in which a client and the API can speak to the node.
async fn each_way(
    target: Target,
    test: impl AsyncFn(&World, bool) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for declares in [true, false] {
        let world = World::make(target.clone(), declares).await?;
        for old in [false, true] {
            let how = format!("with SPDY: {old}, on a node that declares WebSocket: {declares}");
            test(&world, old).await.context(how)?;
        }
    }
    Ok(())
}

fn as_asked(mut command: Command, old: bool) -> Command {
    if old {
        command.envs(OLD);
    }
    command
}

async fn exec(target: Target) -> anyhow::Result<()> {
    each_way(target, async |world, old| {
        let script = "echo out; echo complaint >&2; exit 3";
        let arguments = ["exec", POD, "-c", "app", "--", "sh", "-c", script];
        let ran = finish(as_asked(world.kubectl(&arguments)?, old)).await?;
        ensure!(ran.stdout == "out\n", "{ran:?}");
        ensure!(ran.stderr == "complaint\ncommand terminated with exit code 3\n", "{ran:?}");
        ensure!(ran.code == Some(3), "{ran:?}");
        let ran = finish(as_asked(world.kubectl(&["exec", POD, "-c", "app", "--", "true"])?, old)).await?;
        ensure!(ran.code == Some(0) && ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran:?}");
        let arguments = ["exec", POD, "-c", "app", "--", "/no/such/program"];
        let ran = finish(as_asked(world.kubectl(&arguments)?, old)).await?;
        ensure!(ran.code == Some(1) && ran.stderr.contains("cannot run \"/no/such/program\""), "{ran:?}");
        let ran = finish(as_asked(world.kubectl(&["exec", POD, "-c", "none", "--", "true"])?, old)).await?;
        ensure!(ran.stderr.contains("container none is not valid for pod web"), "{ran:?}");
        Ok(())
    })
    .await
}

async fn exec_with_much_input(target: Target) -> anyhow::Result<()> {
    each_way(target, async |world, old| {
        let path = world.path("much");
        let much = noise(&path, 3 << 20)?;
        let mut command = as_asked(world.kubectl(&["exec", "-i", POD, "-c", "app", "--", "cat"])?, old);
        command.stdin(std::fs::File::open(&path)?);
        let output =
            Clock::real().timeout(PATIENCE, command.output()).await.ok().context("it does not end")??;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        ensure!(output.stdout == much, "{} of {} bytes came back", output.stdout.len(), much.len());
        // A program that does not read what it is sent does not hold anyone up.
        let mut command =
            as_asked(world.kubectl(&["exec", "-i", POD, "-c", "app", "--", "echo", "done"])?, old);
        command.stdin(std::fs::File::open(&path)?);
        let ran = finish(command).await?;
        ensure!(ran.code == Some(0) && ran.stdout == "done\n", "{ran:?}");
        Ok(())
    })
    .await
}

async fn attach(target: Target) -> anyhow::Result<()> {
    each_way(target, async |world, old| {
        let path = world.path("typed");
        std::fs::write(&path, "one\ntwo\n")?;
        let mut command = as_asked(world.kubectl(&["attach", "-i", POD, "-c", "app"])?, old);
        command.stdin(std::fs::File::open(&path)?);
        let ran = finish(command).await?;
        ensure!(ran.stdout.ends_with("attached\nread one\nread two\n"), "{ran:?}");
        ensure!(ran.code == Some(7), "{ran:?}");
        Ok(())
    })
    .await
}

async fn cp(target: Target) -> anyhow::Result<()> {
    let world = World::make(target, true).await?;
    let here = world.path("here");
    std::fs::create_dir_all(here.join("below"))?;
    let large = noise(&here.join("below/large"), 2 << 20)?;
    std::fs::write(here.join("small"), "small")?;
    let there = world.path("there");
    std::fs::create_dir(&there)?;
    let (from, to) = (here.display().to_string(), format!("{POD}:{}", there.display()));
    world.prints(&["cp", "-c", "app", &from, &to]).await?;
    ensure!(std::fs::read(there.join("here/below/large"))? == large);
    let back = world.path("back").display().to_string();
    world.prints(&["cp", "-c", "app", &format!("{to}/here"), &back]).await?;
    ensure!(std::fs::read(world.path("back/below/large"))? == large);
    ensure!(std::fs::read_to_string(world.path("back/small"))? == "small");
    Ok(())
}

/// Gives back what it is sent, until the other side is done.
async fn echo() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut into) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut into).await;
            });
        }
    });
    Ok(port)
}

async fn forward(target: Target) -> anyhow::Result<()> {
    each_way(target, async |world, old| {
        let (port, closed) = (echo().await?, TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port());
        let mut command =
            as_asked(world.kubectl(&["port-forward", POD, &format!(":{port}"), &format!(":{closed}")])?, old);
        let mut forwarding = command.stdin(Stdio::null()).spawn()?;
        let mut stdout = BufReader::new(forwarding.stdout.take().context("it is piped")?).lines();
        let mut stderr = BufReader::new(forwarding.stderr.take().context("it is piped")?).lines();
        let mut ports = Vec::new();
        while ports.len() < 2 {
            let line =
                Clock::real().timeout(PATIENCE, stdout.next_line()).await.ok().context("nothing comes")??;
            let Some(line) = line else {
                anyhow::bail!("it ended: {:?}", stderr.next_line().await);
            };
            let local =
                line.strip_prefix("Forwarding from 127.0.0.1:").and_then(|rest| rest.split(' ').next());
            ports.extend(local.map(str::parse::<u16>).transpose()?);
        }
        let much = noise(&world.path("much"), 1 << 20)?;
        // Several at once, each to its own end.
        let sending = (0..4).map(|_| {
            let much = much.clone();
            let port = ports[0];
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
                let (mut from, mut into) = stream.split();
                let mut back = Vec::new();
                let sending = async {
                    into.write_all(&much).await?;
                    into.shutdown().await
                };
                let (sent, read) = tokio::join!(sending, from.read_to_end(&mut back));
                sent?;
                read?;
                ensure!(back == much, "{} of {} bytes came back", back.len(), much.len());
                Ok(())
            })
        });
        let all = futures::future::try_join_all(sending);
        for sent in Clock::real().timeout(PATIENCE, all).await.ok().context("a connection hangs")?? {
            sent?;
        }
        let mut refused = TcpStream::connect(("127.0.0.1", ports[1])).await?;
        let mut rest = Vec::new();
        let reading = refused.read_to_end(&mut rest);
        let _ = Clock::real().timeout(PATIENCE, reading).await.ok().context("it is not closed")?;
        let line =
            Clock::real().timeout(PATIENCE, stderr.next_line()).await.ok().context("nothing is said")??;
        let line = line.unwrap_or_default();
        ensure!(line.contains(&format!("error forwarding port {closed} to pod")), "{line}");
        forwarding.kill().await?;
        Ok(())
    })
    .await
}

/// On a cluster of containers metrics-server asks; here the embedded API does itself.
async fn top(target: Target) -> anyhow::Result<()> {
    let reference = target.environment() == "reference";
    let world = World::make(target, true).await?;
    if reference {
        let ran = world.run(&["top", "node"]).await?;
        ensure!(ran.stderr == "error: Metrics API not available\n", "{ran:?}");
        return Ok(());
    }
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let shown = world.prints(&["top", "node", "--no-headers"]).await?;
    ensure!(words(&shown) == [world.node.as_str(), "250m", "12%", "64Mi", "6%"], "{shown}");
    let shown = world.prints(&["top", "pod", "--no-headers"]).await?;
    ensure!(words(&shown) == [POD, "500m", "128Mi"], "{shown}");
    let shown = world.prints(&["top", "pod", POD, "--containers", "--no-headers"]).await?;
    ensure!(shown.lines().map(words).any(|line| line == [POD, "side", "250m", "64Mi"]), "{shown}");
    let ran = world.run(&["top", "pod", "none"]).await?;
    let why = "Error from server (NotFound): pods.metrics.k8s.io \"none\" not found\n";
    ensure!(ran.stderr == why, "{ran:?}");
    Ok(())
}

async fn proxied(target: Target) -> anyhow::Result<()> {
    let reference = target.environment() == "reference";
    let world = World::make(target, true).await?;
    let raw = async |path: &str| {
        world.run(&["get", "--raw", &format!("/api/v1/nodes/{}/proxy{path}", world.node)]).await
    };
    if reference {
        // It leads to no loopback address. Ours leads to the kubelet's own port, where it is known who asks.
        let ran = raw("/healthz").await?;
        ensure!(ran.stderr.contains("address not allowed"), "{ran:?}");
        return Ok(());
    }
    ensure!(raw("/healthz").await?.stdout == "ok");
    ensure!(raw("/pods").await?.stdout.contains("PodList"));
    ensure!(raw("/stats/summary").await?.stdout.contains("usageNanoCores"));
    ensure!(raw("/metrics/resource").await?.stdout.contains("pod_memory_working_set_bytes{"));
    let ran = raw("/nothing/there").await?;
    ensure!(ran.code == Some(1) && ran.stderr.contains("NotFound"), "{ran:?}");
    let other = format!("/api/v1/nodes/{}:22/proxy/", world.node);
    let ran = world.run(&["get", "--raw", &other]).await?;
    ensure!(ran.stderr.contains("address not allowed"), "{ran:?}");
    Ok(())
}

async fn refuses_strangers(target: Target) -> anyhow::Result<()> {
    use rustls::pki_types::pem::PemObject as _;
    let world = World::make(target, true).await?;
    let certificate =
        rustls::pki_types::CertificateDer::from_pem_slice(world.identity.certificate.as_bytes())?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    for path in ["/healthz", "/pods", "/exec/a/b/c?command=true&output=1"] {
        for authorization in ["", "Authorization: Bearer guessed\r\n"] {
            let stream = TcpStream::connect(world.address).await?;
            let mut stream = connector.connect("127.0.0.1".try_into()?, stream).await?;
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: x\r\n{authorization}Connection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer).await;
            ensure!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        }
    }
    Ok(())
}
