//! Addresses, interfaces, connections; and what is left when it is over.

use crate::fixture::{Fixture, alive, eventually, trial};
use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::net::SocketAddrV4;
use std::process::{Command, ExitCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_node::Program;
use windlass_node::doctor;
use windlass_node::net::{NetError, Network, Settings};

/// What this program is told to say what its process may do.
pub const EXAMINE: &str = "examine";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("pods_speak_to_each_other", pods_speak_to_each_other),
        trial("a_connection_from_inside_is_handed_over", a_connection_from_inside_is_handed_over),
        trial("the_network_is_found_again", the_network_is_found_again),
        trial("two_who_open_at_once_get_the_same", two_who_open_at_once_get_the_same),
        trial(
            "a_killed_network_leaves_nothing_and_starts_again",
            a_killed_network_leaves_nothing_and_starts_again,
        ),
        trial("what_is_released_is_gone", what_is_released_is_gone),
        trial("a_network_that_nobody_can_find_ends", a_network_that_nobody_can_find_ends),
        trial("the_doctor_agrees", the_doctor_agrees),
        trial("the_doctor_says_what_is_lacking", the_doctor_says_what_is_lacking),
    ]
}

async fn pods_speak_to_each_other() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (mut one, mut two) = (fixture.pod("one").await?, fixture.pod("two").await?);
    // A port below 1024, as an ordinary user too.
    one.ask(json!({"do": "listen", "port": 80, "name": "one"}))?;
    let heard = two.ask(json!({"do": "say", "to": format!("{}:80", one.address), "text": "hi"}))?;
    assert_eq!(heard, format!("one heard hi from {}", two.address));
    one.ask(json!({"do": "listen-udp", "port": 53, "name": "one"}))?;
    assert_eq!(
        two.ask(json!({"do": "say-udp", "to": format!("{}:53", one.address), "text": "hi"}))?,
        "one hi"
    );
    assert_eq!(
        one.ask(json!({"do": "say", "to": "127.0.0.1:80", "text": "me"}))?,
        "one heard me from 127.0.0.1"
    );
    let outside = two
        .ask(json!({"do": "say", "to": "192.0.2.1:80", "text": ""}))
        .expect_err("nobody is there")
        .to_string();
    ensure!(outside.contains("unreachable") || outside.contains("No route"), "at once, not: {outside}");
    // Killed, they leave nothing in the node's namespace either: the bridge, its keeper, and no end of a pair.
    drop((one, two));
    eventually("the pods' links are gone", async || {
        Ok(fixture.links()? == ["lo", "windlass0", "windlass1", "windlass2"])
    })
    .await?;
    fixture.end().await
}

async fn a_connection_from_inside_is_handed_over() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut pod = fixture.pod("one").await?;
    pod.ask(json!({"do": "listen", "port": 8080, "name": "one"}))?;
    let mut stream = fixture.network.connect(SocketAddrV4::new(pod.address, 8080)).await?;
    stream.write_all(b"a probe").await?;
    stream.shutdown().await?;
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await?;
    assert_eq!(heard, format!("one heard a probe from {}", fixture.settings.gateway()));

    let refused =
        fixture.network.connect(SocketAddrV4::new(pod.address, 8081)).await.expect_err("nobody is there");
    ensure!(
        matches!(&refused, NetError::Connect(error) if error.kind() == std::io::ErrorKind::ConnectionRefused),
        "{refused}"
    );
    drop(pod);
    fixture.end().await
}

async fn the_network_is_found_again() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut pod = fixture.pod("one").await?;
    pod.ask(json!({"do": "listen", "port": 80, "name": "one"}))?;
    let again = Network::open(&Program::current()?, &fixture.settings).await?;
    assert_eq!(again.instance(), fixture.network.instance());
    assert_eq!(again.allocate("one").await?, pod.address);
    assert_eq!(again.allocated().await?, [("one".to_owned(), pod.address)]);
    again.connect(SocketAddrV4::new(pod.address, 80)).await?;
    let other = Settings { domain: "other".into(), ..fixture.settings.clone() };
    ensure!(matches!(Network::open(&Program::current()?, &other).await, Err(NetError::Other)));
    drop(pod);
    fixture.end().await
}

async fn two_who_open_at_once_get_the_same() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (program, settings) = (Program::current()?, Settings::of_node(3, folder.path()));
    let opened = futures::future::join_all((0..4).map(|_| Network::open(&program, &settings))).await;
    let opened: Vec<Network> = opened.into_iter().collect::<Result<_, _>>()?;
    for network in &opened {
        assert_eq!(network.instance(), opened[0].instance());
    }
    let pid = opened[0].pid();
    opened[0].clone().end().await?;
    eventually("its process is gone", async || Ok(!alive(pid))).await
}

