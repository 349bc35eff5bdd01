//! Asks the running operator about an object: the one on this machine that works on the same cluster, or its pods through the
//! API server, or whoever serves where `--metrics-bind-address` says.

use super::program;
use super::registration::registered;
use crate::error_chain::chain;
use crate::key::Key;
use crate::kind::Kind;
use crate::serve::Bind;
use k8s_openapi::api::core::v1::Pod;
use kube::core::ObjectList;
use serde_json::Value;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_clock::Clock;

/// What an operator says of one object is short.
const LARGEST_ANSWER: u64 = 1 << 20;
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// An operator has few replicas.
const MOST_PODS: usize = 10;
/// The label that `windlass generate` gives the pods of an operator, with the name of its program.
const NAME_LABEL: &str = "app.kubernetes.io/name";
/// The name of the container port that serves `/debug`.
const PORT_NAME: &str = "metrics";

/// Who is to be asked about what.
pub(super) struct Question<'a> {
    pub(super) clock: &'a Clock,
    pub(super) client: &'a kube::Client,
    /// The host and port of the API server, where they are known.
    pub(super) cluster: Option<&'a str>,
    pub(super) metrics_at: Bind,
    pub(super) kind: &'a Kind,
    pub(super) key: &'a Key,
}

impl Question<'_> {
    /// What the operator says: the one that leads, if several answer.
    pub(super) async fn ask(&self) -> Result<Value, String> {
        let mut not_leading = None;
        for found in self.cluster.map(registered).unwrap_or_default() {
            match self.at(found.debug_address).await {
                Ok(answer) if leads(&answer) => return Ok(answer),
                Ok(answer) => not_leading = Some(answer),
                Err(Unreached { nobody: true, .. }) => found.forget(),
                Err(_) => {}
            }
        }
        let pods = self.pods().await;
        for (namespace, name, port) in pods.as_deref().unwrap_or_default() {
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy{}", self.path());
            match self.within(self.get(path)).await {
                Ok(answer) if leads(&answer) => return Ok(answer),
                Ok(answer) => not_leading = Some(answer),
                Err(_) => {}
            }
        }
        if let Some(answer) = not_leading {
            return Ok(answer);
        }
        let program = program();
        let pods = match pods {
            Ok(pods) if pods.is_empty() => format!("no pod runs with the label {NAME_LABEL}={program}"),
            Ok(pods) => format!("none of {} pods with the label {NAME_LABEL}={program} answers", pods.len()),
            Err(why) => format!("its pods cannot be listed: {why}"),
        };
        let Bind::At(address) = self.metrics_at else {
            return Err(format!("{program} does not run on this machine for this cluster, and {pods}"));
        };
        self.at(address).await.map_err(|unreached| {
            format!(
                "{program} does not run on this machine for this cluster, {pods}, and at {address} \
                 (--metrics-bind-address) {}",
                unreached.why
            )
        })
    }

    fn path(&self) -> String {
        let namespace = self.key.namespace().map(|namespace| format!("&namespace={namespace}"));
        let (kind, name) = (&self.kind.plural, self.key.name());
        format!("/debug?kind={kind}{}&name={name}", namespace.unwrap_or_default())
    }

    async fn within<T>(&self, answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let answered = self.clock.timeout(ANSWERS_WITHIN, answer).await;
        answered.unwrap_or_else(|late| Err(late.to_string()))
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: String) -> Result<T, String> {
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        self.client.request(request).await.map_err(|error| chain(&error))
    }

    /// The operator's pods that run: namespace, name, and the port that serves `/debug`.
    async fn pods(&self) -> Result<Vec<(String, String, i32)>, String> {
        let label = NAME_LABEL.replace('/', "%2F");
        let path = format!("/api/v1/pods?labelSelector={label}%3D{}&limit={MOST_PODS}", program());
        let pods: ObjectList<Pod> = self.within(self.get(path)).await?;
        Ok(pods.items.iter().filter_map(place).collect())
    }

    /// Asks who serves at an address.
    async fn at(&self, address: SocketAddr) -> Result<Value, Unreached> {
        // Who serves on all interfaces is reached on the nearest.
        let host =
            if address.ip().is_unspecified() { IpAddr::from(Ipv4Addr::LOCALHOST) } else { address.ip() };
        let asking = async {
            let mut stream = TcpStream::connect((host, address.port())).await?;
            let request =
                format!("GET {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n", self.path());
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.take(LARGEST_ANSWER).read_to_string(&mut answer).await?;
            Ok(answer)
        };
        let answer: Result<String, std::io::Error> = match self.clock.timeout(ANSWERS_WITHIN, asking).await {
            Ok(answer) => answer,
            Err(late) => return Err(Unreached { why: late.to_string(), nobody: false }),
        };
        let answer = answer.map_err(|error| Unreached {
            why: format!("no operator is reached: {error}"),
            nobody: error.kind() == ErrorKind::ConnectionRefused,
        })?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body)
            .map_err(|_| Unreached { why: "what answers is no operator".to_owned(), nobody: false })
    }
}

/// Why there is no answer.
struct Unreached {
    why: String,
    /// Nobody listens there.
    nobody: bool,
}

/// Whether an answer is of the operator that does the work.
fn leads(answer: &Value) -> bool {
    answer.as_array().into_iter().flatten().any(|one| one.get("leads").is_none_or(|leads| *leads == true))
}

/// Where a pod that runs serves `/debug`.
fn place(pod: &Pod) -> Option<(String, String, i32)> {
    let running = pod.status.as_ref()?.phase.as_deref() == Some("Running");
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some(PORT_NAME))?.container_port;
    running.then_some((pod.metadata.namespace.clone()?, pod.metadata.name.clone()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_asked_where_its_metrics_are_while_it_runs() {
        let pod = |phase: &str, port: &str| -> Pod {
            serde_json::from_value(
                json!({"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": phase},
                "spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [
                    {"name": "health", "containerPort": 8081}, {"name": port, "containerPort": 8080}]}]}}),
            )
            .unwrap()
        };
        assert_eq!(place(&pod("Running", "metrics")), Some(("n".into(), "p".into(), 8080)));
        assert_eq!(place(&pod("Pending", "metrics")), None);
        assert_eq!(place(&pod("Running", "web")), None);
    }

    #[test]
    fn who_leads_knows_more() {
        assert!(leads(&json!([{"controller": "a", "leads": true}])));
        assert!(!leads(&json!([{"controller": "a", "leads": false}])));
        assert!(!leads(&json!([])), "an operator that is not for the kind");
    }
}
