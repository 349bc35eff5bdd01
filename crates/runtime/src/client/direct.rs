//! The way that the library's own requests take: past the queue that every [`kube::Client`] has before its service.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use std::sync::Arc;
use tower::{BoxError, Service, ServiceExt};

/// Takes requests to the server and brings whole answers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DirectClient(Arc<Take>);

type Take =
    dyn Fn(Request<Vec<u8>>) -> BoxFuture<'static, Result<Response<Bytes>, kube::Error>> + Send + Sync;

impl DirectClient {
    /// The way of a client.
    pub(crate) fn of(client: &Client) -> Self {
        let client = client.clone();
        Self(Arc::new(move |request| {
            let client = client.clone();
            Box::pin(async move {
                let (head, body) = client.send(request.map(Body::from)).await?.into_parts();
                Ok(Response::from_parts(head, body.collect_bytes().await?))
            })
        }))
    }

    /// The way of a service.
    pub(crate) fn by<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError, Future: Send>,
        S: Clone + Send + Sync + 'static,
        B: http_body::Body<Data = Bytes, Error = hyper::Error> + Send,
    {
        Self(Arc::new(move |request| {
            let service = service.clone();
            Box::pin(async move {
                let answer = service.oneshot(request.map(Body::from)).await.map_err(as_kube_says)?;
                let (head, body) = answer.into_parts();
                let body = body.collect().await.map_err(kube::Error::HyperError)?;
                Ok(Response::from_parts(head, body.to_bytes()))
            })
        }))
    }

    /// Sends a request and waits for the whole answer.
    pub(crate) async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Bytes>, kube::Error> {
        (self.0)(request).await
    }
}

/// The error that a client would have made of it.
fn as_kube_says(error: BoxError) -> kube::Error {
    let error = error.downcast::<kube::Error>().map(|error| *error);
    error
        .or_else(|error| error.downcast::<hyper::Error>().map(|error| kube::Error::HyperError(*error)))
        .unwrap_or_else(kube::Error::Service)
}
