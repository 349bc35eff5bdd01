//! Memcached's servers as their clients know them: found by the Service, spoken to in memcached's own protocol.

use super::environment::Cluster;
use super::processes;
use anyhow::{Context, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use windlass_clock::Clock;

const PORT: u16 = 11211;
const PATIENCE: Duration = Duration::from_secs(5);

/// A server behind the Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Server {
    pub(super) pod: String,
    pub(super) uid: String,
    pub(super) address: Ipv4Addr,
}

/// The servers that are ready, by name.
pub(super) async fn ready(cluster: &Cluster, service: &str) -> anyhow::Result<Vec<Server>> {
    let slices: Api<EndpointSlice> = Api::default_namespaced(cluster.client.clone());
    let of = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let endpoints =
        slices.list(&of).await?.items.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
    let ready = endpoints.filter(|one| one.conditions.as_ref().and_then(|one| one.ready) == Some(true));
    let servers = ready.filter_map(|one| {
        let target = one.target_ref?;
        Some(Server { pod: target.name?, uid: target.uid?, address: one.addresses.first()?.parse().ok()? })
    });
    let mut servers: Vec<Server> = servers.collect();
    servers.sort();
    Ok(servers)
}

impl Server {
    /// Its process on this machine.
    pub(super) fn process(&self) -> Option<i32> {
        processes::in_pod(&self.uid, "memcached").first().map(|one| one.id)
    }

    /// A conversation with it, from inside the pods' network.
    pub(super) async fn talk(&self, cluster: &Cluster) -> anyhow::Result<Talk> {
        let network = cluster.network.as_ref().context("its node only simulates")?;
        let stream = network.connect(SocketAddrV4::new(self.address, PORT)).await?;
        Ok(Talk(BufReader::new(stream)))
    }
}

/// A connection to a server.
pub(super) struct Talk(BufReader<TcpStream>);

impl Talk {
    /// Its version.
    pub(super) async fn version(&mut self) -> anyhow::Result<String> {
        let said = self.ask("version\r\n").await?;
        Ok(said.strip_prefix("VERSION ").with_context(|| format!("it says {said:?}"))?.to_owned())
    }

    /// Keeps a value.
    pub(super) async fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        let said = self.ask(&format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())).await?;
        ensure!(said == "STORED", "it says {said:?}");
        Ok(())
    }

    /// A value that was kept.
    pub(super) async fn get(&mut self, key: &str) -> anyhow::Result<Option<String>> {
        let said = self.ask(&format!("get {key}\r\n")).await?;
        if said == "END" {
            return Ok(None);
        }
        ensure!(said.starts_with("VALUE "), "it says {said:?}");
        let value = self.line().await?;
        ensure!(self.line().await? == "END", "it goes on after a value");
        Ok(Some(value))
    }

    async fn ask(&mut self, text: &str) -> anyhow::Result<String> {
        self.0.write_all(text.as_bytes()).await?;
        self.line().await
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = Clock::real().timeout(PATIENCE, self.0.read_line(&mut line)).await;
        ensure!(read.context("it does not answer")?? > 0, "it hung up");
        Ok(line.trim_end().to_owned())
    }
}
