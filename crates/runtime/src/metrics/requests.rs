//! Counts the requests to the API, by method and by what came of them.

use http::{Method, Request, Response};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// The counts. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<BTreeMap<Sort, u64>>>);

/// A sort of request. The host is the client's, one for all; codes and methods are few: so are these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sort {
    /// Nothing when no answer came.
    pub(super) code: Option<u16>,
    pub(super) method: &'static str,
    pub(super) host: Arc<str>,
}

impl Requests {
    pub(super) fn read(&self) -> Vec<(Sort, u64)> {
        self.0.lock().iter().map(|(sort, count)| (sort.clone(), *count)).collect()
    }

    fn count(&self, code: Option<u16>, method: &'static str, host: &Arc<str>) {
        let sort = Sort { code, method, host: host.clone() };
        *self.0.lock().entry(sort).or_default() += 1;
    }

    /// Counts what goes through, as requests to this host.
    pub(crate) fn layer(&self, host: &str) -> Counting {
        Counting { requests: self.clone(), host: host.into() }
    }
}

/// The layer of a client that counts.
#[derive(Debug, Clone)]
pub(crate) struct Counting {
    requests: Requests,
    host: Arc<str>,
}

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, counting: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    counting: Counting,
}

impl<S, B, A> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    A: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = futures::future::BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let method = word(request.method());
        let counting = self.counting.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            counting.requests.count(code, method, &counting.host);
            answer
        })
    }
}

/// Those that Kubernetes knows; there is no end of others.
fn word(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}
