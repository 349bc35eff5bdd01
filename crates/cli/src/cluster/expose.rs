//! `windlass cluster expose`: a Service of a cluster at an address of this machine.

use super::find::Selection;
use super::kubeconfig;
use super::record::Found;
use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;
use tokio::net::TcpListener;
use windlass_node::net::{Network, expose};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The Service, with the name or number of its port if it has several
    #[arg(value_name = "SERVICE[:PORT]")]
    service: String,

    /// The Service's namespace
    #[arg(long, short, default_value = "default")]
    namespace: String,

    /// The port on 127.0.0.1 to listen on [default: a free one]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = options.selection.find()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            ended = carry(options, &found) => ended,
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn carry(options: &Options, found: &Found) -> anyhow::Result<()> {
    let (name, port) = match options.service.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (options.service.as_str(), None),
    };
    let network = network(&found.folder).await.context(
        "no node of this cluster runs pods as processes; `windlass cluster up --nodes process=1` starts one that does",
    )?;
    let file = Kubeconfig::read_from(&found.record.kubeconfig)?;
    let ours =
        KubeConfigOptions { context: Some(kubeconfig::NAME.to_owned()), ..KubeConfigOptions::default() };
    let client = kube::Client::try_from(kube::Config::from_custom_kubeconfig(file, &ours).await?)?;
    let service = Api::<Service>::namespaced(client, &options.namespace).get(name).await?;
    let to = address(service.spec.as_ref().context("the Service has no spec")?, port)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port.unwrap_or(0)))
        .await
        .context("cannot listen on this machine")?;
    writeln!(
        std::io::stdout(),
        "{} -> {name}.{} ({to}); Ctrl-C stops it",
        listener.local_addr()?,
        options.namespace
    )?;
    expose(&network, listener, to, |error| eprintln!("a connection failed: {error}")).await?;
    Ok(())
}

/// The network of the first node that has one: nodes keep theirs in their folder, which is in the cluster's.
async fn network(cluster: &Path) -> Option<Network> {
    let mut folders: Vec<_> = std::fs::read_dir(cluster).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for folder in folders {
        if let Some(network) = Network::find(&folder.join("network")).await {
            return Some(network);
        }
    }
    None
}

/// Where the Service is reached: pure.
fn address(spec: &ServiceSpec, wanted: Option<&str>) -> anyhow::Result<SocketAddrV4> {
    let Some(address) = spec.cluster_ip.as_ref().and_then(|address| address.parse::<Ipv4Addr>().ok()) else {
        bail!("the Service has no cluster IP; `kubectl port-forward` reaches its pods");
    };
    let ports: Vec<_> = spec.ports.iter().flatten().collect();
    let tcp =
        |port: &&&k8s_openapi::api::core::v1::ServicePort| port.protocol.as_deref().unwrap_or("TCP") == "TCP";
    let port = match wanted {
        Some(wanted) => ports
            .iter()
            .filter(tcp)
            .find(|port| port.name.as_deref() == Some(wanted) || port.port.to_string() == wanted)
            .with_context(|| format!("the Service has no TCP port {wanted}"))?,
        None => match ports.iter().filter(tcp).collect::<Vec<_>>().as_slice() {
            [one] => one,
            [] => bail!("the Service has no TCP port"),
            several => {
                let all: Vec<String> = several.iter().map(|port| port.port.to_string()).collect();
                bail!("the Service has several ports; say which: SERVICE:{}", all.join(", SERVICE:"))
            }
        },
    };
    Ok(SocketAddrV4::new(address, u16::try_from(port.port).context("a port beyond 65535")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(spec: Value, wanted: Option<&str>) -> anyhow::Result<String> {
        Ok(address(&serde_json::from_value(spec)?, wanted)?.to_string())
    }

    #[test]
    fn a_port_is_found_by_name_or_number_or_because_it_is_the_only_one() {
        let one = json!({"clusterIP": "10.96.1.1", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]});
        assert_eq!(of(one.clone(), None).unwrap(), "10.96.1.1:80");
        assert!(of(one, Some("53")).is_err(), "datagrams are not carried");
        let two = json!({"clusterIP": "10.96.1.1", "ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 81}]});
        assert_eq!(of(two.clone(), Some("admin")).unwrap(), "10.96.1.1:81");
        assert_eq!(of(two.clone(), Some("80")).unwrap(), "10.96.1.1:80");
        assert!(of(two.clone(), Some("82")).is_err());
        assert!(of(two, None).unwrap_err().to_string().contains("SERVICE:80, SERVICE:81"));
        assert!(of(json!({"clusterIP": "None", "ports": [{"port": 80}]}), None).is_err());
    }
}
