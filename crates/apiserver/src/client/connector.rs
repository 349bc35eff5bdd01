//! How a client reaches a host: by this machine's own network, or by whoever knows another, such as that of pods and Services.

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower::Service;

/// Connects to a host and its port that this machine's network does not know.
pub(crate) trait Reach: Send + Sync + 'static {
    fn connect(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<TcpStream>>;
}

/// Makes the connections of a client.
#[derive(Clone)]
pub(crate) enum Connector {
    /// By this machine's own network.
    Machine(HttpConnector),
    /// By another.
    Other(Arc<dyn Reach>),
}

impl Connector {
    pub(crate) fn machine() -> Self {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        Self::Machine(connector)
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            Self::Machine(connector) => connector.poll_ready(context).map_err(Into::into),
            Self::Other(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Self::Machine(connector) => {
                let connecting = connector.call(uri);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
            Self::Other(other) => {
                let port = uri.port_u16().unwrap_or(443);
                let connecting = other.connect(uri.host().unwrap_or_default(), port);
                Box::pin(async move {
                    let stream = connecting.await?;
                    stream.set_nodelay(true)?;
                    Ok(TokioIo::new(stream))
                })
            }
        }
    }
}
