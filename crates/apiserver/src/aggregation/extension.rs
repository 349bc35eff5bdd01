//! The server behind an APIService: reached at an endpoint of the Service, believed by the Service's name, and shown the certificate of the
//! front proxy.

use crate::client::{Connector, Reach, Trust, go_words, streaming};
use crate::dial::Dialer;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The body of a request that is led on as it arrives.
pub(crate) type Streamed = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Asks one extension API server. Connections are kept.
pub(crate) struct Extension {
    client: Client<HttpsConnector<Connector>, Streamed>,
}

/// Why there was no answer, in the words of Go.
#[derive(Debug)]
pub(crate) struct Unreachable(pub(crate) String);

impl Extension {
    /// `host` is whom the server must prove to be, by a certificate that `bundle` signs; without a bundle it need not prove anything, and
    /// for an empty one this machine knows who signs. `client` is the certificate that it is shown, and its key.
    pub(super) fn new(
        dialer: Arc<Dialer>,
        host: &str,
        bundle: Option<&str>,
        client: Option<&(String, String)>,
    ) -> Result<Self, String> {
        let trust = match bundle {
            None => Trust::Anyone,
            Some("") => Trust::System,
            Some(bundle) => Trust::Authorities(bundle),
        };
        let own = client.map(|(certificate, key)| (certificate.as_str(), key.as_str()));
        let connector = Connector::Other(Arc::new(Network(dialer)));
        let client = streaming(connector, trust, own, host)
            .map_err(|error| format!("unable to load root certificates: {error}"))?;
        Ok(Self { client })
    }

    /// Sends a request to an address of the server, which its URI names.
    pub(crate) async fn send(&self, request: Request<Streamed>) -> Result<Response<Incoming>, Unreachable> {
        let uri = request.uri().clone();
        self.client.request(request).await.map_err(|error| Unreachable(go_words(&error, &uri)))
    }

    /// Asks for a document, which may be so large at most.
    pub(crate) async fn get(
        &self,
        url: &Uri,
        headers: impl IntoIterator<Item = (http::HeaderName, http::HeaderValue)>,
        most: usize,
    ) -> Result<Response<Bytes>, Unreachable> {
        let mut request = Request::new(no_body());
        *request.uri_mut() = url.clone();
        request.headers_mut().extend(headers);
        let (head, body) = self.send(request).await?.into_parts();
        let body = Limited::new(body, most).collect().await;
        let body = body.map_err(|error| Unreachable(error.to_string()))?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

/// What a request has that has nothing to say.
fn no_body() -> Streamed {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

impl fmt::Debug for Extension {
    /// Says nothing: what is logged is read by others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").finish_non_exhaustive()
    }
}

/// The network of pods, or of this machine.
struct Network(Arc<Dialer>);

impl Reach for Network {
    fn connect(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<TcpStream>> {
        let (dialer, host) = (self.0.clone(), host.trim_matches(['[', ']']).to_owned());
        Box::pin(async move { dialer.dial(&host, port).await })
    }
}
