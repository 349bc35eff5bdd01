//! Services by name and address, spoken to by the system's own resolver.

use crate::fixture::{Fixture, Pod, eventually, trial};
use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_node::net::{Endpoint, Network, Port, Protocol, Service, ServiceAddress, ServiceMap, expose};

const AT: Ipv4Addr = Ipv4Addr::new(10, 96, 1, 1);

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_service_is_reached_by_name", a_service_is_reached_by_name),
        trial("datagrams_reach_a_service", datagrams_reach_a_service),
        trial("nobody_behind_it_is_refused_at_once", nobody_behind_it_is_refused_at_once),
        trial("connections_outlive_changes", connections_outlive_changes),
        trial("clients_keep_their_endpoint", clients_keep_their_endpoint),
        trial("headless_services_and_their_pods_have_names", headless_services_and_their_pods_have_names),
        trial("many_endpoints_are_all_told", many_endpoints_are_all_told),
        trial("the_api_is_reached_by_the_node", the_api_is_reached_by_the_node),
        trial("a_service_is_exposed_on_the_host", a_service_is_exposed_on_the_host),
        trial("all_bytes_arrive_in_order", all_bytes_arrive_in_order),
    ]
}

fn service(name: &str, reached: ServiceAddress, pods: &[&Pod], protocol: Protocol) -> Service {
    let ports = vec![Port {
        name: "main".into(),
        protocol,
        number: 80,
        backends: pods.iter().map(|pod| SocketAddrV4::new(pod.address, 8080)).collect(),
    }];
    let endpoints = pods.iter().enumerate().map(|(index, pod)| Endpoint {
        address: pod.address,
        hostname: Some(format!("{name}-{index}")),
        ports: vec![("main".into(), protocol, 8080)],
    });
    Service {
        namespace: "shop".into(),
        name: name.into(),
        reached,
        ports,
        endpoints: endpoints.collect(),
        affinity: None,
    }
}

async fn publish(network: &Network, services: impl Into<Vec<Service>>) -> Result<()> {
    Ok(network.publish(&ServiceMap { services: services.into() }).await?)
}

fn web(pods: &[&Pod]) -> Service {
    service("web", ServiceAddress::ClusterIp(AT), pods, Protocol::Tcp)
}

async fn a_service_is_reached_by_name() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (one, two) = (fixture.listening("one", 8080).await?, fixture.listening("two", 8080).await?);
    let mut client = fixture.pod("client").await?;
    publish(&fixture.network, [web(&[&one, &two])]).await?;
    let mut heard = BTreeSet::new();
    for name in ["web:80", "web.shop:80", "web.shop.svc:80", "web.shop.svc.cluster.local:80"] {
        let said = client.say(name, "hi").with_context(|| name.to_owned())?;
        heard.insert(said.split(' ').next().unwrap_or_default().to_owned());
    }
    assert_eq!(heard, BTreeSet::from(["one".into(), "two".into()]), "in turn");
    ensure!(client.say("nobody:80", "").is_err());
    // From itself, by its Service.
    let mut one = one;
    ensure!(one.say("web:80", "me")?.contains("heard me"));
    drop((one, two, client));
    fixture.end().await
}

async fn datagrams_reach_a_service() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (one, two) = (fixture.listening("one", 8080).await?, fixture.listening("two", 8080).await?);
    let mut client = fixture.pod("client").await?;
    let udp = |pods: &[&Pod]| service("web", ServiceAddress::ClusterIp(AT), pods, Protocol::Udp);
    publish(&fixture.network, [udp(&[&one, &two])]).await?;
    let heard: BTreeSet<_> = (0..2).map(|_| client.say_udp("web:80", "hi")).collect::<Result<_>>()?;
    assert_eq!(heard, BTreeSet::from(["one hi".into(), "two hi".into()]));
    publish(&fixture.network, [udp(&[&two])]).await?;
    assert_eq!(client.say_udp("web:80", "again")?, "two again");
    publish(&fixture.network, [udp(&[])]).await?;
    let refused = client.say_udp("web:80", "x").expect_err("nobody is there").to_string();
    ensure!(refused.contains("refused"), "{refused}");
    drop((one, two, client));
    fixture.end().await
}

