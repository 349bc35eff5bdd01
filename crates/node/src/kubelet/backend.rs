//! What the kubelet's server serves: logs, exec, attach, port-forward and stats of the node's pods.

use crate::logs::{self, LogOptions, LogStream};
use crate::pods::node_context::NodeContext;
use crate::server::{
    Backend, ContainerRef, ContainerStats, Cpu, Duplex, Exit, HttpError, Memory, NodeStats, PodName, PodRef,
    PodStats, Streams, Summary,
};
use crate::shim::{ContainerState, Exec, Phase, Running, Shim, ShimError, Size};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use windlass::Key;

/// The backend of the kubelet's server.
pub(super) struct KubeletBackend {
    pub(super) context: Arc<NodeContext>,
    pub(super) since: Timestamp,
    /// The CPU time of each container at the last request, for the rate since then.
    pub(super) used: Mutex<HashMap<(String, String), (Timestamp, u64)>>,
}

impl KubeletBackend {
    fn pod(&self, pod: &PodRef) -> Result<Arc<Pod>, HttpError> {
        let key = Key::new("".into(), Some(&pod.namespace), &pod.name);
        let found = self.context.pods.get(&key);
        let same = |found: &Arc<Pod>| pod.uid.is_none() || found.metadata.uid == pod.uid;
        found.filter(same).ok_or_else(|| HttpError::not_found("pod does not exist"))
    }

    fn uid(pod: &Pod) -> &str {
        pod.metadata.uid.as_deref().unwrap_or_default()
    }

    async fn shim(&self, pod: &Pod) -> Result<Shim, HttpError> {
        let found = Shim::find(&self.context.pod_dir(Self::uid(pod))).await;
        found.ok_or_else(|| HttpError::internal("the pod is not running: it has no sandbox"))
    }

    /// A token that is cancelled when this attempt of a container has terminated.
    async fn end_of(&self, pod: &Pod, container: &str, attempt: u32) -> CancellationToken {
        let ended = CancellationToken::new();
        let Some(shim) = Shim::find(&self.context.pod_dir(Self::uid(pod))).await else {
            ended.cancel();
            return ended;
        };
        let (token, container) = (ended.clone(), container.to_owned());
        tokio::spawn(async move {
            let mut version = 0;
            let runs = |states: &[ContainerState]| {
                states.iter().any(|state| {
                    state.name == container
                        && state.attempt == attempt
                        && matches!(state.phase, Phase::Running { .. })
                })
            };
            while let Ok(states) = shim.states().await {
                if !runs(&states) {
                    break;
                }
                tokio::select! {
                    changed = shim.changed(version) => match changed {
                        Ok(now) => version = now,
                        Err(_) => break,
                    },
                    () = token.cancelled() => break,
                }
            }
            token.cancel();
        });
        ended
    }
}

fn status(pod: &Pod, name: &str) -> Option<ContainerStatus> {
    let status = pod.status.as_ref()?;
    let usual = status.container_statuses.iter().chain(&status.init_container_statuses);
    let all = usual.chain(&status.ephemeral_container_statuses).flatten();
    all.into_iter().find(|status| status.name == name).cloned()
}

fn http_error(error: ShimError) -> HttpError {
    match error {
        ShimError::NoContainer(_) | ShimError::NotRunning(_) => HttpError::bad_request(error.to_string()),
        other => HttpError::internal(other),
    }
}

impl Backend for KubeletBackend {
    async fn find(&self, container: &ContainerRef) -> Result<(), HttpError> {
        let pod = self.pod(&container.pod)?;
        match crate::pods::has_container(&pod, &container.name) {
            true => Ok(()),
            false => {
                let (name, pod) = (&container.name, &container.pod.name);
                Err(HttpError::not_found(format!("container {name:?} not found in pod {pod:?}")))
            }
        }
    }

    async fn find_pod(&self, pod: &PodRef) -> Result<(), HttpError> {
        self.pod(pod).map(drop)
    }

    async fn logs(&self, container: &ContainerRef, options: LogOptions) -> Result<LogStream, HttpError> {
        let pod = self.pod(&container.pod)?;
        let (name, of) = (&container.name, &container.pod.name);
        let status = status(&pod, name).unwrap_or_default();
        let waits = status.state.as_ref().and_then(|state| state.waiting.clone());
        let attempt = u32::try_from(status.restart_count).unwrap_or(0);
        if status.container_id.is_none() {
            let reason =
                waits.and_then(|waits| waits.reason).unwrap_or_else(|| "ContainerCreating".to_owned());
            let why = format!("container {name:?} in pod {of:?} is waiting to start: {reason}");
            return Err(HttpError::bad_request(why));
        }
        let attempt = if options.previous {
            // The last attempt of one that waits to be restarted is the previous one.
            let before = if waits.is_some() { Some(attempt) } else { attempt.checked_sub(1) };
            before.ok_or_else(|| {
                HttpError::bad_request(format!(
                    "previous terminated container {name:?} in pod {of:?} not found"
                ))
            })?
        } else {
            attempt
        };
        let path = self.context.pod_logs_dir(&pod).join(name).join(format!("{attempt}.log"));
        let ended = match options.follow {
            true => self.end_of(&pod, name, attempt).await,
            false => CancellationToken::new(),
        };
        Ok(logs::read(path, options, ended, self.context.clock.clone()))
    }

    async fn exec(
        &self,
        container: &ContainerRef,
        command: Vec<String>,
        streams: Streams,
    ) -> Result<Exit, HttpError> {
        let pod = self.pod(&container.pod)?;
        let exec = Exec { command, terminal: streams.tty, stdin: streams.stdin.is_some(), size: None };
        let running = self.shim(&pod).await?.exec(&container.name, exec).await.map_err(http_error)?;
        copy_streams(running, streams).await
    }

