//! The clients of a manager: its requests are counted, and those of one that is elected are guarded.

use super::error::{Error, Result};
use crate::client::{self, DirectClient};
use crate::election::{Guard, Leadership};
use crate::metrics::Requests;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::PathBuf;
use tower::{BoxError, Layer};
use windlass_clock::Clock;

/// Where the clients come from.
#[derive(Clone)]
pub(super) enum Connection {
    Given(Client),
    Configured(Box<Config>),
    /// This kubeconfig, or else that of the environment, or the pod that it runs in.
    Environment(Option<PathBuf>),
}

/// A way to the cluster.
pub(super) enum Link {
    Given(Client),
    Config(Box<Config>),
}

impl Connection {
    pub(super) async fn link(self) -> Result<Link> {
        let path = match self {
            Self::Given(client) => return Ok(Link::Given(client)),
            Self::Configured(config) => return Ok(Link::of(*config)),
            Self::Environment(path) => path,
        };
        let config = match path {
            None => Config::infer().await.map_err(no_cluster),
            Some(path) => match Kubeconfig::read_from(path) {
                Ok(kubeconfig) => {
                    let chosen = KubeConfigOptions::default();
                    Config::from_custom_kubeconfig(kubeconfig, &chosen).await.map_err(no_cluster)
                }
                Err(error) => Err(no_cluster(error)),
            },
        };
        Ok(Link::of(config?))
    }
}

impl Link {
    fn of(mut config: Config) -> Self {
        // What kube sends again by itself, after seconds or minutes, nobody would ask whether we still lead. The queue
        // tries again anyhow.
        config.default_retry = false;
        Self::Config(Box::new(config))
    }

    /// The host and port of the API server, where they are known.
    pub(super) fn host(&self) -> Option<&str> {
        match self {
            Self::Given(_) => None,
            Self::Config(config) => config.cluster_url.authority().map(|authority| authority.as_str()),
        }
    }

    /// A client whose requests are counted, and which starts no write while another one may lead; and its way by itself.
    pub(super) fn client(
        &self,
        requests: &Requests,
        leadership: Option<&Leadership>,
        clock: &Clock,
    ) -> Result<(Client, DirectClient)> {
        let guard = Guard(leadership.cloned());
        match self {
            Self::Given(client) => {
                let (client, namespace) = (client.clone(), client.default_namespace().to_owned());
                let sending = tower::service_fn(move |request: http::Request<Body>| {
                    let client = client.clone();
                    async move { client.send(request).await.map_err(BoxError::from) }
                });
                let counted = requests.layer("given").layer(sending);
                let client = Client::new(guard.layer(counted), namespace);
                Ok((client.clone(), DirectClient::of(&client)))
            }
            Self::Config(config) => {
                let counting = requests.layer(self.host().unwrap_or_default());
                if client::can_connect_directly(config) {
                    let service = client::direct_service(config, clock).map_err(no_cluster)?;
                    let service = guard.layer(counting.layer(service));
                    return Ok((
                        Client::new(service.clone(), &config.default_namespace),
                        DirectClient::by(service),
                    ));
                }
                let builder = ClientBuilder::try_from((**config).clone()).map_err(no_cluster)?;
                let client = builder.with_layer(&counting).with_layer(&guard).build();
                Ok((client.clone(), DirectClient::of(&client)))
            }
        }
    }
}

fn no_cluster(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::NoCluster(Box::new(error))
}
