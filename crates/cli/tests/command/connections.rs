//! Raw TLS connections to a cluster, written byte by byte.

use crate::process::Cluster;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use windlass_clock::Clock;
use windlass_harness::process::Usage;

pub(crate) const HTTP1: &[u8] = b"http/1.1";
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How long a client that means no harm waits for all that it does.
const PATIENCE: Duration = Duration::from_secs(20);

/// A cluster in a process of its own, and how to reach it.
pub(crate) struct Target {
    cluster: Cluster,
    config: Config,
    _folder: tempfile::TempDir,
}

impl Target {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path(), &[]);
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Self { cluster, config, _folder: folder }
    }

    /// The memory that it has resident, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        Usage::of(self.cluster.id()).unwrap().memory
    }

    /// A connection as the administrator.
    pub(crate) async fn connect(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        let mut tls = self.config.rustls_client_config().unwrap();
        tls.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from(self.config.cluster_url.host().unwrap().to_owned()).unwrap();
        TlsConnector::from(Arc::new(tls)).connect(name, self.connect_only().await).await.unwrap()
    }

    /// A connection that has said nothing yet.
    pub(crate) async fn connect_only(&self) -> TcpStream {
        let url = &self.config.cluster_url;
        let stream = TcpStream::connect((url.host().unwrap(), url.port_u16().unwrap())).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Somebody else writes, reads and watches as ever.
    pub(crate) async fn others_are_served(&self, name: &str) {
        let done = Clock::real().timeout(PATIENCE, self.serves(name)).await;
        done.unwrap_or_else(|_| panic!("{name}: others wait for too long"));
    }

    async fn serves(&self, name: &str) {
        let maps = Api::<ConfigMap>::default_namespaced(Client::try_from(self.config.clone()).unwrap());
        let watching = WatchParams::default().fields(&format!("metadata.name={name}"));
        let events = maps.watch(&watching, "0").await.unwrap();
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        let made = maps.create(&PostParams::default(), &map).await.unwrap();
        assert_eq!(maps.get(name).await.unwrap(), made);
        let news = events.try_filter(|event| ready(!matches!(event, WatchEvent::Bookmark(_))));
        let seen: Vec<_> = news.take(1).try_collect().await.unwrap();
        assert!(matches!(&seen[..], [WatchEvent::Added(seen)] if *seen == made), "{seen:?}");
    }
}
