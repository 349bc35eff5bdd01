//! The controller of `Memcached`: a Deployment of servers behind a headless Service, since a client that distributes its keys needs to know
//! every server.

use super::memory;
use crate::api::v1beta1::{Memcached, MemcachedStatus};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, Pod, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
    SeccompProfile, SecurityContext, Service, ServicePort, ServiceSpec, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use std::collections::BTreeMap;
use windlass::{Observed, Plan, Reasoned, Refusal, Relation, Until};

const PORT: i32 = 11211;
const PORT_NAME: &str = "memcached";

/// Why this controller does what it does: in events, conditions and logs.
#[derive(Debug)]
enum Why {
    RunsTheServers,
    LetsClientsFindThem,
    WaitsForServers { ready: i32, size: i32 },
    NameIsNoHostName,
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::RunsTheServers => "the servers run in a Deployment".to_owned(),
            Self::LetsClientsFindThem => "clients find the servers by the Service's name".to_owned(),
            Self::WaitsForServers { ready, size } => format!("{ready} of {size} servers are ready"),
            Self::NameIsNoHostName => {
                "its name must be a host name for its Service: at most 63 of a-z, 0-9 and -, from a letter to no -"
                    .to_owned()
            }
        }
    }
}

/// The pods that serve for it.
pub fn servers(memcached: &Memcached) -> Relation {
    Relation::labelled(labels(memcached))
}

/// What a Memcached needs, given what is there.
///
/// # Errors
/// When no Service can have its name, or it asks for what its controller does not watch.
pub fn decide(memcached: &Memcached, observed: &Observed) -> Result<Plan, Refusal> {
    if !is_host_name(&memcached.name_any()) {
        return Err(Why::NameIsNoHostName.into());
    }
    let size = memcached.spec.size;
    let deployment = observed.get::<Deployment>(&memcached.name_any())?;
    let ready = deployment.and_then(|deployment| deployment.status.as_ref()?.ready_replicas).unwrap_or(0);
    let nodes = nodes(observed)?;
    let settled = ready == size && nodes.len() == usize::try_from(size).unwrap_or(0);
    let plan = Plan::new()
        .apply(deployment_of(memcached), Why::RunsTheServers)
        .apply(service_of(memcached), Why::LetsClientsFindThem)
        .status(MemcachedStatus { nodes, ready, ..Default::default() });
    Ok(match settled {
        true => plan,
        false => plan.wait(Why::WaitsForServers { ready, size }, Until::Change),
    })
}

/// The names of the pods that are not on their way out, in order.
fn nodes(observed: &Observed) -> Result<Vec<String>, Refusal> {
    let pods = observed.list::<Pod>()?;
    let mut names: Vec<String> = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .map(|pod| pod.name_any())
        .collect();
    names.sort();
    Ok(names)
}

/// Whether a Service may be called so. The API allows more for a Memcached, and only says so when the Service is made.
fn is_host_name(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
}

fn labels(memcached: &Memcached) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "memcached".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), memcached.name_any()),
    ])
}

fn metadata(memcached: &Memcached) -> ObjectMeta {
    ObjectMeta { name: Some(memcached.name_any()), labels: Some(labels(memcached)), ..Default::default() }
}

fn deployment_of(memcached: &Memcached) -> Deployment {
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(memcached)), ..Default::default() }),
        spec: Some(PodSpec {
            containers: vec![container(memcached)],
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(11211),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }),
    };
    Deployment {
        metadata: metadata(memcached),
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size),
            selector: LabelSelector { match_labels: Some(labels(memcached)), ..Default::default() },
            template,
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn container(memcached: &Memcached) -> Container {
    let answers = Probe {
        tcp_socket: Some(TCPSocketAction {
            port: IntOrString::String(PORT_NAME.to_owned()),
            ..Default::default()
        }),
        period_seconds: Some(1),
        ..Default::default()
    };
    Container {
        name: "memcached".to_owned(),
        image: Some(memcached.spec.image.clone()),
        command: Some(command(memcached)),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.to_owned()),
            container_port: PORT,
            ..Default::default()
        }]),
        readiness_probe: Some(answers),
        resources: memcached.spec.resources.clone(),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn command(memcached: &Memcached) -> Vec<String> {
    let items = memory::for_items(memcached.spec.resources.as_ref());
    let connections = memcached.spec.max_connections.map(|most| format!("--conn-limit={most}"));
    ["memcached".to_owned(), format!("--memory-limit={items}")].into_iter().chain(connections).collect()
}

fn service_of(memcached: &Memcached) -> Service {
    Service {
        metadata: metadata(memcached),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(labels(memcached)),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port: PORT,
                target_port: Some(IntOrString::String(PORT_NAME.to_owned())),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}