async fn a_killed_network_leaves_nothing_and_starts_again() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut pod = fixture.pod("one").await?;
    let links = json!({"do": "read", "file": "/proc/self/net/dev"});
    ensure!(pod.ask(links.clone())?.contains("eth0"));
    kill(Pid::from_raw(fixture.network.pid()), Signal::SIGKILL)?;
    // The kernel takes a namespace down in its own time, and the pod's end of the pair goes with the other.
    eventually("the pod's interface is gone", async || Ok(!pod.ask(links.clone())?.contains("eth0"))).await?;
    ensure!(fixture.network.allocate("two").await.is_err(), "nobody answers");

    let again = Network::open(&Program::current()?, &fixture.settings).await?;
    ensure!(
        again.instance() != fixture.network.instance(),
        "pods must be told apart from those of the new one"
    );
    assert_eq!(again.allocate("one").await?, pod.address, "what was lent is remembered");
    drop(pod);
    Fixture { network: again, ..fixture }.end().await
}

async fn what_is_released_is_gone() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut pod = fixture.pod("one").await?;
    fixture.network.release("one").await?;
    ensure!(!pod.ask(json!({"do": "read", "file": "/proc/self/net/dev"}))?.contains("eth0"));
    fixture.network.release("one").await?;
    ensure!(fixture.network.allocate("two").await? != pod.address, "it rests");
    drop(pod);
    fixture.end().await
}

async fn a_network_that_nobody_can_find_ends() -> Result<()> {
    let fixture = Fixture::new().await?;
    let pid = fixture.network.pid();
    drop(fixture.folder);
    eventually("its process is gone", async || Ok(!alive(pid))).await
}

/// It tried what the other tests do, so it must find that it can be done; and it leaves this process where it was.
async fn the_doctor_agrees() -> Result<()> {
    let before = std::fs::read_link("/proc/self/ns/net")?;
    let findings = doctor::examine(&Program::current()?)?;
    ensure!(doctor::can(&findings), "{findings:#?}");
    for about in ["namespaces", "bridge and links", "tmpfs", "processes of their own", "image busybox"] {
        ensure!(
            findings.iter().any(|finding| finding.about == about),
            "nothing about {about}: {findings:#?}"
        );
    }
    assert_eq!(std::fs::read_link("/proc/self/ns/net")?, before);
    Ok(())
}

/// Run by [`the_doctor_says_what_is_lacking`]: what this process may do, as JSON.
pub fn examine() -> ExitCode {
    let findings = Program::current().and_then(|program| doctor::examine(&program));
    match findings.map_err(|error| error.to_string()) {
        Ok(findings) => println!("{}", json!(findings)),
        Err(error) => println!("{error}"),
    }
    ExitCode::SUCCESS
}

/// What the doctor finds where a script prepares the fixture and then runs `"$@"`.
fn examined(script: &str) -> Result<Vec<Value>> {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe()?)
        .arg(EXAMINE)
        .output()?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).with_context(|| said)
}

/// Root of a container is seldom root of its machine: what counts is what it may do.
async fn the_doctor_says_what_is_lacking() -> Result<()> {
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("skipped: setpriv is not installed");
        return Ok(());
    }
    const BOUNDED: &str = "exec setpriv --bounding-set=-sys_admin --inh-caps=-all \"$@\"";
    let namespaces = |findings: &[Value]| {
        let found = findings.iter().find(|finding| finding["about"] == "namespaces").cloned();
        found.context("it says something of namespaces")
    };
    // Without rights, but with user namespaces: pods can run.
    let found = namespaces(&examined(BOUNDED)?)?;
    ensure!(found["level"] == "ok", "{found}");
    // Without either: it is said what to change.
    let found = namespaces(&examined(&format!("echo 0 > /proc/sys/user/max_user_namespaces; {BOUNDED}"))?)?;
    ensure!(found["level"] == "problem", "{found}");
    let remedy = found["remedy"].as_str().unwrap_or_default();
    ensure!(remedy.contains("user.max_user_namespaces") && remedy.contains("CAP_SYS_ADMIN"), "{found}");
    // With rights, nothing else is needed.
    let found = namespaces(&examined("echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"")?)?;
    ensure!(found["level"] == "ok" && found["found"].to_string().contains("CAP_SYS_ADMIN"), "{found}");
    Ok(())
}