async fn nobody_behind_it_is_refused_at_once() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut one = fixture.listening("one", 8080).await?;
    let mut client = fixture.pod("client").await?;
    for _ in 0..3 {
        publish(&fixture.network, [web(&[])]).await?;
        let refused = client.say("web:80", "hi").expect_err("nobody is there").to_string();
        ensure!(refused.contains("refused"), "{refused}");
        publish(&fixture.network, [web(&[&one])]).await?;
        client.say("web:80", "hi")?;
    }
    ensure!(
        client.say(&format!("{AT}:81"), "hi").expect_err("nobody is there").to_string().contains("refused"),
        "no such port"
    );
    // Ready, it is said, but nobody listens there.
    one.ask(json!({"do": "listen", "port": 9, "name": "one"}))?;
    let mut wrong = web(&[&one]);
    wrong.ports[0].backends[0].set_port(10);
    publish(&fixture.network, [wrong]).await?;
    ensure!(client.say("web:80", "hi").is_err());
    publish(&fixture.network, []).await?;
    ensure!(client.ask(json!({"do": "resolve", "name": "web"})).is_err(), "its name is gone with it");
    drop((one, client));
    fixture.end().await
}

async fn connections_outlive_changes() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (mut one, mut two) = (fixture.pod("one").await?, fixture.pod("two").await?);
    for pod in [&mut one, &mut two] {
        pod.ask(json!({"do": "listen-echo", "port": 8080}))?;
    }
    let mut client = fixture.pod("client").await?;
    publish(&fixture.network, [web(&[&one, &two])]).await?;
    for number in ["0", "1"] {
        assert_eq!(client.ask(json!({"do": "open", "to": "web:80"}))?, number);
        client.ask(json!({"do": "echo", "at": number, "text": "before"}))?;
    }
    publish(&fixture.network, [web(&[&two])]).await?;
    publish(&fixture.network, []).await?;
    for number in ["0", "1"] {
        assert_eq!(client.ask(json!({"do": "echo", "at": number, "text": "after"}))?, "after");
    }
    // One pod dies: its connections end, the other's do not.
    drop(one);
    fixture.network.release("one").await?;
    let mut left = 0;
    for number in ["0", "1"] {
        left += usize::from(client.ask(json!({"do": "echo", "at": number, "text": "later"})).is_ok());
    }
    assert_eq!(left, 1);
    drop((two, client));
    fixture.end().await
}

async fn clients_keep_their_endpoint() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (one, two) = (fixture.listening("one", 8080).await?, fixture.listening("two", 8080).await?);
    let (mut client, mut other) = (fixture.pod("client").await?, fixture.pod("other").await?);
    let sticky = |pods: &[&Pod]| Service { affinity: Some(600), ..web(pods) };
    publish(&fixture.network, [sticky(&[&one, &two])]).await?;
    let first = client.say("web:80", "hi")?;
    ensure!(other.say("web:80", "hi")? != first, "each client its own");
    for _ in 0..4 {
        assert_eq!(client.say("web:80", "hi")?, first);
    }
    let left = if first.starts_with("one") { &two } else { &one };
    publish(&fixture.network, [sticky(&[left])]).await?;
    ensure!(client.say("web:80", "hi")? != first, "it is gone");
    drop((one, two, client, other));
    fixture.end().await
}

async fn headless_services_and_their_pods_have_names() -> Result<()> {
    let fixture = Fixture::new().await?;
    let (one, two) = (fixture.listening("one", 8080).await?, fixture.listening("two", 8080).await?);
    let mut client = fixture.pod("client").await?;
    publish(&fixture.network, [service("db", ServiceAddress::Headless, &[&one, &two], Protocol::Tcp)])
        .await?;
    let mut resolve = |name: &str| client.ask(json!({"do": "resolve", "name": name}));
    assert_eq!(resolve("db")?, format!("{} {}", one.address, two.address));
    assert_eq!(resolve("db-1.db")?, two.address.to_string());
    assert_eq!(resolve("db-0.db.shop.svc.cluster.local")?, one.address.to_string());
    assert_eq!(resolve("10-244-0-77.shop.pod.cluster.local")?, "10.244.0.77");
    ensure!(resolve("db-2.db").is_err() && resolve("example.com").is_err());
    ensure!(client.say("db-0.db:8080", "hi")?.starts_with("one"));
    drop((one, two, client));
    fixture.end().await
}

