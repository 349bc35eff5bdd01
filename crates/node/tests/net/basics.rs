//! Addresses, interfaces, connections; and what is left when it is over.

use crate::ground::{Ground, alive, eventually, trial};
use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::net::SocketAddrV4;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_node::net::{NetError, Network, Settings};
use windlass_node::shim::Program;

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
    ]
}

async fn pods_speak_to_each_other() -> Result<()> {
    let ground = Ground::new().await?;
    let (mut one, mut two) = (ground.pod("one").await?, ground.pod("two").await?);
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
    let outside = two.ask(json!({"do": "say", "to": "192.0.2.1:80", "text": ""})).unwrap_err().to_string();
    ensure!(outside.contains("unreachable") || outside.contains("No route"), "at once, not: {outside}");
    drop((one, two));
    ground.end().await
}

async fn a_connection_from_inside_is_handed_over() -> Result<()> {
    let ground = Ground::new().await?;
    let mut pod = ground.pod("one").await?;
    pod.ask(json!({"do": "listen", "port": 8080, "name": "one"}))?;
    let mut stream = ground.network.connect(SocketAddrV4::new(pod.address, 8080)).await?;
    stream.write_all(b"a probe").await?;
    stream.shutdown().await?;
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await?;
    assert_eq!(heard, format!("one heard a probe from {}", ground.settings.gateway()));

    let refused = ground.network.connect(SocketAddrV4::new(pod.address, 8081)).await.unwrap_err();
    ensure!(
        matches!(&refused, NetError::Connect(error) if error.kind() == std::io::ErrorKind::ConnectionRefused),
        "{refused}"
    );
    drop(pod);
    ground.end().await
}

async fn the_network_is_found_again() -> Result<()> {
    let ground = Ground::new().await?;
    let mut pod = ground.pod("one").await?;
    pod.ask(json!({"do": "listen", "port": 80, "name": "one"}))?;
    let again = Network::open(&Program::current()?, &ground.settings).await?;
    assert_eq!(again.instance(), ground.network.instance());
    assert_eq!(again.lend("one").await?, pod.address);
    assert_eq!(again.lent().await?, [("one".to_owned(), pod.address)]);
    again.connect(SocketAddrV4::new(pod.address, 80)).await?;
    let other = Settings { domain: "other".into(), ..ground.settings.clone() };
    ensure!(matches!(Network::open(&Program::current()?, &other).await, Err(NetError::Other)));
    drop(pod);
    ground.end().await
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
    let ground = Ground::new().await?;
    let mut pod = ground.pod("one").await?;
    let links = json!({"do": "read", "file": "/proc/self/net/dev"});
    ensure!(pod.ask(links.clone())?.contains("eth0"));
    kill(Pid::from_raw(ground.network.pid()), Signal::SIGKILL)?;
    // The kernel takes a namespace down in its own time, and the pod's end of the pair goes with the other.
    eventually("the pod's interface is gone", async || Ok(!pod.ask(links.clone())?.contains("eth0"))).await?;
    ensure!(ground.network.lend("two").await.is_err(), "nobody answers");

    let again = Network::open(&Program::current()?, &ground.settings).await?;
    ensure!(
        again.instance() != ground.network.instance(),
        "pods must be told apart from those of the new one"
    );
    assert_eq!(again.lend("one").await?, pod.address, "what was lent is remembered");
    drop(pod);
    Ground { network: again, ..ground }.end().await
}

async fn what_is_released_is_gone() -> Result<()> {
    let ground = Ground::new().await?;
    let mut pod = ground.pod("one").await?;
    ground.network.release("one").await?;
    ensure!(!pod.ask(json!({"do": "read", "file": "/proc/self/net/dev"}))?.contains("eth0"));
    ground.network.release("one").await?;
    ensure!(ground.network.lend("two").await? != pod.address, "it rests");
    drop(pod);
    ground.end().await
}
