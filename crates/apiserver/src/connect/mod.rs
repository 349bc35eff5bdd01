//! Subresources that lead to a node: logs, exec, attach, port-forward and proxies. What they say is the node's to say; here it
//! is found out which node that is, and the bytes are passed on both ways.
//!
//! `location` finds the container that is meant and where its node's kubelet listens, purely. `forward` connects there,
//! with a client certificate of the cluster, and copies bytes: the API server itself speaks none of the streaming
//! protocols. As with a stock API server, a kubelet's certificate is not verified, since kubelets sign their own.
//!
//! `nodes/proxy` reaches a loopback address only at the kubelet's own port, where the kubelet authenticates; other ports of
//! this machine are refused, as the reference does. Pods may be in a network that this machine has no route to; a node in
//! the same process then provides a dialer ([`Api::dial_with`](crate::Api::dial_with)), and proxies to pods and Services
//! use it. `links` rewrites links in proxied pages and in `Location`, so that they lead back through the proxy.

mod forward;
mod links;
mod location;
mod options;

use crate::dial::{Address, Scheme, service_address};
use crate::http::ApiBody;
use crate::http::response::{failure, respond};
use crate::request::path::Target;
use crate::request::query::Query;
use crate::resource::Resource;
use crate::state::ApiState;
use crate::status::Status;
use bytes::Bytes;
use forward::Forwarding;
use http::header::{HeaderValue, LOCATION, UPGRADE};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::upgrade::OnUpgrade;
use location::Kubelet;
use options::LogOptions;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_schema::quote;
use windlass_store::Key;

/// How much a kubelet may answer to the API's own questions.
const LARGEST_ANSWER: usize = 16 * 1024 * 1024;

/// A subresource that leads to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connects {
    Log,
    Exec,
    Attach,
    PortForward,
    PodProxy,
    ServiceProxy,
    NodeProxy,
}

/// Which, if any, a request is for.
pub(crate) fn connects(resource: &Resource, target: &Target) -> Option<Connects> {
    target.name.as_ref()?;
    let subresource = target.subresource.as_deref()?;
    let first = subresource.split('/').next()?;
    let known = match (resource.group.as_str(), resource.plural.as_str(), subresource) {
        ("", "pods", "log") => Connects::Log,
        ("", "pods", "exec") => Connects::Exec,
        ("", "pods", "attach") => Connects::Attach,
        ("", "pods", "portforward") => Connects::PortForward,
        ("", "pods", _) if first == "proxy" => Connects::PodProxy,
        ("", "services", _) if first == "proxy" => Connects::ServiceProxy,
        ("", "nodes", _) if first == "proxy" => Connects::NodeProxy,
        _ => return None,
    };
    Some(known)
}

/// A request that leads to a node.
pub(crate) struct ConnectRequest<'a> {
    pub(crate) api: &'a Arc<ApiState>,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    /// Ends what was connected when the server stops.
    pub(crate) ended: CancellationToken,
}