async fn many_endpoints_are_all_told() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut client = fixture.pod("client").await?;
    let endpoints = (1..=200).map(|last| Endpoint {
        address: Ipv4Addr::new(10, 244, 0, last),
        hostname: None,
        ports: vec![],
    });
    let many = Service {
        endpoints: endpoints.collect(),
        ..service("db", ServiceAddress::Headless, &[], Protocol::Tcp)
    };
    publish(&fixture.network, [many]).await?;
    // Too many for a datagram: the resolver asks again over a connection.
    assert_eq!(client.ask(json!({"do": "resolve", "name": "db"}))?.split(' ').count(), 200);
    drop(client);
    fixture.end().await
}

async fn the_api_is_reached_by_the_node() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut client = fixture.pod("client").await?;
    let api = TcpListener::bind("127.0.0.1:0").await?;
    let address = api.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = api.accept().await {
            let mut said = String::new();
            _ = stream.read_to_string(&mut said).await;
            _ = stream.write_all(format!("the API heard {said}").as_bytes()).await;
        }
    });
    let other = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let std::net::SocketAddr::V4(other) = other else { anyhow::bail!("asked for IPv4") };
    let mut outside = web(&[]);
    outside.ports[0].backends = vec![other];
    let table = ServiceMap { services: vec![outside] }.with_api(fixture.settings.api());
    fixture.network.publish(&table).await?;
    ensure!(client.say("kubernetes.default:443", "hi").is_err(), "no node yet");
    for _ in 0..2 {
        let (network, address) = (fixture.network.clone(), address.clone());
        let node = tokio::spawn(async move { network.serve_host(&address).await });
        let mut waiting = Some(client);
        eventually("the node makes the connection", async || {
            // Not on this thread: the API of this test answers on it.
            let (said, back) =
                off_thread(waiting.take().context("it came back")?, "kubernetes.default:443").await;
            waiting = Some(back);
            Ok(said.is_ok_and(|said| said == "the API heard hi"))
        })
        .await?;
        client = waiting.context("it came back")?;
        node.abort();
        _ = node.await;
    }
    drop(client);
    fixture.end().await
}

async fn off_thread(mut pod: Pod, to: &'static str) -> (Result<String>, Pod) {
    tokio::task::spawn_blocking(move || (pod.say(to, "hi"), pod)).await.expect("it does not panic")
}

async fn a_service_is_exposed_on_the_host() -> Result<()> {
    let fixture = Fixture::new().await?;
    let one = fixture.listening("one", 8080).await?;
    publish(&fixture.network, [web(&[&one])]).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let network = fixture.network.clone();
    let exposing =
        tokio::spawn(async move { expose(&network, listener, SocketAddrV4::new(AT, 80), |_| {}).await });
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"from the host").await?;
        stream.shutdown().await?;
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await?;
        ensure!(heard.starts_with("one heard from the host"), "{heard}");
    }
    publish(&fixture.network, []).await?;
    let mut stream = TcpStream::connect(address).await?;
    ensure!(stream.read(&mut [0]).await.is_err(), "broken off, not ended");
    exposing.abort();
    drop(one);
    fixture.end().await
}

async fn all_bytes_arrive_in_order() -> Result<()> {
    let fixture = Fixture::new().await?;
    let mut one = fixture.pod("one").await?;
    one.ask(json!({"do": "listen-echo", "port": 8080}))?;
    let mut client = fixture.pod("client").await?;
    publish(&fixture.network, [web(&[&one])]).await?;
    for bytes in [0, 1, 500_000] {
        assert_eq!(client.ask(json!({"do": "flood", "to": "web:80", "bytes": bytes}))?, "all");
    }
    drop((one, client));
    fixture.end().await
}