    async fn attach(&self, container: &ContainerRef, streams: Streams) -> Result<Exit, HttpError> {
        let pod = self.pod(&container.pod)?;
        let running = self.shim(&pod).await?.attach(&container.name).await.map_err(http_error)?;
        copy_streams(running, streams).await
    }

    async fn connect(&self, pod: &PodRef, port: u16) -> Result<Box<dyn Duplex>, HttpError> {
        let pod = self.pod(pod)?;
        // As a kubelet: to the pod's loopback, where programs may listen for nobody else.
        let stream = self.shim(&pod).await?.connect_to(port).await;
        Ok(Box::new(stream.map_err(HttpError::internal)?))
    }

    async fn stats(&self) -> Summary {
        let now = self.context.clock.now();
        let mut pods = Vec::new();
        for pod in self.context.pods.list() {
            let Some(shim) = Shim::find(&self.context.pod_dir(Self::uid(&pod))).await else { continue };
            let (Ok(usage), Ok(states)) = (shim.usage().await, shim.states().await) else { continue };
            let began = |name: &str| {
                let running = states.iter().rev().find(|state| state.name == name);
                match running.map(|state| &state.phase) {
                    Some(Phase::Running { started, .. }) => {
                        Timestamp::from_millisecond(*started).unwrap_or(now)
                    }
                    _ => now,
                }
            };
            let containers: Vec<ContainerStats> = usage
                .iter()
                .map(|used| ContainerStats {
                    name: used.name.clone(),
                    start_time: began(&used.name),
                    cpu: self.cpu(Self::uid(&pod), &used.name, used.cpu_nanoseconds, now),
                    memory: memory(used.memory_bytes, now),
                })
                .collect();
            let text = |part: &Option<String>| part.clone().unwrap_or_default();
            pods.push(PodStats {
                pod_ref: PodName {
                    name: text(&pod.metadata.name),
                    namespace: text(&pod.metadata.namespace),
                    uid: text(&pod.metadata.uid),
                },
                start_time: pod
                    .status
                    .as_ref()
                    .and_then(|status| status.start_time.as_ref())
                    .map_or(now, |at| at.0),
                cpu: sum(containers.iter().map(|container| container.cpu), now),
                memory: memory(containers.iter().map(|container| container.memory.usage_bytes).sum(), now),
                containers,
            });
        }
        let known: Vec<&str> = pods.iter().map(|pod| pod.pod_ref.uid.as_str()).collect();
        self.used.lock().retain(|(uid, _), _| known.contains(&uid.as_str()));
        let node = NodeStats {
            node_name: self.context.node.clone(),
            start_time: self.since,
            cpu: sum(pods.iter().map(|pod| pod.cpu), now),
            memory: memory(pods.iter().map(|pod| pod.memory.usage_bytes).sum(), now),
        };
        Summary { node, pods }
    }

    async fn pods(&self) -> Value {
        let items: Vec<Value> = self.context.pods.list().iter().map(|pod| json!(**pod)).collect();
        json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items })
    }
}

impl KubeletBackend {
    fn cpu(&self, uid: &str, name: &str, used: u64, now: Timestamp) -> Cpu {
        let before = self.used.lock().insert((uid.to_owned(), name.to_owned()), (now, used));
        let rate = before.map_or(0, |(then, before)| {
            let passed = u128::try_from(now.duration_since(then).as_nanos()).unwrap_or(0).max(1);
            u64::try_from(u128::from(used.saturating_sub(before)) * 1_000_000_000 / passed)
                .unwrap_or(u64::MAX)
        });
        Cpu { time: now, usage_nano_cores: rate, usage_core_nano_seconds: used }
    }
}

fn sum(all: impl Iterator<Item = Cpu>, time: Timestamp) -> Cpu {
    all.fold(Cpu { time, usage_nano_cores: 0, usage_core_nano_seconds: 0 }, |sum, one| Cpu {
        time,
        usage_nano_cores: sum.usage_nano_cores.saturating_add(one.usage_nano_cores),
        usage_core_nano_seconds: sum.usage_core_nano_seconds.saturating_add(one.usage_core_nano_seconds),
    })
}

fn memory(bytes: u64, time: Timestamp) -> Memory {
    Memory { time, available_bytes: None, usage_bytes: bytes, working_set_bytes: bytes }
}

/// Copies the streams of a program, until it exits and all its output is copied.
async fn copy_streams(mut running: Running, mut streams: Streams) -> Result<Exit, HttpError> {
    let feeding = streams.stdin.take().zip(running.stdin.take()).map(|(mut from, mut into)| {
        tokio::spawn(async move {
            let _ = tokio::io::copy(&mut from, &mut into).await;
        })
    });
    let out = copy(running.stdout.take(), streams.stdout.take());
    let err = copy(running.stderr.take(), streams.stderr.take());
    let control = &running.control;
    let sizes = async {
        while let Some(size) = streams.sizes.recv().await {
            let _ = control.resize(Size { columns: size.width, rows: size.height }).await;
        }
        std::future::pending::<()>().await;
    };
    let done = async { tokio::join!(out, err, control.wait()).2 };
    let code = tokio::select! {
        code = done => code,
        () = sizes => Err(ShimError::Gone),
    };
    if let Some(feeding) = feeding {
        feeding.abort();
    }
    code.map(Exit).map_err(http_error)
}

async fn copy(from: Option<impl AsyncRead + Unpin>, into: Option<crate::server::Output>) {
    let Some(mut from) = from else { return };
    match into {
        Some(mut into) => {
            let _ = tokio::io::copy(&mut from, &mut into).await;
            let _ = into.shutdown().await;
        }
        None => drop(tokio::io::copy(&mut from, &mut tokio::io::sink()).await),
    }
}