impl ConnectRequest<'_> {
    pub(crate) async fn answer(
        &self,
        what: Connects,
        parts: Parts,
        body: Result<Bytes, Status>,
    ) -> Response<ApiBody> {
        let answered = match what {
            Connects::Log => self.log(&parts).await,
            Connects::Exec => self.stream("exec", parts).await,
            Connects::Attach => self.stream("attach", parts).await,
            Connects::PortForward => self.forward(parts).await,
            Connects::PodProxy | Connects::ServiceProxy | Connects::NodeProxy => {
                self.proxy(what, parts, body).await
            }
        };
        answered.unwrap_or_else(|status| failure(&status))
    }

    async fn log(&self, parts: &Parts) -> Result<Response<ApiBody>, Status> {
        if parts.method != Method::GET {
            return Err(Status::method_not_allowed());
        }
        let options = LogOptions::read(self.query)?;
        options.check(self.name())?;
        let pod = self.pod(self.name())?;
        let container = location::container(&pod, self.query.get("container").unwrap_or_default())?;
        let node = location::node_of(&pod);
        if node.is_empty() {
            // Nothing was written yet.
            return Ok(respond(StatusCode::OK, TEXT, ApiBody::full(Bytes::new())));
        }
        let kubelet = self.kubelet(node)?;
        let path = format!("/containerLogs/{}/{}/{container}", self.namespace(), self.name());
        let path = location::with_query(&path, &options.parameters());
        let response = self.passing().get(&kubelet, &path).await?;
        if !response.status().is_success() {
            return Err(forward::refused("pods/log", self.name(), response).await);
        }
        let body = response.into_body();
        Ok(respond(StatusCode::OK, TEXT, ApiBody::passed(body, self.ended.clone())))
    }

    /// Exec and attach, which run until one side has enough.
    async fn stream(&self, what: &str, parts: Parts) -> Result<Response<ApiBody>, Status> {
        upgradable(&parts)?;
        let pod = self.pod(self.name())?;
        let container = location::container(&pod, self.query.get("container").unwrap_or_default())?;
        let kubelet = self.assigned(&pod)?;
        let mut parameters = options::streams(self.query);
        if what == "exec" {
            parameters.extend(self.query.all("command").map(|word| ("command", word.to_owned())));
        }
        let path = format!("/{what}/{}/{}/{container}", self.namespace(), self.name());
        self.upgrade(&kubelet, &location::with_query(&path, &parameters), parts).await
    }

    async fn forward(&self, parts: Parts) -> Result<Response<ApiBody>, Status> {
        upgradable(&parts)?;
        let pod = self.pod(self.name())?;
        let kubelet = self.assigned(&pod)?;
        let ports: Vec<&str> = self.query.all("ports").collect();
        let parameters = if ports.is_empty() { vec![] } else { vec![("port", ports.join(","))] };
        let path = format!("/portForward/{}/{}", self.namespace(), self.name());
        self.upgrade(&kubelet, &location::with_query(&path, &parameters), parts).await
    }

    async fn upgrade(
        &self,
        kubelet: &Kubelet,
        path: &str,
        mut parts: Parts,
    ) -> Result<Response<ApiBody>, Status> {
        let Some(client) = parts.extensions.remove::<OnUpgrade>() else {
            return Err(Status::bad_request("Upgrade request required"));
        };
        self.passing().upgrade(kubelet, path, &parts, client).await
    }

    async fn proxy(
        &self,
        what: Connects,
        mut parts: Parts,
        body: Result<Bytes, Status>,
    ) -> Result<Response<ApiBody>, Status> {
        let kind = match what {
            Connects::PodProxy => "pod",
            Connects::ServiceProxy => "service",
            _ => "node",
        };
        let Some((scheme, name, port)) = location::scheme_name_port(self.name()) else {
            return Err(Status::bad_request(format!("invalid {kind} request {}", quote(self.name()))));
        };
        let to = match what {
            Connects::PodProxy => location::pod_address(&self.pod(name)?, scheme, port)?,
            Connects::ServiceProxy => {
                let through = (&*self.api.store, &*self.api.dialer);
                service_address(through, (self.namespace(), name), scheme, port)?
            }
            _ => {
                let kubelet = self.kubelet(name)?;
                match port.is_empty() || port == kubelet.port.to_string() {
                    true => Address { scheme: Scheme::Kubelet, host: kubelet.host, port: kubelet.port },
                    false => location::beside(&kubelet, scheme, port)?,
                }
            }
        };
        // What is behind the subresource, as it was written: escapes and a slash at the end count.
        let before = if what == Connects::NodeProxy { 5 } else { 7 };
        let rest = parts.uri.path().splitn(before + 2, '/').nth(before + 1).unwrap_or_default();
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let reads = parts.method == Method::GET || parts.method == Method::HEAD;
        if reads
            && !parts.headers.contains_key(UPGRADE)
            && parts.uri.path().ends_with("/proxy")
            && rest.is_empty()
        {
            // What pages refer to is beside them only if this is a folder.
            return Ok(redirect(&format!("{}/{query}", parts.uri.path())));
        }
        let path = format!("/{rest}{query}");
        let client = parts.extensions.remove::<OnUpgrade>();
        self.passing().proxy(&to, &path, &parts, body?, client).await
    }

    fn passing(&self) -> Forwarding<'_> {
        Forwarding { dialer: &self.api.dialer, api: self.api, ended: self.ended.clone() }
    }

    fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    fn pod(&self, name: &str) -> Result<Value, Status> {
        stored(self.api, "pods", self.namespace(), name)
    }

    fn kubelet(&self, node: &str) -> Result<Kubelet, Status> {
        kubelet_of(self.api, node)
    }

    /// The node that a pod was given.
    fn assigned(&self, pod: &Value) -> Result<Kubelet, Status> {
        match location::node_of(pod) {
            "" => {
                let why = format!("pod {} does not have a host assigned", self.name());
                Err(Status::bad_request(why))
            }
            node => self.kubelet(node),
        }
    }
}

/// A question of the API's own to a kubelet.
pub(crate) struct KubeletClient<'a> {
    pub(crate) api: &'a Arc<ApiState>,
    pub(crate) ended: CancellationToken,
}

impl KubeletClient<'_> {
    /// What the kubelet of a node answers, if it is not too much.
    pub(crate) async fn kubelet(&self, node: &str, path: &str) -> Result<Bytes, Status> {
        let kubelet = kubelet_of(self.api, node)?;
        let passing = Forwarding { dialer: &self.api.dialer, api: self.api, ended: self.ended.clone() };
        let response = passing.get(&kubelet, path).await?;
        if !response.status().is_success() {
            return Err(forward::refused("nodes/stats", node, response).await);
        }
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
        body.map(|body| body.to_bytes()).map_err(Status::internal)
    }
}

fn kubelet_of(api: &ApiState, node: &str) -> Result<Kubelet, Status> {
    location::kubelet(&stored(api, "nodes", "", node)?)
}

fn stored(api: &ApiState, plural: &str, namespace: &str, name: &str) -> Result<Value, Status> {
    let resource = api.registry.get("", "v1", plural).ok_or_else(Status::no_such_resource)?;
    let entry = api.store.get(&Key::new(resource.storage_key(), namespace, name));
    entry.map(|entry| entry.value()).ok_or_else(|| Status::not_found(resource.named(), name))
}

fn redirect(to: &str) -> Response<ApiBody> {
    let mut response = respond(StatusCode::MOVED_PERMANENTLY, TEXT, ApiBody::full(Bytes::new()));
    if let Ok(to) = HeaderValue::try_from(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

/// What logs are.
const TEXT: &str = "text/plain";

fn upgradable(parts: &Parts) -> Result<(), Status> {
    match parts.method == Method::GET || parts.method == Method::POST {
        true => Ok(()),
        false => Err(Status::method_not_allowed()),
    }
}
