//! A TCP proxy between a client and an API, on loopback, whose connections can be cut.

use anyhow::Context;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass_harness::Target;

use crate::targets::Embedded;

/// A proxy to an API. Dropping it cuts all connections.
pub struct Proxy {
    address: SocketAddr,
    whole: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// To this address.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn to(api: SocketAddr) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let (whole, state) = watch::channel(true);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, api, state.clone()));
            }
        });
        Ok(Self { address, whole, accepting })
    }

    /// Cuts it: connections break, and new ones do so at once.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Mends it.
    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

async fn carry(mut client: TcpStream, api: SocketAddr, mut whole: watch::Receiver<bool>) {
    let through = async {
        if let Ok(mut server) = TcpStream::connect(api).await {
            // How a connection ends is its ends' business.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    };
    tokio::select! {
        biased;
        _ = whole.wait_for(|whole| !whole) => {}
        () = through => {}
    }
}

/// A wire to the API of a target, and a client at its end.
///
/// # Errors
/// When the target cannot be reached over TCP.
pub async fn to_target(target: &Target) -> anyhow::Result<(Proxy, kube::Client)> {
    let mut config = match (target.kubeconfig(), target.extra::<Embedded>().and_then(Embedded::url)) {
        (Some(path), _) => {
            let file = kube::config::Kubeconfig::read_from(path)?;
            kube::Config::from_custom_kubeconfig(file, &Default::default()).await?
        }
        (None, Some(url)) => kube::Config::new(url.parse()?),
        (None, None) => anyhow::bail!("this target has no address"),
    };
    let url = &config.cluster_url;
    let host = url.host().context("a host")?.to_owned();
    let port = url.port_u16().unwrap_or(443);
    let api = tokio::net::lookup_host((host.as_str(), port)).await?.next().context("an address")?;
    let proxy = Proxy::to(api).await?;
    let scheme = url.scheme_str().unwrap_or("https");
    let through = format!("{scheme}://{}", proxy.address);
    // Its certificate is for where it really is.
    config.tls_server_name = Some(host);
    config.cluster_url = through.parse()?;
    Ok((proxy, kube::Client::try_from(config)?))
}
