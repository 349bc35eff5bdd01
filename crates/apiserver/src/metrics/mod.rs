//! `metrics.k8s.io`, which `kubectl top` asks: what nodes and pods use, as their kubelets say when they are asked. On a cluster
//! of containers an aggregated server does this; here it is the API itself, when it is told to.
//!
//! Kubelets are asked for each request, and nothing is kept between two.

mod simulated;
mod summary;

use crate::connect::KubeletClient;
use crate::http::ApiBody;
use crate::http::response;
use crate::http::response::failure;
use crate::request::media::accept;
use crate::request::path::Target;
use crate::request::query::Query;
use crate::resource::Resource;
use crate::state::ApiState;
use crate::status::{Named, Status};
use futures::{StreamExt as _, stream};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use summary::{Summary, node_metrics, pod_metrics};
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_schema::selector::{Fields, Labels};
use windlass_store::{Entry, Key, ListQuery};

const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";

/// How many kubelets are asked at once.
const AT_ONCE: usize = 16;

/// How long a kubelet may take; those that take longer are left out.
const PATIENCE: Duration = Duration::from_secs(3);

/// The resources of `metrics.k8s.io`, which no definition brings.
pub(crate) fn resources() -> [Resource; 2] {
    let resource = |plural: &str, kind: &str, namespaced: bool| Resource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        namespaced,
        verbs: ["get", "list"].map(str::to_owned).to_vec(),
        custom: true,
        stored_as: format!("{GROUP}/{VERSION}"),
        ..Resource::default()
    };
    [resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)]
}

/// Is it made of figures, and stored nowhere? Of a definition of the same name it is not.
pub(crate) fn is_metrics(resource: &Resource) -> bool {
    resource.group == GROUP && resource.definition.is_empty()
}

/// A request for figures.
pub(crate) struct MetricsRequest<'a> {
    pub(crate) api: &'a Arc<ApiState>,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    pub(crate) ended: CancellationToken,
}

impl MetricsRequest<'_> {
    pub(crate) async fn answer(&self, parts: &Parts) -> Response<ApiBody> {
        let found = match parts.method {
            _ if self.target.subresource.is_some() => Err(Status::no_such_resource()),
            Method::GET if self.query.flag("watch") => Err(Status::method_not_allowed()),
            Method::GET => self.find().await,
            _ => Err(Status::method_not_allowed()),
        };
        match found {
            Ok(value) => {
                let body = ApiBody::full(windlass_schema::json::write(&value).into());
                response::respond(StatusCode::OK, accept::JSON, body)
            }
            Err(status) => failure(&status),
        }
    }

    async fn find(&self) -> Result<Value, Status> {
        let of_nodes = self.target.plural == "nodes";
        if let Some(name) = &self.target.name {
            if !of_nodes && self.target.namespace.is_none() {
                return Err(Status::method_not_allowed());
            }
            let entry = self.api.store.get(&self.key(name)?);
            let mut found = self.measure(entry.into_iter().collect()).await?;
            let named = Named { group: GROUP, kind: &self.target.plural };
            return found.pop().ok_or_else(|| Status::not_found(named, name));
        }
        let labels = Labels::parse(self.query.get("labelSelector").unwrap_or_default());
        let fields = Fields::parse(self.query.get("fieldSelector").unwrap_or_default());
        let unreadable =
            |error: windlass_schema::selector::SelectorError| Status::bad_request(error.to_string());
        let (labels, fields) = (labels.map_err(unreadable)?, fields.map_err(unreadable)?);
        let filter = |entry: &Entry| {
            labels.matches(|name| entry.label(name)) && fields.matches(|name| entry.field(name))
        };
        let resource = self.key("")?.resource;
        let query = ListQuery {
            namespace: self.target.namespace.as_deref(),
            filter: Some(&filter),
            ..ListQuery::all(&resource)
        };
        let page =
            self.api.store.list(&query).map_err(|_| Status::internal("the store was compacted meanwhile"))?;
        let kind = if of_nodes { "NodeMetricsList" } else { "PodMetricsList" };
        let items = self.measure(page.items).await?;
        Ok(json!({
            "kind": kind, "apiVersion": format!("{GROUP}/{VERSION}"), "metadata": {}, "items": items,
        }))
    }

    /// The node or pod that figures are about.
    fn key(&self, name: &str) -> Result<Key, Status> {
        let resource =
            self.api.registry.get("", "v1", &self.target.plural).ok_or_else(Status::no_such_resource)?;
        Ok(Key::new(resource.storage_key(), self.target.namespace.as_deref().unwrap_or_default(), name))
    }

    /// The figures of nodes or pods, of those that there are figures of.
    async fn measure(&self, entries: Vec<Arc<Entry>>) -> Result<Vec<Value>, Status> {
        let of_nodes = self.target.plural == "nodes";
        let objects: Vec<Value> = entries.iter().map(|entry| entry.value()).collect();
        let node_of = |object: &Value| -> Option<String> {
            let path = if of_nodes { "/metadata/name" } else { "/spec/nodeName" };
            Some(object.pointer(path)?.as_str().filter(|node| !node.is_empty())?.to_owned())
        };
        let nodes: BTreeSet<String> = objects.iter().filter_map(node_of).collect();
        let (simulated, kubelets): (BTreeSet<String>, BTreeSet<String>) =
            nodes.into_iter().partition(|node| self.is_simulated(node));
        let summaries = self.ask(kubelets.iter().map(String::as_str).collect()).await;
        let now = self.api.clock.now().to_string();
        let of = |object: &Value| {
            let node = node_of(object)?;
            match (simulated.contains(&node), of_nodes) {
                (true, true) => simulated::of_node(object, &now),
                (true, false) => simulated::of_pod(object, &now),
                (false, true) => node_metrics(object, summaries.get(&node)?),
                (false, false) => pod_metrics(object, summaries.get(&node)?),
            }
        };
        Ok(objects.iter().filter_map(of).collect())
    }

    fn is_simulated(&self, node: &str) -> bool {
        let resource = self.api.registry.get("", "v1", "nodes");
        let entry = resource.and_then(|nodes| self.api.store.get(&Key::new(nodes.storage_key(), "", node)));
        entry.is_some_and(|entry| simulated::is_simulated(&entry.value()))
    }

    async fn ask(&self, nodes: BTreeSet<&str>) -> BTreeMap<String, Summary> {
        let clock = Clock::real();
        let clock = &clock;
        let asking = nodes.into_iter().map(|node| async move {
            let asking = KubeletClient { api: self.api, ended: self.ended.clone() };
            let answer = clock.timeout(PATIENCE, asking.kubelet(node, "/stats/summary")).await.ok()?;
            let read = answer
                .map_err(|status| status.message)
                .and_then(|body| serde_json::from_slice::<Summary>(&body).map_err(|error| error.to_string()));
            match read {
                Ok(summary) => Some((node.to_owned(), summary)),
                Err(error) => {
                    tracing::debug!(node, error, "a node gives no figures");
                    None
                }
            }
        });
        // Polled as boxes: the compiler cannot tell otherwise that they may move between threads.
        let asking: Vec<futures::future::BoxFuture<'_, _>> =
            asking.map(|asked| Box::pin(asked) as _).collect();
        stream::iter(asking).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
    }
}
