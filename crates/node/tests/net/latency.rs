//! What a Service costs beside a direct connection: `cargo test -p windlass-node --test net -- --bench`.

use crate::fixture::Fixture;
use anyhow::{Context, Result};
use libtest_mimic::{Measurement, Trial};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use windlass_clock::Clock;
use windlass_node::net::{Port, Protocol, Service, ServiceAddress, ServiceMap};

const TIMES: u32 = 2000;

pub fn trials() -> Vec<Trial> {
    let one = |name: &'static str, what: &'static str, service: bool| {
        Trial::bench(name, move |test| {
            if test {
                return Ok(None);
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (avg, variance) =
                runtime.block_on(measure(what, service)).map_err(|error| format!("{error:#}"))?;
            Ok(Some(Measurement { avg, variance }))
        })
    };
    vec![
        one("round_trip_direct", "round-trips", false),
        one("round_trip_by_service", "round-trips", true),
        one("connection_direct", "connections", false),
        one("connection_by_service", "connections", true),
        Trial::bench("join_to_first_connection", |test| if test { Ok(None) } else { Ok(Some(joins()?)) }),
    ]
}

async fn measure(what: &str, service: bool) -> Result<(u64, u64)> {
    let fixture = Fixture::new().await?;
    let (mut one, mut two) = (fixture.pod("one").await?, fixture.pod("two").await?);
    one.ask(json!({"do": "listen-echo", "port": 80}))?;
    let direct = std::net::SocketAddrV4::new(one.address, 80);
    let at = std::net::Ipv4Addr::new(10, 96, 1, 1);
    let port = Port { name: String::new(), protocol: Protocol::Tcp, number: 80, backends: vec![direct] };
    let (namespace, name) = ("shop".into(), "web".into());
    let web = Service {
        namespace,
        name,
        reached: ServiceAddress::ClusterIp(at),
        ports: vec![port],
        endpoints: vec![],
        affinity: None,
    };
    fixture.network.publish(&ServiceMap { services: vec![web] }).await?;
    let to = if service { format!("{at}:80") } else { direct.to_string() };
    let measured = two.ask(json!({"do": what, "to": to}))?;
    drop((one, two));
    fixture.end().await?;
    let (avg, variance) = measured.split_once(' ').context("two numbers")?;
    Ok((avg.parse()?, variance.parse()?))
}

/// A pod's process with its namespaces, joined, and its first connection to a neighbour.
fn joins() -> Result<Measurement, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let measured = runtime.block_on(async {
        let fixture = Fixture::new().await?;
        let clock = Clock::real();
        let mut taken = Vec::new();
        let one = fixture.listening("one", 80).await?;
        for number in 0..20 {
            let before = clock.moment();
            let mut pod = fixture.pod(&number.to_string()).await?;
            pod.say(&format!("{}:80", one.address), "hi")?;
            taken.push((clock.moment() - before).as_nanos() as u64);
        }
        drop(one);
        fixture.end().await?;
        anyhow::Ok(taken)
    });
    let taken = measured.map_err(|error| format!("{error:#}"))?;
    let avg = taken.iter().sum::<u64>() / taken.len() as u64;
    Ok(Measurement { avg, variance: taken.iter().map(|time| time.abs_diff(avg)).max().unwrap_or_default() })
}

/// One byte there and back, on a connection that stays.
pub fn round_trips(mut stream: TcpStream) -> Result<String> {
    sample(|| {
        stream.write_all(b"x")?;
        Ok(stream.read_exact(&mut [0])?)
    })
}

/// A connection, one byte there and back, and its end.
pub fn connections(mut connect: impl FnMut() -> Result<TcpStream>) -> Result<String> {
    sample(|| {
        let mut stream = connect()?;
        stream.write_all(b"x")?;
        Ok(stream.read_exact(&mut [0])?)
    })
}

fn sample(mut once: impl FnMut() -> Result<()>) -> Result<String> {
    let clock = Clock::real();
    let mut taken = Vec::new();
    for _ in 0..TIMES {
        let before = clock.moment();
        once()?;
        taken.push((clock.moment() - before).as_nanos() as u64);
    }
    let avg = taken.iter().sum::<u64>() / u64::from(TIMES);
    let variance = taken.iter().map(|time| time.abs_diff(avg).pow(2)).sum::<u64>() / u64::from(TIMES);
    // The runner shows it as what it deviates by.
    Ok(format!("{avg} {}", variance.isqrt()))
}
